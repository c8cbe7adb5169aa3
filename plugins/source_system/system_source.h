/* system_source: what the files of the source type system share. */
#ifndef WEIR_PLUGINS_SYSTEM_SOURCE_H
#define WEIR_PLUGINS_SYSTEM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/source.h>

#include "../sampling/proc_file.h"
#include "../sampling/sampling.h"

struct system_options {
    int64_t interval_ns;
    bool per_cpu;
    weir_list filesystems;
    const char *proc, *sys;
};

enum { SYSTEM_CPU_MODES = 8 };

/* A processor's time in each mode, in ticks since boot. */
struct system_cpu {
    double modes[SYSTEM_CPU_MODES];
    uint64_t number; /* of the sampling that has read it last */
};

struct system_source {
    struct sampling sampling;
    const struct system_options *options;
    struct proc_file file;
    double ticks_per_s;
    struct system_cpu *cpus; /* by their numbers */
    size_t cpu_room;
};

/* What cgroups allow this process; INFINITY: no limit. */
struct system_limits {
    double memory;      /* bytes */
    double memory_used; /* of the cgroup with that limit, without pages that can be dropped at once */
    double cpus;        /* processors' worth of time */
};

void system_limits_read(struct system_source *source, struct system_limits *limits);

void system_cpu_sample(struct system_source *source, const struct system_limits *limits);
void system_memory_sample(struct system_source *source, const struct system_limits *limits);
void system_devices_sample(struct system_source *source);

/* Reads a file of /proc. Returns false after it was logged that `what` is left out. */
bool system_read(struct system_source *source, const char *name, const char *what);

#endif
