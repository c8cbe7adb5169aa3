/* labels: the labels of settings.labels, and how they are merged with those of a series. */
#ifndef WR_LABELS_H
#define WR_LABELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

struct wr_error;

/* settings.labels, sorted by key. Immutable and reference counted: lanes may use a set that a reload has
 * replaced. In pages of its own, because lanes drop it while they hold their lock. */
struct wr_label_set {
    _Atomic unsigned references;
    uint64_t number; /* unique in the process; never 0 */
    size_t count;
    weir_label *items; /* behind the set, and behind them their texts */
};

/* Whether the keys and values of labels are valid. */
bool wr_labels_check(const weir_map *map, struct wr_error *error);

/* Whether one of them has the key. */
bool wr_labels_have(const weir_label *labels, size_t count, const char *key);

/* Bytes for a copy of labels, with their texts behind them; and makes it in such memory. */
size_t wr_labels_bytes(const weir_label *labels, size_t count);
void wr_labels_copy(weir_label *to, const weir_label *labels, size_t count);

/* Returns a sorted copy with one reference. NULL, with the error set, if a key or value is not valid. */
struct wr_label_set *wr_labels_new(const weir_map *map, uint64_t number, struct wr_error *error);

void wr_labels_hold(struct wr_label_set *set);
void wr_labels_drop(struct wr_label_set *set);

bool wr_labels_equal(const struct wr_label_set *a, const struct wr_label_set *b);

/* The position of an iteration over the labels of a series and of its batch. All zeros: the start. */
struct wr_labels_walk {
    size_t series_next, batch_next;
};

/* Returns the next label in the order of keys, NULL after the last. The labels of the series take precedence
 * over those of the batch with the same key. */
const weir_label *wr_labels_next(struct wr_labels_walk *walk, const weir_series *series,
                                 const weir_batch *batch);

#endif
