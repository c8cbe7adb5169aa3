#include "segment/batch.h"

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    const struct weir_metric *metric = wr_registry_series(wr_batch_core(batch)->registry, id);
    return atomic_load_explicit(&metric->view, memory_order_acquire);
}

weir_batch wr_batch_of(const struct wr_range *range, struct wr_batch_core *core,
                       const struct wr_label_set *labels)
{
    wr_origin_put_text(&range->id.origin, core->origin);
    return (weir_batch){
        .size = sizeof(weir_batch),
        .count = range->count,
        .samples = range->segment->samples + range->first,
        .notes = wr_segment_texts(range->segment),
        .labels = labels ? labels->items : NULL,
        .label_count = labels ? labels->count : 0,
        .series = find_series,
        .core = core,
        .sequence = range->id.sequence,
        .origin = core->origin,
    };
}
