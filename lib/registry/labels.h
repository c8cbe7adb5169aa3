/* labels: the labels of settings.labels. */
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

/* Bytes for a copy of labels, with their texts behind them; and makes it in such memory. */
size_t wr_labels_bytes(const weir_label *labels, size_t count);
void wr_labels_copy(weir_label *to, const weir_label *labels, size_t count);

/* Returns a sorted copy with one reference. NULL, with the error set, if a key or value is not valid. */
struct wr_label_set *wr_labels_new(const weir_map *map, uint64_t number, struct wr_error *error);

void wr_labels_hold(struct wr_label_set *set);
void wr_labels_drop(struct wr_label_set *set);

bool wr_labels_equal(const struct wr_label_set *a, const struct wr_label_set *b);

#endif
