/* labels_walk: the labels of series and batches: how they are found and merged, and whether they have changed.
 * Also part of plugins. */
#ifndef WR_LABELS_WALK_H
#define WR_LABELS_WALK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Returns the value of the label with the key; NULL: none has it. */
const char *wr_labels_find(const weir_label *labels, size_t count, const char *key);

/* The position of an iteration over the labels of a series and of its batch. All zeros: the start. */
struct wr_labels_walk {
    size_t series_next, batch_next;
};

/* Returns the next label in the order of keys, NULL after the last. The labels of the series take precedence
 * over those of the batch with the same key. */
const weir_label *wr_labels_next(struct wr_labels_walk *walk, const weir_series *series,
                                 const weir_batch *batch);

/* A hash of the labels of a batch, by which a handler finds that settings.labels have changed. */
uint64_t wr_labels_hash(const weir_batch *batch);

#endif
