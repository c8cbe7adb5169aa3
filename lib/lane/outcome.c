#include "lane/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "lane/spool_policy.h"
#include "text/utf8.h"

enum { REMINDER_S = 60, LONGEST_WAIT_S = 86400 };

/* ---- Trouble, and its end -------------------------------------------------------------------- */

/* The rest is going to be tried again. */
static bool goes_on(const weir_outcome *outcome)
{
    return outcome->code == WEIR_OUTCOME_RETRY || outcome->code == WEIR_OUTCOME_REOPEN;
}

/* What calls are answered on account of this outcome, or give themselves when they have waited in vain. */
static int error_of(const weir_outcome *outcome)
{
    if (outcome->error)
        return outcome->error;
    return goes_on(outcome) ? WEIR_ERR_TIMEOUT : WEIR_ERR_DROPPED;
}

static void keep_reason(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    lane->last_error_code = 0;
    if (outcome->code == WEIR_OUTCOME_OK && !outcome->rejected)
        return;
    lane->last_error_code = error_of(outcome);
    lane->last_error_ns = now_ns;
    outcome->reason[sizeof outcome->reason - 1] = '\0';
    const char *reason = outcome->reason[0] ? outcome->reason : "no reason given";
    struct wr_buffer shown = {0}; /* a reason may hold what a server sent */
    wr_utf8_show(&shown, reason, strlen(reason), 0);
    const char *text = wr_buffer_text(&shown);
    snprintf(lane->last_error, sizeof lane->last_error, "%s", text ? text : reason);
    wr_buffer_fini(&shown);
}

static uint64_t count_lost(const struct wr_lane *lane)
{
    uint64_t lost = 0;
    for (int i = 0; i < WEIR_DROPS; i++)
        lost += lane->dropped[i];
    return lost;
}

