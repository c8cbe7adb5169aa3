#include "lane/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"

enum { REMINDER_S = 60, STOP_DELAY_SHARE = 32 };

/* ---- Failure and recovery -------------------------------------------------------------------- */

/* Whether the rest is going to be tried again. */
static bool will_retry(const weir_outcome *outcome)
{
    return outcome->code == WEIR_OUTCOME_RETRY || outcome->code == WEIR_OUTCOME_REOPEN;
}

/* The error of calls that fail because of this outcome, or that time out while it is the last one. */
static int error_of(const weir_outcome *outcome)
{
    if (outcome->error)
        return outcome->error;
    return will_retry(outcome) ? WEIR_ERR_TIMEOUT : WEIR_ERR_DROPPED;
}

static bool spools(const struct wr_lane *lane)
{
    return lane->settings.spool_limit && lane->spool_state.place;
}

static void store_error(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    bool is_good = outcome->code == WEIR_OUTCOME_OK && !outcome->rejected;
    outcome->reason[sizeof outcome->reason - 1] = '\0';
    wr_delivery_set_error(&lane->delivery, is_good ? 0 : error_of(outcome), outcome->reason, now_ns);
}

static void log_failure(struct wr_lane *lane, bool was_failing, int64_t now_ns)
{
    char backlog[80];
    wr_spool_policy_describe(lane, backlog, sizeof backlog);
    if (!was_failing) {
        lane->lost_before = wr_losses_sum(lane->ledger.dropped);
        wr_lane_log(lane, WEIR_LOG_WARNING, "%s; retrying, %s", lane->delivery.last_error, backlog);
    } else if (now_ns >= lane->reminder_ns) {
        wr_lane_log(lane, WEIR_LOG_WARNING, "still failing after %" PRId64 " s: %s; %s, %" PRIu64 " lost",
                    (now_ns - lane->delivery.failing_since_ns) / WR_NS_PER_S, lane->delivery.last_error,
                    backlog, wr_losses_sum(lane->ledger.dropped) - lane->lost_before);
    } else {
        return;
    }
    lane->reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

static void recover(struct wr_lane *lane, int64_t now_ns)
{
    if (!wr_delivery_succeed(&lane->delivery))
        return;
    wr_lane_log(lane, WEIR_LOG_WARNING, "back after %" PRId64 " s, %" PRIu64 " lost",
                (now_ns - lane->delivery.failing_since_ns) / WR_NS_PER_S,
                wr_losses_sum(lane->ledger.dropped) - lane->lost_before);
}

/* A handler may need several attempts to find out that a value is at fault, not its destination. While the lane
 * stops, they must leave time for the values behind it. */
static void limit_delay(struct wr_lane *lane, int64_t now_ns)
{
    bool is_limited = lane->delivery.backoff.limit_ns != INT64_MAX;
    if (wr_lane_is_stopping(lane) && lane->stop_deadline_ns != WR_NEVER && !is_limited)
        wr_backoff_limit(&lane->delivery.backoff, (lane->stop_deadline_ns - now_ns) / STOP_DELAY_SHARE);
}

static void back_off(struct wr_lane *lane, const weir_outcome *outcome, int64_t now_ns)
{
    bool was_failing = wr_delivery_is_failing(&lane->delivery);
    limit_delay(lane, now_ns);
    wr_delivery_fail(&lane->delivery, outcome, now_ns);
    log_failure(lane, was_failing, now_ns);
}

/* There are no further attempts, but spool and journal go on: what they have and get is for the handler of
 * another configuration, or of a later process. Calls do not wait for it. */
static void give_up(struct wr_lane *lane, int error, int64_t now_ns)
{
    if (!wr_delivery_is_failing(&lane->delivery))
        lane->lost_before = wr_losses_sum(lane->ledger.dropped);
    wr_delivery_give_up(&lane->delivery, error, now_ns);
    wr_lane_fail_waiters(lane, error);
    wr_lane_log(lane, WEIR_LOG_ERROR, "%s; gives up until it is configured again or reloaded; values %s",
                lane->delivery.last_error,
                spools(lane) ? "are spooled" : "stay in the journal until the queue is full");
}

/* The handler is finished, and nothing keeps its values. Releases the producers at their gates, and flushes. */
static void fail_permanently(struct wr_lane *lane, int error, int64_t now_ns)
{
    uint64_t left = wr_lane_ledger_queued(&lane->ledger);
    wr_lane_ledger_complete(&lane->ledger, UINT64_MAX, error);
    lane->end_reason = WEIR_DROPPED_FAILED;
    wr_lane_drop_all(lane, WEIR_DROPPED_FAILED);
    wr_losses_state(lane, WEIR_DROPPED_FAILED, left);
    wr_lane_log(lane, WEIR_LOG_ERROR, "%s; gives up, %" PRIu64 " dropped; all further values are dropped",
                lane->delivery.last_error, left);
    wr_lane_made_progress(lane, now_ns);
}

static void fail(struct wr_lane *lane, const weir_outcome *outcome, int64_t now_ns)
{
    bool is_kept = lane->journaled && atomic_load(lane->journaled);
    int error = outcome->error ? outcome->error : is_kept ? WEIR_ERR_SPOOLED : WEIR_ERR_TIMEOUT;
    if (is_kept || spools(lane))
        give_up(lane, error, now_ns);
    else
        fail_permanently(lane, error_of(outcome), now_ns);
}

/* Counts a violation of the contract, by the outcome or by a side effect; after WR_LANE_FAULTS_MOST in a row
 * the handler has failed. outcome_fault: NULL if the outcome is valid. Returns whether there was one. */
static bool count_fault(struct wr_lane *lane, weir_outcome *outcome, const char *outcome_fault)
{
    const char *fault = wr_delivery_take_fault(&lane->delivery, outcome_fault);
    if (!fault)
        return false;
    bool last = lane->delivery.faults_in_a_row >= WR_LANE_FAULTS_MOST;
    if (outcome_fault || last) /* a valid outcome keeps its reason */
        snprintf(outcome->reason, sizeof outcome->reason, "%s", fault);
    if (last)
        outcome->code = WEIR_OUTCOME_FAILED;
    else if (lane->delivery.faults_in_a_row == 1)
        wr_lane_log(lane, WEIR_LOG_ERROR, "the handler type is at fault: %s", fault);
    return true;
}

/* Corrects an error that is out of range, and a code that is unknown or that the callback may not return: these
 * become RETRY. Returns what was wrong, or NULL. */
static const char *check_code(weir_outcome *outcome, bool has_batch)
{
    const char *fault = NULL;
    if (outcome->error > 0 || outcome->error < -UINT16_MAX) {
        outcome->error = 0;
        fault = "an outcome with an error that is out of range";
    }
    if (outcome->code == WEIR_OUTCOME_DROP && !has_batch)
        fault = "an outcome of DROP without a batch";
    else if (outcome->code < WEIR_OUTCOME_OK || outcome->code > WEIR_OUTCOME_FAILED)
        fault = "an outcome with an unknown code";
    else
        return fault;
    outcome->code = WEIR_OUTCOME_RETRY;
    return fault;
}

/* Logs rejected values, once a minute. They are always counted. */
static void log_rejected(struct wr_lane *lane, uint64_t rejected, int64_t now_ns)
{
    if (!rejected || now_ns < lane->refusal_reminder_ns)
        return;
    wr_lane_log(lane, WEIR_LOG_WARNING, "%" PRIu64 " rejected: %s (%" PRIu64 " so far)", rejected,
                lane->delivery.last_error, lane->ledger.dropped[WEIR_DROPPED_REJECTED]);
    wr_losses_state(lane, WEIR_DROPPED_REJECTED,
                    lane->ledger.dropped[WEIR_DROPPED_REJECTED] - lane->losses.stated[WEIR_DROPPED_REJECTED]);
    lane->refusal_reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

/* Applies RETRY, REOPEN and FAILED, of any callback. */
static void apply_code(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    switch (outcome->code) {
    case WEIR_OUTCOME_REOPEN:
        wr_delivery_break(&lane->delivery);
        back_off(lane, outcome, now_ns);
        break;
    case WEIR_OUTCOME_RETRY: back_off(lane, outcome, now_ns); break;
    case WEIR_OUTCOME_FAILED: fail(lane, outcome, now_ns); break;
    default: break;
    }
    if (will_retry(outcome))
        wr_lane_fail_waiters(lane, outcome->error);
}

/* ---- The callbacks --------------------------------------------------------------------------- */

void wr_outcome_apply_open(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    bool opened = outcome->code == WEIR_OUTCOME_OK; /* even if faults turn the code into FAILED below */
    count_fault(lane, outcome, check_code(outcome, false));
    store_error(lane, outcome, now_ns);
    if (opened) {
        wr_delivery_opened(&lane->delivery);
        lane->reload_wanted = false;
        wr_lane_fail_waiters(lane, 0);
    }
    if (outcome->code == WEIR_OUTCOME_OK)
        return;
    apply_code(lane, outcome, now_ns);
    wr_condition_wake(&lane->progress);
}

static uint32_t round_to_event(const struct wr_range *flight, uint32_t done)
{
    while (done && done < flight->count &&
           flight->segment->samples[flight->first + done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

/* Corrects impossible counts. Returns what was wrong, or NULL. */
static const char *check_counts(const struct wr_range *flight, weir_outcome *outcome)
{
    const char *fault = NULL;
    if (outcome->done > flight->count || outcome->rejected > outcome->done)
        fault = "an outcome with more samples done than given, or more rejected than done";
    if (outcome->done > flight->count) /* what it is meant to be of a failure is not known: nothing is lost */
        outcome->done = outcome->code == WEIR_OUTCOME_OK ? flight->count : 0;
    outcome->done = round_to_event(flight, outcome->done);
    if (outcome->rejected > outcome->done)
        outcome->rejected = outcome->done;
    if (outcome->code == WEIR_OUTCOME_OK && outcome->done == 0) {
        outcome->code = WEIR_OUTCOME_RETRY; /* OK without progress would loop for ever */
        fault = fault ? fault : "an outcome of OK with nothing done";
    }
    return fault;
}

/* A call with several faults counts as one. */
static void check(struct wr_lane *lane, weir_outcome *outcome)
{
    const char *code_fault = check_code(outcome, true),
               *counts_fault = check_counts(&lane->ledger.flight.range, outcome);
    if (!count_fault(lane, outcome, code_fault ? code_fault : counts_fault))
        wr_delivery_end_faults(&lane->delivery);
}

/* Settles samples at the front of the flight. Calls that wait for a rejected one fail with `error`. */
static void settle(struct wr_lane *lane, uint32_t done, uint32_t rejected, uint32_t omitted, int error,
                   int64_t now_ns)
{
    if (!done)
        return;
    if (omitted > done - rejected)
        omitted = done - rejected;
    uint64_t values = wr_lane_ledger_settle(&lane->ledger, done, rejected, omitted);
    int result = omitted ? WEIR_ERR_DROPPED : 0;
    if (lane->ledger.flight.spooled)
        wr_spool_io_settled(lane, done, values, now_ns);
    else
        wr_lane_ledger_complete(&lane->ledger, lane->ledger.flight.range.position, rejected ? error : result);
}

static void count_settled(struct wr_lane *lane, const weir_outcome *outcome,
                          const struct wr_lane_omissions *omissions, int64_t now_ns)
{
    uint32_t omitted = omissions ? omissions->count(omissions->ctx, outcome->done) : 0;
    /* if the batch is tried again, outcome->error is for the calls that keep waiting */
    int error = will_retry(outcome) ? WEIR_ERR_DROPPED : error_of(outcome);
    uint64_t before = lane->ledger.dropped[WEIR_DROPPED_REJECTED];
    settle(lane, outcome->done, outcome->rejected, omitted, error, now_ns);
    uint32_t rest = outcome->code == WEIR_OUTCOME_DROP ? lane->ledger.flight.range.count : 0;
    settle(lane, rest, rest, 0, error, now_ns);
    log_rejected(lane, lane->ledger.dropped[WEIR_DROPPED_REJECTED] - before, now_ns);
    wr_delivery_settled(&lane->delivery, lane->handler.has_flush);
}

void wr_outcome_apply_emit(struct wr_lane *lane, weir_outcome *outcome,
                           const struct wr_lane_omissions *omissions, int64_t now_ns)
{
    if (!wr_lane_ledger_leave_handler(&lane->ledger))
        return;
    check(lane, outcome);
    store_error(lane, outcome, now_ns);
    count_settled(lane, outcome, omissions, now_ns);
    bool ended = outcome->code == WEIR_OUTCOME_OK || outcome->code == WEIR_OUTCOME_DROP;
    bool moved = outcome->done > 0 || outcome->code == WEIR_OUTCOME_DROP;
    if (lane->ledger.flight.range.count == 0)
        wr_lane_ledger_end_flight(&lane->ledger);
    if (ended)
        wr_lane_fail_waiters(lane, 0);
    if (moved && ended)
        recover(lane, now_ns);
    else if (moved)
        wr_backoff_succeed(&lane->delivery.backoff);
    apply_code(lane, outcome, now_ns);
    if (moved)
        wr_lane_made_progress(lane, now_ns);
}

/* A handler that has a successor is flushed before everything is delivered; the rest is the successor's. While
 * samples are in flight, a successful flush does not prove that they can be delivered. */
static void count_flushed(struct wr_lane *lane, uint64_t wanted, int64_t now_ns)
{
    uint64_t reached =
        wr_lane_ledger_front(&lane->ledger) < wanted ? wr_lane_ledger_front(&lane->ledger) : wanted;
    wr_delivery_flushed(&lane->delivery);
    if (reached > lane->flushed)
        lane->flushed = reached;
    if (!lane->ledger.flight.range.segment)
        recover(lane, now_ns);
}

void wr_outcome_apply_flush(struct wr_lane *lane, weir_outcome *outcome, uint64_t wanted, int64_t now_ns)
{
    count_fault(lane, outcome, check_code(outcome, false));
    store_error(lane, outcome, now_ns);
    if (outcome->code == WEIR_OUTCOME_OK)
        count_flushed(lane, wanted, now_ns);
    else if (wr_lane_is_stopping(lane) || lane->successor.instance)
        wr_delivery_flushed(&lane->delivery); /* it is not tried again */
    apply_code(lane, outcome, now_ns);
    wr_condition_wake(&lane->progress);
}

void wr_outcome_apply_wake(struct wr_lane *lane, weir_outcome *outcome, int why, int64_t now_ns)
{
    count_fault(lane, outcome, check_code(outcome, false));
    store_error(lane, outcome, now_ns);
    if (why == WEIR_WAKE_RELOAD)
        lane->reload_wanted = false;
    apply_code(lane, outcome, now_ns);
}

void wr_outcome_apply_close(struct wr_lane *lane)
{
    weir_outcome none;
    wr_lane_worker_init_outcome(&none, 0);
    count_fault(lane, &none, NULL);
    wr_delivery_closed(&lane->delivery);
    lane->wake_at_ns = 0;
    wr_condition_wake(&lane->progress); /* it holds nothing any more */
}
