/* What a lane accepts, and when producers wait: the three overflow policies. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_stop.h"

static struct lane_fixture fixture;

static void setup(void)
{
    fixture_init(&fixture);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_offer, .init = setup, .fini = teardown);

/* Applies an overflow policy with capacity for `samples` samples. */
static void use(enum wr_overflow overflow, uint32_t samples)
{
    fixture.settings.overflow = overflow;
    fixture.settings.queue_bytes = samples * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
}

static void open_and_load(void)
{
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

/* ---- block ----------------------------------------------------------------------------------- */

Test(lane_offer, below_the_bound_producers_do_not_wait)
{
    use(WR_OVERFLOW_BLOCK, 4);
    cr_assert_not(fixture_offer(&fixture, 3));
    cr_assert_eq(fixture_stats(&fixture).queued, 3);
}

Test(lane_offer, at_the_bound_producers_wait)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 3);
    cr_assert(fixture_offer(&fixture, 1));
    cr_assert(fixture_check(&fixture, NULL));
}

Test(lane_offer, a_full_blocking_lane_accepts_samples_already_in_rings)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    cr_assert(fixture_offer(&fixture, 10));
    cr_assert_eq(fixture_stats(&fixture).queued, 14);
}

Test(lane_offer, producers_continue_when_the_queue_is_half_empty)
{
    use(WR_OVERFLOW_BLOCK, 8);
    fixture_offer(&fixture, 8);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert(fixture_check(&fixture, NULL));
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_not(fixture_check(&fixture, NULL));
}

Test(lane_offer, the_dispatcher_is_woken_when_producers_may_continue)
{
    use(WR_OVERFLOW_BLOCK, 8);
    fixture_offer(&fixture, 8);
    open_and_load();
    cr_assert_eq(fixture.wakeup.sent, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 8, 0);
    cr_assert_eq(fixture.wakeup.sent, 1);
}

Test(lane_offer, the_dispatcher_is_woken_when_a_new_bound_lets_producers_continue)
{
    use(WR_OVERFLOW_BLOCK, 8);
    cr_assert(fixture_offer(&fixture, 8));
    cr_assert_eq(fixture.wakeup.sent, 0);
    use(WR_OVERFLOW_BLOCK, 80);
    cr_assert_eq(fixture.wakeup.sent, 1);
    cr_assert_not(fixture_check(&fixture, NULL));
}

Test(lane_offer, samples_in_flight_count_as_queued)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 3);
    open_and_load();
    cr_assert_str_eq(fixture_queue(&fixture), "");
    cr_assert(fixture_offer(&fixture, 1));
    cr_assert_eq(fixture_stats(&fixture).queued, 4);
    cr_assert_eq(fixture_stats(&fixture).queue_bytes, 4 * FIXTURE_SAMPLE_BYTES);
}

Test(lane_offer, a_full_lane_stalls_after_block_timeout_without_progress)
{
    int64_t next_ns = WR_NEVER;
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    cr_assert(fixture_check(&fixture, &next_ns));
    cr_assert_eq(next_ns, fixture.now_ns + WR_NS_PER_S);
    fixture_pass_ms(&fixture, 999);
    cr_assert(fixture_check(&fixture, NULL));
    fixture_pass_ms(&fixture, 1);
    cr_assert_not(fixture_check(&fixture, NULL), "producers of a stalled handler do not wait");
}

Test(lane_offer, progress_postpones_the_stall)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    open_and_load();
    fixture_pass_ms(&fixture, 900);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture_pass_ms(&fixture, 900);
    cr_assert(fixture_check(&fixture, NULL));
    fixture_pass_ms(&fixture, 100);
    cr_assert_not(fixture_check(&fixture, NULL));
}

Test(lane_offer, an_attempt_that_settles_nothing_is_no_progress)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    open_and_load();
    fixture_pass_ms(&fixture, 900);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    fixture_pass_ms(&fixture, 100);
    cr_assert_not(fixture_check(&fixture, NULL));
}

static void stall(uint32_t samples)
{
    use(WR_OVERFLOW_BLOCK, samples);
    fixture_offer(&fixture, samples);
    fixture_pass_ms(&fixture, 1000);
    fixture_check(&fixture, NULL);
}

