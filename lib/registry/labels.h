/* labels: those that a configuration gives to everything, and how they go together with those of a series. */
#ifndef WR_LABELS_H
#define WR_LABELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/region.h"

struct wr_error;

/* settings.labels, sorted by key. Immutable and counted: lanes go on using a set that a reload has replaced. */
struct wr_label_set {
    _Atomic unsigned references;
    uint64_t number; /* no other set of the process has it; never 0 */
    size_t count;
    weir_label *items;
    struct wr_region keep;
};

/* A sorted copy, with one reference; NULL: the error tells which key or value breaks the rules. */
struct wr_label_set *wr_labels_new(const weir_map *map, uint64_t number, struct wr_error *error);

void wr_labels_hold(struct wr_label_set *set);
void wr_labels_drop(struct wr_label_set *set);

bool wr_labels_equal(const struct wr_label_set *a, const struct wr_label_set *b);

/* Where a walk through the labels of a series and of its batch is. All zeros: at the beginning. */
struct wr_labels_walk {
    size_t of_series, of_batch;
};

/* The next label in the order of keys, or NULL behind the last. Where both have the same key, the series' own
 * counts. */
const weir_label *wr_labels_next(struct wr_labels_walk *walk, const weir_series *series,
                                 const weir_batch *batch);

#endif
