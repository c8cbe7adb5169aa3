#include "handler/host_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "lane/lane_host.h"

static struct wr_host_api *core_of(const weir_host *host)
{
    return (struct wr_host_api *)host; /* its first member */
}

static void host_log(const weir_host *host, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_log_say(core_of(host)->log, level, "%s: %s", host->handler, text);
}

static void host_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    struct wr_host_api *core = core_of(host);
    char words[WR_ERROR_ROOM];
    if (!core->refusal)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    const struct wr_node *node = core->node, *member = wr_node_member(node, option ? option : "");
    if (member)
        wr_node_error(member, core->refusal, "%s", words);
    else if (node)
        wr_node_error(node, core->refusal, "%s%s%s", option ? option : "", option && *option ? ": " : "",
                      words);
    else
        wr_error_set(core->refusal, WEIR_ERR_CONFIG, "%s: %s%s%s", host->handler, option ? option : "",
                     option && *option ? ": " : "", words);
}

static void host_count(const weir_host *host, const char *name, uint64_t n)
{
    struct wr_lane *lane = core_of(host)->lane;
    if (lane)
        wr_lane_host_count(lane, name, n);
}

static void host_wake_in(const weir_host *host, int64_t delay_ms)
{
    struct wr_lane *lane = core_of(host)->lane;
    if (lane)
        wr_lane_host_wake_at(lane, delay_ms < 0 ? 0 : wr_clock_deadline_ns(delay_ms));
}

static bool host_wait(const weir_host *host, int64_t ms)
{
    struct wr_lane *lane = core_of(host)->lane;
    return lane && wr_lane_host_wait(lane, ms < 0 ? 0 : wr_clock_deadline_ns(ms));
}

static bool host_stopping(const weir_host *host)
{
    struct wr_lane *lane = core_of(host)->lane;
    return lane && wr_lane_host_is_stopping(lane);
}

/* ---- Services -------------------------------------------------------------------------------- */

static bool encode(const weir_host *host, const weir_batch *batch, uint32_t start, size_t limit,
                   weir_encoded *encoded)
{
    return wr_encoder_encode(core_of(host)->encoder, batch, start, limit, encoded);
}

static uint32_t settled(const weir_host *host, size_t length, size_t *end)
{
    return wr_encoder_settled(core_of(host)->encoder, length, end);
}

static const char *content_type(const weir_host *host)
{
    return core_of(host)->encoder->format->content_type;
}

static uint32_t shape(const weir_host *host)
{
    return core_of(host)->encoder->format->shape;
}

static const char *header(const weir_host *host)
{
    return wr_encoder_header(core_of(host)->encoder);
}

static const weir_encoder encoder_service = {sizeof encoder_service, encode, settled,
                                             content_type,           shape,  header};

static void set_color(const weir_host *host, bool color)
{
    core_of(host)->encoder->color = color;
}

static const weir_terminal terminal_service = {sizeof terminal_service, set_color};

static void set_patience(const weir_host *host, int64_t ms)
{
    enum { LONGEST_MS = 86400 * 1000 };
    if (ms < 0)
        ms = 0;
    core_of(host)->patience_ns = (ms < LONGEST_MS ? ms : LONGEST_MS) * WR_NS_PER_MS;
}

static const weir_patience patience_service = {sizeof patience_service, set_patience};

/* ---- Waiting in calls of the handler's own --------------------------------------------------- */

static void begin_waiting(const weir_host *host)
{
    struct wr_lane *lane = core_of(host)->lane;
    if (lane)
        wr_lane_host_begin_waiting(lane);
}

static void end_waiting(const weir_host *host)
{
    struct wr_lane *lane = core_of(host)->lane;
    if (lane)
        wr_lane_host_end_waiting(lane);
}

static int64_t tell_left_ms(const weir_host *host)
{
    struct wr_lane *lane = core_of(host)->lane;
    int64_t deadline_ns = lane ? wr_lane_host_stop_deadline(lane) : WR_NEVER;
    if (deadline_ns == WR_NEVER)
        return -1;
    int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
    return left_ns > 0 ? left_ns / WR_NS_PER_MS : 0;
}

static const weir_waiting waiting_service = {sizeof waiting_service, begin_waiting, end_waiting, tell_left_ms};

/* ---- Finding them ---------------------------------------------------------------------------- */

static const void *host_service(const weir_host *host, const char *id)
{
    if (strcmp(id, WEIR_ENCODER) == 0)
        return core_of(host)->encoder ? &encoder_service : NULL;
    if (strcmp(id, WEIR_TERMINAL) == 0)
        return core_of(host)->encoder ? &terminal_service : NULL;
    if (strcmp(id, WEIR_PATIENCE) == 0)
        return &patience_service;
    if (strcmp(id, WEIR_WAITING) == 0)
        return &waiting_service;
    return NULL;
}

void wr_host_api_init(struct wr_host_api *host, const char *handler)
{
    host->shown = (weir_host){
        .size = sizeof(weir_host),
        .abi = WEIR_ABI,
        .handler = handler,
        .log = host_log,
        .refuse = host_refuse,
        .count = host_count,
        .wake_in = host_wake_in,
        .wait = host_wait,
        .stopping = host_stopping,
        .service = host_service,
    };
}
