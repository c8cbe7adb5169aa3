#include "lane/lane_thread.h"

#include "lane/lane_internal.h"
#include "os/clock.h"
#include "os/thread.h"
#include "text/common.h"

/* ---- Starting and ending --------------------------------------------------------------------- */

bool wr_lane_thread_claim(struct wr_lane_thread *thread)
{
    if (wr_lane_thread_runs(thread))
        return false;
    thread->state = thread->state == WR_THREAD_ENDED    ? WR_THREAD_RESTARTING
                    : thread->state == WR_THREAD_FAILED ? WR_THREAD_RETRYING
                                                        : WR_THREAD_STARTING;
    return true;
}

/* Until the state changes no other thread uses `id` or changes the state, and the new one waits. */
bool wr_lane_thread_start(struct wr_lane *lane, struct wr_lane_thread *thread, void *(*run)(void *lane))
{
    if (thread->state == WR_THREAD_RESTARTING)
        wr_thread_release(thread->id);
    bool started = wr_thread_start(run, lane, &thread->id);
    wr_lock_enter(&lane->lock);
    thread->state = started ? WR_THREAD_AWAKE : WR_THREAD_FAILED;
    wr_condition_wake(&lane->progress);
    wr_condition_wake(&lane->ended);
    return started;
}

void wr_lane_thread_await_start(struct wr_lane *lane, struct wr_lane_thread *thread)
{
    while (thread->state < WR_THREAD_AWAKE)
        wr_condition_wait(&lane->progress, &lane->lock, WR_NEVER);
}

void wr_lane_thread_end(struct wr_lane *lane, struct wr_lane_thread *thread)
{
    thread->state = WR_THREAD_ENDED;
    wr_condition_wake(&lane->progress);
    wr_condition_wake(&lane->ended);
    wr_condition_wake(&lane->spooler.work);
}

bool wr_lane_thread_take_ended(struct wr_lane_thread *thread)
{
    bool ended = thread->state == WR_THREAD_ENDED;
    if (ended)
        thread->state = WR_THREAD_NONE;
    return ended;
}

void wr_lane_thread_park_if_abandoned(struct wr_lane *lane)
{
    if (lane->stop != WR_LANE_ABANDONED)
        return;
    wr_lane_unlock(lane);
    wr_thread_park();
}

void wr_lane_thread_wake_all(struct wr_lane *lane)
{
    wr_lane_thread_wake(&lane->worker);
    wr_condition_wake(&lane->spooler.work);
}

/* ---- The worker ------------------------------------------------------------------------------ */

void wr_lane_thread_sleep(struct wr_lane *lane, int64_t until_ns)
{
    struct wr_lane_thread *worker = &lane->worker;
    if (worker->state == WR_THREAD_AWAKE)
        worker->state = WR_THREAD_ASLEEP;
    wr_condition_wait(&worker->work, &lane->lock, until_ns);
    worker->state = wr_lane_thread_is_now(worker) ? WR_THREAD_NOW_WOKEN : WR_THREAD_AWAKE;
}

void wr_lane_thread_enter(struct wr_lane *lane)
{
    wr_lane_thread_park_if_abandoned(lane);
    lane->worker.state = WR_THREAD_CALLING;
    lane->worker.busy_since_ns = wr_clock_monotonic_ns();
    if (wr_lane_is_half_full(lane))
        wr_condition_wake(&lane->spooler.work);
    wr_lane_unlock(lane);
}

void wr_lane_thread_leave(struct wr_lane *lane, const char *breach)
{
    wr_lock_enter(&lane->lock);
    wr_lane_thread_park_if_abandoned(lane);
    if (breach)
        wr_delivery_breach(&lane->delivery, breach);
    lane->worker.state = WR_THREAD_AWAKE;
    lane->worker.busy_since_ns = 0;
    wr_condition_wake(&lane->progress);
}

void wr_lane_thread_begin_wait(struct wr_lane *lane)
{
    if (lane->worker.state == WR_THREAD_CALLING)
        lane->worker.state = WR_THREAD_WAITING;
    wr_condition_wake(&lane->progress);
}

void wr_lane_thread_end_wait(struct wr_lane_thread *worker)
{
    if (worker->state == WR_THREAD_WAITING)
        worker->state = WR_THREAD_CALLING;
}