Test(lane_offer, a_stalled_lane_drops_what_does_not_fit)
{
    stall(4);
    cr_assert_not(fixture_offer(&fixture, 3));
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 3);
    cr_assert_eq(fixture_stats(&fixture).queued, 4);
}

Test(lane_offer, a_stalled_lane_is_full_again_when_its_handler_makes_progress)
{
    stall(8);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert(fixture_offer(&fixture, 1), "the lane makes progress, so producers wait for it");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 0);
    cr_assert_eq(fixture_stats(&fixture).queued, 8);
}

Test(lane_offer, a_stalled_lane_is_calm_when_its_handler_empties_it)
{
    stall(8);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 8, 0);
    cr_assert_not(fixture_offer(&fixture, 7));
    cr_assert_eq(fixture_stats(&fixture).queued, 7);
    cr_assert(fixture_offer(&fixture, 1));
}

Test(lane_offer, weirs_own_threads_do_not_wait_for_a_full_lane_and_drop)
{
    use(WR_OVERFLOW_BLOCK, 2);
    fixture_offer(&fixture, 2);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_append(&fixture, 2, WR_RING_NO_WAIT, NULL);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REENTRANT], 2);
    cr_assert_str_eq(fixture_queue(&fixture), "0 1 2 5");
}

Test(lane_offer, weirs_own_threads_add_to_a_lane_that_is_not_full)
{
    use(WR_OVERFLOW_BLOCK, 8);
    fixture_append(&fixture, 1, WR_RING_NO_WAIT, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_eq(fixture_stats(&fixture).queued, 1);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static void offer_kept(uint32_t samples)
{
    fixture.keeps = true;
    cr_assert_not(fixture_offer(&fixture, samples), "calls go on");
    fixture.keeps = false;
}

Test(lane_offer, what_sources_added_before_they_wait_is_kept_whatever_the_policy)
{
    const enum wr_overflow dropping[] = {WR_OVERFLOW_DROP_NEWEST, WR_OVERFLOW_DROP_OLDEST};
    for (size_t i = 0; i < WR_COUNT_OF(dropping); i++) {
        fixture_fini(&fixture);
        fixture_init(&fixture);
        use(dropping[i], 4);
        offer_kept(3);
        cr_assert_not(fixture_holds_sources(&fixture));
        offer_kept(5);
        cr_assert(fixture_holds_sources(&fixture));
        cr_assert_str_eq(fixture_queue(&fixture), "0 1 2 3 4 5 6 7");
        open_and_load();
        cr_assert(fixture_holds_sources(&fixture), "the handler has them, but none is settled");
        fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 5, 0);
        cr_assert(fixture_holds_sources(&fixture));
        cr_assert_eq(fixture.wakeup.sent, 0);
        fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
        cr_assert_not(fixture_holds_sources(&fixture));
        cr_assert_eq(fixture.wakeup.sent, 1, "the dispatcher lets them go on");
    }
}

Test(lane_offer, a_stalled_lane_keeps_what_sources_added)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    fixture_pass_ms(&fixture, 1000);
    cr_assert_not(fixture_check(&fixture, NULL));
    offer_kept(2);
    cr_assert(fixture_holds_sources(&fixture));
    cr_assert_str_eq(fixture_queue(&fixture), "0 1 2 3 4 5");
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 1, "that of a call");
}

Test(lane_offer, weirs_own_values_do_not_wait_with_those_of_sources)
{
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    offer_kept(2);
    fixture_append(&fixture, 1, 0, NULL);
    fixture_append(&fixture, 1, WR_RING_NO_WAIT, NULL);
    fixture.keeps = true;
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REENTRANT], 1);
    cr_assert_str_eq(fixture_queue(&fixture), "0 1 2");
}

Test(lane_offer, nobody_waits_for_a_lane_that_has_ended)
{
    use(WR_OVERFLOW_DROP_OLDEST, 2);
    offer_kept(3);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_REMOVED, fixture.now_ns);
    fixture_check(&fixture, NULL);
    cr_assert_neq(fixture.lane->end_reason, WR_LANE_LIVES);
    cr_assert_not(fixture_holds_sources(&fixture));
}

