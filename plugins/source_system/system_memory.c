/* system_memory: memory, swap, page faults and open files. */

#include <math.h>

#include "system_source.h"

static const struct sampling_figure usage = {"memory.usage", "By", "Memory by what it is used for"};
static const struct sampling_figure available = {"memory.available", "By",
                                                 "Memory that programs can get without swapping"};
static const struct sampling_figure all_memory = {"memory.total", "By", "Memory of the machine"};
static const struct sampling_figure limit = {"memory.limit", "By",
                                             "Memory of the machine, or what the cgroup allows"};
static const struct sampling_figure utilization = {"memory.utilization", "1",
                                                   "Share of the limit that is not available"};
static const struct sampling_figure paging_usage = {"paging.usage", "By", "Swap space"};
static const struct sampling_figure faults = {"paging.faults", "1", "Page faults; major: with a disk access"};
static const struct sampling_figure operations = {"paging.operations", "1",
                                                  "Pages read from swap and written to it"};
static const struct sampling_figure open_files = {"file_descriptors.open", "1", "Open files of all processes"};
static const struct sampling_figure most_files = {"file_descriptors.limit", "1", "How many there may be"};

static void add_level(struct system_source *source, const struct sampling_figure *figure, const char *key,
                      const char *label, double value)
{
    sampling_level(&source->sampling, figure, value, &(weir_label){key, label}, 1);
}

/* A number of /proc/meminfo in bytes; 0: it is not there. */
static double find_kb(const struct system_source *source, const char *key)
{
    double kb;
    return proc_file_find(source->file.text, key, &kb) ? kb * 1024 : 0;
}

static void sample_memory(struct system_source *source, const struct system_limits *limits)
{
    struct sampling *sampling = &source->sampling;
    if (!system_read(source, "meminfo", "memory"))
        return;
    double total = find_kb(source, "MemTotal:"), unused = find_kb(source, "MemFree:");
    double buffers = find_kb(source, "Buffers:");
    double cached = find_kb(source, "Cached:") + find_kb(source, "SReclaimable:");
    double free_for_use = find_kb(source, "MemAvailable:");
    double swap = find_kb(source, "SwapTotal:"), swap_free = find_kb(source, "SwapFree:");
    if (total <= 0) {
        sampling_miss(sampling, "memory", 0);
        return;
    }
    if (free_for_use <= 0) /* before Linux 3.14 */
        free_for_use = unused + buffers + cached;
    add_level(source, &usage, "state", "used", fmax(total - unused - buffers - cached, 0));
    add_level(source, &usage, "state", "free", unused);
    add_level(source, &usage, "state", "buffers", buffers);
    add_level(source, &usage, "state", "cached", cached);
    sampling_level(sampling, &available, free_for_use, NULL, 0);
    sampling_level(sampling, &all_memory, total, NULL, 0);
    bool is_limited = limits->memory < total;
    sampling_level(sampling, &limit, is_limited ? limits->memory : total, NULL, 0);
    sampling_level(sampling, &utilization,
                   is_limited ? limits->memory_used / limits->memory : (total - free_for_use) / total, NULL, 0);
    add_level(source, &paging_usage, "state", "used", swap - swap_free);
    add_level(source, &paging_usage, "state", "free", swap_free);
}

static void sample_paging(struct system_source *source)
{
    static const struct {
        const char *key;
        const struct sampling_figure *figure;
        weir_label label;
    } rows[] = {{"pgmajfault ", &faults, {"type", "major"}},
                {"pswpin ", &operations, {"direction", "in"}},
                {"pswpout ", &operations, {"direction", "out"}}};
    double all, value;
    if (!system_read(source, "vmstat", "paging"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (proc_file_find(source->file.text, rows[i].key, &value))
            sampling_total(&source->sampling, rows[i].figure, value, 1, &rows[i].label, 1);
    if (proc_file_find(source->file.text, "pgfault ", &all) &&
        proc_file_find(source->file.text, "pgmajfault ", &value))
        sampling_total(&source->sampling, &faults, all - value, 1, &(weir_label){"type", "minor"}, 1);
}

static void sample_files(struct system_source *source)
{
    double numbers[3]; /* allocated, unused, the limit: proc_sys_fs(5) */
    if (!system_read(source, "sys/fs/file-nr", "file_descriptors") ||
        proc_file_numbers(source->file.text, numbers, 3) != 3)
        return;
    sampling_level(&source->sampling, &open_files, numbers[0] - numbers[1], NULL, 0);
    sampling_level(&source->sampling, &most_files, numbers[2], NULL, 0);
}

void system_memory_sample(struct system_source *source, const struct system_limits *limits)
{
    sample_memory(source, limits);
    sample_paging(source);
    sample_files(source);
}
