/* node_figures: the reports of a node, as perf.py defines them, and the 18 figures that sum them up. Also part
 * of the command. */
#ifndef WEIR_PLUGINS_NODE_FIGURES_H
#define WEIR_PLUGINS_NODE_FIGURES_H

#include <stddef.h>

/* The numbers of a report, in the order in which they are written. NAN: not known. */
enum node_key {
    NODE_CPU_AVERAGE, /* percent, of all processors */
    NODE_CPU_LEAST,   /* of the least busy one */
    NODE_CPU_MOST,    /* of the busiest one */
    NODE_MEMORY,      /* percent of the machine's memory that is not available */
    NODE_DISK_USAGE,  /* percent of the file system / */
    NODE_DISK_READ,   /* this and those below: MiB since boot */
    NODE_DISK_WRITTEN,
    NODE_LOOPBACK_SENT,
    NODE_LOOPBACK_RECEIVED,
    NODE_EXTERNAL_SENT,
    NODE_EXTERNAL_RECEIVED,
    NODE_TIME, /* seconds since 1970 */
    NODE_KEYS
};

extern const char *const node_key_names[NODE_KEYS];

enum { NODE_FIGURES = 18 };

struct node_figure {
    const char *name, *unit, *meaning;
    enum node_key largest; /* the figure is the largest value of this key; NODE_KEYS: another one */
};

/* In the order in which they are written. */
extern const struct node_figure node_figure_table[NODE_FIGURES];

/* Sets the figures of `count` reports of NODE_KEYS numbers each. now_s: until when the node counts as used,
 * since 1970; cpus: its processors, NAN: not known. What is not known of any report is NAN. */
void node_figures_compute(const double *reports, size_t count, double now_s, double cpus,
                          double figures[NODE_FIGURES]);

#endif
