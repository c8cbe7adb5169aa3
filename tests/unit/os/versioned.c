#include <criterion/criterion.h>

#include "os/versioned.h"

static struct wr_versioned twin;

/* As it would be read after a death with `round` as the last committed one. */
static uint64_t after(uint64_t round)
{
    return wr_versioned_get(&twin, round);
}

Test(twin, starts_at_0)
{
    cr_assert_eq(after(0), 0);
    cr_assert_eq(after(1000), 0);
}

Test(twin, what_was_put_counts_from_its_round_on)
{
    wr_versioned_put(&twin, 0, 11);
    cr_assert_eq(after(0), 0);
    cr_assert_eq(after(1), 11);
    wr_versioned_put(&twin, 1, 12);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 12);
}

Test(twin, rounds_in_which_nothing_was_put_change_nothing)
{
    wr_versioned_put(&twin, 0, 11);
    wr_versioned_put(&twin, 6, 12);
    cr_assert_eq(after(6), 11);
    wr_versioned_put(&twin, 8, 13);
    cr_assert_eq(after(8), 12);
    cr_assert_eq(after(9), 13);
    wr_versioned_put(&twin, 10, 14);
    cr_assert_eq(after(10), 13);
    cr_assert_eq(after(11), 14);
}

Test(twin, a_put_that_was_interrupted_leaves_what_was_committed)
{
    wr_versioned_put(&twin, 0, 11);
    wr_versioned_put(&twin, 1, 12);
    for (int half = 0; half < 2; half++) {
        struct wr_versioned torn = twin;
        torn.halves[wr_versioned_find(&torn, 2) == 0].round = UINT64_MAX;
        torn.halves[wr_versioned_find(&torn, 2) == 0].value = 99;
        cr_assert_eq(wr_versioned_get(&torn, 2), 12);
    }
}

Test(twin, what_was_never_committed_does_not_come_to_life_later)
{
    wr_versioned_put(&twin, 0, 11);
    wr_versioned_put(&twin, 1, 12);
    wr_versioned_settle(&twin, 1);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 11);
    wr_versioned_put(&twin, 1, 13);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 13);
}

Test(twin, set_counts_whatever_was_committed)
{
    wr_versioned_set(&twin, 40);
    cr_assert_eq(after(0), 40);
    cr_assert_eq(after(7), 40);
    wr_versioned_put(&twin, 7, 41);
    cr_assert_eq(after(7), 40);
    cr_assert_eq(after(8), 41);
}

Test(twin, forgetting_changes_nothing_that_counts)
{
    for (uint64_t first = 0; first < 4; first++) {
        for (uint64_t second = 0; second < 4; second++) {
            struct wr_versioned settled = {.halves = {{first, 11}, {second, 12}}};
            wr_versioned_settle(&settled, 1);
            twin = (struct wr_versioned){.halves = {{first, 11}, {second, 12}}};
            cr_assert_eq(wr_versioned_get(&settled, 1), after(1), "%d %d", (int)first, (int)second);
        }
    }
}

Test(twin, makes_no_sense_of_rounds_that_cannot_be)
{
    twin.halves[0].round = 8;
    twin.halves[1].round = 9;
    cr_assert_eq(wr_versioned_find(&twin, 7), -1);
    cr_assert_eq(after(7), 0);
}
