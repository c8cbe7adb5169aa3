#include "registry/series.h"

#include <string.h>

#include "registry/family.h"
#include "registry/name.h"
#include "registry/reuse.h"
#include "registry/stream.h"
#include "text/error.h"

/* ---- Beyond the limit of the process --------------------------------------------------------- */

static const char overflow_name[] = "weir_overflow";

/* Not counted against the limit: there are at most two per group, and groups are counted. */
struct weir_metric *wr_series_overflow(struct wr_registry *registry, struct wr_group *group, bool is_foreign)
{
    struct weir_metric *overflow = atomic_load_explicit(&group->overflow[is_foreign], memory_order_relaxed);
    if (overflow)
        return overflow;
    const struct weir_stream *stream = wr_registry_plain_stream(registry, group, is_foreign);
    if (!stream)
        return NULL;
    struct wr_metric_key key = {stream, overflow_name, sizeof overflow_name - 1, 0};
    overflow = wr_registry_find_metric(registry, &key);
    if (!overflow)
        overflow = wr_registry_add_metric(registry, &key);
    if (!overflow)
        return NULL;
    wr_registry_note_full(registry, group);
    /* release: pairs with the acquire in find_overflow */
    atomic_store_explicit(&group->overflow[is_foreign], overflow, memory_order_release);
    return overflow;
}

/* ---- Beyond the limit of a name -------------------------------------------------------------- */

/* Where the label sets go that a name has no room for: the same name in the group's overflow stream. */
static struct weir_metric *find_shared(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    bool is_foreign = key->stream->is_foreign;
    const struct weir_stream *stream =
        atomic_load_explicit(&key->stream->group->overflow_stream[is_foreign], memory_order_acquire);
    const struct wr_metric_key shared = {stream, key->name, key->length, key->flags};
    return stream ? wr_registry_find_metric(registry, &shared) : NULL;
}

static bool is_shared(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    const struct weir_stream *stream = key->stream;
    if (!stream->label_count || stream->overflow)
        return false;
    const struct wr_family *family = wr_family_find(registry, stream->group, key->name, key->length);
    return family && wr_family_is_full(family);
}

/* [registry lock] Not counted against settings.max_series: there is at most one for each family. */
static struct weir_metric *make_shared(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct wr_group *group = key->stream->group;
    const struct weir_stream *stream = wr_registry_overflow_stream(registry, group, key->stream->is_foreign);
    if (!stream)
        return NULL;
    struct wr_metric_key shared = {stream, key->name, key->length, key->flags};
    struct weir_metric *metric = wr_registry_find_metric(registry, &shared);
    return metric ? metric : wr_registry_add_metric(registry, &shared);
}

/* ---- Finding and creating -------------------------------------------------------------------- */

/* Takes no lock, as beyond the limits every call with a new name or label set gets here. NULL: it may have to
 * be made. */
static struct weir_metric *find_overflow(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    if (is_shared(registry, key))
        return find_shared(registry, key);
    if (!wr_registry_is_full(registry))
        return NULL;
    if (key->stream->overflow && wr_family_find(registry, key->stream->group, key->name, key->length))
        return NULL;
    return wr_registry_overflow_of(key->stream);
}

static struct weir_metric *add_metric(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct wr_family *family = wr_family_make(registry, key->stream->group, key->name, key->length);
    bool done = family && wr_family_enter_calls(registry, family, key->flags & WEIR_SAMPLE_CUMULATIVE);
    struct weir_metric *metric = done ? wr_registry_add_metric(registry, key) : NULL;
    if (!metric)
        return NULL;
    metric->stream->living++;
    if (metric->stream->label_count && !metric->stream->overflow)
        wr_reuse_note(registry, metric->stream);
    return metric;
}

static struct weir_metric *make_locked(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct wr_group *group = key->stream->group;
    struct weir_metric *metric = wr_registry_find_metric(registry, key);
    if (metric)
        return metric;
    struct wr_family *family = wr_family_find(registry, group, key->name, key->length);
    if (is_shared(registry, key)) {
        struct wr_family *none = NULL;
        atomic_compare_exchange_strong(&registry->first_full, &none, family);
        return make_shared(registry, key);
    }
    if (key->stream->overflow && family)
        return add_metric(registry, key);
    return wr_registry_has_places(registry, key->stream) && wr_registry_count_one(registry)
               ? add_metric(registry, key)
               : wr_series_overflow(registry, group, key->stream->is_foreign);
}

static struct weir_metric *make(struct wr_registry *registry, const struct wr_metric_key *key,
                                struct wr_error *error)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    struct weir_metric *metric = make_locked(registry, key);
    wr_registry_unlock(registry, &signals);
    if (metric)
        return metric;
    wr_error_set(error, WEIR_ERR_MEMORY, "name \"%s\": out of memory", key->name);
    return registry->no_memory_metric;
}

