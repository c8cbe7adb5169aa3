#include "handler/ahead.h"

#include <string.h>

#include "lane/lane_host.h"

static void put_down(struct wr_ahead *ahead)
{
    if (ahead->range.segment)
        wr_segment_drop(ahead->range.segment);
    wr_labels_drop(ahead->labels);
    ahead->range = (struct wr_range){0};
    ahead->labels = NULL;
}

void wr_ahead_begin(struct wr_ahead *ahead, const struct wr_lane_call *call, const struct wr_registry *registry)
{
    ahead->is_on = true;
    ahead->position = call->range.position + call->range.count;
    ahead->core.registry = registry;
}

void wr_ahead_end(struct wr_ahead *ahead)
{
    put_down(ahead);
    ahead->is_on = false;
}

bool wr_ahead_next(struct wr_ahead *ahead, struct wr_lane *lane, weir_batch *next)
{
    put_down(ahead);
    if (!ahead->is_on || !wr_lane_host_look_ahead(lane, ahead->position, &ahead->range, &ahead->labels))
        return false;
    ahead->position = ahead->range.position + ahead->range.count;
    ahead->core.labels_number = ahead->labels ? ahead->labels->number : 0;
    const weir_batch batch = wr_batch_of(&ahead->range, &ahead->core, ahead->labels);
    memcpy(next, &batch, next->size < sizeof batch ? next->size : sizeof batch);
    next->size = batch.size;
    return true;
}
