#include <criterion/criterion.h>

#include "os/versioned.h"

static struct wr_versioned versioned;

/* The value read by recovery if `round` was the last committed round. */
static uint64_t after(uint64_t round)
{
    return wr_versioned_get(&versioned, round);
}

Test(versioned, starts_at_0)
{
    cr_assert_eq(after(0), 0);
    cr_assert_eq(after(1000), 0);
}

Test(versioned, a_value_is_valid_from_its_round_on)
{
    wr_versioned_put(&versioned, 0, 11);
    cr_assert_eq(after(0), 0);
    cr_assert_eq(after(1), 11);
    wr_versioned_put(&versioned, 1, 12);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 12);
}

Test(versioned, rounds_without_a_put_keep_the_value)
{
    wr_versioned_put(&versioned, 0, 11);
    wr_versioned_put(&versioned, 6, 12);
    cr_assert_eq(after(6), 11);
    wr_versioned_put(&versioned, 8, 13);
    cr_assert_eq(after(8), 12);
    cr_assert_eq(after(9), 13);
    wr_versioned_put(&versioned, 10, 14);
    cr_assert_eq(after(10), 13);
    cr_assert_eq(after(11), 14);
}

Test(versioned, an_interrupted_put_leaves_the_committed_value)
{
    wr_versioned_put(&versioned, 0, 11);
    wr_versioned_put(&versioned, 1, 12);
    for (int half = 0; half < 2; half++) {
        struct wr_versioned torn = versioned;
        torn.halves[wr_versioned_find(&torn, 2) == 0].round = UINT64_MAX;
        torn.halves[wr_versioned_find(&torn, 2) == 0].value = 99;
        cr_assert_eq(wr_versioned_get(&torn, 2), 12);
    }
}

Test(versioned, an_uncommitted_value_never_becomes_valid_later)
{
    wr_versioned_put(&versioned, 0, 11);
    wr_versioned_put(&versioned, 1, 12);
    wr_versioned_settle(&versioned, 1);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 11);
    wr_versioned_put(&versioned, 1, 13);
    cr_assert_eq(after(1), 11);
    cr_assert_eq(after(2), 13);
}

Test(versioned, set_is_valid_in_any_round)
{
    wr_versioned_set(&versioned, 40);
    cr_assert_eq(after(0), 40);
    cr_assert_eq(after(7), 40);
    wr_versioned_put(&versioned, 7, 41);
    cr_assert_eq(after(7), 40);
    cr_assert_eq(after(8), 41);
}

Test(versioned, forgetting_keeps_the_committed_value)
{
    for (uint64_t first = 0; first < 4; first++) {
        for (uint64_t second = 0; second < 4; second++) {
            struct wr_versioned settled = {.halves = {{first, 11}, {second, 12}}};
            wr_versioned_settle(&settled, 1);
            versioned = (struct wr_versioned){.halves = {{first, 11}, {second, 12}}};
            cr_assert_eq(wr_versioned_get(&settled, 1), after(1), "%d %d", (int)first, (int)second);
        }
    }
}

Test(versioned, impossible_rounds_are_reported_as_invalid)
{
    versioned.halves[0].round = 8;
    versioned.halves[1].round = 9;
    cr_assert_eq(wr_versioned_find(&versioned, 7), -1);
    cr_assert_eq(after(7), 0);
}
