/* batch: a range of samples as handlers are given it. */
#ifndef WR_BATCH_H
#define WR_BATCH_H

#include <stdint.h>

#include <weir/handler.h>

#include "registry/labels.h"
#include "segment/queue.h"
#include "registry/registry.h"

/* What a batch knows besides what handlers see. */
struct wr_batch_core {
    const struct wr_registry *registry;
    uint64_t labels_number; /* of the label set: equal numbers mean equal labels */
};

/* The batch of a range; both, and the core, must outlive it. labels may be NULL. */
weir_batch wr_batch_of(const struct wr_range *range, const struct wr_batch_core *core,
                       const struct wr_label_set *labels);

static inline const struct wr_batch_core *wr_batch_core(const weir_batch *batch)
{
    return batch->core;
}

#endif
