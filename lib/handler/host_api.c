#include "handler/host_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "handler/plugin.h"
#include "lane/lane_host.h"

static struct wr_host_api *api_of(const weir_host *host)
{
    return (struct wr_host_api *)host; /* shown is its first member */
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void host_log(const weir_host *host, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_log_write(api_of(host)->log, level, "%s: %s", host->name, text);
}

static void host_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    struct wr_host_api *api = api_of(host);
    char words[WR_ERROR_ROOM];
    if (!api->refusal)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    const struct wr_node *node = api->node, *member = wr_node_member(node, option ? option : "");
    if (member)
        wr_node_error(member, api->refusal, "%s", words);
    else if (node)
        wr_node_error(node, api->refusal, "%s%s%s", option ? option : "", option && *option ? ": " : "", words);
    else
        wr_error_set(api->refusal, WEIR_ERR_CONFIG, "%s: %s%s%s", host->name, option ? option : "",
                     option && *option ? ": " : "", words);
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
    return api_of(host)->encoder->format->content_type;
}

static uint32_t format(const weir_host *host)
{
    return api_of(host)->encoder->format->shape;
}

static const char *header(const weir_host *host)
{
    return wr_encoder_header(api_of(host)->encoder);
}

static const weir_encoder encoder_service = {sizeof encoder_service, encode, settled,
                                             content_type,           format, header};

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
    int64_t deadline_ns = lane ? wr_lane_host_stop_deadline(lane) : WR_NEVER;
    if (deadline_ns == WR_NEVER)
        return -1;
    int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
    return left_ns > 0 ? left_ns / WR_NS_PER_MS : 0;
}

static const weir_blocking_call blocking_call_service = {sizeof blocking_call_service, begin_call, end_call,
                                                         get_remaining_ms};

/* ---- Lookup ---------------------------------------------------------------------------------- */

static const void *host_service(const weir_host *host, const char *id)
{
    if (strcmp(id, WEIR_SERVICE_ENCODER) == 0)
        return api_of(host)->encoder ? &encoder_service : NULL;
    if (strcmp(id, WEIR_SERVICE_COLOR) == 0)
        return api_of(host)->encoder ? &color_service : NULL;
    if (strcmp(id, WEIR_SERVICE_TRY_TIMEOUT) == 0)
        return &try_timeout_service;
    if (strcmp(id, WEIR_SERVICE_BLOCKING_CALL) == 0)
        return &blocking_call_service;
    return NULL;
}

void wr_host_api_init(struct wr_host_api *host, const char *name, const struct wr_type *type)
{
    host->shown = (weir_host){
        .size = sizeof(weir_host),
        .abi = WEIR_ABI,
        .name = name,
        .type = type->given,
        .context = type->context,
        .log = host_log,
        .refuse = host_refuse,
        .count = host_count,
        .wake_in = host_wake_in,
        .wait = host_wait,
        .stopping = host_stopping,
        .service = host_service,
    };
}
