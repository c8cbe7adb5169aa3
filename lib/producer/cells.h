/* cells: sums of what a thread adds to counters, gauges and histograms, where all handlers of a group only sum.
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
 * Of a histogram the numbers of values in its buckets are what counts, each of them a release. Its smallest and
 * its largest value are taken away by the reader. A value that is being added meanwhile can be among those, and
 * is counted by the next reading: which value belongs to which reading may differ by that one.
 *
 * Cells are never freed. Their memory is zeroed in a forked child (MADV_WIPEONFORK), as struct wr_cells is; the
 * child makes new ones.
 *
 * With a journal they are in its files, and lie there as the program stores them: so a call costs the same. A
 * reader also notes in the file what of a cell is in the journal's committed segments; the rest is what a later
 * process finds. A process that is killed inside a call may leave a value in the sum that no number counts. */
#ifndef WR_CELLS_H
#define WR_CELLS_H

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/handler.h>

#include "os/versioned.h"
#include "summary/buckets.h"
#include "summary/neumaier.h"
#include "text/common.h"

enum {
    WR_CELLS_CHUNKS = 16,
    WR_CELLS_KEPT_CHUNKS = 4, /* in a journal: of the first 15,360 series, in 2.4 MB a thread at most */
    WR_CELLS_FIRST_CHUNK = 1024
};

/* No sum in a cell gets beyond it, so that what all threads have added is finite: there are at most 1,024 of
 * them, and the largest double is 4,494 times as large. */
#define WR_CELLS_MOST 4e304

/* What of a cell was taken, in the rounds of a journal. */
struct wr_cell_kept {
    struct wr_versioned values, sum, compensation; /* the two as the words of their doubles */
};

/* A file of a journal. Behind this are `count` cells and as many struct wr_cell_kept; or, if count is 0,
 * buckets, up to the first whose size is 0. */
struct wr_cells_block {
    WR_ALIGNED_LINE uint64_t magic;
    uint32_t version;
    uint32_t first, count; /* series of the first cell; number of cells */
    uint32_t size;         /* of the file */
    struct wr_cells_block *next;
};

/* Of a histogram. One with other bounds has another one. In a journal there are behind the numbers of values
 * and what was taken of these: a struct wr_versioned for each bucket, the sum and the compensation; and a copy
 * of the bounds. */
struct wr_cell_buckets {
    /* written when it is made */
    uint32_t size;                 /* in a journal: with all that is behind it; written at last */
    uint32_t series;               /* in a journal */
    struct wr_versioned *kept;     /* NULL: not in a journal */
    struct wr_cell_buckets *older; /* of the same series */
    const double *bounds;
    uint32_t count; /* of the buckets: one more than there are bounds */
    uint32_t bounds_check;
    uint64_t *taken; /* under the round lock: of values */

    /* written by the thread */
    const weir_series *view; /* the latest one with these bounds; no one else reads it */
    _Atomic double sum, compensation;
    _Atomic double min, max; /* of what was not taken; infinite: there is none. The reader resets them */

    /* under the round lock */
    double taken_sum, taken_compensation;
    double taken_min, taken_max; /* with the latest reading that found some */

    _Atomic uint64_t values[]; /* written by the thread: of each bucket alone */
};

struct wr_cell {
    /* written by the thread */
    WR_ALIGNED_LINE _Atomic uint64_t values;
    _Atomic double sum, compensation;          /* of increments: the sum is that of both */
    _Atomic(struct wr_cell_buckets *) buckets; /* the latest first; NULL: it was no histogram yet */

    /* written when it is opened */
    uint32_t next; /* the series of the one that was opened before, and 1; 0: there is none */
    bool is_open;

    /* under the round lock: of the above, what was taken */
    uint64_t taken;
    double taken_sum, taken_compensation;
};

static_assert(sizeof(struct wr_cell) == WR_LINE, "two threads write no line");

/* Of one thread. All zeros: none. */
struct wr_cells {
    _Atomic uint64_t values;                 /* of all cells */
    _Atomic uint32_t first;                  /* as `next`: the series of the cell that was opened last */
    uint64_t taken;                          /* under the round lock: of the values */
    struct wr_cell *chunks[WR_CELLS_CHUNKS]; /* chunk n holds WR_CELLS_FIRST_CHUNK << n of them, by series */
    _Atomic(struct wr_cell *) published[WR_CELLS_CHUNKS]; /* the same for the reader, see wr_cells_find */
    char *room;                                           /* for buckets */
    size_t room_left;

