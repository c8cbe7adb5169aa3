#include <criterion/criterion.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/timeline.h"

/* A counter of exactly 2 GHz that starts at a large number. */
static const uint64_t tick_0 = UINT64_C(123456789012345);
static const int64_t wall_0 = INT64_C(1795219607000000000);

static struct wr_timeline_pair pair(int64_t after_ns, int64_t error_ns)
{
    return (struct wr_timeline_pair){tick_0 + (uint64_t)(after_ns * 2), wall_0 + after_ns + error_ns};
}

static struct wr_timeline make(void)
{
    return (struct wr_timeline){.from = pair(0, 0), .latest = pair(0, 0)};
}

static int64_t wall_after(const struct wr_timeline *timeline, int64_t after_ns)
{
    return wr_timeline_wall_ns(timeline, tick_0 + (uint64_t)(after_ns * 2)) - wall_0;
}

static void assert_near(int64_t found, int64_t expected, int64_t error)
{
    cr_assert(found >= expected - error && found <= expected + error, "%lld is not %lld", (long long)found,
              (long long)expected);
}

Test(timeline, before_the_second_pair_every_tick_is_the_first_pairs_time)
{
    struct wr_timeline timeline = make();
    cr_assert_eq(wall_after(&timeline, 0), 0);
    cr_assert_eq(wall_after(&timeline, 1000), 0);
}

Test(timeline, two_pairs_determine_the_rate)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    assert_near(wall_after(&timeline, 0), 0, 1);
    assert_near(wall_after(&timeline, WR_NS_PER_S / 2), WR_NS_PER_S / 2, 1);
    assert_near(wall_after(&timeline, WR_NS_PER_S), WR_NS_PER_S, 1);
}

Test(timeline, ticks_after_the_latest_pair_are_extrapolated)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    assert_near(wall_after(&timeline, 3 * WR_NS_PER_S), 3 * WR_NS_PER_S, 2);
}

Test(timeline, a_timeline_from_a_damaged_journal_does_not_overflow)
{
    const struct wr_timeline timeline = {.from = {0, INT64_MAX}, .speed = UINT64_MAX};
    cr_assert_lt(wr_timeline_wall_ns(&timeline, 1), INT64_MAX);
}

Test(timeline, ticks_before_the_first_pair_are_extrapolated)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    assert_near(wall_after(&timeline, -2 * WR_NS_PER_S), -2 * WR_NS_PER_S, 2);
}

Test(timeline, a_tick_between_two_pairs_is_between_their_times)
{
    struct wr_timeline timeline = make();
    for (int64_t i = 1; i <= 100; i++) {
        int64_t before = (i - 1) * WR_NS_PER_MS, after = i * WR_NS_PER_MS;
        wr_timeline_add(&timeline, pair(after, i % 2 ? 20 : 0)); /* each pair has an error */
        assert_near(wall_after(&timeline, before), before + (i % 2 ? 0 : 20), 21);
        assert_near(wall_after(&timeline, after), after + (i % 2 ? 20 : 0), 1);
        cr_assert_gt(wall_after(&timeline, after), wall_after(&timeline, before));
    }
}

Test(timeline, a_wall_clock_that_is_slewed_is_followed)
{
    struct wr_timeline timeline = make();
    int64_t slewed = 0;
    for (int64_t i = 1; i <= 10; i++) {
        wr_timeline_add(&timeline, pair(i * WR_NS_PER_S, 0));
        assert_near(wall_after(&timeline, i * WR_NS_PER_S), i * WR_NS_PER_S, 1);
    }
    for (int64_t i = 11; i <= 20; i++) { /* 0.5 ms per second, as by adjtime */
        slewed += 500 * WR_NS_PER_US;
        wr_timeline_add(&timeline, pair(i * WR_NS_PER_S, slewed));
        assert_near(wall_after(&timeline, i * WR_NS_PER_S), i * WR_NS_PER_S + slewed, 1);
        assert_near(wall_after(&timeline, (i - 1) * WR_NS_PER_S),
                    (i - 1) * WR_NS_PER_S + slewed - 500 * WR_NS_PER_US, 1);
    }
}

