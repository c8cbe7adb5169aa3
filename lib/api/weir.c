/* The functions of <weir/weir.h>, in the order of the header: each checks its arguments and calls the core. */

#include <weir/weir.h>

#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "config/config.h"
#include "runtime/configure.h"
#include "text/error.h"
#include "runtime/event.h"
#include "runtime/intake.h"
#include "lane/lane.h"
#include "status/ledger.h"
#include "registry/name.h"
#include "config/parse.h"
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

/* ---- Streams and values ---------------------------------------------------------------------- */

weir_stream *weir_get_stream(const char *group)
{
    return weir_get_stream_labeled(group, NULL, 0);
}

weir_stream *weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count)
{
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
    else if (wr_registry_is_full(&runtime->registry))
        wr_engine_say_overflow(wr_runtime_engine(runtime));
    return metric;
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

int weir_emit(weir_stream *stream, const weir_value *values, size_t count)
{
    if (WR_UNLIKELY(!stream || (count && !values)))
        return refuse_argument("weir_emit: the stream or the values are NULL");
    return count ? wr_intake_emit(stream, values, count) : 0;
}

int weir_add_sample(weir_stream *stream, const weir_sample_spec *spec)
{
    weir_sample_spec whole = {0};
    if (!stream || !spec)
        return refuse_argument("weir_add_sample: the stream or the specification is NULL");
    if (!WEIR_HAS(spec, value))
        return refuse_argument("weir_add_sample: size is too small; must be sizeof(weir_sample_spec)");
    memcpy(&whole, spec, spec->size < sizeof whole ? spec->size : sizeof whole);
    return wr_event_add_sample(stream, &whole);
}

int weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!stream)
        return fail_argument(runtime, "weir_describe: the stream is NULL");
    if (wr_series_describe(&runtime->registry, stream, name, unit, help, &error))
        return fail(runtime, &error);
    return 0;
}

bool weir_stream_enabled(weir_stream *stream)
{
    return stream && wr_intake_is_enabled(stream);
}

/* ---- Configuration --------------------------------------------------------------------------- */

int weir_configure(const char *group, const char *handler_type, const char *options_json)
{
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

static int configure(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error)
{
    int result = config ? wr_configure_whole(runtime, config, error) : error->code;
    return result ? fail(runtime, error) : 0;
}

int weir_configure_file(const char *path)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!path)
        return fail_argument(runtime, "weir_configure_file: the path is NULL");
    return configure(runtime, wr_parse_file(path, NULL, &error), &error);
}

int weir_configure_text(const char *json, size_t length)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (!json)
        return fail_argument(runtime, "weir_configure_text: the text is NULL");
    return configure(runtime, wr_parse_text("configuration", json, length, NULL, &error), &error);
}

int weir_reload(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_configure_reload(runtime, false, &error) ? fail(runtime, &error) : 0;
}

int weir_register_handler_type(const struct weir_handler_type *type, void *context)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    return wr_plugins_register(&runtime->plugins, type, context, &error) ? fail(runtime, &error) : 0;
}

/* ---- Delivery -------------------------------------------------------------------------------- */

static int refuse_own_thread(struct wr_runtime *runtime, const char *function)
{
    struct wr_error error;
    wr_error_set(&error, WEIR_ERR_BUSY, "%s: a handler's thread would wait for itself", function);
    return fail(runtime, &error);
}

int weir_flush(int64_t timeout_ms)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (wr_producer_is_own())
        return refuse_own_thread(runtime, "weir_flush");
    return wr_engine_flush(wr_runtime_engine(runtime), wr_clock_deadline_ns(timeout_ms), &error)
               ? fail(runtime, &error)
               : 0;
}

int weir_shutdown(int64_t timeout_ms)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error = {0};
    if (!runtime)
        return WEIR_ERR_MEMORY;
    if (wr_producer_is_own())
        return refuse_own_thread(runtime, "weir_shutdown");
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
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime ? wr_ledger_handler_name(wr_runtime_engine(runtime), index) : NULL;
}
