#include "registry/stream.h"

#include <stdlib.h>
#include <string.h>

#include "text/error.h"
#include "registry/name.h"
#include "registry/series.h"

enum { MAX_LABELS = 64 };

/* ---- Labels ---------------------------------------------------------------------------------- */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const weir_label *)a)->key, ((const weir_label *)b)->key);
}

static bool check_labels(const weir_label *labels, size_t count, struct wr_error *error)
{
    if (count > MAX_LABELS || (count && !labels)) {
        wr_error_set(error, WEIR_ERR_NAME, "labels: %zu of them; 0 to %d are allowed", labels ? count : 0,
                     MAX_LABELS);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!wr_name_check(labels[i].key, "label key", error) ||
            !wr_name_check_text(labels[i].value, WR_NAME_VALUE_LONGEST, "label value", error))
            return false;
    }
    return true;
}

static bool sort_labels(weir_label *sorted, const weir_label *labels, size_t count, struct wr_error *error)
{
    if (!count)
        return true;
    memcpy(sorted, labels, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_labels);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0) {
            wr_error_set(error, WEIR_ERR_NAME, "label key \"%s\": given twice; keys must be unique",
                         sorted[i].key);
            return false;
        }
    }
    return true;
}

/* ---- Creating -------------------------------------------------------------------------------- */

/* The stream that replaces all label sets of a group beyond the limit. Not counted against it: there is at most
 * one per group, and groups are counted. */
static struct weir_stream *get_overflow(struct wr_registry *registry, struct wr_group *group)
{
    struct weir_stream *stream = atomic_load_explicit(&group->overflow_stream, memory_order_relaxed);
    if (stream || !wr_series_overflow(registry, group))
        return stream;
    stream = wr_arena_get(&registry->arena, sizeof *stream, WR_LINE);
    if (!stream)
        return NULL;
    *stream = (struct weir_stream){.group = group, .overflow = true};
    /* release: pairs with the acquire in find */
    atomic_store_explicit(&group->overflow_stream, stream, memory_order_release);
    return stream;
}

static struct weir_stream *make_labeled(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = wr_registry_find_stream(registry, key);
    if (stream)
        return stream;
    if (!wr_registry_count_one(registry))
        return get_overflow(registry, (struct wr_group *)key->group);
    return wr_registry_add_stream(registry, key);
}

static struct wr_group *make_group(struct wr_registry *registry, const struct wr_group_key *key,
                                   bool *over_limit)
{
    struct wr_group *group = wr_registry_find_group(registry, key);
    if (group)
        return group;
    *over_limit = !wr_registry_count_one(registry);
    return *over_limit ? NULL : wr_registry_add_group(registry, key);
}

static struct weir_stream *make(struct wr_registry *registry, const struct wr_group_key *group_key,
                                const weir_label *labels, size_t count, struct wr_error *error)
{
    struct weir_stream *stream = NULL;
    bool over_limit = false;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    struct wr_group *group = make_group(registry, group_key, &over_limit);
    struct wr_stream_key key = {group, labels, count};
    if (group)
        stream = count ? make_labeled(registry, &key) : wr_registry_plain_stream(registry, group);
    wr_registry_unlock(registry, &signals);
    if (stream)
        return stream;
    if (over_limit) {
        wr_error_set(error, WEIR_ERR_LIMIT, "group \"%s\": settings.max_series (%u) is reached",
                     group_key->name, atomic_load_explicit(&registry->max, memory_order_relaxed));
        return &registry->over_limit;
    }
    wr_error_set(error, WEIR_ERR_MEMORY, "group \"%s\": out of memory", group_key->name);
    return &registry->no_memory;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static struct weir_stream *find(const struct wr_registry *registry, const struct wr_group_key *group_key,
                                const weir_label *labels, size_t count)
{
    const struct wr_group *group = wr_registry_find_group(registry, group_key);
    if (!group)
        return NULL;
    struct wr_stream_key key = {group, labels, count};
    struct weir_stream *stream = wr_registry_find_stream(registry, &key);
    if (!stream && count && wr_registry_is_full(registry))
        stream = atomic_load_explicit(&group->overflow_stream, memory_order_acquire);
    return stream;
}

struct weir_stream *wr_stream_get(struct wr_registry *registry, const char *group, const weir_label *labels,
                                  size_t count, struct wr_error *error)
{
    weir_label sorted[MAX_LABELS];
    struct wr_group_key key = {group, wr_name_check_group(group, error)};
    if (!key.length || !check_labels(labels, count, error) || !sort_labels(sorted, labels, count, error))
        return &registry->bad_name;
    struct weir_stream *stream = find(registry, &key, sorted, count);
    return stream ? stream : make(registry, &key, sorted, count, error);
}