static struct weir_metric *refuse(struct wr_registry *registry, const struct weir_stream *stream,
                                  struct wr_error *error)
{
    wr_error_set(error, stream->refusal, "the stream refuses all values: %s",
                 wr_stream_refusal(registry, stream));
    switch (stream->refusal) {
    case WEIR_ERR_MEMORY: return registry->no_memory_metric;
    case WEIR_ERR_LIMIT: return registry->over_limit_metric;
    default: return registry->bad_name_metric;
    }
}

struct weir_metric *wr_series_find(const struct wr_registry *registry, const struct weir_stream *stream,
                                   const char *name, uint16_t flags)
{
    struct wr_metric_key key = {stream, name, strnlen(name, WR_NAME_LONGEST + 1), flags};
    return wr_registry_find_metric(registry, &key);
}

struct weir_metric *wr_series_get(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                                  uint16_t flags, struct wr_error *error)
{
    if (WR_UNLIKELY(stream->refusal))
        return refuse(registry, stream, error);
    /* names of existing series are valid; only new ones are checked */
    struct weir_metric *metric = name ? wr_series_find(registry, stream, name, flags) : NULL;
    if (metric)
        return metric;
    size_t length = wr_name_check(name, "name", error);
    if (!length)
        return registry->bad_name_metric;
    struct wr_metric_key key = {stream, name, length, flags};
    metric = find_overflow(registry, &key);
    return metric ? metric : make(registry, &key, error);
}

/* [registry lock] Sets the meaning of a derived series, for handlers only: calls may add values of any kind to
 * its name. A name that means something by itself keeps that, unless the series is not found by it. A pattern
 * is no such meaning: one for "request*" is not for what weir makes of "request", such as "request.max". */
static void set_derived_meaning(struct wr_registry *registry, struct weir_metric *metric,
                                const struct wr_meaning *meaning)
{
    const struct wr_family *family =
        wr_family_find(registry, metric->stream->group, metric->name, metric->length);
    if (family && (metric->flags & WR_METRIC_KEEPS_MEANING || !wr_family_means_something(registry, family)))
        wr_registry_set_view(registry, metric, meaning, WEIR_VALUE);
}

static bool has_meaning(const struct weir_metric *metric, const struct wr_meaning *meaning)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    return view->instrument == (int32_t)meaning->instrument && view->unit == meaning->unit &&
           view->help == meaning->help;
}

struct weir_metric *wr_series_derive(struct wr_registry *registry, const struct weir_stream *stream,
                                     const char *name, uint16_t flags, const struct wr_meaning *meaning)
{
    const uint16_t part = (uint16_t)(flags | WR_METRIC_PART);
    struct wr_metric_key key = {stream, name, wr_name_check(name, "name", NULL), part};
    struct weir_metric *metric = key.length ? wr_registry_find_metric(registry, &key) : NULL;
    sigset_t signals;
    if (!key.length || (metric && has_meaning(metric, meaning)))
        return metric;
    wr_registry_lock(registry, &signals);
    metric = wr_registry_find_metric(registry, &key);
    if (!metric && (metric = wr_registry_add_metric(registry, &key)))
        wr_family_uncount(wr_family_find(registry, stream->group, name, key.length), metric);
    if (metric && !has_meaning(metric, meaning))
        set_derived_meaning(registry, metric, meaning);
    wr_registry_unlock(registry, &signals);
    return metric;
}

/* ---- The end of a series --------------------------------------------------------------------- */

/* Counts one series of a label set: number is 1 or -1. */
static void count_places(struct wr_registry *registry, struct weir_metric *metric, int number)
{
    struct weir_stream *stream = metric->stream;
    struct wr_family *family = wr_family_find(registry, stream->group, metric->name, metric->length);
    stream->living += (uint32_t)number;
    atomic_fetch_add_explicit(&family->labeled, (uint32_t)number, memory_order_relaxed);
    atomic_fetch_add_explicit(&registry->count, (uint32_t)number, memory_order_relaxed);
    wr_reuse_note(registry, stream);
}

/* [registry lock] */
static bool has_places(const struct weir_metric *metric)
{
    return metric->stream->label_count && !metric->stream->overflow && !(metric->flags & WR_METRIC_PART);
}

void wr_series_end(struct wr_registry *registry, struct weir_metric *metric)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    if (!atomic_load_explicit(&metric->is_ended, memory_order_relaxed) && has_places(metric))
        count_places(registry, metric, -1);
    atomic_store_explicit(&metric->is_ended, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&metric->ends, 1, memory_order_relaxed);
    wr_registry_unlock(registry, &signals);
}