Test(timeline, a_wall_clock_set_forward_jumps_and_keeps_its_rate)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    wr_timeline_add(&timeline, pair(2 * WR_NS_PER_S, 3600 * WR_NS_PER_S));
    assert_near(wall_after(&timeline, 2 * WR_NS_PER_S), 3602 * WR_NS_PER_S, 1);
    assert_near(wall_after(&timeline, 3 * WR_NS_PER_S), 3603 * WR_NS_PER_S, 2);
}

Test(timeline, a_wall_clock_set_back_jumps_and_keeps_its_rate)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    wr_timeline_add(&timeline, pair(2 * WR_NS_PER_S, -3600 * WR_NS_PER_S));
    assert_near(wall_after(&timeline, 2 * WR_NS_PER_S), -3598 * WR_NS_PER_S, 1);
    assert_near(wall_after(&timeline, 3 * WR_NS_PER_S), -3597 * WR_NS_PER_S, 2);
}

Test(timeline, a_counter_that_restarts_at_zero_is_handled)
{
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    wr_timeline_add(&timeline, (struct wr_timeline_pair){1000, wall_0 + 2 * WR_NS_PER_S});
    cr_assert_eq(wr_timeline_wall_ns(&timeline, 1000), wall_0 + 2 * WR_NS_PER_S);
    assert_near(wr_timeline_wall_ns(&timeline, 1000 + 2000), wall_0 + 2 * WR_NS_PER_S + 1000, 1);
}

Test(timeline, years_without_a_pair_do_not_overflow)
{
    const int64_t year_ns = 365 * 86400 * WR_NS_PER_S;
    struct wr_timeline timeline = make();
    wr_timeline_add(&timeline, pair(WR_NS_PER_S, 0));
    assert_near(wall_after(&timeline, 2 * year_ns), 2 * year_ns, 1000 * WR_NS_PER_US);
}

Test(timeline, real_clocks_give_the_present_time)
{
    struct wr_timeline timeline;
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    int64_t before = wr_clock_wall_ns();
    wr_timeline_start(&timeline);
    cr_assert_geq(timeline.from.wall_ns, before);
    cr_assert_leq(timeline.from.wall_ns, wr_clock_wall_ns());
    cr_assert_eq(wr_timeline_wall_ns(&timeline, wr_clock_ticks()), timeline.from.wall_ns);
}

Test(clock, monotonic_time_does_not_run_backwards)
{
    int64_t last = wr_clock_monotonic_ns();
    for (int i = 0; i < 1000; i++) {
        int64_t now = wr_clock_monotonic_ns();
        cr_assert_geq(now, last);
        last = now;
    }
}

Test(clock, the_wall_clock_counts_from_1970)
{
    cr_assert_gt(wr_clock_wall_ns(), INT64_C(1600000000) * WR_NS_PER_S);
}

Test(clock, deadlines_are_in_the_future_and_the_largest_is_never)
{
    int64_t before = wr_clock_monotonic_ns();
    cr_assert_geq(wr_clock_deadline_ns(1500), before + 1500 * WR_NS_PER_MS);
    cr_assert_leq(wr_clock_deadline_ns(0), wr_clock_monotonic_ns());
    cr_assert_eq(wr_clock_deadline_ns(-1), WR_NEVER);
    cr_assert_eq(wr_clock_deadline_ns(INT64_MIN), WR_NEVER);
    cr_assert_eq(wr_clock_deadline_ns(INT64_MAX), WR_NEVER);
    cr_assert_lt(wr_clock_deadline_ns(86400000), WR_NEVER);
}

Test(clock, ticks_are_zero_only_where_there_are_none)
{
    if (wr_clock_has_ticks())
        cr_assert_gt(wr_clock_ticks(), 0);
    wr_clock_relax();
}
