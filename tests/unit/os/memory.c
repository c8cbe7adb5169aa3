/* Regions (memory that is freed all at once) and arenas (memory that is never freed). */
#include <criterion/criterion.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "os/arena.h"
#include "text/common.h"
#include "text/region.h"

static bool is_zero(const void *memory, size_t size)
{
    const char *bytes = memory;
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static bool is_aligned(const void *memory, size_t align)
{
    return (uintptr_t)memory % align == 0;
}

Test(region, all_zeros_is_an_empty_region)
{
    struct wr_region region = {0};
    wr_region_fini(&region);
    wr_region_fini(&region);
    cr_assert_null(region.blocks);
}

Test(region, memory_is_zeroed_and_aligned_for_anything)
{
    struct wr_region region = {0};
    for (size_t size = 1; size < 200; size++) {
        char *memory = wr_region_alloc(&region, size);
        cr_assert(is_aligned(memory, alignof(max_align_t)));
        cr_assert(is_zero(memory, size));
        memset(memory, 0xff, size);
    }
    wr_region_fini(&region);
}

Test(region, pieces_do_not_overlap_and_do_not_move)
{
    enum { PIECES = 300, BYTES = 100 };
    struct wr_region region = {0};
    unsigned char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = wr_region_alloc(&region, BYTES);
        memset(pieces[i], i % 251, BYTES);
    }
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j < BYTES; j++)
            cr_assert_eq(pieces[i][j], i % 251);
    wr_region_fini(&region);
}

Test(region, a_large_piece_gets_a_block_of_its_own)
{
    struct wr_region region = {0};
    char *small = wr_region_alloc(&region, 10), *large = wr_region_alloc(&region, 100000);
    cr_assert(is_zero(large, 100000));
    memset(large, 'x', 100000);
    cr_assert(is_zero(small, 10));
    wr_region_fini(&region);
}

Test(region, a_copied_text_is_terminated_by_nul)
{
    struct wr_region region = {0};
    char given[] = "my_app.db";
    char *copy = wr_region_text(&region, given, 6), *empty = wr_region_text(&region, given, 0);
    memset(given, '!', sizeof given - 1);
    cr_assert_str_eq(copy, "my_app");
    cr_assert_str_eq(empty, "");
    wr_region_fini(&region);
}

Test(region, sizes_that_cannot_be_allocated_are_refused)
{
    struct wr_region region = {0};
    cr_assert_null(wr_region_alloc(&region, SIZE_MAX - 1));
    cr_assert_null(wr_region_alloc(&region, SIZE_MAX / 2 + 1));
    cr_assert_not_null(wr_region_alloc(&region, 1));
    wr_region_fini(&region);
}

Test(arena, memory_is_zeroed_and_aligned_as_requested)
{
    static const size_t aligns[] = {1, 2, 8, 16, 64, 4096};
    struct wr_arena arena = {0};
    for (size_t i = 0; i < 60; i++) {
        size_t align = aligns[i % WR_COUNT_OF(aligns)];
        char *memory = wr_arena_get(&arena, i + 1, align);
        cr_assert(is_aligned(memory, align));
        cr_assert(is_zero(memory, i + 1));
        memset(memory, 0xff, i + 1);
    }
}

Test(arena, the_only_gaps_between_pieces_are_for_alignment)
{
    struct wr_arena arena = {0};
    char *first = wr_arena_get(&arena, 3, 1), *second = wr_arena_get(&arena, 5, 1);
    char *third = wr_arena_get(&arena, 8, 8);
    cr_assert_eq(second, first + 3);
    cr_assert_eq(third, first + 8);
}

Test(arena, further_chunks_are_allocated_when_one_is_full)
{
    struct wr_arena arena = {0};
    char *pieces[200];
    for (int i = 0; i < 200; i++) {
        pieces[i] = wr_arena_get(&arena, 10000, 16);
        cr_assert(is_zero(pieces[i], 10000));
        memset(pieces[i], i, 10000);
    }
    for (int i = 0; i < 200; i++)
        cr_assert(pieces[i][0] == (char)i && pieces[i][9999] == (char)i);
}

Test(arena, a_piece_may_be_larger_than_any_chunk)
{
    enum { LARGE = 5 * 1024 * 1024 };
    struct wr_arena arena = {0};
    char *before = wr_arena_get(&arena, 1, 1), *large = wr_arena_get(&arena, LARGE, 64);
    char *behind = wr_arena_get(&arena, 1, 1);
    large[LARGE - 1] = 'x';
    *behind = 'y';
    cr_assert_eq(*before, 0);
    cr_assert_eq(large[LARGE - 1], 'x');
}

Test(arena, sizes_that_cannot_be_allocated_are_refused)
{
    struct wr_arena arena = {0};
    cr_assert_null(wr_arena_get(&arena, SIZE_MAX, 1));
    char *good = wr_arena_get(&arena, 1, 1);
    cr_assert_not_null(good);
    cr_assert_null(wr_arena_get(&arena, SIZE_MAX, 8));
    cr_assert_null(wr_arena_get(&arena, SIZE_MAX - 3, 8));
    cr_assert_eq(wr_arena_get(&arena, 1, 1), good + 1, "a refused size must not change the arena");
}