void wr_series_meet(struct wr_registry *registry, struct weir_metric *metric)
{
    if (atomic_load_explicit(&metric->known, memory_order_relaxed) & WR_KNOWN_HERE)
        return;
    /* release: pairs with the acquire in wr_summer_next_declared, which then looks at the series again */
    if (atomic_fetch_or_explicit(&metric->known, WR_KNOWN_HERE, memory_order_relaxed) == WR_KNOWN_FROM_DISK)
        atomic_fetch_add_explicit(&registry->met, 1, memory_order_release);
}

void wr_series_recover(struct weir_metric *metric)
{
    atomic_fetch_or_explicit(&metric->known, WR_KNOWN_FROM_DISK, memory_order_relaxed);
}

/* [registry lock] */
static void begin(struct wr_registry *registry, struct weir_metric *metric)
{
    if (atomic_load_explicit(&metric->is_ended, memory_order_relaxed) && has_places(metric))
        count_places(registry, metric, 1);
    /* release: who finds that it lives finds its labels, which may be new */
    atomic_store_explicit(&metric->is_ended, false, memory_order_release);
}

void wr_series_begin(struct wr_registry *registry, struct weir_metric *metric)
{
    sigset_t signals;
    wr_series_meet(registry, metric);
    if (!atomic_load_explicit(&metric->is_ended, memory_order_relaxed))
        return;
    wr_registry_lock(registry, &signals);
    begin(registry, metric);
    wr_registry_unlock(registry, &signals);
}

/* ---- Labels of the call ---------------------------------------------------------------------- */

/* [registry lock] A series that has ended takes its places in the limits again, or its values go where those of
 * a new one would: its stream may have been that of another label set. */
static struct weir_metric *begin_or_share(struct wr_registry *registry, struct weir_metric *metric)
{
    const struct wr_metric_key key = {metric->stream, metric->name, metric->length, metric->flags};
    if (!atomic_load_explicit(&metric->is_ended, memory_order_relaxed) || !has_places(metric))
        return metric;
    if (is_shared(registry, &key))
        return make_shared(registry, &key);
    if (!wr_registry_has_places(registry, metric->stream))
        return wr_series_overflow(registry, metric->stream->group, metric->stream->is_foreign);
    begin(registry, metric);
    return metric;
}

struct weir_metric *wr_series_get_living(struct wr_registry *registry, struct weir_stream *stream,
                                         const char *name, uint16_t flags, struct wr_error *error)
{
    struct weir_metric *metric = wr_series_get(registry, stream, name, flags, error);
    sigset_t signals;
    if (WR_LIKELY(!atomic_load_explicit(&metric->is_ended, memory_order_relaxed)) || metric->stream != stream)
        return metric;
    wr_registry_lock(registry, &signals);
    metric = begin_or_share(registry, metric);
    wr_registry_unlock(registry, &signals);
    if (metric)
        return metric;
    wr_error_set(error, WEIR_ERR_MEMORY, "name \"%s\": out of memory", name);
    return registry->no_memory_metric;
}

/* A label set that came to have no series, since these are beyond a limit, may be reused. */
static void note_unused(struct wr_registry *registry, struct weir_stream *stream)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    wr_reuse_note(registry, stream);
    wr_registry_unlock(registry, &signals);
}

struct weir_metric *wr_series_get_labeled(struct wr_registry *registry, struct weir_stream *stream,
                                          const char *name, uint16_t flags, const weir_label *labels,
                                          size_t count, struct wr_error *error)
{
    struct wr_family *family = NULL;
    if (stream->refusal)
        return refuse(registry, stream, error);
    struct weir_stream *labeled = count ? wr_stream_find_labeled(registry, stream, labels, count) : stream;
    if (labeled && !wr_reuse_is_leaving(labeled))
        return wr_series_get_living(registry, labeled, name, flags, error);
    /* A label set that the name has no room for gets no stream of its own. */
    size_t length = wr_name_check(name, "name", error);
    if (!length)
        return registry->bad_name_metric;
    family = wr_family_find(registry, stream->group, name, length);
    struct wr_metric_key key = {stream, name, length, flags};
    if (!labeled && family && wr_family_is_full(family)) {
        struct weir_metric *shared = find_shared(registry, &key);
        if (shared)
            return shared;
    }
    labeled = wr_stream_get_labeled(registry, stream, labels, count, name, error);
    struct weir_metric *metric =
        wr_series_get_living(registry, labeled, name, flags, labeled->refusal ? NULL : error);
    if (metric->stream != labeled && !labeled->refusal)
        note_unused(registry, labeled);
    return metric;
}
