#include "registry/stream.h"

#include <string.h>

#include "text/error.h"
#include "registry/name.h"
#include "registry/reuse.h"
#include "registry/series.h"

/* ---- Labels ---------------------------------------------------------------------------------- */

/* qsort may use malloc, which a round must not, and there are few. */
void wr_stream_sort_labels(weir_label *labels, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        weir_label label = labels[i];
        size_t to = i;
        for (; to && strcmp(labels[to - 1].key, label.key) > 0; to--)
            labels[to] = labels[to - 1];
        labels[to] = label;
    }
}

static bool check_labels(const weir_label *labels, size_t count, struct wr_error *error)
{
    if (count > WR_STREAM_LABELS || (count && !labels))
        return wr_error_refuse(error, WEIR_ERR_NAME, "labels: %zu of them; 0 to %d are allowed",
                               labels ? count : 0, WR_STREAM_LABELS);
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
    wr_stream_sort_labels(sorted, count);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
            return wr_error_refuse(error, WEIR_ERR_NAME, "label key \"%s\": given twice; keys must be unique",
                                   sorted[i].key);
    }
    return true;
}

/* ---- Creating -------------------------------------------------------------------------------- */

static struct weir_stream *reuse_or_add(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = wr_reuse_take(registry, key);
    return stream ? stream : wr_registry_add_stream(registry, key);
}

static struct weir_stream *find_or_make_labeled(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct wr_group *group = (struct wr_group *)key->group;
    struct weir_stream *stream = wr_registry_find_stream(registry, key);
    if (stream)
        return stream;
    /* one for a name counts with its first series */
    if (key->name ? wr_registry_has_places(registry, NULL) : !wr_registry_is_full(registry))
        return reuse_or_add(registry, key);
    wr_registry_note_full(registry, group);
    return wr_registry_overflow_stream(registry, group, key->is_foreign);
}