static void say_trouble(struct wr_lane *lane, int64_t now_ns)
{
    char backlog[80];
    wr_spool_policy_describe(lane, backlog, sizeof backlog);
    if (!lane->failing) {
        lane->failing = true;
        lane->failing_since_ns = now_ns;
        lane->lost_before = count_lost(lane);
        wr_lane_log(lane, WEIR_LOG_WARNING, "%s; retrying, %s", lane->last_error, backlog);
    } else if (now_ns >= lane->reminder_ns) {
        wr_lane_log(lane, WEIR_LOG_WARNING, "still failing after %" PRId64 " s: %s; %s, %" PRIu64 " lost",
                    (now_ns - lane->failing_since_ns) / WR_NS_PER_S, lane->last_error, backlog,
                    count_lost(lane) - lane->lost_before);
    } else {
        return;
    }
    lane->reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

static void recover(struct wr_lane *lane, int64_t now_ns)
{
    wr_backoff_succeed(&lane->backoff);
    lane->retry_at_ns = 0;
    if (!lane->failing)
        return;
    lane->failing = false;
    wr_lane_log(lane, WEIR_LOG_WARNING, "back after %" PRId64 " s, %" PRIu64 " lost",
                (now_ns - lane->failing_since_ns) / WR_NS_PER_S, count_lost(lane) - lane->lost_before);
}

static void pause_after(struct wr_lane *lane, const weir_outcome *outcome, int64_t now_ns)
{
    int64_t asked_ms = outcome->retry_after_ms;
    if (asked_ms < 0 || asked_ms > LONGEST_WAIT_S * INT64_C(1000))
        asked_ms = asked_ms < 0 ? 0 : LONGEST_WAIT_S * INT64_C(1000);
    lane->retries++;
    lane->retry_at_ns = now_ns + wr_backoff_fail(&lane->backoff, asked_ms * WR_NS_PER_MS);
    say_trouble(lane, now_ns);
}

/* Nobody waits for it any longer: neither producers at their gates nor whoever flushes. */
static void give_up(struct wr_lane *lane, int64_t now_ns)
{
    uint64_t left = wr_lane_queued(lane);
    lane->end_reason = WEIR_DROPPED_FAILED;
    wr_lane_drop_all(lane, WEIR_DROPPED_FAILED);
    wr_lane_log(lane, WEIR_LOG_ERROR, "%s; gives up, %" PRIu64 " dropped, and all that comes", lane->last_error,
                left);
    wr_lane_made_progress(lane, now_ns);
}

/* The handler broke its contract, by its answer or by what else it did (lane->breach): noticed, counted, and
 * borne for a while. of_answer NULL: its answer is right. */
static void count_fault(struct wr_lane *lane, weir_outcome *outcome, const char *of_answer)
{
    const char *fault = of_answer ? of_answer : lane->breach;
    lane->breach = NULL;
    if (!fault)
        return;
    lane->faults++;
    lane->faults_in_a_row++;
    bool last = lane->faults_in_a_row >= WR_LANE_FAULTS_MOST;
    if (of_answer || last) /* a right answer keeps its reason */
        snprintf(outcome->reason, sizeof outcome->reason, "%s", fault);
    if (last)
        outcome->code = WEIR_OUTCOME_FAILED;
    else if (lane->faults_in_a_row == 1)
        wr_lane_log(lane, WEIR_LOG_ERROR, "the handler type is at fault: %s", fault);
}

/* Puts an unknown code, and a number that is no error, right. Answers what was wrong, or NULL. */
static const char *check_code(weir_outcome *outcome)
{
    const char *fault = NULL;
    if (outcome->error > 0 || outcome->error < -UINT16_MAX) {
        outcome->error = 0;
        fault = "an outcome with an error that is none";
    }
    if (outcome->code >= WEIR_OUTCOME_OK && outcome->code <= WEIR_OUTCOME_FAILED)
        return fault;
    outcome->code = WEIR_OUTCOME_RETRY;
    return "an outcome with an unknown code";
}

/* Refused samples are counted each time, and said now and then. */
static void say_refused(struct wr_lane *lane, uint64_t refused, int64_t now_ns)
{
    if (!refused || now_ns < lane->refusal_reminder_ns)
        return;
    wr_lane_log(lane, WEIR_LOG_WARNING, "%" PRIu64 " refused for good: %s (%" PRIu64 " so far)", refused,
                lane->last_error, lane->dropped[WEIR_DROPPED_REJECTED]);
    lane->refusal_reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

/* What RETRY, REOPEN and FAILED mean to any callback. */
static void react(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    switch (outcome->code) {
    case WEIR_OUTCOME_REOPEN:
        lane->must_reopen = lane->open;
        pause_after(lane, outcome, now_ns);
        break;
    case WEIR_OUTCOME_RETRY: pause_after(lane, outcome, now_ns); break;
    case WEIR_OUTCOME_FAILED:
        wr_lane_complete_calls(lane, UINT64_MAX, error_of(outcome));
        give_up(lane, now_ns);
        break;
    default: break;
    }
    if (goes_on(outcome))
        wr_lane_fail_waiters(lane, outcome->error);
}

/* ---- The callbacks --------------------------------------------------------------------------- */

void wr_outcome_of_open(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns)
{
    bool opened = outcome->code == WEIR_OUTCOME_OK; /* also if it is given up for what it did meanwhile */
    count_fault(lane, outcome, check_code(outcome));
    keep_reason(lane, outcome, now_ns);
    if (opened) {
        lane->open = true;
        lane->must_reopen = false;
        lane->reload_wanted = false;
        wr_lane_fail_waiters(lane, 0);
    }
    if (outcome->code == WEIR_OUTCOME_OK)
        return;
    if (outcome->code == WEIR_OUTCOME_DROP) /* there is no batch to drop */
        outcome->code = WEIR_OUTCOME_RETRY;
    react(lane, outcome, now_ns);
    wr_condition_wake(&lane->progress);
}

static uint32_t round_down(const struct wr_range *flight, uint32_t done)
{
    while (done && done < flight->count &&
           flight->segment->samples[flight->first + done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

/* Puts impossible counts right. Answers what was wrong, or NULL. */
static const char *check_counts(const struct wr_range *flight, weir_outcome *outcome)
{
    const char *fault = NULL;
    if (outcome->done > flight->count || outcome->rejected > outcome->done)
        fault = "an outcome with more samples done than given, or more rejected than done";
    if (outcome->done > flight->count)
        outcome->done = flight->count;
    outcome->done = round_down(flight, outcome->done);
    if (outcome->rejected > outcome->done)
        outcome->rejected = outcome->done;
    if (outcome->code == WEIR_OUTCOME_OK && outcome->done == 0) {
        outcome->code = WEIR_OUTCOME_RETRY; /* OK without any progress would go round for ever */
        fault = fault ? fault : "an outcome of OK with nothing done";
    }
    return fault;
}

/* Only an answer that is right in every way ends a row of faults; one that is wrong in several counts once. */
static void check(struct wr_lane *lane, weir_outcome *outcome)
{
    const char *of_code = check_code(outcome), *of_counts = check_counts(&lane->flight.range, outcome);
    if (!of_code && !of_counts && !lane->breach)
        lane->faults_in_a_row = 0;
    count_fault(lane, outcome, of_code ? of_code : of_counts);
}

/* Settles samples at the front of the flight; the calls that wait for what is lost of them get `error`. */
static void settle(struct wr_lane *lane, uint32_t done, uint32_t rejected, uint32_t omitted, int error,
                   int64_t now_ns)
{
    struct wr_range *flight = &lane->flight.range;
    if (omitted > done - rejected)
        omitted = done - rejected;
    wr_lane_count_drop(lane, WEIR_DROPPED_REJECTED, rejected);
    wr_lane_count_drop(lane, WEIR_DROPPED_UNREPRESENTABLE, omitted);
    lane->delivered += done - rejected - omitted;
    wr_range_settle(flight, done);
    wr_range_skip(flight, done);
    int answer = omitted ? WEIR_ERR_DROPPED : 0;
    if (lane->flight.spooled)
        wr_spool_policy_settled(lane, done, flight->position, now_ns);
    else
        wr_lane_complete_calls(lane, flight->position, rejected ? error : answer);
}

/* What was in flight counts no longer: it was dropped while the handler was busy with it. */
static void forget_flight(struct wr_lane *lane)
{
    wr_segment_drop(lane->flight.range.segment);
    lane->flight = (struct wr_flight){0};
}

static void count_settled(struct wr_lane *lane, const weir_outcome *outcome,
                          const struct wr_lane_omissions *omissions, int64_t now_ns)
{
    uint32_t omitted = omissions ? omissions->count(omissions->ctx, outcome->done) : 0;
    int error = goes_on(outcome) ? WEIR_ERR_DROPPED : error_of(outcome); /* then it is for those that wait on */
    settle(lane, outcome->done, outcome->rejected, omitted, error, now_ns);
    uint32_t rest = outcome->code == WEIR_OUTCOME_DROP ? lane->flight.range.count : 0;
    settle(lane, rest, rest, 0, error, now_ns);
    say_refused(lane, outcome->rejected + rest, now_ns);
    lane->needs_flush = true;
}

void wr_outcome_of_emit(struct wr_lane *lane, weir_outcome *outcome, const struct wr_lane_omissions *omissions,
                        int64_t now_ns)
{
    lane->flight.in_handler = false;
    if (lane->flight.settled_early) {
        forget_flight(lane);
        return;
    }
    check(lane, outcome);
    keep_reason(lane, outcome, now_ns);
    count_settled(lane, outcome, omissions, now_ns);
    bool ended = outcome->code == WEIR_OUTCOME_OK || outcome->code == WEIR_OUTCOME_DROP;
    bool moved = outcome->done > 0 || outcome->code == WEIR_OUTCOME_DROP;
    if (lane->flight.range.count == 0)
        forget_flight(lane);
    if (ended)
        wr_lane_fail_waiters(lane, 0);
    if (moved && ended)
        recover(lane, now_ns);
    else if (moved)
        wr_backoff_succeed(&lane->backoff);
    react(lane, outcome, now_ns);
    if (moved)
        wr_lane_made_progress(lane, now_ns);
}

/* A handler that makes room for a successor is flushed before everything is delivered; the rest is the
 * successor's. Whether samples in flight can be delivered is not known by it either. */
static void count_flushed(struct wr_lane *lane, uint64_t wanted, int64_t now_ns)
{
    uint64_t reached = wr_lane_front(lane) < wanted ? wr_lane_front(lane) : wanted;
    lane->needs_flush = false;
    if (reached > lane->flushed)
        lane->flushed = reached;
    if (!lane->flight.range.segment)
        recover(lane, now_ns);
}

void wr_outcome_of_flush(struct wr_lane *lane, weir_outcome *outcome, uint64_t wanted, int64_t now_ns)
{
    count_fault(lane, outcome, check_code(outcome));
    keep_reason(lane, outcome, now_ns);
    if (outcome->code == WEIR_OUTCOME_OK)
        count_flushed(lane, wanted, now_ns);
    else if (lane->stopping || lane->successor.instance || outcome->code == WEIR_OUTCOME_DROP)
        lane->needs_flush = false; /* there is no later */
    react(lane, outcome, now_ns);
    wr_condition_wake(&lane->progress);
}

void wr_outcome_of_wake(struct wr_lane *lane, weir_outcome *outcome, int why, int64_t now_ns)
{
    count_fault(lane, outcome, check_code(outcome));
    keep_reason(lane, outcome, now_ns);
    if (why == WEIR_WAKE_RELOAD)
        lane->reload_wanted = false;
    react(lane, outcome, now_ns);
}

void wr_outcome_of_close(struct wr_lane *lane)
{
    weir_outcome none;
    wr_lane_worker_init_outcome(&none, 0);
    count_fault(lane, &none, NULL);
    lane->open = false;
    lane->must_reopen = false;
    lane->needs_flush = false;
    lane->wake_at_ns = 0;
}
