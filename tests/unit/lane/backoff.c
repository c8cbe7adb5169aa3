#include <criterion/criterion.h>

#include "text/common.h"
#include "lane/backoff.h"

enum { MANY = 2000 };

static struct wr_backoff make(uint64_t seed)
{
    struct wr_backoff retry;
    wr_backoff_init(&retry, 100, 3000, seed);
    return retry;
}

/* The minimum and maximum delay after `failures` failures, over many seeds. */
static void measure(unsigned failures, int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = 0;
    for (uint64_t seed = 0; seed < MANY; seed++) {
        struct wr_backoff retry = make(seed * UINT64_C(0x9e3779b97f4a7c15));
        int64_t pause = 0;
        for (unsigned i = 0; i < failures; i++)
            pause = wr_backoff_fail(&retry, 0);
        *least = pause < *least ? pause : *least;
        *most = pause > *most ? pause : *most;
    }
}

Test(backoff, delays_double_up_to_the_maximum)
{
    const int64_t whole[] = {100, 200, 400, 800, 1600, 3000, 3000, 3000};
    for (unsigned i = 0; i < WR_COUNT_OF(whole); i++) {
        int64_t least, most;
        measure(i + 1, &least, &most);
        cr_assert(least >= whole[i] / 2 && most <= whole[i], "failure %u: %lld to %lld", i + 1,
                  (long long)least, (long long)most);
    }
}

Test(backoff, a_limit_is_shorter_than_min_but_not_than_a_requested_delay)
{
    struct wr_backoff retry = make(7);
    wr_backoff_limit(&retry, 40);
    for (int i = 0; i < 20; i++) {
        int64_t delay = wr_backoff_fail(&retry, 0);
        cr_assert(delay >= 20 && delay <= 40, "%lld", (long long)delay);
    }
    cr_assert_geq(wr_backoff_fail(&retry, 500), 500);
    wr_backoff_limit(&retry, -1);
    cr_assert_eq(wr_backoff_fail(&retry, 0), 0);
}

Test(backoff, the_second_half_of_a_delay_is_random)
{
    int64_t least, most;
    measure(6, &least, &most);
    cr_assert_lt(least, 1500 + 30);
    cr_assert_gt(most, 3000 - 30);
}

Test(backoff, equal_seeds_give_equal_delays_and_others_do_not)
{
    struct wr_backoff a = make(7), b = make(7), c = make(9);
    bool differs = false;
    for (int i = 0; i < 20; i++) {
        int64_t pause = wr_backoff_fail(&a, 0);
        cr_assert_eq(pause, wr_backoff_fail(&b, 0));
        differs |= pause != wr_backoff_fail(&c, 0);
    }
    cr_assert(differs);
}

Test(backoff, a_success_resets_the_delay_to_the_minimum)
{
    struct wr_backoff retry = make(1);
    for (int i = 0; i < 10; i++)
        wr_backoff_fail(&retry, 0);
    wr_backoff_succeed(&retry);
    int64_t pause = wr_backoff_fail(&retry, 0);
    cr_assert(pause >= 50 && pause <= 100);
}

/* The same for a delay requested by the destination, after a first failure. */
static void measure_requested(int64_t requested, int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = 0;
    for (uint64_t seed = 0; seed < MANY; seed++) {
        struct wr_backoff retry = make(seed * UINT64_C(0x9e3779b97f4a7c15));
        int64_t pause = wr_backoff_fail(&retry, requested);
        *least = pause < *least ? pause : *least;
        *most = pause > *most ? pause : *most;
    }
}

Test(backoff, a_longer_requested_delay_is_used_with_random_jitter_added)
{
    int64_t least, most;
    measure_requested(800, &least, &most);
    cr_assert_eq(least, 800);
    cr_assert_eq(most, 900);
    measure_requested(2960, &least, &most);
    cr_assert_eq(least, 2960);
    cr_assert_eq(most, 3000, "never more than the maximum delay");
    measure_requested(3000, &least, &most);
    cr_assert_eq(least, 3000);
    cr_assert_eq(most, 3000);
}

Test(backoff, a_requested_delay_beyond_the_maximum_is_clamped_less_random_jitter)
{
    static const int64_t requested[] = {3001, 1000000, INT64_MAX};
    for (unsigned i = 0; i < WR_COUNT_OF(requested); i++) {
        int64_t least, most;
        measure_requested(requested[i], &least, &most);
        cr_assert(least >= 2625 && least < 2650 && most <= 3000 && most > 2975, "%lld to %lld",
                  (long long)least, (long long)most);
    }
}

Test(backoff, a_shorter_requested_delay_is_ignored)
{
    struct wr_backoff retry = make(1);
    cr_assert_geq(wr_backoff_fail(&retry, 1), 50);
}

Test(backoff, a_requested_delay_counts_as_a_failure)
{
    struct wr_backoff retry = make(1);
    for (int i = 0; i < 5; i++)
        wr_backoff_fail(&retry, 3000);
    cr_assert_geq(wr_backoff_fail(&retry, 0), 1500);
}

Test(backoff, a_maximum_below_the_minimum_is_raised_to_it)
{
    struct wr_backoff retry;
    wr_backoff_init(&retry, 100, 10, 1);
    for (int i = 0; i < 10; i++) {
        int64_t pause = wr_backoff_fail(&retry, 0);
        cr_assert(pause >= 50 && pause <= 100);
    }
}

Test(backoff, a_delay_of_zero_is_possible)
{
    struct wr_backoff retry;
    wr_backoff_init(&retry, 0, 0, 1);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(wr_backoff_fail(&retry, 0), 0);
}

Test(backoff, the_longest_delays_do_not_overflow)
{
    struct wr_backoff retry;
    wr_backoff_init(&retry, 1, INT64_MAX, 1);
    for (int i = 0; i < 200; i++)
        cr_assert_gt(wr_backoff_fail(&retry, 0), 0);
    cr_assert_geq(wr_backoff_fail(&retry, 0), INT64_MAX / 2);
}

Test(backoff, what_an_outcome_requests_is_at_least_0_and_of_any_size)
{
    cr_assert_eq(wr_backoff_requested_ns(1500), 1500 * WR_NS_PER_MS);
    cr_assert_eq(wr_backoff_requested_ns(-1), 0);
    cr_assert_eq(wr_backoff_requested_ns(INT64_MIN), 0);
    cr_assert_eq(wr_backoff_requested_ns(INT64_MAX), INT64_MAX);
}
