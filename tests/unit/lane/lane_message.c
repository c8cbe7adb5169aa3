/* What is logged about a handler, and when. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_stop.h"

static struct lane_fixture fixture;

static void setup(void)
{
    fixture_init(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_message, .init = setup, .fini = teardown);

static void load(uint32_t samples)
{
    fixture_offer(&fixture, samples);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

static void fail(const char *reason)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_RETRY};
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    fixture_finish_emit_with(&fixture, outcome, 0);
}

static void assert_logged(int level, const char *text)
{
    cr_assert_str_eq(logbook_last(&fixture.book), text);
    cr_assert_eq(logbook_last_level(&fixture.book), level);
}

Test(lane_message, nothing_is_logged_without_failures)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture.book.count, 0);
}

Test(lane_message, a_failing_handler_is_logged_once_as_a_warning)
{
    load(3);
    fail("connect 127.0.0.1:8086: refused");
    assert_logged(WEIR_LOG_WARNING, "push: connect 127.0.0.1:8086: refused; retrying, 3 queued");
    for (int i = 0; i < 10; i++)
        fail("connect 127.0.0.1:8086: refused");
    cr_assert_eq(fixture.book.count, 1);
}

Test(lane_message, a_failing_open_is_logged_in_the_same_way)
{
    fixture_close(&fixture);
    fixture_offer(&fixture, 3);
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "open /nowhere: no such file");
    assert_logged(WEIR_LOG_WARNING, "push: open /nowhere: no such file; retrying, 3 queued");
}

Test(lane_message, a_reminder_with_counts_is_logged_every_minute)
{
    fixture.settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    fixture_apply(&fixture);
    load(60);
    fail("refused");
    fixture_offer(&fixture, 50); /* of which 40 fit */
    assert_logged(WEIR_LOG_WARNING, "push: the queue is full; 10 values dropped so far");
    fixture_pass_ms(&fixture, 59999);
    fail("refused");
    cr_assert_eq(fixture.book.count, 2);
    fixture_pass_ms(&fixture, 1);
    fail("timed out");
    assert_logged(WEIR_LOG_WARNING, "push: still failing after 60 s: timed out; 100 queued, 10 lost");
    fail("timed out");
    cr_assert_eq(fixture.book.count, 3);
    fixture_pass_ms(&fixture, 60000);
    fail("timed out");
    assert_logged(WEIR_LOG_WARNING, "push: still failing after 120 s: timed out; 100 queued, 10 lost");
}

Test(lane_message, a_recovery_is_logged_with_the_number_of_lost_samples)
{
    fixture.settings.queue_bytes = 4 * FIXTURE_SAMPLE_BYTES;
    fixture.settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    fixture_apply(&fixture);
    load(3);
    fail("refused");
    fixture_offer(&fixture, 4);
    fixture_pass_ms(&fixture, 12345);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    assert_logged(WEIR_LOG_WARNING, "push: back after 12 s, 3 lost");
    cr_assert_eq(fixture.book.count, 3);
}

Test(lane_message, samples_lost_before_the_failure_are_not_counted)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 0, 0);
    load(1);
    fail("refused");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    assert_logged(WEIR_LOG_WARNING, "push: back after 0 s, 0 lost");
}

Test(lane_message, progress_that_ends_in_another_failure_is_not_a_recovery)
{
    load(3);
    fail("refused");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    cr_assert_eq(fixture.book.count, 1);
    cr_assert_eq(fixture_stats(&fixture).failing, 1);
}

Test(lane_message, an_open_alone_is_not_a_recovery)
{
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 0, 0);
    fixture_close(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture.book.count, 1);
    cr_assert_eq(fixture_stats(&fixture).failing, 1);
}

Test(lane_message, after_a_recovery_the_next_failure_is_logged_again)
{
    load(1);
    fail("refused");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    load(2);
    fail("gone");
    assert_logged(WEIR_LOG_WARNING, "push: gone; retrying, 2 queued");
}

Test(lane_message, a_flush_that_fails_and_then_succeeds_is_a_failure_and_a_recovery)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_RETRY);
    assert_logged(WEIR_LOG_WARNING, "push: no reason given; retrying, 0 queued");
    fixture_pass_ms(&fixture, 3000);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    assert_logged(WEIR_LOG_WARNING, "push: back after 3 s, 0 lost");
    cr_assert_eq(fixture_stats(&fixture).failing, 0);
}

