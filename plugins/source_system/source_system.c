/* source_system: measures the machine: processors, memory, disks, networks. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "../system.h"
#include "system_source.h"

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("interval", DURATION, 0, "1s", "10ms..", "how often to measure", struct system_options,
                    interval_ns),
    WEIR_OPTION_ROW("per_cpu", BOOL, 0, "false", NULL,
                    "measure each processor, with the label cpu, instead of all together",
                    struct system_options, per_cpu),
    WEIR_OPTION_ROW("filesystems", LIST, 0, NULL, NULL, "mount points whose space is measured; without it /",
                    struct system_options, filesystems),
    WEIR_OPTION_ROW("proc", PATH, 0, "/proc", NULL,
                    "where the machine's proc is mounted, such as /host/proc in a container",
                    struct system_options, proc),
    WEIR_OPTION_ROW("sys", PATH, 0, "/sys", NULL, "the same of sysfs", struct system_options, sys),
    {0},
};

bool system_read(struct system_source *source, const char *name, const char *what)
{
    if (proc_file_read_in(&source->file, source->options->proc, name))
        return true;
    sampling_miss(&source->sampling, what, errno == ENOENT ? 0 : errno);
    return false;
}

static enum sampling_result sample(void *ctx)
{
    struct system_source *source = ctx;
    struct system_limits limits;
    system_limits_read(source, &limits);
    system_cpu_sample(source, &limits);
    system_memory_sample(source, &limits);
    system_devices_sample(source);
    return SAMPLING_TAKEN;
}

static void *create(const weir_host *host, const void *options)
{
    struct system_source *source = wr_system_allocate(host, sizeof *source);
    if (!source)
        return NULL;
    source->options = options;
    source->ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    sampling_init(&source->sampling, host, source->options->interval_ns);
    return source;
}

static void run(void *self, weir_outcome *outcome)
{
    struct system_source *source = self;
    (void)outcome;
    sampling_run(&source->sampling, sample, source);
}

static void abandon(void *self)
{
    const struct system_source *source = self;
    open_fds_abandon(&source->file.open);
}

static void destroy(void *self)
{
    struct system_source *source = self;
    sampling_fini(&source->sampling);
    proc_file_fini(&source->file);
    free(source->cpus);
    free(source);
}

static const weir_default defaults[] = {{"group", "system"}, {0}};

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_MEASURES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "system",
    .summary = "measures the machine: processors, memory, disks, networks",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct system_options),
    .defaults = defaults,
    .create = create,
    .run = run,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
