/* run_report: all that a report is made of: nodes with their reports, and the series of each. Bounded in every
 * direction; what is beyond a bound is refused. Not thread-safe. */
#ifndef WEIR_PLUGINS_RUN_REPORT_H
#define WEIR_PLUGINS_RUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "machine_report.h"
#include "metric_row.h"

struct report_node {
    char *name;
    struct machine machine;
    struct metric_row **rows; /* in the order of their first values */
    uint32_t row_count, row_room;
};

struct report_settings {
    const weir_host *host;
    const weir_series_keeper *keeper; /* of the series of the rows */
    const char *node;                 /* the name of this machine */
    const char *node_label;           /* a label whose value names the node; NULL: there is one node */
    const char *machine;              /* the group of the source's values */
    const weir_map *machine_labels;   /* that they have; NULL: any */
    size_t reports_most, series_most, nodes_most;
};

/* What a series belongs to, by its number. */
struct report_entry {
    struct report_node *node;
    struct metric_row *row; /* NULL: not seen yet, or refused */
    uint64_t serial;        /* of the series that it is of */
    enum machine_part part;
};

struct run_report {
    const struct report_settings *settings;
    struct report_node **nodes; /* in the order of their first values */
    size_t node_count, row_count;
    uint32_t node_room;
    struct report_entry *entries;
    uint32_t entry_room;
};

/* settings: borrowed. Allocates nothing. */
void run_report_init(struct run_report *report, const struct report_settings *settings);
void run_report_fini(struct run_report *report);

enum report_result {
    REPORT_PUT,
    REPORT_SERIES_MOST, /* refused: more series, or nodes, than allowed */
    REPORT_NODES_MOST,
    REPORT_NO_MEMORY, /* refused */
};

enum report_result run_report_put(struct run_report *report, const weir_batch *batch,
                                  const weir_sample *sample);

/* Nothing more comes: keeps what is left of samplings. Returns false if out of memory. */
bool run_report_end(struct run_report *report);

/* Sorts rows by group, name and labels. */
void run_report_sort(struct run_report *report);

#endif
