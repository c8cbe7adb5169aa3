#include <criterion/criterion.h>

#include "source/member_table.h"

static struct wr_member_table table;

static void fini(void)
{
    wr_member_table_fini(&table);
}

TestSuite(member_table, .fini = fini);

/* Spread over the whole range, as hashes are. */
static uint64_t hash_of(uint64_t i)
{
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

Test(member_table, a_member_is_new_once)
{
    cr_assert_eq(wr_member_table_add(&table, 7, 10), WR_MEMBER_NEW);
    cr_assert_eq(wr_member_table_add(&table, 7, 10), WR_MEMBER_KNOWN);
    cr_assert_eq(wr_member_table_add(&table, 8, 10), WR_MEMBER_NEW);
    cr_assert_eq(table.count, 2);
}

Test(member_table, a_hash_of_zero_is_one_too)
{
    cr_assert_eq(wr_member_table_add(&table, 0, 10), WR_MEMBER_NEW);
    cr_assert_eq(wr_member_table_add(&table, 0, 10), WR_MEMBER_KNOWN);
}

Test(member_table, hashes_with_equal_low_bits_are_kept_apart)
{
    for (uint64_t i = 0; i < 500; i++)
        cr_assert_eq(wr_member_table_add(&table, i << 40, 1000), WR_MEMBER_NEW);
    for (uint64_t i = 0; i < 500; i++)
        cr_assert_eq(wr_member_table_add(&table, i << 40, 1000), WR_MEMBER_KNOWN);
}

Test(member_table, it_grows_and_keeps_what_it_has)
{
    for (uint64_t i = 0; i < 100000; i++)
        cr_assert_eq(wr_member_table_add(&table, hash_of(i), 100000), WR_MEMBER_NEW);
    for (uint64_t i = 0; i < 100000; i++)
        cr_assert_eq(wr_member_table_add(&table, hash_of(i), 100000), WR_MEMBER_KNOWN);
    cr_assert_leq(table.room, 262144);
}

Test(member_table, beyond_the_limit_only_known_members_are_taken)
{
    for (uint64_t i = 0; i < 20; i++)
        cr_assert_eq(wr_member_table_add(&table, hash_of(i), 10),
                     i < 10 ? WR_MEMBER_NEW : WR_MEMBER_BEYOND_LIMIT);
    cr_assert_eq(wr_member_table_add(&table, hash_of(3), 10), WR_MEMBER_KNOWN);
    cr_assert_eq(table.count, 10);
}

Test(member_table, a_cleared_table_knows_nothing_and_a_large_one_gives_its_memory_back)
{
    wr_member_table_add(&table, 7, 10);
    wr_member_table_clear(&table);
    cr_assert_eq(wr_member_table_add(&table, 7, 10), WR_MEMBER_NEW);
    for (uint64_t i = 0; i < 10000; i++)
        wr_member_table_add(&table, hash_of(i), 10000);
    wr_member_table_clear(&table);
    cr_assert_eq(table.room, 0);
    cr_assert_eq(wr_member_table_add(&table, hash_of(3), 10), WR_MEMBER_NEW);
}
