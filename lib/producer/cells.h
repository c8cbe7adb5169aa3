/* cells: sums of what a thread adds to counters and gauges, where all handlers of a group only sum.
 *
 * A thread has a cell of its own for each series. Adding to it takes no slot of the ring, no clock, and nothing
 * of the dispatcher, which reads the cells when an interval ends, or when somebody has to know: a flush, a
 * shutdown, a change of the configuration, statistics.
 *
 * A cell only grows. Its writer is the thread, without read-modify-writes; its reader holds the round lock, and
 * notes in the cell what it has taken. The writer counts a value in wr_cells.values, then adds it, then counts
 * it in the cell, which is a release: a reader that finds n values in a cell, an acquire, finds their
 * increments in the sum, and them in wr_cells.values. In both it may find more, of calls meanwhile, whose
 * values the next reading has. So what was taken never exceeds what was added, and is equal to it if no call is
 * in progress.
 *
 * Cells are never freed. Their memory is zeroed in a forked child (MADV_WIPEONFORK), as struct wr_cells is; the
 * child makes new ones. */
#ifndef WR_CELLS_H
#define WR_CELLS_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/common.h"

enum { WR_CELLS_CHUNKS = 16, WR_CELLS_FIRST_CHUNK = 1024 };

struct wr_cell {
    /* written by the thread */
    WR_ALIGNED_LINE _Atomic uint64_t values;
    _Atomic double sum, compensation; /* of increments: the sum is that of both */

    /* written when it is opened */
    uint32_t series;
    bool is_open;
    struct wr_cell *next;

    /* under the round lock: of the above, what was taken */
    uint64_t taken;
    double taken_sum;
};

/* Of one thread. All zeros: none. */
struct wr_cells {
    _Atomic uint64_t values;                 /* of all cells */
    _Atomic(struct wr_cell *) first;         /* those that are open, the latest first */
    uint64_t taken;                          /* under the round lock: of the values */
    struct wr_cell *chunks[WR_CELLS_CHUNKS]; /* chunk n holds WR_CELLS_FIRST_CHUNK << n of them, by series */
};

/* [producer, in a call] Opens a series' cell, unless it is open. Returns false if out of memory. */
bool wr_cells_open(struct wr_cells *cells, uint32_t series);

/* [producer] The place of a series' cell; NULL: its chunk was not made yet. */
static inline struct wr_cell *wr_cells_place(const struct wr_cells *cells, uint32_t series)
{
    unsigned chunk = 31u - (unsigned)__builtin_clz(series / WR_CELLS_FIRST_CHUNK + 1);
    struct wr_cell *first = cells->chunks[chunk];
    return first ? &first[series - ((1u << chunk) - 1) * WR_CELLS_FIRST_CHUNK] : NULL;
}

/* [producer, in a call] Adds one value, with an increment of the sum that is not negative. Returns false, and
 * has done nothing, if there is no cell yet, or if the sum would not be finite. */
static inline bool wr_cells_add(struct wr_cells *cells, uint32_t series, double increment)
{
    struct wr_cell *cell = wr_cells_place(cells, series);
    if (WR_UNLIKELY(!cell || !cell->is_open))
        return false;
    double sum = atomic_load_explicit(&cell->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed);
    double after = sum + increment;
    if (WR_UNLIKELY(!isfinite(after)))
        return false;
    /* as in neumaier.h, with less to ask for where nothing is negative */
    compensation += sum < increment ? (increment - after) + sum : (sum - after) + increment;
    uint64_t all = atomic_load_explicit(&cells->values, memory_order_relaxed);
    uint64_t values = atomic_load_explicit(&cell->values, memory_order_relaxed);
    atomic_store_explicit(&cells->values, all + 1, memory_order_relaxed);
    atomic_store_explicit(&cell->sum, after, memory_order_relaxed);
    atomic_store_explicit(&cell->compensation, compensation, memory_order_relaxed);
    /* release: pairs with the acquire in wr_cell_take */
    atomic_store_explicit(&cell->values, values + 1, memory_order_release);
    return true;
}

/* What was added to a cell since it was read last. */
struct wr_cell_taken {
    uint64_t values;
    double sum;
};

/* [dispatcher's round] */
struct wr_cell_taken wr_cell_take(struct wr_cells *cells, struct wr_cell *cell);

/* [dispatcher's round] Whether there are values that were not taken. */
static inline bool wr_cells_have_values(const struct wr_cells *cells)
{
    return atomic_load_explicit(&cells->values, memory_order_acquire) != cells->taken;
}

#endif