Test(lane_message, a_successful_flush_is_not_a_recovery_of_failing_deliveries)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert_eq(fixture.book.count, 1);
    cr_assert_eq(fixture_stats(&fixture).failing, 1);
}

Test(lane_message, rejected_samples_are_logged_at_most_once_a_minute)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_OK, .done = 3, .rejected = 2, .reason = "400 bad request"};
    load(3);
    fixture_finish_emit_with(&fixture, outcome, 0);
    assert_logged(WEIR_LOG_WARNING, "push: 2 rejected: 400 bad request (2 so far)");
    load(3);
    fixture_finish_emit_with(&fixture, outcome, 0);
    cr_assert_eq(fixture.book.count, 1);
    fixture_pass_ms(&fixture, 60000);
    load(3);
    fixture_finish_emit_with(&fixture, outcome, 0);
    assert_logged(WEIR_LOG_WARNING, "push: 2 rejected: 400 bad request (6 so far)");
}

Test(lane_message, a_dropped_batch_is_logged_as_rejected)
{
    load(5);
    fixture_finish_emit_with(&fixture,
                             (weir_outcome){.code = WEIR_OUTCOME_DROP, .done = 1, .reason = "too old"}, 0);
    assert_logged(WEIR_LOG_WARNING, "push: 4 rejected: too old (4 so far)");
}

static uint32_t omit_one(const void *ctx, uint32_t samples)
{
    (void)ctx;
    return samples ? 1 : 0;
}

Test(lane_message, a_failure_is_logged_along_with_what_was_rejected_and_left_out)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_RETRY, .done = 3, .rejected = 1, .reason = "refused"};
    const struct wr_lane_call call = {.kind = WR_LANE_CALL_EMIT};
    const struct wr_lane_omissions omissions = {omit_one, NULL};
    load(5);
    wr_lane_worker_finish(fixture.lane, &call, &outcome, &omissions, NULL);
    cr_assert_eq(fixture.book.count, 3);
    cr_assert_str_eq(fixture.book.lines[0], "push: 1 rejected: refused (1 so far)");
    cr_assert_str_eq(fixture.book.lines[1], "push: refused; retrying, 2 queued");
    cr_assert(strstr(fixture.book.lines[2], "cannot represent some values"), "%s", fixture.book.lines[2]);
}

Test(lane_message, a_rejected_summary_is_logged_as_its_values)
{
    struct wr_segment *segment = wr_segment_new(&fixture.pool, 1);
    cr_assert(segment);
    segment->summaries = segment->other_kinds = true;
    segment->samples[segment->count++] = (weir_sample){.kind = WEIR_KIND_SUMMARY, .value.i64 = 500};
    fixture.lane->handler.kinds = WEIR_KINDS_SUMMARY;
    wr_lane_sum(fixture.lane, &(struct wr_lane_arrivals){.summed = 500, .now_ns = fixture.now_ns});
    wr_lane_offer_summaries(fixture.lane, segment, fixture.now_ns);
    wr_segment_drop(segment);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_DROP, .reason = "too old"}, 0);
    assert_logged(WEIR_LOG_WARNING, "push: 500 rejected: too old (500 so far)");
}

Test(lane_message, a_handler_that_fails_permanently_is_logged_as_an_error)
{
    load(5);
    fixture_finish_emit_with(
        &fixture, (weir_outcome){.code = WEIR_OUTCOME_FAILED, .done = 1, .reason = "no such bucket"}, 0);
    assert_logged(WEIR_LOG_ERROR, "push: no such bucket; gives up, 4 dropped; all further values are dropped");
}

Test(lane_message, samples_undelivered_at_the_deadline_are_logged_with_the_reason)
{
    load(5);
    fail("refused");
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    fixture_next(&fixture);
    assert_logged(WEIR_LOG_ERROR,
                  "push: shutting down while failing: refused; not delivered in time: 5 dropped");
}

