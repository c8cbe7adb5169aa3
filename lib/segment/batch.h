/* batch: a range of samples as a handler receives it. */
#ifndef WR_BATCH_H
#define WR_BATCH_H

#include <stdint.h>

#include <weir/handler.h>

#include "registry/labels.h"
#include "segment/queue.h"
#include "registry/registry.h"

/* What belongs to a batch and is not shown to handlers. */
struct wr_batch_core {
    const struct wr_registry *registry;
    uint64_t labels_number;      /* of the label set: equal numbers mean equal labels */
    uint64_t redefinitions;      /* of the registry; set by wr_batch_of */
    char origin[WR_ORIGIN_TEXT]; /* set by wr_batch_of */
};

/* Returns the batch of a range; range and core must outlive it. Writes core->origin. labels may be NULL. */
weir_batch wr_batch_of(const struct wr_range *range, struct wr_batch_core *core,
                       const struct wr_label_set *labels);

static inline const struct wr_batch_core *wr_batch_core(const weir_batch *batch)
{
    return batch->core;
}

#endif
