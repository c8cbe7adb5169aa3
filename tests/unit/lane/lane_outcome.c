/* Effects of a handler's outcome on its lane. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"

static struct lane_fixture fixture;

/* Every test starts with an open handler. */
static void setup(void)
{
    fixture_init(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_outcome, .init = setup, .fini = teardown);

/* Offers and loads samples. */
static void load(uint32_t samples)
{
    fixture_offer(&fixture, samples);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

/* The lane sleeps until its next attempt: between half of `whole_ms` and all of it. */
static void assert_backoff(int64_t whole_ms)
{
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    int64_t pause_ns = step.until_ns - fixture.now_ns;
    cr_assert(pause_ns >= whole_ms * WR_NS_PER_MS / 2 && pause_ns <= whole_ms * WR_NS_PER_MS,
              "a delay of %lld ns", (long long)pause_ns);
}

static void pass_backoff(void)
{
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
}

/* ---- OK -------------------------------------------------------------------------------------- */

Test(lane_outcome, ok_settles_the_batch)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
    cr_assert_str_eq(fixture_flight(&fixture), "");
}

Test(lane_outcome, a_partial_ok_continues_with_the_rest_at_once)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "1 2");
}

Test(lane_outcome, rejected_samples_are_dropped_and_counted)
{
    load(5);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 5, 2);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 2);
}

Test(lane_outcome, samples_that_the_format_left_out_are_counted_as_unrepresentable)
{
    load(5);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_OK, .done = 5}, 2);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 2);
}

Test(lane_outcome, only_samples_left_out_of_the_done_part_are_counted)
{
    load(5);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .done = 1}, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
    cr_assert_eq(fixture_stats(&fixture).delivered, 0);
}

Test(lane_outcome, no_sample_is_counted_as_both_rejected_and_left_out)
{
    load(3);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_OK, .done = 3, .rejected = 2}, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 2);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
}

/* ---- RETRY ----------------------------------------------------------------------------------- */

Test(lane_outcome, retry_offers_again_only_what_was_not_done)
{
    load(4);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    assert_backoff(500);
    pass_backoff();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "1 2 3");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 4);
}

Test(lane_outcome, retry_keeps_the_order)
{
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    fixture_offer(&fixture, 2);
    pass_backoff();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "0 1");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "2 3");
}

Test(lane_outcome, retry_with_everything_done_offers_nothing_again)
{
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 2, 0);
    cr_assert_str_eq(fixture_flight(&fixture), "");
    cr_assert_eq(fixture_stats(&fixture).delivered, 2);
    cr_assert_eq(fixture_step(&fixture).until_ns, WR_NEVER);
}

Test(lane_outcome, new_samples_wait_for_the_end_of_the_backoff)
{
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 2, 0);
    fixture_offer(&fixture, 1);
    assert_backoff(500);
}

Test(lane_outcome, an_event_that_is_done_in_part_is_offered_again_whole)
{
    fixture_append(&fixture, 2, 0, NULL);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 4, 0);
    cr_assert_str_eq(fixture_flight(&fixture), "2 3 4");
    cr_assert_eq(fixture_stats(&fixture).delivered, 2);
    cr_assert_eq(fixture_stats(&fixture).faults, 0);
}

Test(lane_outcome, the_backoff_grows_with_each_failure)
{
    const int64_t whole_ms[] = {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
    load(1);
    for (size_t i = 0; i < WR_COUNT_OF(whole_ms); i++) {
        fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
        assert_backoff(whole_ms[i]);
        pass_backoff();
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    }
    cr_assert_eq(fixture_stats(&fixture).retries, WR_COUNT_OF(whole_ms));
}

Test(lane_outcome, progress_resets_the_backoff)
{
    load(3);
    for (int i = 0; i < 5; i++)
        fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    assert_backoff(500);
}

Test(lane_outcome, the_delay_requested_by_the_destination_is_used)
{
    load(1);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .retry_after_ms = 7000}, 0);
    int64_t pause_ns = fixture_step(&fixture).until_ns - fixture.now_ns;
    cr_assert(pause_ns >= 7000 * WR_NS_PER_MS && pause_ns <= 7875 * WR_NS_PER_MS);
}

Test(lane_outcome, the_delay_requested_by_the_destination_is_at_most_retry_max)
{
    const int64_t asked_ms[] = {30001, INT64_C(1) << 40, INT64_MAX};
    load(1);
    for (size_t i = 0; i < WR_COUNT_OF(asked_ms); i++) {
        fixture_finish_emit_with(&fixture,
                                 (weir_outcome){.code = WEIR_OUTCOME_RETRY, .retry_after_ms = asked_ms[i]}, 0);
        int64_t pause_ns = fixture_step(&fixture).until_ns - fixture.now_ns;
        cr_assert(pause_ns > 26000 * WR_NS_PER_MS && pause_ns <= 30000 * WR_NS_PER_MS);
    }
}

Test(lane_outcome, a_negative_delay_means_the_cores_backoff)
{
    load(1);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .retry_after_ms = INT64_MIN},
                             0);
    assert_backoff(500);
}

/* ---- REOPEN ---------------------------------------------------------------------------------- */

Test(lane_outcome, reopen_closes_backs_off_opens_and_offers_the_rest)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 1, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    assert_backoff(500);
    pass_backoff();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "1 2");
}

