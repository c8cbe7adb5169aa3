/* The functions of <weir/weir.h>, in the order of the header: each checks its arguments and calls the core.
 * None is a cancellation point; those that add values disable cancellation on the slow path only (intake). */

#include <weir/weir.h>

#include <string.h>

#include "os/cancel.h"
#include "os/clock.h"
#include "text/common.h"
#include "config/config.h"
#include "runtime/configure.h"
#include "text/error.h"
#include "runtime/event.h"
#include "runtime/intake.h"
#include "runtime/try_add.h"
#include "source/sources.h"
#include "lane/lane.h"
#include "status/ledger.h"
#include "registry/family.h"
#include "registry/name.h"
#include "registry/series.h"
#include "registry/stream.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

static int fail(struct wr_runtime *runtime, const struct wr_error *error)
{
    struct wr_error *last = runtime ? wr_producers_error(&runtime->producers) : NULL;
    if (last)
        *last = *error;
    return error->code;
}

static int fail_argument(struct wr_runtime *runtime, const char *text)
{
    struct wr_error error;
    wr_error_set(&error, WEIR_ERR_ARGUMENT, "%s", text);
    return fail(runtime, &error);
}

static int refuse_argument(const char *text)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (runtime)
        wr_producers_refuse(&runtime->producers, WEIR_REFUSED_ARGUMENT, 1);
    else
        wr_producers_refuse_early(1);
    return fail_argument(runtime, text);
}

/* Not inlined, since its error would take room on the stack for the whole call. */
WR_NEVER_INLINE static int refuse_to_wait(struct wr_runtime *runtime, const char *function, const char *who)
{
    struct wr_error error;
    wr_error_set(&error, WEIR_ERR_BUSY, "%s: %s would wait for itself", function, who);
    return fail(runtime, &error);
}

/* ---- Streams and values ---------------------------------------------------------------------- */

weir_stream *weir_get_stream(const char *group)
{
    return weir_get_stream_labeled(group, NULL, 0);
}

weir_stream *weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return &wr_registry_refusing()->no_memory;
    struct wr_error error = {0};
    weir_stream *stream = wr_stream_get(&runtime->registry, group, labels, count, &error);
    if (error.code)
        fail(runtime, &error);
    return stream;
}

/* Not inlined, so that the fast path need not save registers. */
WR_NEVER_INLINE static int add_new(weir_stream *stream, const char *name, struct wr_value value)
{
    return wr_intake_add(wr_intake_learn(stream, name), value);
}

int weir_add_value(weir_stream *stream, const char *name, double value)
{
    const struct wr_value wrapped = {WEIR_KIND_DOUBLE, {.f64 = value}};
    if (WR_UNLIKELY(!stream || !name))
        return refuse_argument("weir_add_value: the stream or the name is NULL");
    struct weir_metric *metric = wr_fast_add_find(stream, name);
    return WR_LIKELY(metric) ? wr_intake_add(metric, wrapped) : add_new(stream, name, wrapped);
}

int weir_add_int(weir_stream *stream, const char *name, int64_t value)
{
    const struct wr_value wrapped = {WEIR_KIND_INT, {.i64 = value}};
    if (WR_UNLIKELY(!stream || !name))
        return refuse_argument("weir_add_int: the stream or the name is NULL");
    struct weir_metric *metric = wr_fast_add_find(stream, name);
    return WR_LIKELY(metric) ? wr_intake_add(metric, wrapped) : add_new(stream, name, wrapped);
}

weir_metric *weir_get_metric(weir_stream *stream, const char *name)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return wr_registry_refusing()->no_memory_metric;
    if (!stream) {
        fail_argument(runtime, "weir_get_metric: the stream is NULL");
        return runtime->registry.bad_name_metric;
    }
    struct wr_error error = {0};
    weir_metric *metric = wr_series_get(&runtime->registry, stream, name, 0, &error);
    if (error.code)
        fail(runtime, &error);
    else if (metric->stream != stream || wr_registry_is_full(&runtime->registry))
        wr_engine_log_overflow(wr_runtime_engine(runtime));
    wr_series_meet(&runtime->registry, metric);
    return metric;
}

/* Which series stays. */
static int refuse_to_remove(struct wr_runtime *runtime, const weir_metric *metric)
{
    const struct weir_stream *stream = metric->stream;
    struct wr_error error;
    if (stream->refusal)
        wr_error_set(&error, stream->refusal, "weir_metric_remove: the metric refuses all values: %s",
                     wr_stream_refusal(&runtime->registry, stream));
    else if (wr_registry_is_shared(metric))
        wr_error_set(&error, WEIR_ERR_LIMIT,
                     "weir_metric_remove: \"%s\" is shared by what is beyond a limit of series", metric->name);
    else
        return 0;
    return fail(runtime, &error);
}

