#include "journal/journal_cells.h"

#include <math.h>

#include "os/mapped_file.h"

bool wr_journal_cells_check(const struct wr_cells_block *block, size_t size)
{
    const size_t cell = sizeof(struct wr_cell) + sizeof(struct wr_cell_kept);
    if (size < sizeof *block || block->magic != WR_JOURNAL_CELLS || block->version != WR_JOURNAL_VERSION ||
        block->size != size)
        return false;
    return !block->count || size == sizeof *block + block->count * cell;
}

/* ---- Visiting -------------------------------------------------------------------------------- */

/* The buckets at an offset of the file. Returns NULL at the end, and at what is no bucket; *is_damaged: set
 * then, else left as it is. */
static struct wr_cell_buckets *buckets_at(const struct wr_cells_block *block, size_t at, bool *is_damaged)
{
    if (block->size - at < sizeof(struct wr_cell_buckets))
        return NULL;
    struct wr_cell_buckets *buckets = (struct wr_cell_buckets *)((char *)block + at);
    if (!buckets->size)
        return NULL;
    if (buckets->count && buckets->count <= WR_BUCKETS_MOST &&
        buckets->size == wr_cell_buckets_size(buckets->count) && buckets->size <= block->size - at)
        return buckets;
    *is_damaged = true;
    return NULL;
}

/* Where they are kept, in a mapping of any address. */
static struct wr_versioned *kept_of(const struct wr_cell_buckets *buckets)
{
    return (struct wr_versioned *)wr_cell_buckets_bounds(buckets) - (buckets->count + 2);
}

/* ---- Reading --------------------------------------------------------------------------------- */

#define MOST_VALUES (UINT64_C(1) << 53) /* of a cell: no process has counted so far */

static bool is_plausible(const struct wr_cell_taken *taken)
{
    bool ascends = true;
    for (size_t i = 0; taken->buckets && i + 1 < taken->bucket_count; i++)
        ascends &= isfinite(taken->bounds[i]) && (!i || taken->bounds[i] > taken->bounds[i - 1]);
    return taken->values <= MOST_VALUES && fabs(taken->sum) <= 2 * WR_CELLS_MOST && ascends &&
           (!taken->buckets || (isfinite(taken->min) && isfinite(taken->max)));
}

/* As the process would have taken it next. */
static struct wr_cell_taken read_cell(const struct wr_cell *cell, const struct wr_cell_kept *kept,
                                      uint64_t round)
{
    struct wr_cells none = {0};
    struct wr_cell copy = {
        .values = atomic_load_explicit(&cell->values, memory_order_relaxed),
        .sum = atomic_load_explicit(&cell->sum, memory_order_relaxed),
        .compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed),
        .taken = wr_versioned_get(&kept->values, round),
        .taken_sum = wr_cell_number(wr_versioned_get(&kept->sum, round)),
        .taken_compensation = wr_cell_number(wr_versioned_get(&kept->compensation, round)),
    };
    return wr_cell_take(&none, &copy);
}

/* The same for buckets; room: for as many numbers as there are buckets. */
static struct wr_cell_taken read_buckets(const struct wr_cell_buckets *buckets, uint64_t round, uint64_t *room)
{
    struct wr_cells none = {0};
    _Alignas(struct wr_cell_buckets) char
        memory[sizeof(struct wr_cell_buckets) + WR_BUCKETS_MOST * sizeof(uint64_t)];
    uint64_t taken[WR_BUCKETS_MOST];
    struct wr_cell_buckets *copy = (struct wr_cell_buckets *)memory;
    const struct wr_versioned *kept = kept_of(buckets);
    memcpy(copy, buckets, sizeof *buckets + buckets->count * sizeof buckets->values[0]);
    copy->bounds = wr_cell_buckets_bounds(buckets);
    copy->taken = taken;
    for (uint32_t i = 0; i < buckets->count; i++)
        taken[i] = wr_versioned_get(kept++, round);
    copy->taken_sum = wr_cell_number(wr_versioned_get(kept++, round));
    copy->taken_compensation = wr_cell_number(wr_versioned_get(kept, round));
    return wr_cell_take_buckets(&none, copy, room);
}

