/* What a lane delivers to its handler, and when: batches, linger, kinds, timers. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_stop.h"
#include "lane/lane_flush.h"

static struct lane_fixture fixture;

static void setup(void)
{
    fixture_init(&fixture);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_batch, .init = setup, .fini = teardown);

/* An open handler with these settings. */
static void use(uint32_t batch, int64_t linger_ms)
{
    fixture.settings.batch = batch;
    fixture.settings.linger_ns = linger_ms * WR_NS_PER_MS;
    fixture_apply(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void deliver(const char *expected)
{
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), expected);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, fixture.lane->ledger.flight.range.count, 0);
}

static void sleep_until(int64_t until_ns)
{
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    cr_assert_eq(step.until_ns, until_ns);
}

/* ---- Opening --------------------------------------------------------------------------------- */

Test(lane_batch, a_handler_is_opened_when_samples_are_queued)
{
    sleep_until(WR_NEVER);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    deliver("0");
    sleep_until(WR_NEVER);
}

Test(lane_batch, a_lane_held_for_a_fork_does_nothing)
{
    fixture_offer(&fixture, 1);
    fixture.lane->fork = WR_LANE_FORK_PENDING;
    sleep_until(WR_NEVER);
    fixture.lane->fork = WR_LANE_FORK_NONE;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}

static void open_early(void)
{
    fixture.settings.opens_early = true;
    fixture_apply(&fixture);
}

Test(lane_batch, a_handler_that_opens_early_is_opened_without_samples)
{
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    open_early();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_step(&fixture).until_ns, WR_NEVER);
    cr_assert_eq(fixture_deliver_all(&fixture), 0);
}

Test(lane_batch, a_handler_that_opens_early_and_fails_is_opened_again_after_the_backoff)
{
    open_early();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "busy");
    cr_assert_eq(fixture_step(&fixture).until_ns, fixture.lane->delivery.retry_at_ns);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}

Test(lane_batch, a_handler_that_opens_early_ends_without_being_opened)
{
    open_early();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_REMOVED, fixture.now_ns + 1);
    cr_assert_neq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}

/* ---- Batches --------------------------------------------------------------------------------- */

Test(lane_batch, all_queued_samples_go_in_one_batch)
{
    use(5000, 0);
    fixture_offer(&fixture, 3);
    fixture_offer(&fixture, 2);
    deliver("0 1 2 3 4");
}

Test(lane_batch, a_batch_has_at_most_as_many_samples_as_allowed)
{
    use(3, 0);
    fixture_offer(&fixture, 7);
    deliver("0 1 2");
    deliver("3 4 5");
    deliver("6");
    sleep_until(WR_NEVER);
}

Test(lane_batch, a_batch_has_at_most_as_many_bytes_as_allowed)
{
    fixture.settings.batch_bytes = 3 * FIXTURE_SAMPLE_BYTES + 31;
    use(5000, 0);
    fixture_offer(&fixture, 4);
    deliver("0 1 2");
    deliver("3");
}

Test(lane_batch, metadata_counts_towards_the_bytes_of_a_batch)
{
    fixture.settings.batch_bytes = 3 * FIXTURE_SAMPLE_BYTES;
    use(5000, 0);
    fixture_append(&fixture, 1, 0, "0123456789");
    fixture_append(&fixture, 1, 0, NULL);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    deliver("0 1");
    deliver("2");
}

Test(lane_batch, events_are_not_split_between_batches)
{
    use(4, 0);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    deliver("0 1 2");
    deliver("3 4 5");
}

Test(lane_batch, an_event_larger_than_a_batch_goes_alone)
{
    use(2, 0);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_append(&fixture, 5, 0, NULL);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    deliver("0");
    deliver("1 2 3 4 5");
    deliver("6");
}

Test(lane_batch, an_event_of_more_bytes_than_a_batch_goes_alone)
{
    fixture.settings.batch_bytes = 1;
    use(5000, 0);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    deliver("0 1 2");
    deliver("3");
}

Test(lane_batch, samples_offered_while_a_batch_is_in_flight_wait_for_the_next)
{
    use(5000, 0);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_offer(&fixture, 2);
    cr_assert_str_eq(fixture_flight(&fixture), "0 1");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    deliver("2 3");
}

/* ---- Linger ---------------------------------------------------------------------------------- */

Test(lane_batch, samples_linger_until_the_batch_fills)
{
    use(5000, 200);
    int64_t start_ns = fixture.now_ns;
    fixture_offer(&fixture, 1);
    sleep_until(start_ns + 200 * WR_NS_PER_MS);
    fixture_pass_ms(&fixture, 150);
    fixture_offer(&fixture, 1);
    sleep_until(start_ns + 200 * WR_NS_PER_MS);
    fixture_pass_ms(&fixture, 50);
    deliver("0 1");
}

Test(lane_batch, a_full_batch_does_not_linger)
{
    use(3, 200);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    fixture_offer(&fixture, 1);
    deliver("0 1 2");
}

Test(lane_batch, a_batch_full_of_bytes_does_not_linger)
{
    fixture.settings.batch_bytes = 3 * FIXTURE_SAMPLE_BYTES;
    use(5000, 200);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    fixture_offer(&fixture, 1);
    deliver("0 1 2");
}

Test(lane_batch, a_flush_ends_the_linger)
{
    use(5000, 200);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    deliver("0");
}