/* ---- drop_newest ----------------------------------------------------------------------------- */

Test(lane_offer, drop_newest_accepts_what_fits_and_drops_the_rest)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    cr_assert_not(fixture_offer(&fixture, 3));
    cr_assert_not(fixture_offer(&fixture, 3));
    cr_assert_str_eq(fixture_queue(&fixture), "0 1 2 3");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 2);
}

Test(lane_offer, drop_newest_fills_up_to_the_bound_exactly)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    fixture_offer(&fixture, 4);
    cr_assert_eq(fixture_stats(&fixture).queued, 4);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 0);
}

Test(lane_offer, drop_newest_never_splits_an_event)
{
    use(WR_OVERFLOW_DROP_NEWEST, 5);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_str_eq(fixture_queue(&fixture), "0 1 2");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 3);
}

Test(lane_offer, drop_newest_drops_an_event_larger_than_the_queue)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    fixture_offer_event(&fixture, 5);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 5);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

Test(lane_offer, drop_newest_counts_samples_in_flight)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    fixture_offer(&fixture, 4);
    open_and_load();
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 2);
    cr_assert_str_eq(fixture_queue(&fixture), "5");
}

Test(lane_offer, drop_newest_counts_the_bytes_of_metadata)
{
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    fixture_append(&fixture, 1, 0, "0123456789012345678901234567890"); /* 32 bytes with its NUL */
    fixture_append(&fixture, 1, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_str_eq(fixture_queue(&fixture), "0");
    cr_assert_eq(fixture_stats(&fixture).queue_bytes, 2 * FIXTURE_SAMPLE_BYTES);
}

/* ---- drop_oldest ----------------------------------------------------------------------------- */

Test(lane_offer, drop_oldest_accepts_everything_and_drops_the_oldest)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 4);
    cr_assert_not(fixture_offer(&fixture, 3));
    cr_assert_str_eq(fixture_queue(&fixture), "3 4 5 6");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 3);
}

Test(lane_offer, drop_oldest_drops_nothing_at_the_bound_exactly)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 4);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 0);
}

Test(lane_offer, drop_oldest_drops_whole_events)
{
    use(WR_OVERFLOW_DROP_OLDEST, 6);
    fixture_offer_event(&fixture, 4);
    fixture_offer_event(&fixture, 2);
    fixture_offer(&fixture, 1);
    cr_assert_str_eq(fixture_queue(&fixture), "4 5 6");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 4);
}

Test(lane_offer, drop_oldest_does_not_drop_samples_in_flight)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 3);
    open_and_load();
    fixture_offer(&fixture, 4);
    cr_assert_str_eq(fixture_flight(&fixture), "0 1 2");
    cr_assert_str_eq(fixture_queue(&fixture), "6");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
}

Test(lane_offer, drop_oldest_keeps_nothing_beside_a_batch_in_flight_that_fills_the_queue)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 4);
    open_and_load();
    fixture_offer(&fixture, 2);
    cr_assert_str_eq(fixture_queue(&fixture), "");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 2);
    cr_assert_eq(fixture_stats(&fixture).queued, 4);
}

Test(lane_offer, drop_oldest_drops_an_event_larger_than_the_queue)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 2);
    fixture_offer_event(&fixture, 5);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 7);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

Test(lane_offer, drop_oldest_drops_no_more_than_needed_when_samples_have_metadata)
{
    static const char note[] =
        "a text that weighs much more than the sample that it was added with, which is small";
    use(WR_OVERFLOW_DROP_OLDEST, 38);
    for (int i = 0; i < 10; i++)
        fixture_append(&fixture, 1, 0, note);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    uint64_t each = FIXTURE_SAMPLE_BYTES + sizeof note, fit = 38 * FIXTURE_SAMPLE_BYTES / each;
    cr_assert_eq(fit, 10);
    fixture_append(&fixture, 1, 0, note);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_eq(fixture_stats(&fixture).queued, fit);
}

/* ---- Lanes without a worker ------------------------------------------------------------------ */

Test(lane_offer, a_lane_without_a_worker_drops_everything)
{
    fixture.lane->worker.state = WR_THREAD_FAILED;
    fixture_offer(&fixture, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_NO_THREAD], 3);
}

