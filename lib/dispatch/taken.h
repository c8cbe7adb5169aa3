/* taken: what was taken of a thread's cells, as a summary. In a journal it travels like that: a cell is in the
 * journal until the summary of what was taken of it is in a segment.
 *
 * Not thread-safe. Allocates from the slab of the sketch only, if it has one. */
#ifndef WR_TAKEN_H
#define WR_TAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producer/cells.h"
#include "summary/summary.h"

/* Values of one size. */
struct wr_taken_share {
    double value;
    uint64_t count;
};

/* Memory for what is written. All zeros, but for the sketch's slab. */
struct wr_taken {
    struct wr_sketch sketch; /* empty between two calls */
    size_t share_count;
    struct wr_taken_share shares[WR_BUCKETS_MOST + 2];
    char bytes[WR_SUMMARY_BYTES + 1];
    char text[WR_SUMMARY_TEXT];
};

/* Writes any summary. Returns the length of taken->text. */
size_t wr_taken_write_summary(struct wr_taken *taken, const struct wr_summary *summary);

/* Sets the summary of an interval that begins and ends at that time. It borrows its arrays from `from`, and its
 * sketch from `taken`: the caller clears that. Returns false if out of memory. */
bool wr_taken_summarise(struct wr_taken *taken, const struct wr_cell_taken *from, int64_t time_ns,
                        struct wr_summary *summary);

/* Sets taken->text to it. Returns its length; 0: out of memory. */
size_t wr_taken_write(struct wr_taken *taken, const struct wr_cell_taken *from, int64_t time_ns);

#endif
