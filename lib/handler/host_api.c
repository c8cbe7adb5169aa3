#include "handler/host_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "os/thread.h"
#include "handler/plugin.h"

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
    wr_log_say(api_of(host)->log, level, "%s: %s", host->name, text);
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
    if (!lane)
        return;
    wr_lock_enter(&lane->lock);
    for (size_t i = 0; i < WR_LANE_COUNTERS; i++) {
        struct wr_lane_counter *counter = &lane->counters[i];
        if (counter->name && strncmp(counter->name, name, sizeof counter->name_text - 1) != 0)
            continue; /* stored names are cut */
        if (!counter->name)
            snprintf(counter->name_text, sizeof counter->name_text, "%s", name);
        counter->name = counter->name_text;
        counter->value += n;
        break;
    }
    wr_lane_leave(lane);
}

static void host_wake_in(const weir_host *host, int64_t delay_ms)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (!lane)
        return;
    wr_lock_enter(&lane->lock);
    lane->wake_at_ns = delay_ms < 0 ? 0 : wr_clock_deadline_ns(delay_ms);
    wr_condition_wake(&lane->work);
    wr_lane_leave(lane);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool is_stop_requested(const struct wr_lane *lane)
{
    return lane->stopping || lane->successor;
}

/* Moves to disk what filled the queue while the handler was busy. Caller holds the lane lock, which is released
 * meanwhile. */
static void spool_what_is_due(struct wr_lane *lane)
{
    lane->spool_state.tired = false;
    while (!lane->held && wr_spool_policy_prepare(lane, wr_clock_monotonic_ns()))
        wr_spool_io_move(lane);
}

static void sleep_until(struct wr_lane *lane, int64_t deadline_ns)
{
    lane->spool_state.tired = false;
    int64_t move_ns = lane->held ? WR_NEVER : wr_spool_policy_time(lane, wr_clock_monotonic_ns());
    wr_condition_wait(&lane->work, &lane->lock, move_ns < deadline_ns ? move_ns : deadline_ns);
}

/* A fork proceeds meanwhile: in the child, nothing of the handler is half done. */
static bool host_wait(const weir_host *host, int64_t ms)
{
    struct wr_lane *lane = api_of(host)->lane;
    int64_t deadline_ns = ms < 0 ? 0 : wr_clock_deadline_ns(ms);
    if (!lane)
        return false;
    wr_lock_enter(&lane->lock);
    lane->in_callback = false;
    wr_condition_wake(&lane->progress);
    spool_what_is_due(lane);
    while (lane->held || (!is_stop_requested(lane) && wr_clock_monotonic_ns() < deadline_ns)) {
        sleep_until(lane, lane->held ? WR_NEVER : deadline_ns);
        spool_what_is_due(lane);
    }
    lane->in_callback = true;
    bool waited = !is_stop_requested(lane);
    wr_lane_leave(lane);
    return waited;
}

static bool host_stopping(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (!lane)
        return false;
    wr_lock_enter(&lane->lock);
    bool stopping = is_stop_requested(lane);
    wr_lane_leave(lane);
    return stopping;
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
    if (!lane)
        return;
    wr_lock_enter(&lane->lock);
    spool_what_is_due(lane);
    lane->in_callback = false;
    wr_condition_wake(&lane->progress);
    wr_lane_leave(lane);
}

/* After a shutdown that gave up on this thread it must not return to libraries that may be gone. */
static void end_call(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (!lane)
        return;
    wr_lock_enter(&lane->lock);
    while (lane->held)
        wr_condition_wait(&lane->work, &lane->lock, WR_NEVER);
    bool abandoned = lane->abandoned;
    lane->in_callback = !abandoned;
    wr_lane_leave(lane);
    if (abandoned)
        wr_thread_park();
}

static int64_t get_remaining_ms(const weir_host *host)
{
    struct wr_lane *lane = api_of(host)->lane;
    if (!lane)
        return -1;
    wr_lock_enter(&lane->lock);
    int64_t deadline_ns = lane->stopping ? lane->stop_deadline_ns : WR_NEVER;
    wr_lane_leave(lane);
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
