#include "producer/cells.h"

#include <sys/mman.h>

static bool make_chunk(struct wr_cells *cells, unsigned chunk)
{
    size_t size = ((size_t)WR_CELLS_FIRST_CHUNK << chunk) * sizeof(struct wr_cell);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    /* without it (before 4.14) a child has no use for what it inherits: it makes chunks of its own */
    madvise(memory, size, MADV_WIPEONFORK);
    /* most cells of a chunk may never be used */
    madvise(memory, size, MADV_NOHUGEPAGE);
    cells->chunks[chunk] = memory;
    return true;
}

bool wr_cells_open(struct wr_cells *cells, uint32_t series)
{
    unsigned chunk = 31u - (unsigned)__builtin_clz(series / WR_CELLS_FIRST_CHUNK + 1);
    if (chunk >= WR_CELLS_CHUNKS || (!cells->chunks[chunk] && !make_chunk(cells, chunk)))
        return false;
    struct wr_cell *cell = wr_cells_place(cells, series);
    if (cell->is_open)
        return true;
    cell->series = series;
    cell->is_open = true;
    cell->next = atomic_load_explicit(&cells->first, memory_order_relaxed);
    /* release: pairs with the acquire of the reader, who follows the list */
    atomic_store_explicit(&cells->first, cell, memory_order_release);
    return true;
}

struct wr_cell_taken wr_cell_take(struct wr_cells *cells, struct wr_cell *cell)
{
    /* acquire: pairs with the release in wr_cells_add */
    uint64_t values = atomic_load_explicit(&cell->values, memory_order_acquire);
    if (values == cell->taken)
        return (struct wr_cell_taken){0, 0};
    double sum = atomic_load_explicit(&cell->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed);
    double whole = sum + compensation;
    /* Of an addition in progress only one of the two may be there, which can make less of them than before: the
     * next reading has the difference, since increments are not negative. */
    if (whole < cell->taken_sum)
        whole = cell->taken_sum;
    struct wr_cell_taken taken = {values - cell->taken, whole - cell->taken_sum};
    cell->taken = values;
    cell->taken_sum = whole;
    cells->taken += taken.values;
    return taken;
}