Test(lane_message, a_handler_still_waiting_at_the_deadline_is_logged_as_busy)
{
    load(5);
    cr_assert(fixture.lane->ledger.flight.in_handler && !wr_lane_thread_is_inside(&fixture.lane->worker));
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    assert_logged(WEIR_LOG_ERROR,
                  "push: shutting down while the handler is busy; not delivered in time: 5 dropped");
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void drop_newest(void)
{
    fixture.settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    fixture_apply(&fixture);
}

Test(lane_message, the_first_drop_is_logged_at_once_and_later_ones_once_a_minute)
{
    drop_newest();
    fixture_offer(&fixture, 107);
    assert_logged(WEIR_LOG_WARNING, "push: the queue is full; 7 values dropped so far");
    fixture_offer(&fixture, 50);
    fixture_pass_ms(&fixture, 59999);
    fixture_offer(&fixture, 50);
    cr_assert_eq(fixture.book.count, 1);
    fixture_pass_ms(&fixture, 1);
    fixture_check(&fixture, NULL);
    assert_logged(WEIR_LOG_WARNING, "push: the queue is full; 107 values dropped so far");
    fixture_pass_ms(&fixture, 60000);
    fixture_check(&fixture, NULL);
    cr_assert_eq(fixture.book.count, 2, "nothing was dropped since");
}

Test(lane_message, each_reason_is_logged_on_its_own)
{
    drop_newest();
    fixture_offer(&fixture, 101);
    wr_lane_ledger_pass(&fixture.lane->ledger, false, WEIR_DROPPED_REENTRANT, 2);
    fixture_check(&fixture, NULL);
    assert_logged(WEIR_LOG_WARNING,
                  "push: the queue is full for values that weir's own threads add; 2 values dropped so far");
}

Test(lane_message, the_total_is_logged_at_the_end_by_reason)
{
    drop_newest();
    fixture_offer(&fixture, 120);
    fixture_offer(&fixture, 200);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    assert_logged(WEIR_LOG_ERROR, "push: shutting down; not delivered in time: 100 dropped");
    wr_lane_stop_finish(fixture.lane);
    assert_logged(WEIR_LOG_ERROR, "push: 320 values dropped in all (220 full, 100 shutdown)");
}

Test(lane_message, a_total_that_was_logged_is_not_repeated)
{
    load(5);
    fail("refused");
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    int count = fixture.book.count;
    wr_lane_stop_finish(fixture.lane);
    cr_assert_eq(fixture.book.count, count);
}

Test(lane_message, values_dropped_after_the_handler_failed_are_in_the_total)
{
    load(5);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_FAILED, .reason = "no such bucket"},
                             0);
    fixture_offer(&fixture, 200);
    wr_lane_stop_finish(fixture.lane);
    assert_logged(WEIR_LOG_ERROR, "push: 205 values dropped in all (205 failed)");
}

Test(lane_message, what_the_end_waits_for_is_logged)
{
    load(5);
    fail("refused");
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    wr_lane_stop_await(fixture.lane, 0, WR_NEVER);
    assert_logged(WEIR_LOG_WARNING,
                  "push: shutting down: waiting for this handler: 5 queued; failing: refused");
    fixture.lane->worker.state = WR_THREAD_NONE;
    wr_lane_stop_await(fixture.lane, 0, WR_NEVER);
    cr_assert_eq(fixture.book.count, 2);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(lane_message, nothing_is_logged_at_the_end_when_nothing_is_left)
{
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    fixture_next(&fixture);
    cr_assert_eq(fixture.book.count, 0);
}

Test(lane_message, a_reason_without_a_terminating_nul_is_truncated)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_RETRY};
    load(1);
    memset(outcome.reason, 'x', sizeof outcome.reason);
    fixture_finish_emit_with(&fixture, outcome, 0);
    char expected[sizeof outcome.reason + 40] = "push: ";
    memset(expected + 6, 'x', sizeof outcome.reason - 1);
    strcat(expected, "; retrying, 1 queued");
    assert_logged(WEIR_LOG_WARNING, expected);
}

Test(lane_message, text_from_a_server_is_logged_without_control_characters)
{
    load(1);
    fail("bad\n\x1b[31m reply");
    cr_assert_null(strpbrk(logbook_last(&fixture.book), "\n\x1b"), "%s", logbook_last(&fixture.book));
}
