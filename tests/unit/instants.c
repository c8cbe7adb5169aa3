#include <criterion/criterion.h>
#include <stdlib.h>

#include "format/instants.h"

static struct wr_instants instants;

static void forget(void)
{
    wr_instants_fini(&instants);
}

TestSuite(instants, .fini = forget);

/* What a value of the key gets, and keeps. */
static int64_t give(uint64_t key, int64_t time_ns)
{
    int64_t given = wr_instants_find(&instants, key, time_ns);
    cr_assert(wr_instants_take(&instants, key, given));
    return given;
}

Test(instants, a_new_time_is_given_as_it_is)
{
    cr_assert_eq(give(1, 1000), 1000);
    cr_assert_eq(give(1, 2000), 2000);
    cr_assert_eq(give(1, 500), 500);
    cr_assert_eq(give(1, -500), -500);
    cr_assert_eq(give(1, 0), 0);
}

Test(instants, a_repeated_time_is_raised_by_one)
{
    cr_assert_eq(give(1, 1000), 1000);
    cr_assert_eq(give(1, 1000), 1001);
    cr_assert_eq(give(1, 1000), 1002);
}

Test(instants, a_time_that_a_raised_one_has_taken_is_raised_too)
{
    give(1, 1000);
    give(1, 1000);
    cr_assert_eq(give(1, 1001), 1002);
    cr_assert_eq(give(1, 1000), 1003);
}

Test(instants, each_key_has_times_of_its_own)
{
    cr_assert_eq(give(1, 1000), 1000);
    cr_assert_eq(give(2, 1000), 1000);
    cr_assert_eq(give(0, 1000), 1000);
    cr_assert_eq(give(UINT64_MAX, 1000), 1000);
}

Test(instants, asking_takes_nothing)
{
    cr_assert_eq(wr_instants_find(&instants, 1, 1000), 1000);
    cr_assert_eq(wr_instants_find(&instants, 1, 1000), 1000);
}

Test(instants, many_values_of_one_time_get_times_in_a_row)
{
    for (int64_t i = 0; i < 60000; i++)
        cr_assert_eq(give(7, 1000), 1000 + i);
}

/* Two threads that add to one series: their times lie in between one another's, and some are the same. */
Test(instants, no_time_is_given_twice_whatever_the_order)
{
    enum { COUNT = 60000, SPAN = 120000 };
    static char given[SPAN + COUNT];
    srandom(5);
    for (int i = 0; i < COUNT; i++) {
        int64_t time = give(7, random() % SPAN);
        cr_assert(time < SPAN + COUNT && !given[time], "%lld was given twice", (long long)time);
        given[time] = 1;
    }
}

Test(instants, a_raised_time_is_near)
{
    srandom(5);
    for (int i = 0; i < 50000; i++) {
        int64_t asked = random() % 500000, time = give(7, asked);
        cr_assert(time >= asked && time - asked < 100, "%lld became %lld", (long long)asked, (long long)time);
    }
}

Test(instants, at_least_the_last_65536_are_remembered_and_memory_is_bounded)
{
    for (int64_t i = 0; i < 1000000; i++)
        give(7, i * 10);
    for (int64_t i = 1000000 - 65536; i < 1000000; i++)
        cr_assert_eq(wr_instants_find(&instants, 7, i * 10), i * 10 + 1, "%lld was forgotten", (long long)i);
    cr_assert_eq(wr_instants_find(&instants, 7, 0), 0);
    cr_assert_eq(instants.young.room + instants.old.room, 262144);
}

Test(instants, the_end_of_time_is_given_again_and_again)
{
    cr_assert_eq(give(1, INT64_MAX - 1), INT64_MAX - 1);
    cr_assert_eq(give(1, INT64_MAX - 1), INT64_MAX);
    cr_assert_eq(give(1, INT64_MAX - 1), INT64_MAX);
    cr_assert_eq(give(1, INT64_MAX), INT64_MAX);
    cr_assert_eq(give(1, INT64_MIN), INT64_MIN);
    cr_assert_eq(give(1, INT64_MIN), INT64_MIN + 1);
}