static bool next_cell(struct wr_journal_cells_walk *walk, struct wr_journal_cells *cells)
{
    const struct wr_cells_block *block = walk->block;
    while (walk->at < block->count) {
        size_t at = walk->at++;
        *cells = (struct wr_journal_cells){
            block->first + (uint32_t)at,
            read_cell(wr_cells_block_cells(block) + at, wr_cells_block_kept(block) + at, walk->round)};
        if (cells->taken.values && is_plausible(&cells->taken))
            return true;
        walk->is_damaged |= cells->taken.values != 0;
    }
    return false;
}

static bool next_buckets(struct wr_journal_cells_walk *walk, struct wr_journal_cells *cells)
{
    const struct wr_cell_buckets *buckets;
    walk->at = walk->at ? walk->at : sizeof *walk->block;
    while ((buckets = buckets_at(walk->block, walk->at, &walk->is_damaged))) {
        walk->at += buckets->size;
        *cells = (struct wr_journal_cells){buckets->series, read_buckets(buckets, walk->round, walk->room)};
        if (cells->taken.values && is_plausible(&cells->taken))
            return true;
        walk->is_damaged |= cells->taken.values != 0;
    }
    return false;
}

bool wr_journal_cells_next(struct wr_journal_cells_walk *walk, struct wr_journal_cells *cells)
{
    return walk->block->count ? next_cell(walk, cells) : next_buckets(walk, cells);
}

bool wr_journal_cells_have_values(const struct wr_cells_block *block, uint64_t round, bool *is_damaged)
{
    struct wr_journal_cells_walk walk = {.block = (struct wr_cells_block *)block, .round = round};
    struct wr_journal_cells cells;
    bool has_values = false;
    while (wr_journal_cells_next(&walk, &cells))
        has_values = true;
    *is_damaged = walk.is_damaged;
    return has_values;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void wr_journal_cells_settle(struct wr_cells_block *block, uint64_t round)
{
    enum { PER_CELL = sizeof(struct wr_cell_kept) / sizeof(struct wr_versioned) };
    struct wr_versioned *kept = &wr_cells_block_kept(block)->values;
    for (size_t i = 0; i < (size_t)block->count * PER_CELL; i++)
        wr_versioned_settle(&kept[i], round);
    bool is_damaged = false;
    const struct wr_cell_buckets *buckets;
    for (size_t at = sizeof *block; !block->count && (buckets = buckets_at(block, at, &is_damaged));
         at += buckets->size)
        for (uint32_t i = 0; i < buckets->count + 2; i++)
            wr_versioned_settle(&kept_of(buckets)[i], round);
}

static void take_cell(const struct wr_cell *cell, struct wr_cell_kept *kept, uint64_t round)
{
    double sum = atomic_load_explicit(&cell->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed);
    wr_versioned_put(&kept->values, round, atomic_load_explicit(&cell->values, memory_order_relaxed));
    wr_versioned_put(&kept->sum, round, wr_cell_word(sum));
    wr_versioned_put(&kept->compensation, round, wr_cell_word(compensation));
}

static void take_buckets(const struct wr_cell_buckets *buckets, uint64_t round)
{
    struct wr_versioned *kept = kept_of(buckets);
    double sum = atomic_load_explicit(&buckets->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&buckets->compensation, memory_order_relaxed);
    for (uint32_t i = 0; i < buckets->count; i++)
        wr_versioned_put(kept++, round, atomic_load_explicit(&buckets->values[i], memory_order_relaxed));
    wr_versioned_put(kept++, round, wr_cell_word(sum));
    wr_versioned_put(kept, round, wr_cell_word(compensation));
}

void wr_journal_cells_take(struct wr_cells_block *block, uint64_t round)
{
    for (uint32_t i = 0; i < block->count; i++)
        take_cell(wr_cells_block_cells(block) + i, wr_cells_block_kept(block) + i, round);
    bool is_damaged = false;
    const struct wr_cell_buckets *buckets;
    for (size_t at = sizeof *block; !block->count && (buckets = buckets_at(block, at, &is_damaged));
         at += buckets->size)
        take_buckets(buckets, round);
}
