#include "handler/host_api.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "handler/parts.h"
#include "handler/plugin.h"
#include "handler/numbers.h"
#include "registry/reuse.h"
#include "handler/upstream.h"
#include "lane/lane_host.h"
#include "lane/lane_stats.h"
#include "segment/segment.h"
#include "summary/buckets.h"
#include "summary/summary.h"

static struct wr_host_api *api_of(const weir_host *host)
{
    return (struct wr_host_api *)host; /* host_table is its first member */
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void host_log(const weir_host *host, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct wr_lane *lane = api_of(host)->lane;
    if (!lane || !wr_lane_host_defer(lane, level, text))
        wr_log_write(api_of(host)->log, level, "%s: %s", host->name, text);
}

void wr_host_api_refuse(const weir_host *host, struct wr_error *refusal, const struct wr_node *node,
                        const char *option, const char *format, va_list arguments)
{
    char words[WR_ERROR_ROOM];
    if (!refusal)
        return;
    vsnprintf(words, sizeof words, format, arguments);
    const struct wr_node *member = wr_node_member(node, option ? option : "");
    if (member)
        wr_node_error(member, refusal, "%s", words);
    else if (node)
        wr_node_error(node, refusal, "%s%s%s", option ? option : "", option && *option ? ": " : "", words);
    else
        wr_error_set(refusal, WEIR_ERR_CONFIG, "%s: %s%s%s", host->name, option ? option : "",
                     option && *option ? ": " : "", words);
}

static void host_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    wr_host_api_refuse(host, api_of(host)->refusal, api_of(host)->node, option, format, arguments);
    va_end(arguments);
}

static void host_count(const weir_host *host, const char *name, uint64_t n)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (lane)
        wr_lane_host_count(lane, name, n);
}

static void host_wake_in(const weir_host *host, int64_t delay_ms)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (lane)
        wr_lane_host_wake_at(lane, delay_ms < 0 ? 0 : wr_clock_deadline_ns(delay_ms));
}

static bool host_wait(const weir_host *host, int64_t ms)
{
    struct wr_lane *lane = api_of(host)->lane;
    return lane && wr_lane_host_wait(lane, ms < 0 ? 0 : wr_clock_deadline_ns(ms));
}

static bool host_stopping(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    return lane && wr_lane_host_is_stopping(lane);
}

/* ---- Services -------------------------------------------------------------------------------- */

static bool encode(const weir_host *host, const weir_batch *batch, uint32_t start, size_t limit,
                   weir_encoded *encoded)
{
    return wr_encoder_encode(api_of(host)->encoder, batch, start, limit, encoded);
}

static uint32_t settled(const weir_host *host, size_t length, size_t *end)
{
    return wr_encoder_settled(api_of(host)->encoder, length, end);
}

static const char *content_type(const weir_host *host)
{
    return wr_encoder_content_type(api_of(host)->encoder);
}

static uint32_t format(const weir_host *host)
{
    return api_of(host)->encoder->format->shape;
}

static const char *header(const weir_host *host)
{
    return wr_encoder_header(api_of(host)->encoder);
}

static void limit_lines(const weir_host *host, size_t limit)
{
    api_of(host)->encoder->line_limit = limit;
}

static const char *format_name(const weir_host *host)
{
    return api_of(host)->encoder->format->name;
}

static const weir_encoder encoder_service = {sizeof encoder_service, encode, settled, format_name,
                                             content_type,           format, header,  limit_lines};

static void set_color(const weir_host *host, bool color)
{
    api_of(host)->encoder->color = color;
}

static const weir_color color_service = {sizeof color_service, set_color};

static void set_try_timeout(const weir_host *host, int64_t timeout_ms)
{
    enum { LONGEST_MS = 86400 * 1000 };
    if (timeout_ms < 0)
        timeout_ms = 0;
    api_of(host)->try_timeout_ns = (timeout_ms < LONGEST_MS ? timeout_ms : LONGEST_MS) * WR_NS_PER_MS;
}

static const weir_try_timeout try_timeout_service = {sizeof try_timeout_service, set_try_timeout};

/* ---- Summaries ------------------------------------------------------------------------------- */

struct wr_host_summary {
    struct wr_summary summary;
    struct wr_summary_room room;
};

void wr_host_api_fini(struct wr_host_api *host)
{
    if (host->summary)
        wr_sketch_fini(&host->summary->summary.sketch);
    free(host->summary);
    host->summary = NULL;
}

/* Returns NULL if it cannot be read. */
static const struct wr_summary *read_text(struct wr_host_api *host, const weir_batch *batch,
                                          const weir_sample *sample)
{
    struct wr_error error = {0};
    if (!host->summary)
        host->summary = calloc(1, sizeof *host->summary);
    if (!host->summary || sample->kind != WEIR_KIND_SUMMARY)
        return NULL;
    struct wr_summary *summary = &host->summary->summary;
    wr_sketch_fini(&summary->sketch);
    bool is_read = wr_summary_read(summary, &host->summary->room, batch->notes[sample->note], &error);
    return is_read ? summary : NULL;
}

