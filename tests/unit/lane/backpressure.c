#include <criterion/criterion.h>

#include "text/common.h"
#include "lane/backpressure.h"

enum { BOUND = 1000, TIMEOUT = 50, START = 7000 };

static struct wr_backpressure make(enum wr_overflow overflow)
{
    return (struct wr_backpressure){.overflow = overflow, .bound = BOUND, .timeout_ns = TIMEOUT};
}

/* A lane that became full at START. */
static struct wr_backpressure make_full(void)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_BLOCK);
    wr_backpressure_rise(&pressure, BOUND, START);
    return pressure;
}

static struct wr_backpressure make_stalled(void)
{
    struct wr_backpressure pressure = make_full();
    wr_backpressure_check(&pressure, START + TIMEOUT);
    return pressure;
}

Test(backpressure, below_the_bound_the_lane_is_calm)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_BLOCK);
    wr_backpressure_rise(&pressure, BOUND - 1, START);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
    cr_assert_eq(wr_backpressure_deadline(&pressure), WR_NEVER);
}

Test(backpressure, at_the_bound_a_blocking_lane_is_full)
{
    struct wr_backpressure pressure = make_full();
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
}

Test(backpressure, the_drop_policies_never_make_producers_wait)
{
    const enum wr_overflow dropping[] = {WR_OVERFLOW_DROP_NEWEST, WR_OVERFLOW_DROP_OLDEST};
    for (size_t i = 0; i < WR_COUNT_OF(dropping); i++) {
        struct wr_backpressure pressure = make(dropping[i]);
        wr_backpressure_rise(&pressure, BOUND * 10, START);
        wr_backpressure_check(&pressure, START + TIMEOUT * 10);
        wr_backpressure_fall(&pressure, BOUND, START + TIMEOUT * 20);
        cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
    }
}

Test(backpressure, sources_wait_whatever_the_policy)
{
    const enum wr_overflow all[] = {WR_OVERFLOW_BLOCK, WR_OVERFLOW_DROP_NEWEST, WR_OVERFLOW_DROP_OLDEST};
    for (size_t i = 0; i < WR_COUNT_OF(all); i++) {
        struct wr_backpressure pressure = make(all[i]);
        wr_backpressure_rise(&pressure, BOUND - 1, START);
        cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_NOBODY_WAITS);
        wr_backpressure_rise(&pressure, BOUND, START);
        cr_assert_eq(wr_backpressure_who_waits(&pressure), i ? WR_SOURCES_WAIT : WR_ALL_WAIT);
        wr_backpressure_check(&pressure, START + TIMEOUT);
        cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_SOURCES_WAIT, "stalled, if it blocks");
        wr_backpressure_fall(&pressure, BOUND / 2 + 1, START + TIMEOUT);
        cr_assert_eq(wr_backpressure_who_waits(&pressure), i ? WR_SOURCES_WAIT : WR_ALL_WAIT);
        wr_backpressure_fall(&pressure, BOUND / 2, START + TIMEOUT);
        cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_NOBODY_WAITS);
    }
}

Test(backpressure, sources_no_longer_wait_when_the_handler_has_taken_enough)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_DROP_NEWEST);
    wr_backpressure_rise(&pressure, BOUND, START);
    wr_backpressure_ease(&pressure, BOUND / 2 + 1);
    cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_SOURCES_WAIT);
    wr_backpressure_ease(&pressure, BOUND / 2);
    cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_NOBODY_WAITS);
}

Test(backpressure, sources_wait_for_a_smaller_queue)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_DROP_OLDEST);
    wr_backpressure_rise(&pressure, BOUND / 2, START);
    pressure.bound = BOUND / 2;
    wr_backpressure_calm(&pressure);
    wr_backpressure_set_spooling(&pressure, false, BOUND / 2, START);
    cr_assert_eq(wr_backpressure_who_waits(&pressure), WR_SOURCES_WAIT);
}

/* A lane with a spool that became full at START. */
static struct wr_backpressure make_spooling(enum wr_overflow overflow)
{
    struct wr_backpressure pressure = make(overflow);
    wr_backpressure_set_spooling(&pressure, true, 0, START);
    wr_backpressure_rise(&pressure, BOUND, START);
    return pressure;
}

Test(backpressure, while_a_spool_takes_samples_producers_wait_for_it_with_each_policy)
{
    const enum wr_overflow all[] = {WR_OVERFLOW_BLOCK, WR_OVERFLOW_DROP_NEWEST, WR_OVERFLOW_DROP_OLDEST};
    for (size_t i = 0; i < WR_COUNT_OF(all); i++) {
        struct wr_backpressure pressure = make_spooling(all[i]);
        cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
        cr_assert_eq(wr_backpressure_room(&pressure, BOUND), UINT64_MAX);
        cr_assert_not(wr_backpressure_drops_oldest(&pressure));
        wr_backpressure_fall(&pressure, BOUND / 2, START + 1);
        cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
    }
}

