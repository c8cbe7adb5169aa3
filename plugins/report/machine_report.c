#include "machine_report.h"

#include <math.h>
#include <string.h>

#include "registry/labels_walk.h"

static const double mib = 1 << 20;

/* ---- Series ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *keys[2], *values[2]; /* labels that it must have */
    enum machine_part part;
} known[] = {
    {"cpu.utilization", {0}, {0}, MACHINE_CPU_AVERAGE},
    {"cpu.utilization.min", {0}, {0}, MACHINE_CPU_LEAST},
    {"cpu.utilization.max", {0}, {0}, MACHINE_CPU_MOST},
    {"cpu.logical.count", {0}, {0}, MACHINE_CPUS},
    {"memory.total", {0}, {0}, MACHINE_MEMORY_TOTAL},
    {"memory.available", {0}, {0}, MACHINE_MEMORY_AVAILABLE},
    {"filesystem.utilization", {"mountpoint"}, {"/"}, MACHINE_DISK_USAGE},
    {"disk.io.since_boot", {"direction"}, {"read"}, MACHINE_DISK_READ},
    {"disk.io.since_boot", {"direction"}, {"write"}, MACHINE_DISK_WRITTEN},
    {"network.io.since_boot", {"scope", "direction"}, {"loopback", "transmit"}, MACHINE_LOOPBACK_SENT},
    {"network.io.since_boot", {"scope", "direction"}, {"loopback", "receive"}, MACHINE_LOOPBACK_RECEIVED},
    {"network.io.since_boot", {"scope", "direction"}, {"external", "transmit"}, MACHINE_EXTERNAL_SENT},
    {"network.io.since_boot", {"scope", "direction"}, {"external", "receive"}, MACHINE_EXTERNAL_RECEIVED},
};

static bool has_label(const weir_series *series, const char *key, const char *value)
{
    const char *own = wr_labels_find(series->labels, series->label_count, key);
    return own && strcmp(own, value) == 0;
}

enum machine_part machine_part_of(const weir_series *series)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bool is_it = strcmp(known[i].name, series->name) == 0;
        for (size_t k = 0; is_it && k < 2 && known[i].keys[k]; k++)
            is_it = has_label(series, known[i].keys[k], known[i].values[k]);
        if (is_it)
            return known[i].part;
    }
    return MACHINE_NONE;
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void clear(struct machine *machine)
{
    for (size_t i = 0; i < MACHINE_PARTS; i++)
        machine->parts[i] = NAN;
    machine->cpu_sum = machine->cpu_count = 0;
    machine->is_put = false;
}

void machine_init(struct machine *machine, size_t reports_most)
{
    *machine = (struct machine){.cpus = NAN};
    collector_init(&machine->reports, NODE_KEYS, reports_most);
    clear(machine);
}

void machine_fini(struct machine *machine)
{
    collector_fini(&machine->reports);
}

static double to_percent(double share)
{
    return 100 * share;
}

/* As psutil rounds all percentages but the mean of the processors. */
static double rounded(double percent)
{
    return round(percent * 10) / 10;
}

static void make_report(const struct machine *machine, double report[NODE_KEYS])
{
    const double *parts = machine->parts;
    double all = parts[MACHINE_MEMORY_TOTAL], unused = parts[MACHINE_MEMORY_AVAILABLE];
    report[NODE_CPU_AVERAGE] = to_percent(parts[MACHINE_CPU_AVERAGE]);
    report[NODE_CPU_LEAST] = rounded(to_percent(parts[MACHINE_CPU_LEAST]));
    report[NODE_CPU_MOST] = rounded(to_percent(parts[MACHINE_CPU_MOST]));
    report[NODE_MEMORY] = all > 0 ? rounded(to_percent((all - unused) / all)) : NAN;
    report[NODE_DISK_USAGE] = rounded(to_percent(parts[MACHINE_DISK_USAGE]));
    for (int i = 0; i < MACHINE_PARTS - MACHINE_DISK_READ; i++)
        report[NODE_DISK_READ + i] = parts[MACHINE_DISK_READ + i] / mib;
    report[NODE_TIME] = (double)machine->time_ns / 1e9;
}

bool machine_end(struct machine *machine)
{
    double report[NODE_KEYS];
    if (machine->is_put || isnan(machine->parts[MACHINE_CPU_AVERAGE]))
        return true;
    make_report(machine, report);
    machine->is_put = true;
    return collector_offer(&machine->reports, report);
}

static bool is_complete(const struct machine *machine)
{
    for (size_t i = 0; i < MACHINE_PARTS; i++)
        if (isnan(machine->parts[i]))
            return false;
    return true;
}

/* Of each processor, their mean counts. */
static void set_part(struct machine *machine, enum machine_part part, double value)
{
    if (part == MACHINE_CPU_AVERAGE) {
        machine->cpu_sum += value;
        value = machine->cpu_sum / ++machine->cpu_count;
    }
    machine->parts[part] = value;
}

bool machine_put(struct machine *machine, enum machine_part part, int64_t time_ns, double value)
{
    bool is_kept = true;
    if (!isfinite(value))
        return true;
    if (part == MACHINE_CPUS) {
        machine->cpus = value;
        return true;
    }
    if (!machine->has_time || machine->time_ns != time_ns) {
        is_kept = machine_end(machine);
        clear(machine);
        machine->has_time = true;
        machine->time_ns = time_ns;
    }
    set_part(machine, part, value);
    return is_complete(machine) ? machine_end(machine) && is_kept : is_kept;
}