static bool read_summary(const weir_host *host, const weir_batch *batch, const weir_sample *sample,
                         weir_summary *out)
{
    size_t bounds, size = out->size < sizeof *out ? out->size : sizeof *out;
    const struct wr_summary *summary = read_text(api_of(host), batch, sample);
    if (!summary)
        return false;
    const double *upper = wr_buckets_of(weir_batch_series(batch, sample), &bounds);
    bool has_buckets = summary->bucket_count == bounds + 1 &&
                       summary->bounds_check == wr_buckets_check(upper, bounds); /* else declared anew since */
    const weir_summary whole = {
        .size = size,
        .instrument = summary->kind,
        .start_ns = summary->start_ns,
        .since_ns = summary->since_ns,
        .count = summary->count,
        .sum = summary->sum,
        .min = summary->sketch.count ? summary->sketch.min : 0,
        .max = summary->sketch.count ? summary->sketch.max : 0,
        .last = summary->last,
        .total_count = summary->total_count,
        .total_sum = summary->total_sum,
        .bucket_count = has_buckets ? summary->bucket_count : 0,
        .bounds = has_buckets ? upper : NULL,
        .buckets = has_buckets ? summary->buckets : NULL,
        .total_buckets = has_buckets ? summary->total_buckets : NULL,
    };
    memcpy(out, &whole, size);
    return true;
}

static double find_quantile(const weir_host *host, double q)
{
    const struct wr_host_summary *summary = api_of(host)->summary;
    if (!summary || !summary->summary.sketch.count)
        return NAN;
    return wr_sketch_quantile(&summary->summary.sketch, q < 0 ? 0 : q > 1 ? 1 : q);
}

static int64_t find_since(const weir_host *host, const weir_sample *part)
{
    const struct wr_parts *parts = api_of(host)->parts;
    return parts ? wr_parts_since(parts, (uint32_t)(part - parts->samples)) : 0;
}

static const weir_summaries summaries_service = {sizeof summaries_service, read_summary, find_quantile,
                                                 find_since};

/* ---- Blocking calls of the handler's own ----------------------------------------------------- */

static void begin_call(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (lane)
        wr_lane_host_begin_waiting(lane);
}

/* After a shutdown that gave up on this thread it does not return. */
static void end_call(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (lane)
        wr_lane_host_end_waiting(lane);
}

static int64_t get_remaining_ms(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    return lane ? wr_lane_host_remaining_ms(lane) : -1;
}

static const weir_blocking_call blocking_call_service = {sizeof blocking_call_service, begin_call, end_call,
                                                         get_remaining_ms};

/* ---- Waiting for descriptors ----------------------------------------------------------------- */

/* A fork proceeds meanwhile. A failure takes as long as a wait, so that no caller spins. */
static int poll_outside(const weir_host *host, struct pollfd *fds, size_t count, int timeout_ms)
{
    begin_call(host);
    int ready = poll(fds, count, timeout_ms);
    if (ready < 0 && errno != EINTR)
        poll(NULL, 0, timeout_ms);
    end_call(host);
    return ready;
}

/* In slices, since nothing wakes poll(2) when a stop is requested: so weir needs no descriptor for that. Before
 * each, values are moved to the spool. `weir check --open` has no lane, and a time limit of its own. */