int weir_metric_remove(weir_metric *metric)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!metric)
        return fail_argument(runtime, "weir_metric_remove: the metric is NULL");
    if (wr_producer_is_own())
        return refuse_to_wait(runtime, "weir_metric_remove", "a handler's thread");
    int result = refuse_to_remove(runtime, metric);
    if (!result)
        wr_engine_end_series(wr_runtime_engine(runtime), &metric->series, 1);
    return result;
}

int weir_metric_add(weir_metric *metric, double value)
{
    if (WR_UNLIKELY(!metric))
        return refuse_argument("weir_metric_add: the metric is NULL");
    return wr_intake_add(metric, (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = value}});
}

int weir_metric_add_int(weir_metric *metric, int64_t value)
{
    if (WR_UNLIKELY(!metric))
        return refuse_argument("weir_metric_add_int: the metric is NULL");
    return wr_intake_add(metric, (struct wr_value){WEIR_KIND_INT, {.i64 = value}});
}

int weir_metric_try_add(weir_metric *metric, double value)
{
    if (WR_UNLIKELY(!metric))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    return wr_try_add(metric, (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = value}});
}

int weir_metric_try_add_int(weir_metric *metric, int64_t value)
{
    if (WR_UNLIKELY(!metric))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    return wr_try_add(metric, (struct wr_value){WEIR_KIND_INT, {.i64 = value}});
}

int weir_add_value_labeled(weir_stream *stream, const char *name, double value, const weir_label *labels,
                           size_t count)
{
    if (WR_UNLIKELY(!stream || !name || (count && !labels)))
        return refuse_argument("weir_add_value_labeled: the stream, the name or the labels are NULL");
    return wr_intake_add(wr_intake_find_labeled(stream, name, labels, count),
                         (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = value}});
}

int weir_emit(weir_stream *stream, const weir_value *values, size_t count)
{
    if (WR_UNLIKELY(!stream || (count && !values)))
        return refuse_argument("weir_emit: the stream or the values are NULL");
    return count ? wr_intake_emit(stream, values, count) : 0;
}

/* Whether programs may add values of a kind. */
static bool is_kind(int kind)
{
    return kind == WEIR_KIND_DOUBLE || kind == WEIR_KIND_INT;
}

int weir_emit_typed(weir_stream *stream, const weir_typed_value *values, size_t count)
{
    if (WR_UNLIKELY(!stream || (count && !values)))
        return refuse_argument("weir_emit_typed: the stream or the values are NULL");
    for (size_t i = 0; i < count; i++)
        if (!is_kind(values[i].kind))
            return refuse_argument("weir_emit_typed: a kind is not WEIR_KIND_DOUBLE or WEIR_KIND_INT");
    return count ? wr_event_add(stream, &(struct wr_event){.typed = values, .count = count}) : 0;
}

int weir_add(weir_stream *stream, const weir_sample_spec *spec)
{
    weir_sample_spec whole = {0};
    if (!stream || !spec)
        return refuse_argument("weir_add: the stream or the specification is NULL");
    if (!WEIR_HAS(spec, integer))
        return refuse_argument("weir_add: size is too small; must be sizeof(weir_sample_spec)");
    memcpy(&whole, spec, spec->size < sizeof whole ? spec->size : sizeof whole);
    if (!is_kind(whole.kind))
        return refuse_argument("weir_add: the kind is not WEIR_KIND_DOUBLE or WEIR_KIND_INT");
    if (whole.label_count && !whole.labels)
        return refuse_argument("weir_add: the labels are NULL");
    return wr_event_add_sample(stream, &whole);
}

int weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!stream)
        return fail_argument(runtime, "weir_describe: the stream is NULL");
    if (wr_family_describe(&runtime->registry, stream, name, unit, help, &error))
        return fail(runtime, &error);
    return 0;
}

bool weir_stream_enabled(weir_stream *stream)
{
    return stream && wr_intake_is_enabled(stream);
}

/* ---- Instruments ----------------------------------------------------------------------------- */

int weir_declare(weir_stream *stream, const char *name, const weir_metric_spec *spec)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    weir_metric_spec whole = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!stream || !spec)
        return fail_argument(runtime, "weir_declare: the stream or the specification is NULL");
    if (!WEIR_HAS(spec, instrument))
        return fail_argument(runtime, "weir_declare: size is too small; must be sizeof(weir_metric_spec)");
    memcpy(&whole, spec, spec->size < sizeof whole ? spec->size : sizeof whole);
    if (wr_family_declare(&runtime->registry, stream, name, &whole, &error))
        return fail(runtime, &error);
    return 0;
}

static weir_metric *get_declared(weir_stream *stream, const char *name, const weir_metric_spec *spec)
{
    int result = stream && name ? weir_declare(stream, name, spec) : 0;
    struct wr_runtime *runtime = wr_runtime_get();
    if (result != WEIR_ERR_ARGUMENT || !runtime)
        return weir_get_metric(stream, name);
    return runtime->registry.conflict_metric;
}

