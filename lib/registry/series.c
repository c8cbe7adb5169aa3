#include "registry/series.h"

#include <string.h>

#include "text/error.h"
#include "registry/name.h"

/* ---- Beyond the limit ------------------------------------------------------------------------ */

static const char overflow_name[] = "weir_overflow";

/* Not counted against the limit: there is at most one per group, and groups are counted. */
struct weir_metric *wr_series_overflow(struct wr_registry *registry, struct wr_group *group)
{
    struct weir_metric *overflow = atomic_load_explicit(&group->overflow, memory_order_relaxed);
    if (overflow)
        return overflow;
    const struct weir_stream *stream = wr_registry_plain_stream(registry, group);
    if (!stream)
        return NULL;
    struct wr_metric_key key = {stream, overflow_name, sizeof overflow_name - 1, 0};
    overflow = wr_registry_find_metric(registry, &key);
    if (!overflow)
        overflow = wr_registry_add_metric(registry, &key);
    if (!overflow)
        return NULL;
    struct wr_group *none = NULL;
    atomic_compare_exchange_strong(&registry->first_overflow, &none, group);
    /* release: pairs with the acquire in find_overflow */
    atomic_store_explicit(&group->overflow, overflow, memory_order_release);
    return overflow;
}

/* Takes no lock, as beyond the limit every new name gets here. */
static struct weir_metric *find_overflow(const struct wr_registry *registry, const struct weir_stream *stream)
{
    if (!stream->overflow && !wr_registry_is_full(registry))
        return NULL;
    return atomic_load_explicit(&stream->group->overflow, memory_order_acquire);
}

/* ---- Finding and creating -------------------------------------------------------------------- */

static struct weir_metric *make_locked(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct weir_metric *metric = wr_registry_find_metric(registry, key);
    if (metric)
        return metric;
    if (key->stream->overflow || !wr_registry_count_one(registry))
        return wr_series_overflow(registry, key->stream->group);
    return wr_registry_add_metric(registry, key);
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
    wr_error_set(error, stream->refusal, "the stream refuses all values: %s", wr_error_text(stream->refusal));
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
    metric = find_overflow(registry, stream);
    return metric ? metric : make(registry, &key, error);
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

/* [registry lock] Returns 0 or an error code. */
static int replace_view(struct wr_registry *registry, struct weir_metric *metric, const char *unit,
                        const char *help)
{
    if (metric->described == WR_REGISTRY_DESCRIPTIONS_MAX)
        return WEIR_ERR_LIMIT;
    const char *unit_copy = unit ? wr_registry_copy_text(registry, unit) : NULL;
    const char *help_copy = help ? wr_registry_copy_text(registry, help) : NULL;
    if ((unit && !unit_copy) || (help && !help_copy) ||
        !wr_registry_set_view(registry, metric, unit_copy, help_copy))
        return WEIR_ERR_MEMORY;
    metric->described++;
    return 0;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int describe(struct wr_registry *registry, struct weir_metric *metric, const char *unit,
                    const char *help, struct wr_error *error)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    if (is_same_text(view->unit, unit) && is_same_text(view->help, help))
        return 0; /* a program may repeat the description */
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    int result = replace_view(registry, metric, unit, help);
    wr_registry_unlock(registry, &signals);
    if (result == WEIR_ERR_LIMIT)
        return wr_error_set(error, result, "name \"%s\": its description was changed %d times, the maximum",
                            metric->name, WR_REGISTRY_DESCRIPTIONS_MAX);
    return result ? wr_error_set(error, result, "name \"%s\": out of memory", metric->name) : 0;
}

int wr_series_describe(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                       const char *unit, const char *help, struct wr_error *error)
{
    if ((unit && !wr_name_check_text(unit, WR_NAME_UNIT_LONGEST, "unit", error)) ||
        (help && !wr_name_check_text(help, WR_NAME_HELP_LONGEST, "help", error)))
        return WEIR_ERR_NAME;
    struct weir_metric *metric = wr_series_get(registry, stream, name, 0, error);
    if (metric->stream->refusal)
        return metric->stream->refusal;
    if (metric->stream != stream || strcmp(metric->name, name) != 0)
        return wr_error_set(error, WEIR_ERR_LIMIT, "name \"%s\": settings.max_series (%u) is reached", name,
                            atomic_load_explicit(&registry->max, memory_order_relaxed));
    struct wr_metric_key twin_key = {stream, name, strlen(name), WEIR_SAMPLE_CUMULATIVE};
    struct weir_metric *twin = wr_registry_find_metric(registry, &twin_key);
    int result = describe(registry, metric, unit, help, error);
    return result || !twin ? result : describe(registry, twin, unit, help, error);
}
