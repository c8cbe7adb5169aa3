#include <criterion/criterion.h>

#include "format/raised.h"

static struct wr_raised raised;

static void forget(void)
{
    wr_raised_fini(&raised);
}

TestSuite(raised, .fini = forget);

/* What a value whose own time is 5 is written with; -1: it was not given a time before. */
static int64_t time_of(uint64_t sequence)
{
    int64_t time_ns = 5;
    return wr_raised_recall(&raised, sequence, &time_ns) ? time_ns : -1;
}

Test(raised, a_value_that_was_given_no_time_is_not_known)
{
    cr_assert_eq(time_of(0), -1);
    cr_assert(wr_raised_add(&raised, 3, 7));
    cr_assert_eq(time_of(3), -1, "only when all in front of it have their times");
}

Test(raised, a_value_keeps_its_own_time_or_the_one_it_was_given)
{
    wr_raised_add(&raised, 3, 7);
    wr_raised_add(&raised, 5, 9);
    wr_raised_advance(&raised, 7);
    const int64_t expected[] = {5, 5, 5, 7, 5, 9, 5, -1};
    for (uint64_t i = 0; i < 8; i++)
        cr_assert_eq(time_of(i), expected[i], "%d", (int)i);
}

Test(raised, what_is_settled_is_forgotten)
{
    for (uint64_t i = 0; i < 1000; i++)
        wr_raised_add(&raised, 2 * i, (int64_t)i);
    wr_raised_advance(&raised, 2000);
    wr_raised_forget(&raised, 1000);
    cr_assert_eq(raised.count, 500);
    cr_assert_eq(time_of(1000), 500);
    cr_assert_eq(time_of(1998), 999);
    wr_raised_forget(&raised, 1000);
    cr_assert_eq(raised.count, 500);
    wr_raised_forget(&raised, 5000);
    cr_assert_eq(raised.count, 0);
    cr_assert_eq(time_of(1998), 5);
}

Test(raised, what_follows_a_gap_is_new)
{
    wr_raised_advance(&raised, 10);
    wr_raised_forget(&raised, 50);
    cr_assert_eq(time_of(50), -1);
    wr_raised_add(&raised, 50, 8);
    wr_raised_advance(&raised, 51);
    cr_assert_eq(time_of(50), 8);
}

Test(raised, it_never_goes_back)
{
    wr_raised_advance(&raised, 10);
    wr_raised_advance(&raised, 4);
    cr_assert_eq(time_of(9), 5);
}
