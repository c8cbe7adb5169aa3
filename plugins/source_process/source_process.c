/* source_process: measures a process with its descendants, or a cgroup. */

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../sampling/sampling.h"
#include "../system.h"
#include "process_cgroup.h"
#include "process_limits.h"
#include "process_tree.h"

struct process_options {
    int64_t interval_ns;
    int64_t pid;
    int64_t names;
    bool children, from_start;
    const char *cgroup, *proc;
};

enum { NAMES_OTEL, NAMES_PROMETHEUS };

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("interval", DURATION, 0, "1s", "10ms..", "how often to measure", struct process_options,
                    interval_ns),
    WEIR_OPTION_ROW("pid", INT, 0, "0", "0..", "the process; 0: the one in which the source is",
                    struct process_options, pid),
    WEIR_OPTION_ROW(
        "names", ENUM, 0, "otel", "otel|prometheus",
        "prometheus: what Prometheus' client libraries export of a process, alone and from its start",
        struct process_options, names),
    WEIR_OPTION_ROW("children", BOOL, 0, "true", NULL, "measure the process's descendants too",
                    struct process_options, children),
    WEIR_OPTION_ROW("from_start", BOOL, 0, "false", NULL,
                    "count what the process has used before the first measurement too", struct process_options,
                    from_start),
    WEIR_OPTION_ROW("cgroup", PATH, 0, NULL, NULL,
                    "a folder of a cgroup (version 2), which is measured instead of a process",
                    struct process_options, cgroup),
    WEIR_OPTION_ROW("proc", PATH, 0, "/proc", NULL, "where proc is mounted", struct process_options, proc),
    {0},
};

static const struct sampling_figure cpu_time = {"cpu.time", "s", "Processor time used"};
static const struct sampling_figure utilization = {"cpu.utilization", "1",
                                                   "The same as a share of what all processors have"};
static const struct sampling_figure memory = {"memory.usage", "By", "Memory in use"};
static const struct sampling_figure memory_virtual = {"memory.virtual", "By", "Memory that is mapped"};
static const struct sampling_figure faults = {"paging.faults", "1", "Page faults; major: with a disk access"};
static const struct sampling_figure disk_io = {"disk.io", "By", "Bytes read from disks and written to them"};
static const struct sampling_figure threads = {"thread.count", "1", "Threads"};
static const struct sampling_figure processes = {"count", "1", "Processes"};
static const struct sampling_figure descriptors = {"unix.file_descriptor.count", "1", "Open file descriptors"};

/* https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics, as the handler type prometheus
 * exports them from the group process: with the unit behind the name. */
static const struct sampling_figure standard_cpu = {"cpu", "s",
                                                    "Total user and system CPU time spent in seconds"};
static const struct sampling_figure standard_open_fds = {"open_fds", NULL, "Number of open file descriptors"};
static const struct sampling_figure standard_max_fds = {"max_fds", NULL,
                                                        "Maximum number of open file descriptors"};
static const struct sampling_figure standard_virtual = {"virtual_memory", "By", "Virtual memory size in bytes"};
static const struct sampling_figure standard_virtual_max = {
    "virtual_memory_max", "By", "Maximum amount of virtual memory available in bytes"};
static const struct sampling_figure standard_resident = {"resident_memory", "By",
                                                         "Resident memory size in bytes"};
static const struct sampling_figure standard_start_time = {
    "start_time", "s", "Start time of the process since unix epoch in seconds"};
static const struct sampling_figure standard_threads = {"threads", NULL, "Number of OS threads in the process"};

struct source {
    const weir_host *host;
    const struct process_options *options;
    struct sampling sampling;
    struct process_tree tree;
    struct process_figures figures;
    struct process_limits limits; /* with the names of Prometheus */
    int64_t pid;
    double started; /* which process that is; a number may be used again */
    int problem;    /* why the last measurement failed, an errno; 0: it did not */
    bool is_over;   /* the process has ended, or the cgroup was removed */
};

/* ---- One sampling ---------------------------------------------------------------------------- */

static double add_total(struct source *source, const struct sampling_figure *figure, double total,
                        const char *key, const char *label)
{
    return isnan(total) ? 0 : sampling_total(&source->sampling, figure, total, 1, &(weir_label){key, label}, 1);
}

static void add_level(struct source *source, const struct sampling_figure *figure, double level)
{
    if (!isnan(level))
        sampling_level(&source->sampling, figure, level, NULL, 0);
}

static void add_standard(struct source *source)
{
    struct sampling *sampling = &source->sampling;
    const struct process_figures *now = &source->figures;
    sampling_total(sampling, &standard_cpu, now->user_s + now->system_s, 1, NULL, 0);
    if (now->descriptors_problem)
        sampling_miss(sampling, "open_fds", now->descriptors_problem);
    else
        add_level(source, &standard_open_fds, now->descriptors);
    add_level(source, &standard_max_fds, source->limits.descriptors);
    add_level(source, &standard_virtual, now->virtual_bytes);
    add_level(source, &standard_virtual_max, source->limits.virtual_bytes);
    add_level(source, &standard_resident, now->resident_bytes);
    add_level(source, &standard_start_time, source->limits.start_time_s);
    add_level(source, &standard_threads, now->threads);
}