Test(backpressure, a_spool_without_progress_stalls_and_the_policy_applies)
{
    struct wr_backpressure newest = make_spooling(WR_OVERFLOW_DROP_NEWEST);
    wr_backpressure_check(&newest, START + TIMEOUT);
    cr_assert_eq(newest.state, WR_BACKPRESSURE_STALLED);
    cr_assert_eq(wr_backpressure_room(&newest, BOUND), 0);
    struct wr_backpressure oldest = make_spooling(WR_OVERFLOW_DROP_OLDEST);
    wr_backpressure_check(&oldest, START + TIMEOUT);
    cr_assert(wr_backpressure_drops_oldest(&oldest));
}

Test(backpressure, a_spool_that_takes_nothing_more_makes_only_block_wait)
{
    struct wr_backpressure newest = make_spooling(WR_OVERFLOW_DROP_NEWEST);
    wr_backpressure_set_spooling(&newest, false, BOUND, START + 1);
    cr_assert_eq(newest.state, WR_BACKPRESSURE_CALM);
    struct wr_backpressure block = make_spooling(WR_OVERFLOW_BLOCK);
    wr_backpressure_set_spooling(&block, false, BOUND, START + 1);
    cr_assert_eq(block.state, WR_BACKPRESSURE_FULL);
    wr_backpressure_set_spooling(&newest, true, BOUND, START + 2);
    cr_assert_eq(newest.state, WR_BACKPRESSURE_FULL);
}

Test(backpressure, full_stays_full_until_the_queue_is_half_empty)
{
    struct wr_backpressure pressure = make_full();
    wr_backpressure_fall(&pressure, BOUND / 2 + 1, START + 1);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
    wr_backpressure_fall(&pressure, BOUND / 2, START + 2);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
}

Test(backpressure, full_without_progress_for_the_timeout_is_stalled)
{
    struct wr_backpressure pressure = make_full();
    cr_assert_eq(wr_backpressure_deadline(&pressure), START + TIMEOUT);
    wr_backpressure_check(&pressure, START + TIMEOUT - 1);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
    wr_backpressure_check(&pressure, START + TIMEOUT);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_STALLED);
    cr_assert_eq(wr_backpressure_deadline(&pressure), WR_NEVER);
}

Test(backpressure, progress_restarts_the_timeout)
{
    struct wr_backpressure pressure = make_full();
    wr_backpressure_fall(&pressure, BOUND - 1, START + 40);
    wr_backpressure_check(&pressure, START + TIMEOUT);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
    cr_assert_eq(wr_backpressure_deadline(&pressure), START + 40 + TIMEOUT);
}

Test(backpressure, adding_samples_does_not_restart_the_timeout)
{
    struct wr_backpressure pressure = make_full();
    wr_backpressure_rise(&pressure, BOUND + 500, START + 40);
    cr_assert_eq(wr_backpressure_deadline(&pressure), START + TIMEOUT);
}

Test(backpressure, samples_that_a_handler_takes_ease_a_full_lane_but_are_no_progress)
{
    struct wr_backpressure pressure = make_full();
    wr_backpressure_ease(&pressure, BOUND / 2 + 1);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
    cr_assert_eq(wr_backpressure_deadline(&pressure), START + TIMEOUT);
    wr_backpressure_ease(&pressure, BOUND / 2);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
    pressure = make_stalled();
    wr_backpressure_ease(&pressure, 0);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_STALLED);
}

Test(backpressure, a_stalled_lane_that_makes_progress_is_full_or_calm)
{
    struct wr_backpressure pressure = make_stalled();
    wr_backpressure_fall(&pressure, BOUND / 2 + 1, START + 100);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
    cr_assert_eq(wr_backpressure_deadline(&pressure), START + 100 + TIMEOUT);
    pressure = make_stalled();
    wr_backpressure_fall(&pressure, BOUND / 2, START + 100);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_CALM);
}

Test(backpressure, a_stalled_lane_stays_stalled_without_progress)
{
    struct wr_backpressure pressure = make_stalled();
    wr_backpressure_rise(&pressure, BOUND * 2, START + 100);
    wr_backpressure_check(&pressure, START + 1000 * TIMEOUT);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_STALLED);
}

Test(backpressure, a_timeout_that_overflows_never_expires)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_BLOCK);
    pressure.timeout_ns = WR_NEVER;
    wr_backpressure_rise(&pressure, BOUND, START);
    cr_assert_eq(wr_backpressure_deadline(&pressure), WR_NEVER);
    wr_backpressure_check(&pressure, WR_NEVER - 1);
    cr_assert_eq(pressure.state, WR_BACKPRESSURE_FULL);
}

Test(backpressure, a_blocking_lane_accepts_everything_unless_stalled)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_BLOCK);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND * 2), UINT64_MAX);
    pressure = make_full();
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND * 2), UINT64_MAX);
    pressure = make_stalled();
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND - 10), 10);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND), 0);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND * 2), 0);
}

Test(backpressure, drop_newest_accepts_what_fits_and_drop_oldest_accepts_everything)
{
    struct wr_backpressure pressure = make(WR_OVERFLOW_DROP_NEWEST);
    cr_assert_eq(wr_backpressure_room(&pressure, 0), BOUND);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND - 1), 1);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND), 0);
    pressure = make(WR_OVERFLOW_DROP_OLDEST);
    cr_assert_eq(wr_backpressure_room(&pressure, BOUND * 2), UINT64_MAX);
}
