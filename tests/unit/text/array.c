#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../support/failing.h"
#include "text/array.h"

Test(array, it_grows_by_doubling_keeps_its_items_and_adds_zeros)
{
    uint32_t room = 0, moves = 0, *items = NULL;
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t before = room;
        items = wr_array_reserve(items, &room, i + 1, sizeof *items);
        cr_assert(items && room > i && items[i] == 0);
        moves += room != before;
        items[i] = i + 1;
    }
    for (uint32_t i = 0; i < 10000; i++)
        cr_assert_eq(items[i], i + 1);
    cr_assert_eq(moves, 9, "64 to 16384");
    free(items);
}

Test(array, reserving_less_than_the_capacity_changes_nothing)
{
    uint32_t room = 0;
    char *items = wr_array_reserve(NULL, &room, 0, 1);
    cr_assert(items && room == 64);
    cr_assert_eq(wr_array_reserve(items, &room, 64, 1), items);
    cr_assert_eq(room, 64);
    free(items);
}

Test(array, after_an_allocation_failure_the_array_is_unchanged)
{
    uint32_t room = 0;
    uint64_t *items = wr_array_reserve(NULL, &room, 1, sizeof *items);
    items[0] = 7;
    cr_assert_null(wr_array_reserve(items, &room, UINT32_MAX, sizeof *items), "more than 2^31 items");
    failing_set(true);
    cr_assert_null(wr_array_reserve(items, &room, room + 1, sizeof *items), "out of memory");
    failing_set(false);
    cr_assert(room == 64 && items[0] == 7);
    free(items);
}
