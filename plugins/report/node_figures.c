#include "node_figures.h"

#include <math.h>

const char *const node_key_names[NODE_KEYS] = {
    "cpu_pct_per_cpu_avg", "cpu_pct_per_cpu_min", "cpu_pct_per_cpu_max", "mem_percent",
    "disk_usage_percent",  "disk_io_read_mb",     "disk_io_write_mb",    "net_io_lo_sent_mb",
    "net_io_lo_recv_mb",   "net_io_ext_sent_mb",  "net_io_ext_recv_mb",  "timestamp",
};

const struct node_figure node_figure_table[NODE_FIGURES] = {
    {"max_t_cpu_pct_per_cpu_avg", "%", "the most that all processors were busy", NODE_CPU_AVERAGE},
    {"cpu_avg_utilization_pct", "%", "how busy all processors were, on average", NODE_KEYS},
    {"cpu_avg_utilization_at100_pct", "% of reports", "all processors busy without a break", NODE_KEYS},
    {"cpu_avg_utilization_over80_pct", "% of reports", "all processors at least 80 % busy", NODE_KEYS},
    {"cpu_avg_utilization_over40_pct", "% of reports", "all processors at least 40 % busy", NODE_KEYS},
    {"cpu_avg_utilization_over20_pct", "% of reports", "all processors at least 20 % busy", NODE_KEYS},
    {"max_t_cpu_pct_per_cpu_min", "%", "the most that the least busy processor was busy", NODE_CPU_LEAST},
    {"max_t_cpu_pct_per_cpu_max", "%", "the most that any processor was busy", NODE_CPU_MOST},
    {"node_cpu_hours", "CPU h", "processors times hours since the first report", NODE_KEYS},
    {"node_unused_cpu_hours", "CPU h", "those in which processors were not busy", NODE_KEYS},
    {"max_t_mem_percent", "%", "the most memory in use", NODE_MEMORY},
    {"max_t_disk_usage_percent", "%", "the most space in use of the file system /", NODE_DISK_USAGE},
    {"total_disk_io_read_mb", "MiB", "read from disks since boot", NODE_DISK_READ},
    {"total_disk_io_write_mb", "MiB", "written to disks since boot", NODE_DISK_WRITTEN},
    {"total_net_io_lo_sent_mb", "MiB", "sent by the loopback interface since boot", NODE_LOOPBACK_SENT},
    {"total_net_io_ext_sent_mb", "MiB", "sent by all other interfaces since boot", NODE_EXTERNAL_SENT},
    {"total_net_io_lo_recv_mb", "MiB", "received by the loopback interface since boot", NODE_LOOPBACK_RECEIVED},
    {"total_net_io_ext_recv_mb", "MiB", "received by all other interfaces since boot", NODE_EXTERNAL_RECEIVED},
};

static double find_largest(const double *reports, size_t count, enum node_key key)
{
    double most = NAN;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, reports[i * NODE_KEYS + key]); /* of NAN and a number, the number */
    return most;
}

static double find_mean(const double *reports, size_t count, enum node_key key)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(reports[i * NODE_KEYS + key])) {
            sum += reports[i * NODE_KEYS + key];
            known++;
        }
    return known ? sum / (double)known : NAN;
}

/* In percent of the reports. */
static double find_share(const double *reports, size_t count, double least)
{
    size_t known = 0, reached = 0;
    for (size_t i = 0; i < count; i++) {
        double average = reports[i * NODE_KEYS + NODE_CPU_AVERAGE];
        known += isnan(average) ? 0 : 1;
        reached += average >= least ? 1 : 0;
    }
    return known ? 100 * (double)reached / (double)known : NAN;
}

void node_figures_compute(const double *reports, size_t count, double now_s, double cpus,
                          double figures[NODE_FIGURES])
{
    static const double steps[] = {100, 80, 40, 20};
    enum { MEAN = 1, FIRST_SHARE = 2, HOURS = 8, UNUSED_HOURS = 9 };
    for (size_t i = 0; i < NODE_FIGURES; i++)
        figures[i] = node_figure_table[i].largest == NODE_KEYS
                         ? NAN
                         : find_largest(reports, count, node_figure_table[i].largest);
    figures[MEAN] = find_mean(reports, count, NODE_CPU_AVERAGE);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        figures[FIRST_SHARE + i] = find_share(reports, count, steps[i]);
    figures[HOURS] = count ? (now_s - reports[NODE_TIME]) * cpus / 3600 : NAN;
    figures[UNUSED_HOURS] = figures[HOURS] * (100 - figures[MEAN]) / 100;
}