weir_metric *weir_get_counter(weir_stream *stream, const char *name)
{
    return get_declared(stream, name,
                        &(weir_metric_spec){.size = sizeof(weir_metric_spec), .instrument = WEIR_COUNTER});
}

weir_metric *weir_get_gauge(weir_stream *stream, const char *name)
{
    return get_declared(stream, name,
                        &(weir_metric_spec){.size = sizeof(weir_metric_spec), .instrument = WEIR_GAUGE});
}

weir_metric *weir_get_histogram(weir_stream *stream, const char *name, const double *buckets,
                                size_t bucket_count)
{
    return get_declared(stream, name,
                        &(weir_metric_spec){
                            .size = sizeof(weir_metric_spec),
                            .instrument = WEIR_HISTOGRAM,
                            .buckets = buckets,
                            .bucket_count = bucket_count,
                        });
}

int weir_metric_change(weir_metric *gauge, double difference)
{
    if (WR_UNLIKELY(!gauge))
        return refuse_argument("weir_metric_change: the metric is NULL");
    return wr_intake_change(gauge, difference);
}

/* Whether weir_count has to declare the series. A configuration may have made a declared counter something
 * else. The series that names share beyond settings.max_series stays a plain value. */
static bool is_undeclared_counter(const struct wr_registry *registry, const struct weir_metric *metric)
{
    const struct wr_group *group = metric->stream->group;
    if (metric->stream->refusal || metric == wr_registry_overflow_of(metric->stream))
        return false;
    const struct wr_family *family = wr_family_find(registry, group, metric->name, metric->length);
    return family && atomic_load_explicit(&family->declared_as, memory_order_relaxed) != WEIR_COUNTER;
}

/* The first use of a counter's name. */
WR_NEVER_INLINE static int count_new(weir_stream *stream, const char *name, double increment)
{
    struct wr_runtime *runtime = wr_runtime_get();
    const weir_metric_spec counter = {.size = sizeof counter, .instrument = WEIR_COUNTER};
    struct weir_metric *metric = wr_intake_learn(stream, name);
    if (runtime && is_undeclared_counter(&runtime->registry, metric) &&
        weir_declare(stream, metric->name, &counter) == WEIR_ERR_ARGUMENT)
        metric = runtime->registry.conflict_metric;
    return wr_intake_add(metric, (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = increment}});
}

int weir_count(weir_stream *stream, const char *name, double increment)
{
    if (WR_UNLIKELY(!stream || !name))
        return refuse_argument("weir_count: the stream or the name is NULL");
    struct weir_metric *metric = wr_fast_add_find(stream, name);
    if (WR_UNLIKELY(!metric || atomic_load_explicit(&metric->instrument, memory_order_relaxed) != WEIR_COUNTER))
        return count_new(stream, name, increment);
    return wr_intake_add(metric, (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = increment}});
}

/* ---- Configuration --------------------------------------------------------------------------- */

int weir_start(void)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_configure_start(runtime, &error) ? fail(runtime, &error) : 0;
}

int weir_configure(const char *group, const char *handler_type, const char *options_json)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!group)
        group = "*";
    if (strcmp(group, "*") != 0 && !wr_name_check_group(group, &error))
        return fail(runtime, &error);
    int result = wr_configure_route(runtime, group, handler_type, options_json, &error);
    return result ? fail(runtime, &error) : 0;
}

int weir_configure_file(const char *path)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!path)
        return fail_argument(runtime, "weir_configure_file: the path is NULL");
    return wr_configure_file(runtime, path, &error) ? fail(runtime, &error) : 0;
}

int weir_configure_text(const char *json, size_t length)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!json)
        return fail_argument(runtime, "weir_configure_text: the text is NULL");
    return wr_configure_text(runtime, json, length, &error) ? fail(runtime, &error) : 0;
}

int weir_reload(void)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_configure_reload(runtime, false, &error) ? fail(runtime, &error) : 0;
}

static int register_type(const struct wr_plugins_kind *kind, const void *type, void *context)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_plugins_register(&runtime->plugins, kind, type, context, &error) ? fail(runtime, &error) : 0;
}

int weir_register_handler_type(const struct weir_handler_type *type, void *context)
{
    return register_type(&wr_plugins_handlers, type, context);
}

int weir_register_source_type(const struct weir_source_type *type, void *context)
{
    return register_type(&wr_plugins_sources, type, context);
}

/* ---- Delivery -------------------------------------------------------------------------------- */

int weir_flush(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (wr_producer_is_own())
        return refuse_to_wait(runtime, "weir_flush", "a handler's thread");
    return wr_engine_flush(wr_runtime_engine(runtime), wr_clock_deadline_ns(timeout_ms), &error)
               ? fail(runtime, &error)
               : 0;
}

