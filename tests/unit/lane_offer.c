/* What a lane takes, and what it makes producers do: the three overflow policies. */
#include <criterion/criterion.h>

#include "../support/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
}

static void teardown(void)
{
    rig_fini(&rig);
}

TestSuite(lane, .init = setup, .fini = teardown);

/* Puts an overflow policy with room for so many samples in force. */
static void use(enum wr_overflow overflow, uint32_t samples)
{
    rig.settings.overflow = overflow;
    rig.settings.queue_bytes = samples * RIG_SAMPLE_BYTES;
    rig_apply(&rig);
}

static void open_and_load(void)
{
    cr_assert_eq(rig_next(&rig), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

/* ---- block ----------------------------------------------------------------------------------- */

Test(lane, below_its_bound_nobody_waits)
{
    use(WR_OVERFLOW_BLOCK, 4);
    cr_assert_not(rig_offer(&rig, 3));
    cr_assert_eq(rig_stats(&rig).queued, 3);
}

Test(lane, at_its_bound_producers_wait)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 3);
    cr_assert(rig_offer(&rig, 1));
    cr_assert(rig_check(&rig, NULL));
}

Test(lane, a_full_one_that_blocks_takes_what_was_on_its_way)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 4);
    cr_assert(rig_offer(&rig, 10));
    cr_assert_eq(rig_stats(&rig).queued, 14);
}

Test(lane, producers_go_on_when_it_is_half_empty)
{
    use(WR_OVERFLOW_BLOCK, 8);
    rig_offer(&rig, 8);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_OK, 3, 0);
    cr_assert(rig_check(&rig, NULL));
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_not(rig_check(&rig, NULL));
}

Test(lane, the_dispatcher_is_rung_when_producers_may_go_on)
{
    use(WR_OVERFLOW_BLOCK, 8);
    rig_offer(&rig, 8);
    open_and_load();
    cr_assert_eq(rig.bell.rung, 0);
    rig_answer(&rig, WEIR_OUTCOME_OK, 8, 0);
    cr_assert_eq(rig.bell.rung, 1);
}

Test(lane, the_dispatcher_is_rung_when_another_bound_lets_producers_go_on)
{
    use(WR_OVERFLOW_BLOCK, 8);
    cr_assert(rig_offer(&rig, 8));
    cr_assert_eq(rig.bell.rung, 0);
    use(WR_OVERFLOW_BLOCK, 80);
    cr_assert_eq(rig.bell.rung, 1);
    cr_assert_not(rig_check(&rig, NULL));
}

Test(lane, what_is_in_flight_counts_as_queued)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 3);
    open_and_load();
    cr_assert_str_eq(rig_queue(&rig), "");
    cr_assert(rig_offer(&rig, 1));
    cr_assert_eq(rig_stats(&rig).queued, 4);
    cr_assert_eq(rig_stats(&rig).queue_bytes, 4 * RIG_SAMPLE_BYTES);
}

Test(lane, a_full_one_stalls_after_block_timeout_without_progress)
{
    int64_t next_ns = WR_NEVER;
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 4);
    cr_assert(rig_check(&rig, &next_ns));
    cr_assert_eq(next_ns, rig.now_ns + WR_NS_PER_S);
    rig_pass_ms(&rig, 999);
    cr_assert(rig_check(&rig, NULL));
    rig_pass_ms(&rig, 1);
    cr_assert_not(rig_check(&rig, NULL), "producers of a stalled handler do not wait");
}

Test(lane, progress_puts_the_stall_off)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 4);
    open_and_load();
    rig_pass_ms(&rig, 900);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rig_pass_ms(&rig, 900);
    cr_assert(rig_check(&rig, NULL));
    rig_pass_ms(&rig, 100);
    cr_assert_not(rig_check(&rig, NULL));
}

Test(lane, a_try_that_settles_nothing_is_no_progress)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 4);
    open_and_load();
    rig_pass_ms(&rig, 900);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 0, 0);
    rig_pass_ms(&rig, 100);
    cr_assert_not(rig_check(&rig, NULL));
}

static void stall(uint32_t samples)
{
    use(WR_OVERFLOW_BLOCK, samples);
    rig_offer(&rig, samples);
    rig_pass_ms(&rig, 1000);
    rig_check(&rig, NULL);
}

