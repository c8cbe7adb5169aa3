/* system_cpu: processors, load, switches and pressure. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_source.h"

static const struct sampling_figure cpu_time = {"cpu.time", "s", "Time that processors spent in each mode"};
static const struct sampling_figure utilization = {"cpu.utilization", "1",
                                                   "Share of the time in which processors were busy"};
static const struct sampling_figure lowest = {"cpu.utilization.min", "1",
                                              "The same of the least busy processor"};
static const struct sampling_figure highest = {"cpu.utilization.max", "1", "The same of the busiest processor"};
static const struct sampling_figure logical = {"cpu.logical.count", "1", "Processors that are online"};
static const struct sampling_figure limit = {"cpu.limit", "1",
                                             "Processors' worth of time that this process may use"};
static const struct sampling_figure loads[] = {
    {"cpu.load_average.1m", "1", "Tasks that ran or waited, averaged over a minute"},
    {"cpu.load_average.5m", "1", "The same over 5 minutes"},
    {"cpu.load_average.15m", "1", "The same over 15 minutes"},
};
static const struct sampling_figure switches = {"cpu.context_switches", "1", "Context switches"};
static const struct sampling_figure interrupts = {"cpu.interrupts", "1", "Interrupts served"};
static const struct sampling_figure created = {"processes.created", "1", "Processes and threads created"};
static const struct sampling_figure running = {"processes.running", "1", "Tasks that run or could"};
static const struct sampling_figure blocked = {"processes.blocked", "1", "Tasks that wait for a disk"};
static const struct sampling_figure pressure = {"pressure.time", "s",
                                                "Time in which some or all tasks waited for a resource"};
static const struct sampling_figure uptime = {"uptime", "s", "Time since boot"};

/* In the order of /proc/stat: proc_stat(5). Guests' time is part of user and nice. */
static const char *const modes[SYSTEM_CPU_MODES] = {"user",   "nice",      "system",  "idle",
                                                    "iowait", "interrupt", "softirq", "steal"};
enum { IDLE = 3, IOWAIT = 4 };

/* ---- Processors ------------------------------------------------------------------------------ */

static bool has_cpu(struct system_source *source, size_t number)
{
    enum { CPUS_MOST = 65536 };
    if (number < source->cpu_room)
        return true;
    size_t room = number + 64;
    struct system_cpu *cpus = number < CPUS_MOST ? realloc(source->cpus, room * sizeof *cpus) : NULL;
    if (!cpus)
        return false;
    memset(cpus + source->cpu_room, 0, (room - source->cpu_room) * sizeof *cpus);
    source->cpus = cpus;
    source->cpu_room = room;
    return true;
}

/* Adds how long it was busy since the previous sampling, and how long that was. A time that falls, as that of
 * waiting for disks may, counts as unchanged. */
static void compare(const struct system_cpu *cpu, const double *now, double *busy, double *all)
{
    for (int i = 0; i < SYSTEM_CPU_MODES; i++) {
        double grown = now[i] > cpu->modes[i] ? now[i] - cpu->modes[i] : 0;
        *all += grown;
        *busy += i == IDLE || i == IOWAIT ? 0 : grown;
    }
}

static void add_modes(struct system_source *source, const double *ticks, const char *cpu)
{
    for (int i = 0; i < SYSTEM_CPU_MODES; i++) {
        const weir_label labels[] = {{"mode", modes[i]}, {"cpu", cpu}};
        sampling_total(&source->sampling, &cpu_time, ticks[i], source->ticks_per_s, labels, cpu ? 2 : 1);
    }
}

/* What the processors of one sampling have in common. */
struct cpus {
    unsigned count, compared;
    double sum, lowest, highest;
};

static void add_cpu(struct system_source *source, size_t number, const double *ticks, struct cpus *cpus)
{
    struct sampling *sampling = &source->sampling;
    char name[24];
    if (!has_cpu(source, number))
        return;
    struct system_cpu *cpu = &source->cpus[number];
    cpus->count++;
    snprintf(name, sizeof name, "%zu", number);
    if (source->options->per_cpu)
        add_modes(source, ticks, name);
    if (cpu->number && cpu->number + 1 == sampling->number) { /* else it was offline */
        double busy = 0, all = 0;
        compare(cpu, ticks, &busy, &all);
        double share = all > 0 ? busy / all : 0;
        cpus->sum += share;
        cpus->lowest = !cpus->compared || share < cpus->lowest ? share : cpus->lowest;
        cpus->highest = share > cpus->highest ? share : cpus->highest;
        cpus->compared++;
        if (source->options->per_cpu)
            sampling_level(sampling, &utilization, share, &(weir_label){"cpu", name}, 1);
    }
    memcpy(cpu->modes, ticks, sizeof cpu->modes);
    cpu->number = sampling->number;
}