    /* in a journal; written by the thread, under the round lock but for `wanted` */
    bool is_kept;
    int wanted; /* of what there is no file yet: a chunk's number and 1, or -1: buckets; 0: nothing */
    _Atomic bool no_space; /* a file could not be made: there are no further cells until there is space again */
    uint64_t moved;        /* values of cells that it had before that */
};

/* [producer, in a call] Opens a series' cell, unless it is open. Returns false if out of memory, or if a file
 * is wanted for it. */
bool wr_cells_open(struct wr_cells *cells, uint32_t series);

/* ---- In a journal ----- */

/* [producer, under the round lock] All that were added so far are taken; those that come are for the journal.
 */
void wr_cells_move(struct wr_cells *cells);

/* [producer, in a call] Whether there is no file for what was to be opened last, but may be one. */
static inline bool wr_cells_want(const struct wr_cells *cells)
{
    return cells->wanted && !atomic_load_explicit(&cells->no_space, memory_order_relaxed);
}

/* [producer, under the round lock] The size of the file that is wanted. */
size_t wr_cells_wanted(const struct wr_cells *cells);

/* [producer, under the round lock] Takes it into use; NULL: there is no space. */
void wr_cells_use(struct wr_cells *cells, struct wr_cells_block *block);

/* [dispatcher's round] Notes, for the round after `round`, that what was taken of it is in segments. cell: of
 * the series. */
void wr_cells_keep(const struct wr_cells *cells, uint32_t series, const struct wr_cell *cell, uint64_t round);
void wr_cells_keep_buckets(const struct wr_cell_buckets *buckets, uint64_t round);

/* The parts of a file that was read or made. */
struct wr_cell *wr_cells_block_cells(const struct wr_cells_block *block);
struct wr_cell_kept *wr_cells_block_kept(const struct wr_cells_block *block);
struct wr_cell_buckets *wr_cells_block_buckets(const struct wr_cells_block *block);
const double *wr_cell_buckets_bounds(const struct wr_cell_buckets *buckets); /* the copy */

/* Of buckets in a journal, with everything behind them. */
static inline size_t wr_cell_buckets_size(uint32_t count)
{
    size_t size = sizeof(struct wr_cell_buckets) + 2 * count * sizeof(uint64_t) +
                  (count + 2) * sizeof(struct wr_versioned) + (count - 1) * sizeof(double);
    return (size + WR_LINE - 1) & ~(size_t)(WR_LINE - 1);
}

static inline uint64_t wr_cell_word(double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return word;
}

static inline double wr_cell_number(uint64_t word)
{
    double number;
    memcpy(&number, &word, sizeof number);
    return number;
}

/* ---- Adding ----- */

/* [producer] The place of a series' cell; NULL: its chunk was not made yet. */
static inline struct wr_cell *wr_cells_place(const struct wr_cells *cells, uint32_t series)
{
    if (WR_LIKELY(series < WR_CELLS_FIRST_CHUNK)) /* the same in fewer steps */
        return cells->chunks[0] ? &cells->chunks[0][series] : NULL;
    unsigned chunk = 31u - (unsigned)__builtin_clz(series / WR_CELLS_FIRST_CHUNK + 1);
    struct wr_cell *first = cells->chunks[chunk];
    return first ? &first[series - ((1u << chunk) - 1) * WR_CELLS_FIRST_CHUNK] : NULL;
}

/* [producer, in a call] Adds one value, with an increment of the sum that is at least 0. Returns false, and
 * has done nothing, if there is no cell yet, or if the sum would be beyond WR_CELLS_MOST. */