Test(lane_offer, a_lane_drops_until_its_worker_was_started_again)
{
    fixture.lane->worker.state = WR_THREAD_FAILED;
    cr_assert(wr_lane_thread_claim(&fixture.lane->worker));
    cr_assert_not(wr_lane_thread_claim(&fixture.lane->worker));
    fixture_offer(&fixture, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_NO_THREAD], 3);
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
}

Test(lane_offer, an_ended_lane_drops_later_samples_for_the_same_reason)
{
    fixture.lane->end_reason = WEIR_DROPPED_FORK_UNSAFE;
    fixture_offer(&fixture, 3);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FORK_UNSAFE], 3);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

/* A flush ends the interval again and again until the lane takes it. */
Test(lane_offer, an_ended_lane_without_settings_takes_summaries)
{
    fixture.lane->settings = (struct wr_lane_settings){0};
    cr_assert_not(wr_lane_takes_summaries(fixture.lane));
    fixture.lane->end_reason = WEIR_DROPPED_FORK_UNSAFE;
    cr_assert(wr_lane_takes_summaries(fixture.lane));
}

Test(lane_offer, samples_that_never_reached_a_segment_are_counted)
{
    wr_lane_leave_out(fixture.lane, &(struct wr_lane_left_out){.lost = 5});
    cr_assert_eq(fixture_stats(&fixture).offered, 5);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 5);
}

/* ---- Settings and the snapshot --------------------------------------------------------------- */

Test(lane_offer, a_smaller_queue_makes_producers_wait_at_once)
{
    use(WR_OVERFLOW_BLOCK, 8);
    fixture_offer(&fixture, 5);
    use(WR_OVERFLOW_BLOCK, 4);
    cr_assert(fixture_check(&fixture, NULL));
}

Test(lane_offer, a_larger_queue_lets_producers_continue)
{
    use(WR_OVERFLOW_BLOCK, 4);
    fixture_offer(&fixture, 4);
    use(WR_OVERFLOW_BLOCK, 8);
    cr_assert_not(fixture_check(&fixture, NULL));
}

Test(lane_offer, the_queued_bytes_include_metadata)
{
    fixture_append(&fixture, 1, 0, "123456789");
    fixture_append(&fixture, 2, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_eq(fixture_stats(&fixture).queue_bytes, 3 * FIXTURE_SAMPLE_BYTES + 10);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_stats(&fixture).queue_bytes, 2 * FIXTURE_SAMPLE_BYTES);
}

Test(lane_offer, a_snapshot_contains_the_age_of_the_oldest_sample)
{
    cr_assert_eq(fixture_stats(&fixture).queue_age_ms, 0);
    fixture_offer(&fixture, 1);
    fixture_pass_ms(&fixture, 1500);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_stats(&fixture).queue_age_ms, 1500);
    open_and_load();
    fixture_pass_ms(&fixture, 500);
    cr_assert_eq(fixture_stats(&fixture).queue_age_ms, 2000);
}

Test(lane_offer, the_age_is_that_of_a_sample_on_its_way_to_disk)
{
    fixture_offer(&fixture, 1);
    wr_lane_ledger_move(&fixture.lane->ledger, false, UINT64_MAX);
    fixture_pass_ms(&fixture, 1500);
    cr_assert_eq(fixture_stats(&fixture).queue_age_ms, 1500);
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_stats(&fixture).queue_age_ms, 1500);
}

Test(lane_offer, a_snapshot_contains_state_and_counts)
{
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.size, sizeof stats);
    cr_assert_eq(stats.open, 0);
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    stats = fixture_stats(&fixture);
    cr_assert_eq(stats.offered, 2);
    cr_assert_eq(stats.delivered, 1);
    cr_assert_eq(stats.queued, 1);
    cr_assert_eq(stats.open, 1);
    cr_assert_eq(stats.failing, 1);
    cr_assert_eq(stats.retries, 1);
    cr_assert_eq(stats.faults, 0);
    cr_assert_eq(stats.recovered, 0);
    cr_assert_eq(stats.spooled, 0);
}