int weir_shutdown(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (wr_producer_is_own())
        return refuse_to_wait(runtime, "weir_shutdown", "a handler's thread");
    if (wr_collectors_are_here(&runtime->collectors))
        return refuse_to_wait(runtime, "weir_shutdown", "a collector");
    return wr_runtime_shutdown(runtime, wr_clock_deadline_ns(timeout_ms), &error) ? fail(runtime, &error) : 0;
}

/* ---- Last error and version ------------------------------------------------------------------ */

const char *weir_last_error(void)
{
    const struct wr_producer *producer = wr_producer_mine;
    return producer->shared ? "" : producer->error.text;
}

const char *weir_strerror(int error)
{
    return wr_error_text(error);
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}

/* ---- Messages and the ledger ----------------------------------------------------------------- */

void weir_set_log(void (*write)(void *ctx, int level, const char *text), void *ctx)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    if (runtime)
        wr_log_set_sink(&runtime->log, write, ctx);
}

/* Copies as much as fits into the caller's struct, which may be older or newer. */
static void copy_stats(void *to, size_t room, void *from, size_t size)
{
    if (room > size) {
        memset((char *)to + size, 0, room - size);
        room = size;
    }
    memcpy(to, from, room);
}

int weir_get_stats(weir_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!stats || size < sizeof stats->size)
        return fail_argument(runtime, "weir_get_stats: stats is NULL, or size is too small");
    weir_stats whole;
    wr_ledger_read(wr_runtime_engine(runtime), &whole);
    copy_stats(stats, size, &whole, sizeof whole);
    return 0;
}

int weir_get_handler_stats(const char *handler, weir_handler_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error;
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!handler || !stats || size < sizeof stats->size)
        return fail_argument(runtime, "weir_get_handler_stats: handler or stats is NULL, or size is too small");
    weir_handler_stats whole;
    if (!wr_ledger_read_handler(wr_runtime_engine(runtime), handler, &whole)) {
        wr_error_set(&error, WEIR_ERR_ARGUMENT, "weir_get_handler_stats: there is no handler \"%s\"", handler);
        return fail(runtime, &error);
    }
    copy_stats(stats, size, &whole, sizeof whole);
    return 0;
}

const char *weir_get_handler_name(size_t index)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime ? wr_ledger_handler_name(wr_runtime_engine(runtime), index) : NULL;
}

/* ---- Sources --------------------------------------------------------------------------------- */

int weir_start_sources(void)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_sources_start(runtime, &error) ? fail(runtime, &error) : 0;
}

int weir_stop_sources(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error;
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_sources_stop(runtime, wr_clock_deadline_ns(timeout_ms), &error) ? fail(runtime, &error) : 0;
}

int weir_wait_sources(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error;
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_sources_wait(runtime, wr_clock_deadline_ns(timeout_ms), &error) ? fail(runtime, &error) : 0;
}

int weir_get_source_stats(size_t index, weir_source_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    weir_source_stats whole;
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!stats || size < sizeof stats->size)
        return fail_argument(runtime, "weir_get_source_stats: stats is NULL, or size is too small");
    if (!wr_sources_read_stats(runtime, index, &whole))
        return fail_argument(runtime, "weir_get_source_stats: there are not that many sources");
    copy_stats(stats, size, &whole, sizeof whole);
    return 0;
}

/* ---- Collectors ------------------------------------------------------------------------------ */

enum { COLLECTOR_MS_MOST = 24 * 60 * 60 * 1000 };

weir_collector *weir_add_collector(weir_stream *stream, void (*collect)(weir_stream *stream, void *context),
                                   void *context, int64_t interval_ms)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error;
    if (!runtime)
        return NULL;
    if (!stream || !collect) {
        fail_argument(runtime, "weir_add_collector: the stream or the function is NULL");
        return NULL;
    }
    if (interval_ms < 1 || interval_ms > COLLECTOR_MS_MOST) {
        wr_error_set(&error, WEIR_ERR_ARGUMENT, "weir_add_collector: interval_ms is %lld; allowed: 1 to %d",
                     (long long)interval_ms, COLLECTOR_MS_MOST);
        fail(runtime, &error);
        return NULL;
    }
    weir_collector *collector =
        wr_collectors_add(&runtime->collectors, stream, collect, context, interval_ms * WR_NS_PER_MS, &error);
    if (collector)
        atomic_store(&runtime->ends_early, true); /* what it reads may be gone once exit handlers run */
    else
        fail(runtime, &error);
    return collector;
}

void weir_remove_collector(weir_collector *collector)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = collector ? wr_runtime_get() : NULL;
    if (runtime)
        wr_collectors_remove(&runtime->collectors, collector);
}
