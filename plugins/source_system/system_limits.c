/* system_limits: what cgroups (version 2) allow this process:
 * https://docs.kernel.org/admin-guide/cgroup-v2.html */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "system_source.h"

enum { PATH_ROOM = 4096 };

static bool read_in(struct system_source *source, const char *folder, const char *name)
{
    return proc_file_read_in(&source->file, folder, name);
}

static void read_memory(struct system_source *source, const char *folder, struct system_limits *limits)
{
    double most, used, inactive = 0;
    if (!read_in(source, folder, "memory.max") || !proc_file_numbers(source->file.text, &most, 1) ||
        most >= limits->memory)
        return;
    if (!read_in(source, folder, "memory.current") || !proc_file_numbers(source->file.text, &used, 1))
        return;
    if (read_in(source, folder, "memory.stat"))
        proc_file_find(source->file.text, "inactive_file ", &inactive);
    limits->memory = most;
    limits->memory_used = inactive < used ? used - inactive : 0;
}

/* "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static void read_cpus(struct system_source *source, const char *folder, struct system_limits *limits)
{
    double numbers[2];
    if (read_in(source, folder, "cpu.max") && proc_file_numbers(source->file.text, numbers, 2) == 2 &&
        numbers[1] > 0)
        limits->cpus = fmin(limits->cpus, numbers[0] / numbers[1]);
}

/* The process's own cgroup and those around it: each may set a limit. Inside a container the path may be one
 * that is not visible; then that of the container is the root. */
void system_limits_read(struct system_source *source, struct system_limits *limits)
{
    char root[PATH_ROOM], folder[2 * PATH_ROOM];
    *limits = (struct system_limits){INFINITY, 0, INFINITY};
    if (!proc_file_read_in(&source->file, source->options->proc, "self/cgroup"))
        return;
    char *path =
        strncmp(source->file.text, "0::", 3) == 0 ? source->file.text + 3 : strstr(source->file.text, "\n0::");
    if (!path)
        return;
    path += *path == '\n' ? strlen("\n0::") : 0;
    path[strcspn(path, "\n")] = '\0';
    snprintf(root, sizeof root, "%s/fs/cgroup", source->options->sys);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", root, path) >= sizeof folder)
        return;
    for (;;) {
        read_memory(source, folder, limits);
        read_cpus(source, folder, limits);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= strlen(root) || !slash)
            return;
        *slash = '\0';
    }
}