Test(lane, a_stalled_one_drops_what_does_not_fit)
{
    stall(4);
    cr_assert_not(rig_offer(&rig, 3));
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 3);
    cr_assert_eq(rig_stats(&rig).queued, 4);
}

Test(lane, a_stalled_one_is_full_again_when_its_handler_moves)
{
    stall(8);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert(rig_offer(&rig, 1), "it moves, so it is worth waiting for");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 0);
    cr_assert_eq(rig_stats(&rig).queued, 8);
}

Test(lane, a_stalled_one_whose_handler_empties_it_is_calm_again)
{
    stall(8);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_OK, 8, 0);
    cr_assert_not(rig_offer(&rig, 7));
    cr_assert_eq(rig_stats(&rig).queued, 7);
    cr_assert(rig_offer(&rig, 1));
}

Test(lane, weirs_own_threads_do_not_wait_at_a_full_one_and_drop)
{
    use(WR_OVERFLOW_BLOCK, 2);
    rig_offer(&rig, 2);
    rig_append(&rig, 1, 0, NULL);
    rig_append(&rig, 2, WR_RING_NO_WAIT, NULL);
    rig_append(&rig, 1, 0, NULL);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_REENTRANT], 2);
    cr_assert_str_eq(rig_queue(&rig), "0 1 2 5");
}

Test(lane, weirs_own_threads_add_to_one_that_is_not_full)
{
    use(WR_OVERFLOW_BLOCK, 8);
    rig_append(&rig, 1, WR_RING_NO_WAIT, NULL);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_eq(rig_stats(&rig).queued, 1);
}

/* ---- drop_newest ----------------------------------------------------------------------------- */

Test(lane, drop_newest_takes_what_fits_and_drops_the_rest)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    cr_assert_not(rig_offer(&rig, 3));
    cr_assert_not(rig_offer(&rig, 3));
    cr_assert_str_eq(rig_queue(&rig), "0 1 2 3");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 2);
}

Test(lane, drop_newest_fills_up_to_the_bound_exactly)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    rig_offer(&rig, 4);
    cr_assert_eq(rig_stats(&rig).queued, 4);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 0);
}

Test(lane, drop_newest_never_splits_an_event)
{
    use(WR_OVERFLOW_DROP_NEWEST, 5);
    rig_append(&rig, 3, 0, NULL);
    rig_append(&rig, 3, 0, NULL);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_str_eq(rig_queue(&rig), "0 1 2");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 3);
}

Test(lane, drop_newest_drops_an_event_larger_than_the_queue)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    rig_offer_event(&rig, 5);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 5);
    cr_assert_eq(rig_stats(&rig).queued, 0);
}

Test(lane, drop_newest_counts_what_is_in_flight)
{
    use(WR_OVERFLOW_DROP_NEWEST, 4);
    rig_offer(&rig, 4);
    open_and_load();
    rig_offer(&rig, 1);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rig_offer(&rig, 2);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 2);
    cr_assert_str_eq(rig_queue(&rig), "5");
}

Test(lane, drop_newest_weighs_metadata)
{
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    rig_append(&rig, 1, 0, "0123456789012345678901234567890"); /* 32 bytes with its end */
    rig_append(&rig, 1, 0, NULL);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_str_eq(rig_queue(&rig), "0");
    cr_assert_eq(rig_stats(&rig).queue_bytes, 2 * RIG_SAMPLE_BYTES);
}

/* ---- drop_oldest ----------------------------------------------------------------------------- */

Test(lane, drop_oldest_takes_all_and_drops_the_oldest)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 4);
    cr_assert_not(rig_offer(&rig, 3));
    cr_assert_str_eq(rig_queue(&rig), "3 4 5 6");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 3);
}

Test(lane, drop_oldest_drops_nothing_at_the_bound_exactly)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 4);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 0);
}

Test(lane, drop_oldest_drops_whole_events)
{
    use(WR_OVERFLOW_DROP_OLDEST, 6);
    rig_offer_event(&rig, 4);
    rig_offer_event(&rig, 2);
    rig_offer(&rig, 1);
    cr_assert_str_eq(rig_queue(&rig), "4 5 6");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 4);
}