static unsigned wait_for(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    enum { SLICE_MS = 50 };
    int64_t end_ns = timeout_ms < 0 ? WR_NEVER : wr_clock_deadline_ns(timeout_ms);
    for (;;) {
        host_wait(host, 0);
        int64_t left_ms = api_of(host)->refusal ? 0 : get_remaining_ms(host);
        int64_t until_ns = end_ns == WR_NEVER ? WR_NEVER : end_ns - wr_clock_monotonic_ns();
        int64_t slice_ms = left_ms >= 0 && left_ms < SLICE_MS ? left_ms : SLICE_MS;
        if (until_ns < slice_ms * WR_NS_PER_MS)
            slice_ms = until_ns > 0 ? (until_ns + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
        int ready = poll_outside(host, fds, count, (int)slice_ms);
        unsigned stops = left_ms == 0 ? WEIR_WAIT_STOP : 0u;
        if (ready > 0)
            return WEIR_WAIT_READY | stops;
        if (stops || (end_ns != WR_NEVER && wr_clock_monotonic_ns() >= end_ns))
            return stops;
    }
}

static int64_t read_clock(const weir_host *host)
{
    (void)host;
    return wr_clock_monotonic_ns() / WR_NS_PER_MS;
}

static const weir_waiting waiting_service = {sizeof waiting_service, wait_for, read_clock};

/* ---- Connecting ------------------------------------------------------------------------------ */

static int connect_to(const weir_host *host, const weir_connect *what, char *reason, size_t room)
{
    struct wr_host_api *api = api_of(host);
    wr_connecting_wait *wait = api->refusal ? NULL : wait_for; /* in create */
    return wr_connecting_connect(&api->connecting, host, wait, what, reason, room);
}

static const weir_connecting connecting_service = {sizeof connecting_service, wr_connecting_check, connect_to};

/* ---- The handler's ledger -------------------------------------------------------------------- */

static bool get_ledger(const weir_host *host, struct weir_handler_stats *stats, size_t size)
{
    struct wr_lane *lane = api_of(host)->lane;
    weir_handler_stats whole;
    if (!lane)
        return false;
    wr_lane_stats_get(&whole, lane, wr_clock_monotonic_ns());
    whole.size = size < sizeof whole ? size : sizeof whole;
    memcpy(stats, &whole, whole.size);
    return true;
}

static bool get_values(const weir_host *host, const weir_sample *samples, uint32_t count, uint64_t *values)
{
    const struct wr_parts *parts = api_of(host)->parts;
    bool has_summary = parts;
    for (uint32_t i = 0; !has_summary && i < count; i++)
        has_summary = samples[i].kind == WEIR_KIND_SUMMARY;
    for (uint32_t i = 0; has_summary && i < count; i++)
        values[i] = parts ? wr_parts_values(parts, (uint32_t)(samples - parts->samples) + i)
                          : wr_sample_values(&samples[i]);
    return has_summary;
}

static const weir_ledger ledger_service = {sizeof ledger_service, get_ledger, get_values};

/* ---- What comes next ------------------------------------------------------------------------- */

static bool look_ahead(const weir_host *host, weir_batch *next)
{
    struct wr_host_api *api = api_of(host);
    return api->lane && wr_ahead_next(&api->ahead, api->lane, next);
}

static const weir_ahead ahead_service = {sizeof ahead_service, look_ahead};

/* ---- Series ---------------------------------------------------------------------------------- */

static struct weir_stream *stream_of(const weir_series *series)
{
    return ((const struct wr_view *)series)->stream;
}

static void keep_series(const weir_host *host, const weir_series *series)
{
    (void)host;
    wr_reuse_hold(stream_of(series));
}

static void release_series(const weir_host *host, const weir_series *series)
{
    (void)host;
    wr_reuse_let_go(stream_of(series));
}

static const weir_series_keeper series_service = {sizeof series_service, keep_series, release_series};

/* ---- Lookup ---------------------------------------------------------------------------------- */

static const void *host_service(const weir_host *host, const char *id)
{
    if (strcmp(id, WEIR_SERVICE_ENCODER) == 0)
        return api_of(host)->encoder ? &encoder_service : NULL;
    if (strcmp(id, WEIR_SERVICE_COLOR) == 0)
        return api_of(host)->encoder ? &color_service : NULL;
    if (strcmp(id, WEIR_SERVICE_TRY_TIMEOUT) == 0)
        return &try_timeout_service;
    if (strcmp(id, WEIR_SERVICE_SUMMARIES) == 0)
        return &summaries_service;
    if (strcmp(id, WEIR_SERVICE_BLOCKING_CALL) == 0)
        return &blocking_call_service;
    if (strcmp(id, WEIR_SERVICE_WAITING) == 0)
        return &waiting_service;
    if (strcmp(id, WEIR_SERVICE_CONNECTING) == 0)
        return api_of(host)->has_connecting ? &connecting_service : NULL;
    if (strcmp(id, WEIR_SERVICE_LEDGER) == 0)
        return &ledger_service;
    if (strcmp(id, WEIR_SERVICE_AHEAD) == 0)
        return &ahead_service;
    if (strcmp(id, WEIR_SERVICE_SERIES) == 0)
        return &series_service;
    if (strcmp(id, WEIR_SERVICE_NUMBERS) == 0)
        return wr_numbers_service();
    if (strcmp(id, WEIR_SERVICE_UPSTREAM) == 0)
        return wr_upstream_service();
    return NULL;
}

void wr_host_api_init(struct wr_host_api *host, const char *name, const struct wr_type *type)
{
    host->host_table = (weir_host){
        .size = sizeof(weir_host),
        .abi = type->kind->abi,
        .name = name,
        .type = type->kind == &wr_plugins_handlers ? type->given : NULL,
        .source_type = type->kind == &wr_plugins_sources ? type->given : NULL,
        .context = type->context,
        .log = host_log,
        .refuse = host_refuse,
        .count = host_count,
        .wake_in = host_wake_in,
        .wait = host_wait,
        .stopping = host_stopping,
        .service = host_service,
    };
    wr_connecting_init(&host->connecting);
    host->has_connecting = !(type->is.flags & WEIR_TYPE_SHARES_NOTHING);
}