static void take_cpu_line(struct system_source *source, const char *line, struct cpus *cpus)
{
    double ticks[SYSTEM_CPU_MODES] = {0};
    const char *at = line + strlen("cpu");
    bool is_all = *at == ' ';
    char *end = NULL;
    size_t number = is_all ? 0 : strtoul(at, &end, 10);
    if ((!is_all && end == at) || proc_file_numbers(is_all ? at : end, ticks, SYSTEM_CPU_MODES) <= IDLE)
        return;
    if (!is_all)
        add_cpu(source, number, ticks, cpus);
    else if (!source->options->per_cpu)
        add_modes(source, ticks, NULL);
}

static void take_stat_line(struct system_source *source, const char *line, struct cpus *cpus)
{
    static const struct {
        const char *key;
        const struct sampling_figure *figure;
        bool is_total;
    } rows[] = {{"ctxt ", &switches, true},
                {"intr ", &interrupts, true},
                {"processes ", &created, true},
                {"procs_running ", &running, false},
                {"procs_blocked ", &blocked, false}};
    double value;
    if (strncmp(line, "cpu", 3) == 0) {
        take_cpu_line(source, line, cpus);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].key);
        if (strncmp(line, rows[i].key, length) != 0 || !proc_file_numbers(line + length, &value, 1))
            continue;
        if (rows[i].is_total)
            sampling_total(&source->sampling, rows[i].figure, value, 1, NULL, 0);
        else
            sampling_level(&source->sampling, rows[i].figure, value, NULL, 0);
    }
}

static void sample_stat(struct system_source *source, const struct system_limits *limits)
{
    struct sampling *sampling = &source->sampling;
    struct cpus cpus = {0};
    if (!system_read(source, "stat", "cpu"))
        return;
    char *rest = source->file.text, *line;
    while ((line = proc_file_line(&rest)))
        take_stat_line(source, line, &cpus);
    if (cpus.compared && !source->options->per_cpu)
        sampling_level(sampling, &utilization, cpus.sum / cpus.compared, NULL, 0);
    if (cpus.compared) {
        sampling_level(sampling, &lowest, cpus.lowest, NULL, 0);
        sampling_level(sampling, &highest, cpus.highest, NULL, 0);
    }
    if (cpus.count) {
        sampling_level(sampling, &logical, cpus.count, NULL, 0);
        sampling_level(sampling, &limit, limits->cpus < cpus.count ? limits->cpus : cpus.count, NULL, 0);
    }
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void sample_load(struct system_source *source)
{
    double averages[3];
    if (!system_read(source, "loadavg", "cpu.load_average") ||
        proc_file_numbers(source->file.text, averages, 3) != 3)
        return;
    for (int i = 0; i < 3; i++)
        sampling_level(&source->sampling, &loads[i], averages[i], NULL, 0);
}

static void sample_uptime(struct system_source *source)
{
    double seconds;
    if (system_read(source, "uptime", "uptime") && proc_file_numbers(source->file.text, &seconds, 1))
        sampling_level(&source->sampling, &uptime, seconds, NULL, 0);
}

/* Lines such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456", in microseconds:
 * https://docs.kernel.org/accounting/psi.html */
static void sample_pressure(struct system_source *source, const char *resource)
{
    char name[32];
    snprintf(name, sizeof name, "pressure/%s", resource);
    if (!system_read(source, name, "pressure.time"))
        return;
    char *rest = source->file.text, *line;
    while ((line = proc_file_line(&rest))) {
        const char *total = strstr(line, "total=");
        double us;
        line[strcspn(line, " ")] = '\0';
        if (!total || !proc_file_numbers(total + strlen("total="), &us, 1))
            continue;
        const weir_label labels[] = {{"resource", resource}, {"level", line}};
        sampling_total(&source->sampling, &pressure, us, 1e6, labels, 2);
    }
}

void system_cpu_sample(struct system_source *source, const struct system_limits *limits)
{
    sample_stat(source, limits);
    sample_load(source);
    sample_pressure(source, "cpu");
    sample_pressure(source, "memory");
    sample_pressure(source, "io");
    sample_uptime(source);
}
