/* Handlers that violate the API: detected, counted, and disabled after ten faults in a row. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../support/lane_fixture.h"

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

TestSuite(lane_fault, .init = setup, .fini = teardown);

static void load(uint32_t samples)
{
    fixture_offer(&fixture, samples);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

Test(lane_fault, more_done_than_in_the_batch_counts_as_all)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 4, 0);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
}

Test(lane_fault, more_done_than_in_the_batch_by_a_failure_counts_as_nothing)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, UINT32_MAX, UINT32_MAX);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 0);
    cr_assert_eq(fixture_stats(&fixture).queued, 3);
}

Test(lane_fault, the_largest_number_done_does_not_overflow)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, UINT32_MAX, UINT32_MAX);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 3);
}

Test(lane_fault, more_rejected_than_done_counts_as_all_that_are_done)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 3);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 2);
    cr_assert_eq(fixture_stats(&fixture).queued, 1);
}

Test(lane_fault, ok_with_nothing_done_is_a_retry)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 0, 0);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).retries, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    cr_assert_eq(fixture_stats(&fixture).queued, 3);
}

Test(lane_fault, ok_with_a_part_of_an_event_done_is_a_retry)
{
    fixture_offer_event(&fixture, 3);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_eq(fixture_stats(&fixture).queued, 3);
}

Test(lane_fault, an_unknown_code_is_a_retry)
{
    const int codes[] = {5, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < WR_COUNT_OF(codes); i++) {
        load(2);
        fixture_finish_emit(&fixture, codes[i], 1, 0);
        cr_assert_eq(fixture_stats(&fixture).faults, i + 1);
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
        fixture.now_ns = fixture.lane->delivery.retry_at_ns;
        fixture_deliver_all(&fixture);
    }
}

Test(lane_fault, an_open_and_a_flush_with_an_unknown_code_are_faults_too)
{
    fixture.lane->handler.has_flush = true;
    fixture_finish_flush(&fixture, 99);
    fixture_close(&fixture);
    fixture_finish_open(&fixture, 99, NULL);
    cr_assert_eq(fixture_stats(&fixture).faults, 2);
    cr_assert_eq(fixture_stats(&fixture).open, 0);
}

/* Only a batch can be dropped. */
Test(lane_fault, a_drop_by_open_flush_and_wake_is_a_fault_and_a_retry)
{
    fixture.lane->handler.has_flush = true;
    fixture_finish_flush(&fixture, WEIR_OUTCOME_DROP);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_gt(fixture.lane->delivery.retry_at_ns, fixture.now_ns);
    weir_outcome woken = {.size = sizeof woken, .code = WEIR_OUTCOME_DROP};
    wr_outcome_apply_wake(fixture.lane, &woken, WEIR_WAKE_TIMER, fixture.now_ns);
    cr_assert_eq(fixture_stats(&fixture).faults, 2);
    fixture_close(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_DROP, NULL);
    cr_assert_eq(fixture_stats(&fixture).faults, 3);
    cr_assert_eq(fixture_stats(&fixture).retries, 3);
    cr_assert_eq(fixture_stats(&fixture).open, 0);
    cr_assert_eq(fixture.lane->end_reason, WR_LANE_LIVES);
}

Test(lane_fault, an_invalid_error_is_not_returned_to_calls)
{
    const int errors[] = {1, INT32_MAX, -UINT16_MAX - 1, INT32_MIN};
    for (size_t i = 0; i < WR_COUNT_OF(errors); i++) {
        load(1);
        fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .error = errors[i]}, 0);
        cr_assert_eq(fixture_stats(&fixture).faults, i + 1);
        cr_assert_eq(fixture.lane->ledger.waiters.error, 0);
        fixture.now_ns = fixture.lane->delivery.retry_at_ns;
        fixture_deliver_all(&fixture);
    }
}

Test(lane_fault, an_outcome_with_several_mistakes_is_one_fault)
{
    load(3);
    fixture_finish_emit(&fixture, 99, UINT32_MAX, 0);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    fixture_pass_ms(&fixture, 1000);
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 0, 1);
    cr_assert_eq(fixture_stats(&fixture).faults, 2);
}

Test(lane_fault, changed_thread_state_is_a_fault_and_a_valid_outcome_keeps_its_reason)
{
    load(3);
    fixture.lane->delivery.breach = "it changed something";
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .reason = "refused"}, 0);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
    cr_assert_str_eq(fixture.lane->delivery.last_error, "refused");
    cr_assert_null(fixture.lane->delivery.breach);
}

