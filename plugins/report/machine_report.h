/* machine_report: puts the values of the source type system together to reports. */
#ifndef WEIR_PLUGINS_MACHINE_REPORT_H
#define WEIR_PLUGINS_MACHINE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "collector.h"
#include "node_figures.h"

/* What a series contributes to a report. */
enum machine_part {
    MACHINE_CPU_AVERAGE,
    MACHINE_CPU_LEAST,
    MACHINE_CPU_MOST,
    MACHINE_MEMORY_TOTAL,
    MACHINE_MEMORY_AVAILABLE,
    MACHINE_DISK_USAGE,
    MACHINE_DISK_READ,
    MACHINE_DISK_WRITTEN,
    MACHINE_LOOPBACK_SENT,
    MACHINE_LOOPBACK_RECEIVED,
    MACHINE_EXTERNAL_SENT,
    MACHINE_EXTERNAL_RECEIVED,
    MACHINE_PARTS, /* of a report */
    MACHINE_CPUS = MACHINE_PARTS,
    MACHINE_NONE
};

struct machine {
    struct collector reports;
    int64_t time_ns; /* of the present sampling */
    bool has_time, is_put;
    double parts[MACHINE_PARTS]; /* of it; NAN: not seen yet */
    double cpu_sum;              /* with a series for each processor */
    unsigned cpu_count;
    double cpus; /* processors that are online; NAN: not known */
};

/* Returns what a series of the source's group is. */
enum machine_part machine_part_of(const weir_series *series);

void machine_init(struct machine *machine, size_t reports_most);
void machine_fini(struct machine *machine);

/* Adds a value. A report is kept once all its parts have come, or when the next sampling begins; what has no
 * processors, as the first one, is no report. Returns false if out of memory: a report was lost. */
bool machine_put(struct machine *machine, enum machine_part part, int64_t time_ns, double value);

/* Keeps the present report as it is. Returns false if out of memory. */
bool machine_end(struct machine *machine);

#endif
