#include "lane/lane_host.h"

#include <stdio.h>
#include <string.h>

#include "lane/lane_internal.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "os/clock.h"
#include "os/thread.h"
#include "registry/labels.h"
#include "text/common.h"

/* A caller's messages are left to the worker: see lane_now.h. */
static void unlock(struct wr_lane *lane)
{
    if (wr_lane_thread_is_now(&lane->worker))
        wr_lock_leave(&lane->lock);
    else
        wr_lane_unlock(lane);
}

bool wr_lane_host_defer(struct wr_lane *lane, int level, const char *text)
{
    wr_lock_enter(&lane->lock);
    bool deferred = wr_lane_thread_is_now(&lane->worker);
    if (deferred)
        wr_lane_log(lane, level, "%s", text);
    unlock(lane);
    return deferred;
}

/* NULL: all are in use. */
static struct wr_lane_counter *find_counter(struct wr_lane *lane, const char *name)
{
    struct wr_lane_counter *counter = lane->counters;
    /* a name that is too long was cut when it was stored */
    for (size_t i = 0; i < lane->counter_count; i++, counter++)
        if (strncmp(counter->name, name, sizeof counter->name - 1) == 0)
            return counter;
    if (lane->counter_count == WR_LANE_COUNTERS)
        return NULL;
    lane->counter_count++;
    snprintf(counter->name, sizeof counter->name, "%s", name);
    return counter;
}

void wr_lane_host_count(struct wr_lane *lane, const char *name, uint64_t n)
{
    wr_lock_enter(&lane->lock);
    struct wr_lane_counter *counter = find_counter(lane, name);
    if (counter)
        counter->value += n;
    unlock(lane);
}

void wr_lane_host_wake_at(struct wr_lane *lane, int64_t at_ns)
{
    wr_lock_enter(&lane->lock);
    lane->wake_at_ns = at_ns;
    wr_lane_thread_wake(&lane->worker);
    unlock(lane);
}

static bool must_stop(const struct wr_lane *lane)
{
    return wr_lane_is_stopping(lane) || lane->successor.instance;
}

bool wr_lane_host_is_stopping(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    bool stopping = must_stop(lane);
    unlock(lane);
    return stopping;
}

int64_t wr_lane_host_remaining_ms(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    bool stops = wr_lane_is_stopping(lane);
    int64_t left_ms = (lane->stop_deadline_ns - wr_clock_monotonic_ns()) / WR_NS_PER_MS;
    unlock(lane);
    return !stops ? -1 : left_ms <= 0 ? 0 : left_ms < INT32_MAX ? left_ms : INT32_MAX;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Whether nothing may be moved to the spool by this thread: the spooler does it. */
static bool leaves_spool(struct wr_lane *lane)
{
    return wr_lane_is_forking(lane) || wr_lane_thread_runs(&lane->spooler);
}

/* Moves to the spool what filled the queue while the handler was busy. Returns when to do so again. */
static int64_t spool_what_is_due(struct wr_lane *lane)
{
    int64_t until_ns = WR_NEVER;
    while (!leaves_spool(lane) && wr_spool_policy_prepare_meanwhile(lane, wr_clock_monotonic_ns(), &until_ns))
        wr_spool_io_move(lane);
    return until_ns;
}

bool wr_lane_host_wait(struct wr_lane *lane, int64_t deadline_ns)
{
    wr_lock_enter(&lane->lock);
    if (wr_lane_thread_is_now(&lane->worker)) { /* emit_now must not wait */
        unlock(lane);
        return false;
    }
    wr_lane_thread_begin_wait(lane);
    int64_t move_ns = spool_what_is_due(lane);
    while (wr_lane_is_forking(lane) || (!must_stop(lane) && wr_clock_monotonic_ns() < deadline_ns)) {
        int64_t until_ns = lane->fork != WR_LANE_FORK_NONE ? WR_NEVER : deadline_ns;
        wr_condition_wait(&lane->worker.work, &lane->lock, move_ns < until_ns ? move_ns : until_ns);
        move_ns = spool_what_is_due(lane);
    }
    wr_lane_thread_end_wait(&lane->worker);
    bool waited = !must_stop(lane);
    wr_lane_unlock(lane);
    return waited;
}

/* ---- Looking ahead --------------------------------------------------------------------------- */

/* Whether what is queued is offered to the handler, in this order, whatever comes: nothing older is on disk,
 * and nothing is dropped to make room. What a spool takes meanwhile is read back, with its numbers. */
static bool is_certain(const struct wr_lane *lane)
{
    return lane->settings.overflow != WR_OVERFLOW_DROP_OLDEST && !wr_lane_thread_is_now(&lane->worker) &&
           !lane->ledger.flight.spooled && !lane->ledger.flight.settled_early &&
           !lane->ledger.spooled.samples && !lane->ledger.moving.segment && !must_stop(lane) &&
           !lane->ledger.waiters.count;
}

/* NULL: nothing is queued from there on. */
static const struct wr_range *find_from(const struct wr_queue *queue, uint64_t position)
{
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wr_range *range = wr_queue_at(queue, i);
        if (range->position + range->count > position)
            return range;
    }
    return NULL;
}

bool wr_lane_host_look_ahead(struct wr_lane *lane, uint64_t position, struct wr_range *range,
                             struct wr_label_set **labels)
{
    wr_lock_enter(&lane->lock);
    const struct wr_range *found = is_certain(lane) ? find_from(&lane->ledger.queue, position) : NULL;
    bool is_there = found && wr_lane_accepts_all(lane, found->segment);
    if (is_there) {
        struct wr_range rest = *found;
        if (position > rest.position)
            wr_range_skip(&rest, (uint32_t)(position - rest.position));
        *range = wr_range_split(&rest, lane->settings.batch);
        *labels = lane->labels;
        wr_labels_hold(lane->labels);
    }
    unlock(lane);
    return is_there;
}

void wr_lane_host_begin_waiting(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    if (!wr_lane_thread_is_now(&lane->worker)) {
        spool_what_is_due(lane);
        wr_lane_thread_begin_wait(lane);
    }
    unlock(lane);
}

void wr_lane_host_end_waiting(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    if (!wr_lane_thread_is_now(&lane->worker)) {
        while (wr_lane_is_forking(lane))
            wr_condition_wait(&lane->worker.work, &lane->lock, WR_NEVER);
        wr_lane_thread_park_if_abandoned(lane);
        wr_lane_thread_end_wait(&lane->worker);
    }
    unlock(lane);
}
