/* Small blocks from pages. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "os/slab.h"
#include "text/common.h"

static bool is_zero(const char *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (memory[i])
            return false;
    return true;
}

Test(slab, blocks_are_zeroed_aligned_and_apart)
{
    struct wr_slab slab = {0};
    char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        size_t size = 1 + i * 37 % 5000;
        blocks[i] = wr_slab_get(&slab, size);
        cr_assert(blocks[i] && (uintptr_t)blocks[i] % WR_LINE == 0 && is_zero(blocks[i], size));
        memset(blocks[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < 200; i++)
        cr_assert(blocks[i][0] == (char)(i + 1) && blocks[i][i * 37 % 5000] == (char)(i + 1), "block %zu", i);
    wr_slab_fini(&slab);
    cr_assert_null(slab.chunks);
}

Test(slab, a_returned_block_is_used_again)
{
    struct wr_slab slab = {0};
    char *block = wr_slab_get(&slab, 100);
    memset(block, 1, 100);
    wr_slab_put(&slab, block, 100);
    cr_assert_neq(wr_slab_get(&slab, 200), block, "it is too small");
    cr_assert_eq(wr_slab_get(&slab, 128), block);
    cr_assert(is_zero(block, 128));
    wr_slab_put(&slab, NULL, 5);
    wr_slab_fini(&slab);
}

Test(slab, what_is_too_large_is_refused)
{
    struct wr_slab slab = {0};
    cr_assert_null(wr_slab_get(&slab, WR_SLAB_LARGEST + 1));
    cr_assert_not_null(wr_slab_get(&slab, WR_SLAB_LARGEST));
    wr_slab_fini(&slab);
}

Test(slab, an_array_grows_and_keeps_its_items)
{
    struct wr_slab slab = {0};
    uint64_t *items = NULL;
    uint32_t size = 0;
    for (uint32_t i = 0; i < 2048; i++) {
        items = wr_slab_reserve(&slab, items, &size, i + 1, sizeof *items);
        cr_assert(items && size > i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 2048; i++)
        cr_assert_eq(items[i], i);
    cr_assert_null(wr_slab_reserve(&slab, items, &size, UINT32_MAX / 2, sizeof *items));
    cr_assert_eq(items[5], 5);
    wr_slab_fini(&slab);
}
