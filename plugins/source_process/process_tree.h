/* process_tree: the figures of a process, or of it and all its descendants, from /proc. */
#ifndef WEIR_PLUGINS_PROCESS_TREE_H
#define WEIR_PLUGINS_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process_list.h"

/* What a process uses up, in the kernel's units: ticks, faults, bytes. */
enum process_total {
    PROCESS_USER,
    PROCESS_SYSTEM,
    PROCESS_MINOR_FAULTS,
    PROCESS_MAJOR_FAULTS,
    PROCESS_READ,
    PROCESS_WRITTEN,
    PROCESS_TOTALS
};

/* Sums over all processes. */
struct process_figures {
    double user_s, system_s;           /* totals */
    double minor_faults, major_faults; /* totals */
    double read_bytes, written_bytes;  /* totals; of disks */
    double resident_bytes, virtual_bytes;
    double threads, processes, descriptors;
    int io_problem, descriptors_problem; /* an errno: not all processes allow it; 0: all do */
};

struct process_known;

/* All zeros, but list.proc and the two below. */
struct process_tree {
    struct process_list list;
    bool with_children;          /* descendants belong to it */
    bool counts_earlier;         /* the totals contain what was used before the first reading */
    struct process_known *known; /* the processes of the tree, from the previous reading */
    size_t known_count, known_sorted;
    uint32_t known_room;
    bool was_read;
    double totals[PROCESS_TOTALS];
    double credit[PROCESS_TOTALS]; /* see process_tree.c */
};

void process_tree_fini(struct process_tree *tree);

/* When a process was started, in ticks since boot. Returns false with errno set; ESRCH: there is no such
 * process. */
bool process_tree_started(struct process_tree *tree, int64_t pid, double *ticks);

/* Reads the figures of the process that was started then, and of its descendants. The totals never fall, and
 * count nothing twice. Returns false with errno set; ESRCH: the process has ended, and *figures is that of the
 * descendants it has left. After another error nothing has changed: the next reading covers this one's time. */
bool process_tree_read(struct process_tree *tree, int64_t pid, double started, struct process_figures *figures);

#endif
