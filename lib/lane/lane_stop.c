#include "lane/lane_stop.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "lane/lane_internal.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "os/clock.h"
#include "text/common.h"
#include "os/thread.h"

enum { RETURN_MS = 250 };

/* Whether samples without a worker are left for wr_lane_stop_save. */
static bool saves_later(const struct wr_lane *lane)
{
    return lane->settings.spool_limit && wr_lane_ledger_queued(&lane->ledger);
}

void wr_lane_stop_cancel(struct wr_lane *lane)
{
    if (lane->stop != WR_LANE_STOPS)
        return;
    lane->stop = WR_LANE_STAYS;
    wr_backoff_limit(&lane->delivery.backoff, INT64_MAX);
}

void wr_lane_stop_request(struct wr_lane *lane, enum weir_drop reason, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    if (lane->stop == WR_LANE_STAYS)
        lane->stop = WR_LANE_STOPS;
    lane->stop_reason = (int)reason;
    lane->stop_deadline_ns = deadline_ns;
    wr_spool_state_plan(&lane->spool_state, wr_clock_monotonic_ns(), deadline_ns);
    wr_delivery_stop(&lane->delivery);
    wr_lane_fail_waiters(lane, 0); /* the handler gets one more attempt */
    if (!wr_lane_thread_runs(&lane->worker) && lane->end_reason == WR_LANE_LIVES && !saves_later(lane))
        wr_lane_declare_end(lane);
    wr_lane_thread_wake_all(lane);
    wr_lane_unlock_from_program(lane, &signals);
}

/* ---- Saving ---------------------------------------------------------------------------------- */

/* A write beyond RLIMIT_FSIZE raises SIGXFSZ, which would end the program: removes it if it is our own. */
static void swallow_signal(bool was_pending)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    if (!was_pending)
        sigtimedwait(&only, NULL, &(struct timespec){0});
}

static bool is_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/* Whether the worker is going to save the samples itself, if it gets the time. */
static bool can_worker_save(const struct wr_lane *lane)
{
    return lane->spool_state.busy ||
           (wr_lane_thread_runs(&lane->worker) && !wr_lane_thread_is_inside(&lane->worker) &&
            !lane->ledger.flight.in_handler);
}

static void wait_for_end(struct wr_lane *lane, int64_t deadline_ns, const sigset_t *signals)
{
    while (wr_lane_thread_runs(&lane->worker) && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&lane->ended, &lane->lock, deadline_ns, signals);
}

static void wait_for_worker(struct wr_lane *lane, int64_t deadline_ns, int64_t limit_ns,
                            const sigset_t *signals)
{
    wait_for_end(lane, deadline_ns, signals);
    while (wr_lane_ledger_has_queued(&lane->ledger) && lane->end_reason == WR_LANE_LIVES &&
           can_worker_save(lane) && wr_clock_monotonic_ns() < limit_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, limit_ns, signals);
}

void wr_lane_stop_save(struct wr_lane *lane, int64_t deadline_ns, int64_t limit_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    if (lane->settings.spool_limit) {
        bool was_pending = is_pending();
        wait_for_worker(lane, deadline_ns, limit_ns, &signals);
        while (wr_spool_policy_prepare_last(lane, wr_clock_monotonic_ns()))
            wr_spool_io_move(lane);
        swallow_signal(was_pending);
    }
    wr_lane_unlock_from_program(lane, &signals);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* The process may end next: waits for the messages that other threads are logging. The log may be a function of
 * the program, so there is a limit. */
static void wait_for_logging(struct wr_lane *lane, int64_t most_ns, const sigset_t *signals)
{
    int64_t limit_ns = wr_clock_monotonic_ns() + most_ns;
    while (lane->logging && wr_clock_monotonic_ns() < limit_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, limit_ns, signals);
}

/* Waits for a handler to return: it may be inside a library whose exit handlers destroy what it uses. One that
 * waits (WEIR_SERVICE_BLOCKING_CALL) does not return to its library. */
static void wait_for_callback(struct wr_lane *lane, int64_t limit_ns, const sigset_t *signals)
{
    while (wr_lane_thread_is_inside(&lane->worker) && wr_clock_monotonic_ns() < limit_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, limit_ns, signals);
}

static void log_wait(struct wr_lane *lane, int64_t deadline_ns)
{
    const char *why = wr_delivery_why_failing(&lane->delivery);
    char limit[40] = "", backlog[80];
    int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
    if (deadline_ns != WR_NEVER)
        snprintf(limit, sizeof limit, " up to %" PRId64 " s more", (left_ns + WR_NS_PER_S - 1) / WR_NS_PER_S);
    wr_spool_policy_describe(lane, backlog, sizeof backlog);
    wr_lane_log(lane, WEIR_LOG_WARNING, "shutting down: waiting%s for this handler: %s%s%s", limit, backlog,
                why ? "; failing: " : "", why ? why : "");
}

void wr_lane_stop_await(struct wr_lane *lane, int64_t until_ns, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    wait_for_end(lane, until_ns, &signals);
    if (wr_lane_thread_runs(&lane->worker))
        log_wait(lane, deadline_ns);
    wr_lane_unlock_from_program(lane, &signals);
}

/* Ends the spooler. It may be inside a write that takes long. */
static void end_spooler(struct wr_lane *lane, int64_t limit_ns, const sigset_t *signals)
{
    if (lane->stop != WR_LANE_ABANDONED)
        lane->stop = WR_LANE_SHUT;
    wr_condition_wake(&lane->spooler.work);
    while (wr_lane_thread_runs(&lane->spooler) && wr_clock_monotonic_ns() < limit_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, limit_ns, signals);
}

/* Destructors of the libraries' thread-local data must finish before their exit handlers run. */
static void join(pthread_t thread, int64_t limit_ns)
{
    if (!wr_thread_join_by(thread, limit_ns))
        pthread_detach(thread);
}

void wr_lane_stop_wait(struct wr_lane *lane, int64_t deadline_ns, int64_t logging_ns)
{
    sigset_t signals;
    /* from the deadline on, so that several stuck handlers take no longer than one */
    const int64_t return_ns = RETURN_MS * WR_NS_PER_MS;
    int64_t limit_ns = deadline_ns < WR_NEVER - return_ns ? deadline_ns + return_ns : WR_NEVER;
    wr_lane_lock_from_program(lane, &signals);
    wait_for_end(lane, deadline_ns, &signals);
    if (lane->end_reason == WR_LANE_LIVES)
        wr_lane_declare_end(lane);
    wait_for_callback(lane, limit_ns, &signals);
    end_spooler(lane, limit_ns, &signals);
    bool is_left = wr_lane_thread_runs(&lane->worker) || wr_lane_thread_runs(&lane->spooler);
    lane->stop = is_left ? WR_LANE_ABANDONED : WR_LANE_SHUT;
    bool worker_ended = wr_lane_thread_take_ended(&lane->worker);
    bool spooler_ended = wr_lane_thread_take_ended(&lane->spooler);
    wait_for_logging(lane, logging_ns, &signals);
    wr_lane_unlock_from_program(lane, &signals);
    if (worker_ended)
        join(lane->worker.id, limit_ns);
    if (spooler_ended)
        join(lane->spooler.id, limit_ns);
}

void wr_lane_stop_finish(struct wr_lane *lane)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    wr_losses_log_total(lane);
    wr_spool_io_release(lane);
    wr_lane_unlock_from_program(lane, &signals);
}
