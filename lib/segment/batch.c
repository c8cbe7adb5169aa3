#include "segment/batch.h"

#include <string.h>

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    const struct weir_metric *metric = wr_registry_series(wr_batch_core(batch)->registry, id);
    return atomic_load_explicit(&metric->view, memory_order_acquire);
}

/* What names the process that made summaries, among the labels of their batch. */
static const weir_label *find_instance(const struct wr_label_set *labels)
{
    for (size_t i = 0; labels && i < labels->count; i++)
        if (strcmp(labels->items[i].key, "instance") == 0)
            return &labels->items[i];
    return NULL;
}

weir_batch wr_batch_of(const struct wr_range *range, struct wr_batch_core *core,
                       const struct wr_label_set *labels)
{
    const weir_label *instance = range->segment->summaries ? find_instance(labels) : NULL;
    wr_origin_put_text(&range->id.origin, core->origin);
    /* acquire: a view that is read from here on is at least as new as the number */
    core->redefinitions =
        core->registry ? atomic_load_explicit(&core->registry->redefinitions, memory_order_acquire) : 0;
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
        .foreign_labels = instance,
        .foreign_label_count = instance ? 1 : 0,
        .definitions = core->redefinitions,
    };
}
