/* block: adding many samples of resolved series in one step, without ever waiting. */
#ifndef WR_BLOCK_H
#define WR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

struct weir_metric;
struct wr_ring;

/* What became of a block's samples. */
struct wr_block_counts {
    uint64_t taken;   /* written, or of groups without a route */
    uint64_t refused; /* their series do not take the values: counted, and the thread's last error is set */
};

static inline struct weir_metric *wr_block_metric(const weir_block_sample *sample)
{
    return (struct weir_metric *)(uintptr_t)sample->series;
}

/* Called once when nothing can fail any more, before the samples are published: they are in the ring before the
 * position. ring NULL: none of them is written. */
struct wr_block_witness {
    void (*before)(void *ctx, const struct wr_ring *ring, uint64_t position);
    void *ctx;
};

/* Publishes the samples by one store, or adds nothing. The caller has checked that they need at most
 * WR_INTAKE_LARGEST slots, and their texts. Returns 0, WR_INTAKE_FULL, or an enum weir_error with all samples
 * counted as refused. */
int wr_block_add(const weir_block_sample *samples, size_t count, const struct wr_block_witness *witness,
                 struct wr_block_counts *counts);

#endif