Test(lane_batch, a_stop_ends_the_linger)
{
    use(5000, 200);
    fixture_offer(&fixture, 1);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    deliver("0");
}

Test(lane_batch, a_full_queue_ends_the_linger)
{
    fixture.settings.queue_bytes = 2 * FIXTURE_SAMPLE_BYTES;
    use(5000, 200);
    fixture_offer(&fixture, 2);
    deliver("0 1");
}

Test(lane_batch, a_closed_handler_is_not_opened_before_the_linger_ends)
{
    fixture.settings.linger_ns = 200 * WR_NS_PER_MS;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 1);
    sleep_until(fixture.now_ns + 200 * WR_NS_PER_MS);
    fixture_pass_ms(&fixture, 200);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

static void offer_kinds(const char *kinds)
{
    for (; *kinds; kinds++)
        fixture_append_kind(&fixture, *kinds == 'i' ? WEIR_KIND_INT : WEIR_KIND_DOUBLE);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
}

Test(lane_batch, a_lane_delivers_doubles_and_integers)
{
    use(5000, 0);
    offer_kinds("didi");
    deliver("0 1 2 3");
}

Test(lane_batch, kinds_that_a_handler_does_not_accept_are_withheld_and_counted)
{
    use(5000, 0);
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    offer_kinds("iidd");
    deliver("2 3");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 2);
}

Test(lane_batch, an_unknown_kind_is_withheld_and_counted)
{
    use(5000, 0);
    offer_kinds("d");
    fixture_append_kind(&fixture, WEIR_KIND_INT + 1);
    fixture_append_kind(&fixture, 31);
    fixture_append_kind(&fixture, 32);
    fixture_append_kind(&fixture, UINT16_MAX);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    offer_kinds("i");
    deliver("0");
    deliver("5");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 4);
}

Test(lane_batch, kinds_are_withheld_at_any_position)
{
    use(5000, 0);
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    offer_kinds("diiddi");
    deliver("0");
    deliver("3 4");
    sleep_until(WR_NEVER);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 3);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
}

Test(lane_batch, an_event_with_an_unaccepted_kind_is_withheld_whole)
{
    use(5000, 0);
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    fixture_append(&fixture, 3, 0, NULL);
    fixture.segment->samples[1].kind = WEIR_KIND_INT;
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    deliver("3");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 3);
}

Test(lane_batch, a_lane_full_of_withheld_samples_becomes_calm)
{
    fixture.settings.queue_bytes = 4 * FIXTURE_SAMPLE_BYTES;
    use(5000, 0);
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    offer_kinds("iiii");
    sleep_until(WR_NEVER);
    cr_assert_not(fixture_check(&fixture, NULL));
    cr_assert_eq(fixture.wakeup.sent, 1);
}

/* ---- Timers and reload ----------------------------------------------------------------------- */

Test(lane_batch, a_timer_wakes_an_open_handler_once)
{
    use(5000, 0);
    fixture.lane->wake_at_ns = fixture.now_ns + 50 * WR_NS_PER_MS;
    sleep_until(fixture.lane->wake_at_ns);
    fixture_pass_ms(&fixture, 50);
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_WAKE);
    cr_assert_eq(step.why, WEIR_WAKE_TIMER);
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_OK);
    sleep_until(WR_NEVER);
}

Test(lane_batch, a_timer_of_a_closed_handler_does_not_fire)
{
    fixture.lane->wake_at_ns = fixture.now_ns - 1;
    sleep_until(WR_NEVER);
}

Test(lane_batch, closing_a_handler_removes_its_timer)
{
    use(5000, 0);
    fixture.lane->wake_at_ns = fixture.now_ns + 1;
    fixture_close(&fixture);
    cr_assert_eq(fixture.lane->wake_at_ns, 0);
}

Test(lane_batch, a_timer_fires_even_if_there_is_always_more_to_deliver)
{
    use(1, 0);
    fixture_offer(&fixture, 5);
    fixture.lane->wake_at_ns = fixture.now_ns;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_WAKE);
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_OK);
    deliver("0");
}

Test(lane_batch, a_timer_does_not_wait_for_the_end_of_a_backoff)
{
    use(5000, 0);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    fixture.lane->wake_at_ns = fixture.now_ns + WR_NS_PER_MS;
    sleep_until(fixture.now_ns + WR_NS_PER_MS);
    fixture_pass_ms(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_WAKE);
}

Test(lane_batch, a_reload_wakes_an_open_handler_before_anything_else_is_delivered)
{
    use(5000, 0);
    fixture_offer(&fixture, 1);
    fixture.lane->reload_wanted = true;
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_WAKE);
    cr_assert_eq(step.why, WEIR_WAKE_RELOAD);
    fixture_finish_wake(&fixture, WEIR_WAKE_RELOAD, WEIR_OUTCOME_OK);
    deliver("0");
}

Test(lane_batch, opening_a_handler_completes_a_reload)
{
    fixture.lane->reload_wanted = true;
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    deliver("0");
}

Test(lane_batch, a_wake_that_requests_it_reopens)
{
    use(5000, 0);
    fixture.lane->reload_wanted = true;
    fixture_next(&fixture);
    fixture_finish_wake(&fixture, WEIR_WAKE_RELOAD, WEIR_OUTCOME_REOPEN);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    fixture_pass_ms(&fixture, 500);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}
