#include "registry/labels_walk.h"

#include <string.h>

#include "text/hash.h"

const char *wr_labels_find(const weir_label *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, key) == 0)
            return labels[i].value;
    return NULL;
}

const weir_label *wr_labels_next(struct wr_labels_walk *walk, const weir_series *series,
                                 const weir_batch *batch)
{
    const weir_label *own = walk->series_next < series->label_count ? &series->labels[walk->series_next] : NULL;
    size_t count;
    const weir_label *batch_labels = weir_batch_labels(batch, series, &count);
    const weir_label *common = walk->batch_next < count ? &batch_labels[walk->batch_next] : NULL;
    if (!own && !common)
        return NULL;
    int order = !own ? 1 : !common ? -1 : strcmp(own->key, common->key);
    walk->series_next += order <= 0;
    walk->batch_next += order >= 0;
    return order <= 0 ? own : common;
}

uint64_t wr_labels_hash(const weir_batch *batch)
{
    uint64_t hash = batch->label_count;
    for (size_t i = 0; i < batch->label_count; i++) {
        hash = wr_hash_bytes(hash, batch->labels[i].key, strlen(batch->labels[i].key));
        hash = wr_hash_bytes(hash, batch->labels[i].value, strlen(batch->labels[i].value));
    }
    return hash;
}
