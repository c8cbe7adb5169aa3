/* The functions of <weir/weir.h>, in the order of the header: each checks its arguments and calls the core.
 * None is a cancellation point; those that add values disable cancellation on the slow path only (intake). */

#include <weir/weir.h>

#include <stdlib.h>
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
#include "registry/reuse.h"
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

/* A call that may fail, and why it does. */
struct call {
    struct wr_runtime *runtime;
    struct wr_error error;
};

/* fault: of the arguments, or NULL. Returns whether the call fails, with the error set. */
static bool begin(struct call *call, const char *fault)
{
    call->runtime = wr_runtime_get();
    call->error.code = call->runtime ? 0 : WEIR_ERR_MEMORY; /* it has a kilobyte, so only this is cleared */
    if (call->runtime && fault)
        wr_error_set(&call->error, WEIR_ERR_ARGUMENT, "%s", fault);
    return !call->runtime || fault;
}

/* The same for a call that waits, which a handler's thread must not make. */
static bool begin_to_wait(struct call *call, const char *function)
{
    bool fails = begin(call, NULL);
    if (fails || !wr_producer_is_own())
        return fails;
    return wr_error_set(&call->error, WEIR_ERR_BUSY, "%s: a handler's thread would wait for itself", function);
}

/* Returns what the call returns. */
static int end(const struct call *call, bool fails)
{
    return fails ? fail(call->runtime, &call->error) : 0;
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
WR_NEVER_INLINE static int add_new(weir_stream *stream, const char *name, weir_number value)
{
    return wr_intake_add(wr_intake_learn(stream, name), value);
}

int weir_add_value(weir_stream *stream, const char *name, double value)
{
    const weir_number wrapped = {WEIR_KIND_DOUBLE, {.f64 = value}};
    if (WR_UNLIKELY(!stream || !name))
        return refuse_argument("weir_add_value: the stream or the name is NULL");
    struct weir_metric *metric = wr_fast_add_find(stream, name);
    return WR_LIKELY(metric) ? wr_intake_add(metric, wrapped) : add_new(stream, name, wrapped);
}

int weir_add_int(weir_stream *stream, const char *name, int64_t value)
{
    const weir_number wrapped = {WEIR_KIND_INT, {.i64 = value}};
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

/* Whether the series stays, with the error set. */
static bool refuses_to_remove(struct call *call, const weir_metric *metric)
{
    const struct weir_stream *stream = metric->stream;
    if (stream->refusal)
        wr_error_set(&call->error, stream->refusal, "weir_metric_remove: the metric refuses all values: %s",
                     wr_stream_refusal(&call->runtime->registry, stream));
    else if (wr_registry_is_shared(metric))
        wr_error_set(&call->error, WEIR_ERR_LIMIT,
                     "weir_metric_remove: \"%s\" is shared by what is beyond a limit of series", metric->name);
    return call->error.code;
}

int weir_metric_remove(weir_metric *metric)
{
    WR_CANCEL_DISABLED;
    struct call call;
    bool fails = metric ? begin_to_wait(&call, "weir_metric_remove")
                        : begin(&call, "weir_metric_remove: the metric is NULL");
    if (fails || refuses_to_remove(&call, metric))
        return end(&call, true);
    wr_engine_end_series(wr_runtime_engine(call.runtime), &metric->series, 1);
    return 0;
}

/* Whether the stream stays, with the error set. */
static bool refuses_to_remove_stream(struct call *call, const weir_stream *stream)
{
    if (stream->refusal)
        wr_error_set(&call->error, stream->refusal, "weir_stream_remove: the stream refuses all values: %s",
                     wr_stream_refusal(&call->runtime->registry, stream));
    else if (stream->overflow)
        wr_error_set(&call->error, WEIR_ERR_LIMIT,
                     "weir_stream_remove: the stream is shared by what is beyond a limit of label sets");
    else if (!stream->label_count)
        wr_error_set(&call->error, WEIR_ERR_ARGUMENT, "weir_stream_remove: the stream has no labels");
    return call->error.code;
}

int weir_stream_remove(weir_stream *stream)
{
    WR_CANCEL_DISABLED;
    struct call call;
    size_t count;
    bool fails = stream ? begin_to_wait(&call, "weir_stream_remove")
                        : begin(&call, "weir_stream_remove: the stream is NULL");
    if (fails || refuses_to_remove_stream(&call, stream))
        return end(&call, true);
    uint32_t *series = wr_reuse_list_series(&call.runtime->registry, stream, &count);
    if (!series)
        return end(&call, wr_error_no_memory(&call.error, NULL));
    wr_engine_end_series(wr_runtime_engine(call.runtime), series, count);
    wr_reuse_unpin(&call.runtime->registry, stream); /* not before: the ids would be those of others */
    free(series);
    return 0;
}

int weir_metric_add(weir_metric *metric, double value)
{
    if (WR_UNLIKELY(!metric))
        return refuse_argument("weir_metric_add: the metric is NULL");
    return wr_intake_add(metric, WEIR_DOUBLE(value));
}

int weir_metric_add_int(weir_metric *metric, int64_t value)
{
    if (WR_UNLIKELY(!metric))
        return refuse_argument("weir_metric_add_int: the metric is NULL");
    return wr_intake_add(metric, WEIR_INT(value));
}

int weir_metric_try_add(weir_metric *metric, double value)
{
    if (WR_UNLIKELY(!metric))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    return wr_try_add(metric, WEIR_DOUBLE(value));
}

int weir_metric_try_add_int(weir_metric *metric, int64_t value)
{
    if (WR_UNLIKELY(!metric))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    return wr_try_add(metric, WEIR_INT(value));
}

/* The same for a thread that is not on the fast path, and within an interrupted call that looks for labels. */
WR_NEVER_INLINE static int add_labeled(weir_stream *stream, const char *name, weir_number value,
                                       const weir_label *labels, size_t count)
{
    struct wr_reading reading = wr_intake_begin_reading();
    int result = wr_intake_add(wr_intake_find_labeled(stream, name, labels, count), value);
    wr_intake_end_reading(&reading);
    return result;
}

int weir_add_value_labeled(weir_stream *stream, const char *name, double value, const weir_label *labels,
                           size_t count)
{
    if (WR_UNLIKELY(!stream || !name || (count && !labels)))
        return refuse_argument("weir_add_value_labeled: the stream, the name or the labels are NULL");
    const weir_number wrapped = {WEIR_KIND_DOUBLE, {.f64 = value}};
    struct wr_producer *producer = wr_producer_mine;
    if (WR_UNLIKELY(!wr_producer_is_ready(producer) || !wr_producer_begin_reading(producer, false)))
        return add_labeled(stream, name, wrapped, labels, count);
    int result = wr_intake_add(wr_intake_find_labeled(stream, name, labels, count), wrapped);
    wr_producer_end_reading(producer);
    return result;
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
        if (!is_kind(values[i].number.kind))
            return refuse_argument("weir_emit_typed: a kind is not WEIR_KIND_DOUBLE or WEIR_KIND_INT");
    return count ? wr_event_add(stream, &(struct wr_event){.values = values, .count = count}) : 0;
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
    struct call call;
    const char *fault = stream ? NULL : "weir_describe: the stream is NULL";
    return end(&call, begin(&call, fault) ||
                          wr_family_describe(&call.runtime->registry, stream, name, unit, help, &call.error));
}

bool weir_stream_enabled(weir_stream *stream)
{
    return stream && wr_intake_is_enabled(stream);
}

/* ---- Instruments ----------------------------------------------------------------------------- */

int weir_declare(weir_stream *stream, const char *name, const weir_metric_spec *spec)
{
    WR_CANCEL_DISABLED;
    struct call call;
    weir_metric_spec whole = {0};
    const char *fault = NULL;
    if (!stream || !spec)
        fault = "weir_declare: the stream or the specification is NULL";
    else if (!WEIR_HAS(spec, instrument))
        fault = "weir_declare: size is too small; must be sizeof(weir_metric_spec)";
    if (begin(&call, fault))
        return end(&call, true);
    memcpy(&whole, spec, spec->size < sizeof whole ? spec->size : sizeof whole);
    return end(&call, wr_family_declare(&call.runtime->registry, stream, name, &whole, &call.error));
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
    return wr_intake_add(metric, WEIR_DOUBLE(increment));
}

int weir_count(weir_stream *stream, const char *name, double increment)
{
    if (WR_UNLIKELY(!stream || !name))
        return refuse_argument("weir_count: the stream or the name is NULL");
    struct weir_metric *metric = wr_fast_add_find(stream, name);
    if (WR_UNLIKELY(!metric || atomic_load_explicit(&metric->instrument, memory_order_relaxed) != WEIR_COUNTER))
        return count_new(stream, name, increment);
    return wr_intake_add(metric, WEIR_DOUBLE(increment));
}

/* ---- Configuration --------------------------------------------------------------------------- */

int weir_start(void)
{
    WR_CANCEL_DISABLED;
    struct call call;
    return end(&call, begin(&call, NULL) || wr_configure_start(call.runtime, &call.error));
}

int weir_configure(const char *group, const char *handler_type, const char *options_json)
{
    WR_CANCEL_DISABLED;
    struct call call;
    if (!group)
        group = "*";
    bool fails = begin(&call, NULL) || (strcmp(group, "*") != 0 && !wr_name_check_group(group, &call.error)) ||
                 wr_configure_route(call.runtime, group, handler_type, options_json, &call.error);
    return end(&call, fails);
}

int weir_configure_file(const char *path)
{
    WR_CANCEL_DISABLED;
    struct call call;
    const char *fault = path ? NULL : "weir_configure_file: the path is NULL";
    return end(&call, begin(&call, fault) || wr_configure_file(call.runtime, path, &call.error));
}

int weir_configure_text(const char *json, size_t length)
{
    WR_CANCEL_DISABLED;
    struct call call;
    const char *fault = json ? NULL : "weir_configure_text: the text is NULL";
    return end(&call, begin(&call, fault) || wr_configure_text(call.runtime, json, length, &call.error));
}

int weir_reload(void)
{
    WR_CANCEL_DISABLED;
    struct call call;
    return end(&call, begin(&call, NULL) || wr_configure_reload(call.runtime, false, &call.error));
}

static int register_type(const struct wr_plugins_kind *kind, const void *type, void *context)
{
    WR_CANCEL_DISABLED;
    struct call call;
    return end(&call, begin(&call, NULL) ||
                          wr_plugins_register(&call.runtime->plugins, kind, type, context, &call.error));
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
    struct call call;
    return end(&call, begin_to_wait(&call, "weir_flush") ||
                          wr_engine_flush(wr_runtime_engine(call.runtime), wr_clock_deadline_ns(timeout_ms),
                                          &call.error));
}

int weir_shutdown(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct call call;
    bool fails = begin_to_wait(&call, "weir_shutdown");
    if (!fails && wr_collectors_are_here(&call.runtime->collectors))
        fails = wr_error_set(&call.error, WEIR_ERR_BUSY, "weir_shutdown: a collector would wait for itself");
    return end(&call,
               fails || wr_runtime_shutdown(call.runtime, wr_clock_deadline_ns(timeout_ms), &call.error));
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

/* Copies as much as fits into the caller's struct, which may be older or newer, and says how much that is. */
static void copy_stats(void *to, size_t room, void *from, size_t size)
{
    if (room > size) {
        memset((char *)to + size, 0, room - size);
        room = size;
    }
    memcpy(to, from, room);
    memcpy(to, &room, sizeof room);
}

int weir_get_stats(weir_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct call call;
    weir_stats whole;
    bool is_valid = stats && size >= sizeof stats->size;
    if (begin(&call, is_valid ? NULL : "weir_get_stats: stats is NULL, or size is too small"))
        return end(&call, true);
    wr_ledger_read(wr_runtime_engine(call.runtime), &whole);
    copy_stats(stats, size, &whole, sizeof whole);
    return 0;
}

int weir_get_handler_stats(const char *handler, weir_handler_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct call call;
    weir_handler_stats whole;
    bool is_valid = handler && stats && size >= sizeof stats->size, fails;
    fails = begin(&call,
                  is_valid ? NULL : "weir_get_handler_stats: handler or stats is NULL, or size is too small");
    if (!fails && !wr_ledger_read_handler(wr_runtime_engine(call.runtime), handler, &whole))
        fails = wr_error_set(&call.error, WEIR_ERR_ARGUMENT,
                             "weir_get_handler_stats: there is no handler \"%s\"", handler);
    if (!fails)
        copy_stats(stats, size, &whole, sizeof whole);
    return end(&call, fails);
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
    struct call call;
    return end(&call, begin(&call, NULL) || wr_sources_start(call.runtime, &call.error));
}

int weir_stop_sources(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct call call;
    return end(&call, begin(&call, NULL) ||
                          wr_sources_stop(call.runtime, wr_clock_deadline_ns(timeout_ms), &call.error));
}

int weir_wait_sources(int64_t timeout_ms)
{
    WR_CANCEL_DISABLED;
    struct call call;
    return end(&call, begin(&call, NULL) ||
                          wr_sources_wait(call.runtime, wr_clock_deadline_ns(timeout_ms), &call.error));
}

int weir_get_source_stats(const char *source, weir_source_stats *stats, size_t size)
{
    WR_CANCEL_DISABLED;
    struct call call;
    weir_source_stats whole;
    bool is_valid = source && stats && size >= sizeof stats->size, fails;
    fails =
        begin(&call, is_valid ? NULL : "weir_get_source_stats: source or stats is NULL, or size is too small");
    if (!fails && !wr_sources_read_stats(call.runtime, source, &whole))
        fails = wr_error_set(&call.error, WEIR_ERR_ARGUMENT, "weir_get_source_stats: there is no source \"%s\"",
                             source);
    if (!fails)
        copy_stats(stats, size, &whole, sizeof whole);
    return end(&call, fails);
}

const char *weir_get_source_name(size_t index)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime ? wr_sources_name(runtime, index) : NULL;
}

/* ---- Collectors ------------------------------------------------------------------------------ */

enum { COLLECTOR_MS_MOST = 24 * 60 * 60 * 1000 };

weir_collector *weir_add_collector(weir_stream *stream, void (*collect)(weir_stream *stream, void *context),
                                   void *context, int64_t interval_ms)
{
    WR_CANCEL_DISABLED;
    struct call call;
    weir_collector *collector = NULL;
    bool is_valid = stream && collect;
    bool fails = begin(&call, is_valid ? NULL : "weir_add_collector: the stream or the function is NULL");
    if (!fails && (interval_ms < 1 || interval_ms > COLLECTOR_MS_MOST))
        wr_error_set(&call.error, WEIR_ERR_ARGUMENT,
                     "weir_add_collector: interval_ms is %lld; allowed: 1 to %d", (long long)interval_ms,
                     COLLECTOR_MS_MOST);
    else if (!fails)
        collector = wr_collectors_add(&call.runtime->collectors, stream, collect, context,
                                      interval_ms * WR_NS_PER_MS, &call.error);
    if (collector)
        atomic_store(&call.runtime->ends_early, true); /* what it reads may be gone once exit handlers run */
    end(&call, !collector);
    return collector;
}

void weir_remove_collector(weir_collector *collector)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = collector ? wr_runtime_get() : NULL;
    if (runtime)
        wr_collectors_remove(&runtime->collectors, collector);
}