Test(lane_outcome, reopen_does_not_flush_what_cannot_be_flushed)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 0, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
}

/* ---- Opening --------------------------------------------------------------------------------- */

Test(lane_outcome, a_failed_open_is_retried_after_a_backoff)
{
    const int codes[] = {WEIR_OUTCOME_RETRY, WEIR_OUTCOME_REOPEN, WEIR_OUTCOME_DROP};
    fixture_close(&fixture);
    fixture_offer(&fixture, 1);
    for (size_t i = 0; i < WR_COUNT_OF(codes); i++) {
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
        fixture_finish_open(&fixture, codes[i], "connect 127.0.0.1:8086: refused");
        assert_backoff(INT64_C(500) << i);
        pass_backoff();
    }
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    cr_assert_eq(fixture_stats(&fixture).queued, 1);
}

Test(lane_outcome, a_successful_open_does_not_reset_the_backoff)
{
    load(1);
    for (int i = 0; i < 3; i++) { /* opens, but never delivers */
        fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 0, 0);
        fixture_close(&fixture);
        assert_backoff(INT64_C(500) << i);
        pass_backoff();
        fixture_next(&fixture);
        fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    }
}

/* ---- DROP ------------------------------------------------------------------------------------ */

Test(lane_outcome, drop_discards_the_rest_and_continues)
{
    fixture.settings.batch = 4;
    fixture_apply(&fixture);
    load(6);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 1, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 3);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "4 5");
}

Test(lane_outcome, drop_is_progress)
{
    fixture.settings.queue_bytes = 4 * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
    load(4);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 0, 0);
    cr_assert_not(fixture_check(&fixture, NULL));
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

/* ---- FAILED ---------------------------------------------------------------------------------- */

Test(lane_outcome, failed_drops_everything_queued_and_offered_later)
{
    load(3);
    fixture_offer(&fixture, 2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 1, 0);
    fixture_offer(&fixture, 4);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.delivered, 1);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FAILED], 2 + 2 + 4);
    cr_assert_eq(stats.queued, 0);
}

Test(lane_outcome, failed_closes_the_handler_permanently)
{
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    cr_assert_eq(step.until_ns, WR_NEVER);
}

Test(lane_outcome, an_open_may_fail_permanently)
{
    fixture_close(&fixture);
    fixture_offer(&fixture, 2);
    fixture_finish_open(&fixture, WEIR_OUTCOME_FAILED, "no such database");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FAILED], 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
}

Test(lane_outcome, a_wake_may_fail_permanently)
{
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_FAILED);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FAILED], 2);
    cr_assert_str_eq(fixture_flight(&fixture), "");
}

Test(lane_outcome, producers_do_not_wait_for_a_failed_handler)
{
    fixture.settings.queue_bytes = 2 * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 2);
    cr_assert(fixture_check(&fixture, NULL));
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
    cr_assert_not(fixture_check(&fixture, NULL));
    cr_assert_eq(fixture.wakeup.sent, 1, "the dispatcher has gates to open");
}

Test(lane_outcome, a_handler_that_fails_before_it_is_open_lets_producers_continue)
{
    fixture.settings.queue_bytes = 2 * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
    fixture_close(&fixture);
    fixture_offer(&fixture, 2);
    fixture_finish_open(&fixture, WEIR_OUTCOME_FAILED, NULL);
    cr_assert_not(fixture_check(&fixture, NULL));
    cr_assert_eq(fixture.wakeup.sent, 1);
}

/* ---- Late outcomes --------------------------------------------------------------------------- */

Test(lane_outcome, an_outcome_for_samples_dropped_meanwhile_is_ignored)
{
    load(3);
    wr_lane_drop_all(fixture.lane, WEIR_DROPPED_REMOVED);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REMOVED], 3);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 0);
    cr_assert_str_eq(fixture_flight(&fixture), "");
}

Test(lane_outcome, a_dropped_batch_stays_readable_for_its_handler)
{
    load(3);
    const struct wr_segment *segment = fixture.lane->ledger.flight.range.segment;
    uint32_t references = segment->references;
    wr_lane_drop_all(fixture.lane, WEIR_DROPPED_SHUTDOWN);
    cr_assert_eq(segment->references, references);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    cr_assert_eq(segment->references, references - 1);
}

Test(lane_outcome, a_batch_stays_readable_while_its_handler_waits_inside_emit)
{
    load(3);
    fixture.lane->worker.state = WR_THREAD_WAITING; /* as host->wait leaves it */
    wr_lane_drop_all(fixture.lane, WEIR_DROPPED_SHUTDOWN);
    fixture.lane->worker.state = WR_THREAD_CALLING;
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 0);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 3);
}

Test(lane_outcome, a_batch_awaiting_a_retry_can_be_dropped_while_the_handler_opens)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 0, 0);
    fixture_close(&fixture);
    fixture.lane->worker.state = WR_THREAD_CALLING; /* it is inside open */
    wr_lane_drop_all(fixture.lane, WEIR_DROPPED_REMOVED);
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    cr_assert_str_eq(fixture_flight(&fixture), "",
                     "otherwise it would be offered to the next handler of that name");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REMOVED], 3);
}