Test(lane_fault, thread_state_changed_by_close_is_counted)
{
    fixture.lane->delivery.breach = "it changed something";
    fixture_close(&fixture);
    cr_assert_eq(fixture_stats(&fixture).faults, 1);
}

Test(lane_fault, a_handler_disabled_because_open_changed_thread_state_is_closed)
{
    fixture_close(&fixture);
    fixture.lane->delivery.faults_in_a_row = WR_LANE_FAULTS_MOST - 1;
    fixture.lane->delivery.breach = "it changed something";
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture.lane->end_reason, WEIR_DROPPED_FAILED);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
}

/* ---- Ten in a row ---------------------------------------------------------------------------- */

/* Returns an invalid outcome `times` times; its other fields are valid. */
static void return_faults(unsigned times, weir_outcome outcome)
{
    for (unsigned i = 0; i < times; i++) {
        if (!fixture.lane->ledger.flight.range.segment) {
            fixture.now_ns += 3600 * WR_NS_PER_S;
            fixture_offer(&fixture, 2);
            cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
        }
        fixture_finish_emit_with(&fixture, outcome, 0);
    }
}

static void assert_disabled_after_ten(weir_outcome outcome)
{
    return_faults(9, outcome);
    cr_assert_eq(fixture_stats(&fixture).faults, 9);
    cr_assert_eq(fixture.lane->end_reason, WR_LANE_LIVES);
    return_faults(1, outcome);
    cr_assert_eq(fixture_stats(&fixture).faults, 10);
    cr_assert_eq(fixture.lane->end_reason, WEIR_DROPPED_FAILED);
    fixture_offer(&fixture, 5);
    cr_assert_geq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FAILED], 5);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

Test(lane_fault, ten_times_too_much_done_disables_the_handler)
{
    assert_disabled_after_ten((weir_outcome){.code = WEIR_OUTCOME_OK, .done = 100});
}

Test(lane_fault, ten_times_too_much_rejected_disables_the_handler)
{
    assert_disabled_after_ten((weir_outcome){.code = WEIR_OUTCOME_OK, .done = 1, .rejected = 2});
}

Test(lane_fault, ten_unknown_codes_disable_the_handler)
{
    assert_disabled_after_ten((weir_outcome){.code = 99, .done = 2});
}

Test(lane_fault, ten_unknown_codes_with_nothing_done_disable_the_handler)
{
    assert_disabled_after_ten((weir_outcome){.code = 99});
}

Test(lane_fault, ten_times_ok_with_nothing_done_disables_the_handler)
{
    assert_disabled_after_ten((weir_outcome){.code = WEIR_OUTCOME_OK});
}

Test(lane_fault, a_valid_outcome_in_between_resets_the_count)
{
    const weir_outcome wrong = {.code = WEIR_OUTCOME_OK};
    return_faults(9, wrong);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    return_faults(9, wrong);
    cr_assert_eq(fixture.lane->end_reason, WR_LANE_LIVES);
    cr_assert_eq(fixture_stats(&fixture).faults, 18);
}

Test(lane_fault, the_first_fault_in_a_row_is_logged)
{
    return_faults(1, (weir_outcome){.code = WEIR_OUTCOME_OK, .done = 1, .rejected = 2});
    bool is_logged = false;
    for (unsigned i = 0; i < fixture.book.count; i++)
        is_logged |= strstr(fixture.book.lines[i], "push: the handler type is at fault") &&
                     fixture.book.levels[i] == WEIR_LOG_ERROR;
    cr_assert(is_logged);
}

Test(lane_fault, the_second_fault_in_a_row_is_not_logged)
{
    const weir_outcome wrong = {.code = WEIR_OUTCOME_OK};
    return_faults(1, wrong);
    unsigned count = fixture.book.count;
    return_faults(1, wrong);
    cr_assert_eq(fixture.book.count, count);
}

Test(lane_fault, the_tenth_fault_logs_why_the_handler_is_disabled)
{
    return_faults(10, (weir_outcome){.code = WEIR_OUTCOME_OK});
    cr_assert_eq(logbook_last_level(&fixture.book), WEIR_LOG_ERROR);
    cr_assert(strstr(logbook_last(&fixture.book), "an outcome of OK with nothing done; gives up, 2 dropped"),
              "%s", logbook_last(&fixture.book));
}