static struct weir_stream *make_labeled(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = find_or_make_labeled(registry, key);
    if (!stream)
        return NULL;
    wr_reuse_take_back(stream);
    if (!key->name)
        atomic_store_explicit(&stream->is_pinned, true, memory_order_relaxed);
    if (!key->name)
        wr_reuse_note(registry, stream);
    return stream;
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

/* sorted: the labels, of which the group is set here. */
static struct weir_stream *make(struct wr_registry *registry, const struct wr_group_key *group_key,
                                const struct wr_stream_key *sorted, struct wr_error *error)
{
    struct weir_stream *stream = NULL;
    bool over_limit = false;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    struct wr_group *group = make_group(registry, group_key, &over_limit);
    struct wr_stream_key key = *sorted;
    key.group = group;
    if (group)
        stream = key.count ? make_labeled(registry, &key)
                           : wr_registry_plain_stream(registry, group, key.is_foreign);
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

void wr_stream_adopt_group(struct wr_registry *registry, const char *group)
{
    const struct wr_group_key key = {group, wr_name_check_group(group, NULL)};
    sigset_t signals;
    if (!key.length || wr_registry_find_group(registry, &key))
        return;
    wr_registry_lock(registry, &signals);
    if (!wr_registry_find_group(registry, &key))
        wr_registry_add_group(registry, &key);
    wr_registry_unlock(registry, &signals);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Whether it is as the key wants it, without a change under the lock. */
static bool is_usable(const struct weir_stream *stream, const struct wr_stream_key *key)
{
    if (!key->count)
        return true;
    return !wr_reuse_is_leaving(stream) &&
           (key->name || atomic_load_explicit(&stream->is_pinned, memory_order_relaxed));
}

static struct weir_stream *find(struct wr_registry *registry, const struct wr_group_key *group_key,
                                const struct wr_stream_key *sorted)
{
    const struct wr_group *group = wr_registry_find_group(registry, group_key);
    if (!group)
        return NULL;
    struct wr_stream_key key = *sorted;
    key.group = group;
    struct weir_stream *stream = wr_registry_find_stream(registry, &key);
    if (stream)
        return is_usable(stream, &key) ? stream : NULL;
    return key.count && wr_registry_is_full(registry)
               ? atomic_load_explicit(&group->overflow_stream[key.is_foreign], memory_order_acquire)
               : NULL;
}

/* ---- Refusing -------------------------------------------------------------------------------- */

static struct weir_stream *find_refused(struct wr_registry *registry, const char *reason)
{
    /* acquire: pairs with the release in make_refused */
    uint32_t count = atomic_load_explicit(&registry->refused_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(registry->refused[i].reason, reason) == 0)
            return &registry->refused[i].stream;
    return NULL;
}

static struct weir_stream *make_refused(struct wr_registry *registry, const char *reason)
{
    uint32_t count = atomic_load_explicit(&registry->refused_count, memory_order_relaxed);
    struct weir_stream *known = find_refused(registry, reason);
    char *copy = known || count == WR_REGISTRY_REFUSED ? NULL : strdup(reason);
    if (!copy)
        return known ? known : &registry->bad_name;
    registry->refused[count].stream =
        (struct weir_stream){.group = registry->refusing_group, .refusal = WEIR_ERR_NAME};
    registry->refused[count].reason = copy;
    atomic_store_explicit(&registry->refused_count, count + 1, memory_order_release);
    return &registry->refused[count].stream;
}

/* The stream of a bad name: calls that add to it, of any thread, report what is bad. */
static struct weir_stream *get_refused(struct wr_registry *registry, const struct wr_error *error)
{
    if (!error)
        return &registry->bad_name;
    struct weir_stream *stream = find_refused(registry, error->text);
    if (stream)
        return stream;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    stream = make_refused(registry, error->text);
    wr_registry_unlock(registry, &signals);
    return stream;
}

const char *wr_stream_refusal(const struct wr_registry *registry, const struct weir_stream *stream)
{
    uint32_t count = atomic_load_explicit(&registry->refused_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (stream == &registry->refused[i].stream)
            return registry->refused[i].reason;
    return wr_error_text(stream->refusal);
}

struct weir_stream *wr_stream_get_for(struct wr_registry *registry, const char *group,
                                      const struct wr_stream_key *wanted, struct wr_error *error)
{
    weir_label sorted[WR_STREAM_LABELS];
    const weir_label *labels = wanted->labels;
    size_t count = wanted->count;
    const struct wr_stream_key key = {NULL, sorted, count, wanted->is_foreign, wanted->name};
    struct wr_group_key group_key = {group, wr_name_check_group(group, error)};
    if (!group_key.length || !check_labels(labels, count, error) || !sort_labels(sorted, labels, count, error))
        return get_refused(registry, error);
    wr_reuse_begin_reading(registry); /* what is for a name is read by the caller, too */
    struct weir_stream *stream = find(registry, &group_key, &key);
    wr_reuse_end_reading(registry);
    return stream ? stream : make(registry, &group_key, &key, error);
}

struct weir_stream *wr_stream_get(struct wr_registry *registry, const char *group, const weir_label *labels,
                                  size_t count, struct wr_error *error)
{
    const struct wr_stream_key key = {NULL, labels, count, false, NULL};
    return wr_stream_get_for(registry, group, &key, error);
}

/* ---- Labels of the call ---------------------------------------------------------------------- */

/* Merges the labels of a stream, which are sorted, with others into `merged`, which is sorted and has room for
 * WR_STREAM_LABELS. Returns their number, or -1: they are not sorted, there are too many, or a key occurs
 * twice. */
static int merge_sorted(weir_label *merged, const struct weir_stream *base, const weir_label *labels,
                        size_t count)
{
    size_t i = 0, j = 0, n = 0;
    if (count > WR_STREAM_LABELS || base->label_count + count > WR_STREAM_LABELS)
        return -1;
    while (i < base->label_count || j < count) {
        int order = i == base->label_count ? 1 : j == count ? -1 : strcmp(base->labels[i].key, labels[j].key);
        if (order == 0)
            return -1;
        merged[n] = order < 0 ? base->labels[i++] : labels[j++];
        if (n && strcmp(merged[n - 1].key, merged[n].key) >= 0)
            return -1;
        n++;
    }
    return (int)n;
}

struct weir_stream *wr_stream_find_labeled(struct wr_registry *registry, const struct weir_stream *base,
                                           const weir_label *labels, size_t count)
{
    weir_label merged[WR_STREAM_LABELS], sorted[WR_STREAM_LABELS];
    for (size_t i = 0; i < count; i++)
        if (count > WR_STREAM_LABELS || !labels || !labels[i].key || !labels[i].value)
            return NULL;
    int total = merge_sorted(merged, base, labels, count);
    if (total < 0 && sort_labels(sorted, labels, count, NULL))
        total = merge_sorted(merged, base, sorted, count);
    if (total < 0)
        return NULL;
    const struct wr_stream_key key = {base->group, merged, (size_t)total, base->is_foreign, NULL};
    return wr_registry_find_stream(registry, &key);
}

struct weir_stream *wr_stream_get_labeled(struct wr_registry *registry, const struct weir_stream *base,
                                          const weir_label *labels, size_t count, const char *name,
                                          struct wr_error *error)
{
    weir_label both[2 * WR_STREAM_LABELS];
    if (!check_labels(labels, count, error))
        return &registry->bad_name;
    for (size_t i = 0; i < base->label_count; i++)
        both[i] = base->labels[i];
    for (size_t i = 0; i < count; i++)
        both[base->label_count + i] = labels[i];
    const struct wr_stream_key key = {NULL, both, base->label_count + count, base->is_foreign, name};
    return wr_stream_get_for(registry, base->group->name, &key, error);
}

/* [registry lock] One that was made for something else stays, since the base does not end with it. */
static void note_derived(const struct weir_stream *base, struct weir_stream *derived, bool is_new)
{
    struct wr_label_block *from = wr_registry_label_block(base);
    if (derived->is_derived)
        return;
    derived->is_derived = is_new && from;
    wr_reuse_take_back(derived);
    if (!derived->is_derived)
        atomic_store_explicit(&derived->is_pinned, true, memory_order_relaxed);
    if (!derived->is_derived)
        return;
    wr_registry_label_block(derived)->next_derived = from->derived;
    from->derived = derived;
}

const struct weir_stream *wr_stream_derive(struct wr_registry *registry, const struct weir_stream *base,
                                           const weir_label *label, const char *name)
{
    weir_label merged[WR_STREAM_LABELS];
    sigset_t signals;
    int total = merge_sorted(merged, base, label, 1);
    if (total < 0)
        return NULL;
    const struct wr_stream_key key = {base->group, merged, (size_t)total, base->is_foreign, name};
    wr_reuse_begin_reading(registry);
    struct weir_stream *stream = wr_registry_find_stream(registry, &key);
    bool is_kept = stream && (atomic_load_explicit(&stream->is_derived, memory_order_relaxed) ||
                              atomic_load_explicit(&stream->is_pinned, memory_order_relaxed));
    wr_reuse_end_reading(registry);
    if (is_kept)
        return stream;
    wr_registry_lock(registry, &signals);
    bool is_new = !(stream = wr_registry_find_stream(registry, &key));
    if (is_new)
        stream = reuse_or_add(registry, &key);
    if (stream)
        note_derived(base, stream, is_new);
    wr_registry_unlock(registry, &signals);
    return stream;
}