Test(lane, drop_oldest_leaves_what_is_in_flight_alone)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 3);
    open_and_load();
    rig_offer(&rig, 4);
    cr_assert_str_eq(rig_flight(&rig), "0 1 2");
    cr_assert_str_eq(rig_queue(&rig), "6");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 3);
    rig_answer(&rig, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(rig_stats(&rig).delivered, 3);
}

Test(lane, drop_oldest_beside_a_flight_that_fills_the_queue_keeps_nothing)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 4);
    open_and_load();
    rig_offer(&rig, 2);
    cr_assert_str_eq(rig_queue(&rig), "");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 2);
    cr_assert_eq(rig_stats(&rig).queued, 4);
}

Test(lane, drop_oldest_drops_an_event_larger_than_the_queue)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 2);
    rig_offer_event(&rig, 5);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 7);
    cr_assert_eq(rig_stats(&rig).queued, 0);
}

Test(lane, drop_oldest_drops_no_more_than_it_has_to_when_samples_have_metadata)
{
    static const char note[] =
        "a text that weighs much more than the sample that it was added with, which is small";
    use(WR_OVERFLOW_DROP_OLDEST, 38);
    for (int i = 0; i < 10; i++)
        rig_append(&rig, 1, 0, note);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    uint64_t each = RIG_SAMPLE_BYTES + sizeof note, fit = 38 * RIG_SAMPLE_BYTES / each;
    cr_assert_eq(fit, 10);
    rig_append(&rig, 1, 0, note);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_eq(rig_stats(&rig).queued, fit);
}

/* ---- Handlers that cannot be had ------------------------------------------------------------- */

Test(lane, without_a_thread_all_is_dropped)
{
    rig.lane->no_thread = true;
    rig_offer(&rig, 3);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_NO_THREAD], 3);
}

Test(lane, that_has_ended_drops_what_comes_for_the_same_reason)
{
    rig.lane->ending = WEIR_DROPPED_FORK_UNSAFE;
    rig_offer(&rig, 3);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FORK_UNSAFE], 3);
    cr_assert_eq(rig_stats(&rig).queued, 0);
}

Test(lane, samples_that_never_reached_a_segment_are_counted)
{
    wr_lane_refuse(rig.lane, 5, WEIR_DROPPED_FULL);
    cr_assert_eq(rig_stats(&rig).offered, 5);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FULL], 5);
}

/* ---- Settings and the snapshot --------------------------------------------------------------- */

Test(lane, a_smaller_queue_makes_producers_wait_at_once)
{
    use(WR_OVERFLOW_BLOCK, 8);
    rig_offer(&rig, 5);
    use(WR_OVERFLOW_BLOCK, 4);
    cr_assert(rig_check(&rig, NULL));
}

Test(lane, a_larger_queue_lets_producers_go_on)
{
    use(WR_OVERFLOW_BLOCK, 4);
    rig_offer(&rig, 4);
    use(WR_OVERFLOW_BLOCK, 8);
    cr_assert_not(rig_check(&rig, NULL));
}

Test(lane, metadata_is_part_of_what_is_queued)
{
    rig_append(&rig, 1, 0, "123456789");
    rig_append(&rig, 2, 0, NULL);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    cr_assert_eq(rig_stats(&rig).queue_bytes, 3 * RIG_SAMPLE_BYTES + 10);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_stats(&rig).queue_bytes, 2 * RIG_SAMPLE_BYTES);
}

Test(lane, a_snapshot_tells_how_old_the_oldest_is)
{
    cr_assert_eq(rig_stats(&rig).queue_age_ms, 0);
    rig_offer(&rig, 1);
    rig_pass_ms(&rig, 1500);
    rig_offer(&rig, 1);
    cr_assert_eq(rig_stats(&rig).queue_age_ms, 1500);
    open_and_load();
    rig_pass_ms(&rig, 500);
    cr_assert_eq(rig_stats(&rig).queue_age_ms, 2000);
}

Test(lane, a_snapshot_tells_how_things_stand)
{
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.size, sizeof stats);
    cr_assert_eq(stats.open, 0);
    rig_offer(&rig, 2);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 1, 0);
    stats = rig_stats(&rig);
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
