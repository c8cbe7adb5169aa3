#include "lane/lane_config.h"

#include <string.h>

#include "lane/lane_internal.h"
#include "lane/lane_stop.h"
#include "os/clock.h"
#include "registry/labels.h"

static void discard(struct wr_lane_discarded *discarded, struct wr_lane_handler *handler)
{
    if (handler->instance)
        discarded->instances[discarded->count++] = handler->instance;
    handler->instance = NULL;
}

void wr_lane_take_successor(struct wr_lane *lane)
{
    lane->handler = lane->successor;
    lane->successor = (struct wr_lane_handler){0};
    const struct wr_lane_handler *handler = &lane->handler;
    lane->end_reason = WR_LANE_LIVES;
    wr_lane_fail_waiters(lane, 0);
    wr_delivery_replace(&lane->delivery, handler->breach);
    if (!wr_spool_state_set_place(&lane->spool_state, handler->spool))
        wr_lane_log(lane, WEIR_LOG_ERROR, "out of memory for the spool; values are not spooled");
    wr_lane_set(lane, &handler->settings, wr_clock_monotonic_ns());
}

bool wr_lane_config_is_same(struct wr_lane *lane, const char *identity)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    const struct wr_lane_handler *last = lane->successor.instance ? &lane->successor : &lane->handler;
    bool lives = lane->successor.instance ||
                 (lane->end_reason == WR_LANE_LIVES && lane->delivery.health != WR_DELIVERY_GIVEN_UP);
    bool same = last->instance && lives && strcmp(last->identity, identity) == 0;
    wr_lane_unlock_from_program(lane, &signals);
    return same;
}

bool wr_lane_config_keep(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    bool has_handler = lane->handler.instance || lane->successor.instance;
    bool kept = has_handler && lane->end_reason == WR_LANE_LIVES;
    if (kept)
        wr_lane_stop_cancel(lane);
    wr_lane_unlock(lane);
    return kept;
}

/* A running worker replaces the handler itself, once it has closed it. */
static bool replace_handler(struct wr_lane *lane, const struct wr_lane_handler *handler,
                            struct wr_lane_discarded *discarded)
{
    discard(discarded, &lane->successor);
    lane->successor = *handler;
    wr_lane_fail_waiters(lane, 0); /* calls wait for this one */
    if (wr_lane_thread_runs(&lane->worker)) {
        lane->end_reason = WR_LANE_LIVES;
        wr_lane_thread_wake(&lane->worker);
        return false;
    }
    discard(discarded, &lane->handler);
    wr_lane_take_successor(lane);
    return true;
}

bool wr_lane_config_apply(struct wr_lane *lane, const struct wr_lane_change *change,
                          struct wr_lane_discarded *discarded)
{
    bool replaced = false;
    wr_lock_enter(&lane->lock);
    wr_lane_stop_cancel(lane);
    lane->journaled = change->journaled;
    wr_labels_drop(lane->labels);
    lane->labels = change->labels;
    wr_labels_hold(lane->labels);
    if (change->end_reason != WR_LANE_LIVES)
        lane->end_reason = change->end_reason;
    if (change->handler)
        replaced = replace_handler(lane, change->handler, discarded);
    wr_lane_unlock(lane);
    return replaced;
}

bool wr_lane_config_remove(struct wr_lane *lane, int64_t deadline_ns, struct wr_lane_discarded *discarded)
{
    wr_lock_enter(&lane->lock);
    bool was_stopping = wr_lane_is_stopping(lane);
    bool runs = wr_lane_thread_runs(&lane->worker);
    /* while the worker destroys the old handler, the successor stays: it delivers what is queued */
    if (!runs || lane->handler.instance)
        discard(discarded, &lane->successor);
    if (!runs)
        discard(discarded, &lane->handler);
    wr_lane_unlock(lane);
    if (was_stopping)
        return false;
    wr_lane_stop_request(lane, WEIR_DROPPED_REMOVED, deadline_ns);
    return true;
}
