/* series_table: the last sample of each series. The worker changes it, the server's thread reads it:
 * the owner's lock protects it. */
#ifndef PROMETHEUS_SERIES_TABLE_H
#define PROMETHEUS_SERIES_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "format/exposition.h"

/* Initialized with zeros, rules, host and services. */
struct series_table {
    struct wr_exposed *entries; /* seen_ns: when the sample came, monotonic; INT64_MIN: the series has ended */
    uint32_t count, room;
    uint32_t *places; /* by series id: index in entries, plus one; 0: none */
    uint32_t place_count;
    uint64_t labels_hash; /* of the batch */
    bool is_sorted;
    bool has_snapshot; /* of which texts are in use that the entries may no longer have */
    struct series_retired *retired; /* of that kind */
    uint32_t retired_count, retired_room;
    struct wr_series_rules rules;
    const weir_host *host;
    const weir_summaries *summaries; /* for when totals began; NULL: that is not shown */
    const weir_series_keeper *keeper; /* of the series of the entries */
};

/* What an entry had that a snapshot may use. */
struct series_retired {
    char *text;
    const weir_series *series;
};

/* The entries at one moment, to make a page of them without the lock. Initialized with zeros. */
struct series_snapshot {
    struct wr_exposed *entries;
    uint32_t count, room;
};

void series_table_fini(struct series_table *table);

/* Takes over a batch's samples from index start on. Returns how many it took: fewer than there are if out of
 * memory. */
uint32_t series_table_put(struct series_table *table, const weir_batch *batch, int64_t now_ns);

/* Forgets what is no running total and was last seen before that time. */
void series_table_expire(struct series_table *table, int64_t before_ns);

/* Copies the entries, sorted for a page; the texts are the table's. Returns false if out of memory. A table has
 * one snapshot at a time. */
bool series_table_take_snapshot(struct series_table *table, struct series_snapshot *snapshot);

/* Frees the texts that are not in use any more, and takes over what the page found out about equal names. The
 * snapshot keeps its memory for the next one. */
void series_table_release_snapshot(struct series_table *table, struct series_snapshot *snapshot);

void series_snapshot_fini(struct series_snapshot *snapshot);

#endif
