/* journal_cells: reads what is in cells of a journal and in none of its segments. */
#ifndef WR_JOURNAL_CELLS_H
#define WR_JOURNAL_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producer/cells.h"

/* Whether it is a file of this version, as it was made. size: of the file. */
bool wr_journal_cells_check(const struct wr_cells_block *block, size_t size);

/* Overwrites what was stored for a round that was never committed. */
void wr_journal_cells_settle(struct wr_cells_block *block, uint64_t round);

struct wr_journal_cells {
    uint32_t series;
    struct wr_cell_taken taken; /* its arrays are in the block and in the walk */
};

/* All zeros, but for block and round: before the first one. */
struct wr_journal_cells_walk {
    struct wr_cells_block *block;
    uint64_t round; /* the last committed one */
    size_t at;
    bool is_damaged; /* something was left out */
    uint64_t room[WR_BUCKETS_MOST];
};

/* Finds the next cell that has values. Returns false if there is none. */
bool wr_journal_cells_next(struct wr_journal_cells_walk *walk, struct wr_journal_cells *cells);

/* Marks all cells as taken by the round after `round`. */
void wr_journal_cells_take(struct wr_cells_block *block, uint64_t round);

/* Whether there are values; *is_damaged: or some that make no sense. */
bool wr_journal_cells_have_values(const struct wr_cells_block *block, uint64_t round, bool *is_damaged);

#endif
