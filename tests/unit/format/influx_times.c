#include <criterion/criterion.h>
#include <stdlib.h>

#include "format/influx_times.h"

static struct wr_influx_times times;

static void tear_down(void)
{
    wr_influx_times_fini(&times);
}

TestSuite(influx_times, .fini = tear_down);

/* ---- Times in use ---------------------------------------------------------------------------- */

/* Assigns a time to a value of the key. */
static int64_t assign(uint64_t key, int64_t time_ns)
{
    int64_t given = wr_influx_times_find(&times, key, time_ns);
    cr_assert(wr_influx_times_use(&times, key, given));
    return given;
}

Test(influx_times, a_new_time_is_unchanged)
{
    cr_assert_eq(assign(1, 1000), 1000);
    cr_assert_eq(assign(1, 2000), 2000);
    cr_assert_eq(assign(1, 500), 500);
    cr_assert_eq(assign(1, -500), -500);
    cr_assert_eq(assign(1, 0), 0);
}

Test(influx_times, a_repeated_time_is_raised_by_one)
{
    cr_assert_eq(assign(1, 1000), 1000);
    cr_assert_eq(assign(1, 1000), 1001);
    cr_assert_eq(assign(1, 1000), 1002);
}

Test(influx_times, a_time_that_a_raised_value_uses_is_raised_too)
{
    assign(1, 1000);
    assign(1, 1000);
    cr_assert_eq(assign(1, 1001), 1002);
    cr_assert_eq(assign(1, 1000), 1003);
}

Test(influx_times, each_key_has_its_own_times)
{
    cr_assert_eq(assign(1, 1000), 1000);
    cr_assert_eq(assign(2, 1000), 1000);
    cr_assert_eq(assign(0, 1000), 1000);
    cr_assert_eq(assign(UINT64_MAX, 1000), 1000);
}

Test(influx_times, finding_a_time_does_not_use_it)
{
    cr_assert_eq(wr_influx_times_find(&times, 1, 1000), 1000);
    cr_assert_eq(wr_influx_times_find(&times, 1, 1000), 1000);
}

Test(influx_times, many_values_of_one_time_get_consecutive_times)
{
    for (int64_t i = 0; i < 60000; i++)
        cr_assert_eq(assign(7, 1000), 1000 + i);
}

/* As by two threads that add to one series: their times interleave, and some are equal. */
Test(influx_times, no_time_is_given_twice_in_any_order)
{
    enum { COUNT = 60000, SPAN = 120000 };
    static char given[SPAN + COUNT];
    srandom(5);
    for (int i = 0; i < COUNT; i++) {
        int64_t time = assign(7, random() % SPAN);
        cr_assert(time < SPAN + COUNT && !given[time], "%lld was given twice", (long long)time);
        given[time] = 1;
    }
}

Test(influx_times, a_raised_time_is_near)
{
    srandom(5);
    for (int i = 0; i < 50000; i++) {
        int64_t asked = random() % 500000, time = assign(7, asked);
        cr_assert(time >= asked && time - asked < 100, "%lld became %lld", (long long)asked, (long long)time);
    }
}

Test(influx_times, at_least_the_last_65536_are_remembered_and_memory_is_bounded)
{
    for (int64_t i = 0; i < 1000000; i++)
        assign(7, i * 10);
    for (int64_t i = 1000000 - 65536; i < 1000000; i++)
        cr_assert_eq(wr_influx_times_find(&times, 7, i * 10), i * 10 + 1, "%lld was forgotten", (long long)i);
    cr_assert_eq(wr_influx_times_find(&times, 7, 0), 0);
    cr_assert_eq(times.young.room + times.old.room, 262144);
}

Test(influx_times, the_largest_time_is_given_repeatedly)
{
    cr_assert_eq(assign(1, INT64_MAX - 1), INT64_MAX - 1);
    cr_assert_eq(assign(1, INT64_MAX - 1), INT64_MAX);
    cr_assert_eq(assign(1, INT64_MAX - 1), INT64_MAX);
    cr_assert_eq(assign(1, INT64_MAX), INT64_MAX);
    cr_assert_eq(assign(1, INT64_MIN), INT64_MIN);
    cr_assert_eq(assign(1, INT64_MIN), INT64_MIN + 1);
}

/* ---- Retried values -------------------------------------------------------------------------- */

/* The recorded time of a value whose own time is 5; -1: none. */
static int64_t time_of(uint64_t sequence)
{
    int64_t time_ns = 5;
    return wr_influx_times_recall(&times, sequence, &time_ns) ? time_ns : -1;
}

Test(influx_times, a_value_without_a_time_is_not_recalled)
{
    cr_assert_eq(time_of(0), -1);
    cr_assert(wr_influx_times_raise(&times, 3, 7));
    cr_assert_eq(time_of(3), -1, "only after all values before it have their times");
}

Test(influx_times, a_retried_value_keeps_its_own_or_raised_time)
{
    wr_influx_times_raise(&times, 3, 7);
    wr_influx_times_raise(&times, 5, 9);
    wr_influx_times_advance(&times, 7);
    const int64_t expected[] = {5, 5, 5, 7, 5, 9, 5, -1};
    for (uint64_t i = 0; i < 8; i++)
        cr_assert_eq(time_of(i), expected[i], "%d", (int)i);
}

Test(influx_times, settled_values_are_forgotten)
{
    for (uint64_t i = 0; i < 1000; i++)
        wr_influx_times_raise(&times, 2 * i, (int64_t)i);
    wr_influx_times_advance(&times, 2000);
    wr_influx_times_forget(&times, 1000);
    cr_assert_eq(times.raised_count, 500);
    cr_assert_eq(time_of(1000), 500);
    cr_assert_eq(time_of(1998), 999);
    wr_influx_times_forget(&times, 1000);
    cr_assert_eq(times.raised_count, 500);
    wr_influx_times_forget(&times, 5000);
    cr_assert_eq(times.raised_count, 0);
    cr_assert_eq(time_of(1998), 5);
}

Test(influx_times, values_after_a_gap_are_new)
{
    wr_influx_times_advance(&times, 10);
    wr_influx_times_forget(&times, 50);
    cr_assert_eq(time_of(50), -1);
    wr_influx_times_raise(&times, 50, 8);
    wr_influx_times_advance(&times, 51);
    cr_assert_eq(time_of(50), 8);
}

Test(influx_times, the_next_sequence_number_never_falls)
{
    wr_influx_times_advance(&times, 10);
    wr_influx_times_advance(&times, 4);
    cr_assert_eq(time_of(9), 5);
}