static inline bool wr_cells_add(struct wr_cells *cells, uint32_t series, double increment)
{
    struct wr_cell *cell = wr_cells_place(cells, series);
    if (WR_UNLIKELY(!cell || !cell->is_open))
        return false;
    double sum = atomic_load_explicit(&cell->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed);
    double after = sum + increment;
    if (WR_UNLIKELY(!(after <= WR_CELLS_MOST)))
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

/* [producer, in a call] Whether there is a cell whose sum would be beyond WR_CELLS_MOST. */
static inline bool wr_cells_are_full(const struct wr_cells *cells, uint32_t series, double increment)
{
    const struct wr_cell *cell = wr_cells_place(cells, series);
    return cell && cell->is_open &&
           !(atomic_load_explicit(&cell->sum, memory_order_relaxed) + increment <= WR_CELLS_MOST);
}

/* [producer, as its thread ends inside a call] A value that no cell counts was not added. */
void wr_cells_recount(struct wr_cells *cells);

/* [producer, in a call] The same for a histogram. view: of the series. */
bool wr_cells_open_buckets(struct wr_cells *cells, uint32_t series, const weir_series *view);

/* Both only where the value is beyond the others: no more often than log(n) times for n values in any order. */
static inline void wr_cell_lower(_Atomic double *min, double value)
{
    double before = atomic_load_explicit(min, memory_order_relaxed);
    while (WR_UNLIKELY(value < before) &&
           !atomic_compare_exchange_weak_explicit(min, &before, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static inline void wr_cell_raise(_Atomic double *max, double value)
{
    double before = atomic_load_explicit(max, memory_order_relaxed);
    while (WR_UNLIKELY(value > before) &&
           !atomic_compare_exchange_weak_explicit(max, &before, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* [producer, in a call] Adds one finite value of a histogram. Returns false, and has done nothing, if there are
 * no buckets of this view yet, or if the sum would be beyond WR_CELLS_MOST. */
WR_ALWAYS_INLINE bool wr_cells_add_to_buckets(struct wr_cells *cells, uint32_t series, const weir_series *view,
                                              double value)
{
    const struct wr_cell *cell = wr_cells_place(cells, series);
    struct wr_cell_buckets *to = cell ? atomic_load_explicit(&cell->buckets, memory_order_relaxed) : NULL;
    while (WR_UNLIKELY(to && to->view != view))
        to = to->older;
    if (WR_UNLIKELY(!to))
        return false;
    double sum = atomic_load_explicit(&to->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&to->compensation, memory_order_relaxed);
    wr_neumaier_add(&sum, &compensation, value);
    if (WR_UNLIKELY(!(fabs(sum) <= WR_CELLS_MOST)))
        return false;
    uint64_t all = atomic_load_explicit(&cells->values, memory_order_relaxed);
    atomic_store_explicit(&cells->values, all + 1, memory_order_relaxed);
    atomic_store_explicit(&to->sum, sum, memory_order_relaxed);
    atomic_store_explicit(&to->compensation, compensation, memory_order_relaxed);
    wr_cell_lower(&to->min, value);
    wr_cell_raise(&to->max, value);
    _Atomic uint64_t *bucket = &to->values[wr_buckets_find(to->bounds, to->count - 1, value)];
    uint64_t values = atomic_load_explicit(bucket, memory_order_relaxed);
    /* release: pairs with the acquire in wr_cell_take_buckets */
    atomic_store_explicit(bucket, values + 1, memory_order_release);
    return true;
}

/* What was added to a cell since it was read last. */
struct wr_cell_taken {
    uint64_t values;
    double sum;

    /* of a histogram */
    const uint64_t *buckets; /* NULL: it is none */
    const double *bounds;
    size_t bucket_count;
    uint32_t bounds_check;
    double min, max;
};

/* [dispatcher's round] Of increments, or of a gauge's values. */
struct wr_cell_taken wr_cell_take(struct wr_cells *cells, struct wr_cell *cell);

/* [dispatcher's round] Of a histogram. room: for WR_BUCKETS_MOST numbers, which the result refers to. */
struct wr_cell_taken wr_cell_take_buckets(struct wr_cells *cells, struct wr_cell_buckets *from, uint64_t *room);

/* [dispatcher's round] The cell of a series, or NULL. It may not be open yet. By a copy of the addresses: as
 * atomics they would cost each call 15 instructions. */
struct wr_cell *wr_cells_find(const struct wr_cells *cells, uint32_t series);

/* [dispatcher's round] Whether there are values that were not taken. */
static inline bool wr_cells_have_values(const struct wr_cells *cells)
{
    return atomic_load_explicit(&cells->values, memory_order_acquire) != cells->taken;
}

#endif