static void add_conventional(struct source *source)
{
    struct sampling *sampling = &source->sampling;
    const struct process_figures *now = &source->figures;
    double used_s = add_total(source, &cpu_time, now->user_s, "mode", "user") +
                    add_total(source, &cpu_time, now->system_s, "mode", "system");
    double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (sampling->elapsed_ns && !isnan(now->user_s))
        add_level(source, &utilization, used_s / ((double)sampling->elapsed_ns / 1e9) / (cpus > 0 ? cpus : 1));
    add_level(source, &memory, now->resident_bytes);
    add_level(source, &memory_virtual, now->virtual_bytes);
    add_total(source, &faults, now->minor_faults, "type", "minor");
    add_total(source, &faults, now->major_faults, "type", "major");
    if (now->io_problem)
        sampling_miss(sampling, "disk.io", now->io_problem);
    else {
        add_total(source, &disk_io, now->read_bytes, "direction", "read");
        add_total(source, &disk_io, now->written_bytes, "direction", "write");
    }
    add_level(source, &threads, now->threads);
    add_level(source, &processes, now->processes);
    if (now->descriptors_problem)
        sampling_miss(sampling, "unix.file_descriptor.count", now->descriptors_problem);
    else
        add_level(source, &descriptors, now->descriptors);
}

static void add_all(struct source *source)
{
    if (source->options->names == NAMES_PROMETHEUS)
        add_standard(source);
    else
        add_conventional(source);
}

/* Nothing else may end the source: it would stop measuring because of a moment without descriptors. */
static bool is_gone(const struct source *source, int problem)
{
    return source->options->cgroup ? problem == ENOENT || problem == ENODEV : problem == ESRCH;
}

static void describe(const struct source *source, int problem, char *text, size_t room)
{
    if (source->options->cgroup)
        snprintf(text, room, "%s: %s", source->options->cgroup, wr_system_strerror(problem));
    else
        snprintf(text, room, "process %lld: %s", (long long)source->pid, wr_system_strerror(problem));
}

/* Each reason once, until a measurement succeeds. */
static void log_problem(struct source *source, int problem)
{
    char text[256];
    if (problem == source->problem)
        return;
    source->problem = problem;
    describe(source, problem, text, sizeof text);
    source->host->log(source->host, WEIR_LOG_WARNING, "%s; measured again after the interval", text);
}

static bool read_figures(struct source *source)
{
    const struct process_options *options = source->options;
    if (options->cgroup)
        return process_cgroup_read(&source->tree.list.file, options->cgroup, &source->figures);
    if (options->names == NAMES_PROMETHEUS)
        process_limits_read(&source->tree.list, source->pid, source->started, &source->limits);
    return process_tree_read(&source->tree, source->pid, source->started, &source->figures);
}

static enum sampling_result sample(void *ctx)
{
    struct source *source = ctx;
    bool is_read = read_figures(source);
    int problem = errno;
    source->is_over = !is_read && is_gone(source, problem);
    if (is_read || (source->is_over && !source->options->cgroup && source->sampling.number > 1))
        add_all(source);
    if (is_read)
        source->problem = 0;
    else if (!source->is_over)
        log_problem(source, problem);
    return is_read ? SAMPLING_TAKEN : source->is_over ? SAMPLING_OVER : SAMPLING_FAILED;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void *create(const weir_host *host, const void *options)
{
    struct source *source = wr_system_allocate(host, sizeof *source);
    const struct process_options *given = options;
    if (!source)
        return NULL;
    if (given->cgroup && given->pid) {
        host->refuse(host, "cgroup", "only one of cgroup and pid may be given");
        free(source);
        return NULL;
    }
    if (given->cgroup && given->names == NAMES_PROMETHEUS) {
        host->refuse(host, "names", "\"prometheus\" names figures of a process, and cgroup is given");
        free(source);
        return NULL;
    }
    source->host = host;
    source->options = given;
    return source;
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    const struct process_options *options = source->options;
    bool is_standard = options->names == NAMES_PROMETHEUS;
    source->tree = (struct process_tree){.list.proc = options->proc,
                                         .with_children = options->children && !is_standard,
                                         .counts_earlier = options->from_start || is_standard};
    source->problem = 0;
    source->pid = options->pid ? options->pid : getpid();
    if (options->cgroup ? process_cgroup_read(&source->tree.list.file, options->cgroup, &source->figures)
                        : process_tree_started(&source->tree, source->pid, &source->started)) {
        sampling_init(&source->sampling, source->host, options->interval_ns);
        source->sampling.counts_first = !options->cgroup || options->from_start;
        source->sampling.keeps_totals = true; /* else what cannot be read once counts whole again */
        return;
    }
    int problem = errno;
    process_tree_fini(&source->tree);
    outcome->code = !options->cgroup && is_gone(source, problem) ? WEIR_OUTCOME_FAILED : WEIR_OUTCOME_RETRY;
    describe(source, problem, outcome->reason, sizeof outcome->reason);
}

/* A cgroup may be made again, a process not. */
static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    sampling_run(&source->sampling, sample, source);
    if (!source->is_over || !source->options->cgroup)
        return;
    wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s was removed", source->options->cgroup);
}

static void close_source(void *self)
{
    struct source *source = self;
    sampling_fini(&source->sampling);
    process_tree_fini(&source->tree);
}

static void abandon(void *self)
{
    const struct source *source = self;
    open_fds_abandon(&source->tree.list.file.open);
}

static void destroy(void *self)
{
    struct source *source = self;
    process_tree_fini(&source->tree);
    free(source);
}

static const weir_default defaults[] = {{"group", "process"}, {0}};

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_MEASURES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "process",
    .summary = "measures a process with its descendants, or a cgroup",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct process_options),
    .defaults = defaults,
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
