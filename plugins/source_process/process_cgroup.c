#include "process_cgroup.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static double read_one(struct proc_file *file, const char *folder, const char *name)
{
    double number;
    return proc_file_read_in(file, folder, name) && proc_file_numbers(file->text, &number, 1) ? number : NAN;
}

static double find(const struct proc_file *file, const char *key)
{
    double number;
    return proc_file_find(file->text, key, &number) ? number : NAN;
}

/* Lines such as "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0", one for each disk. */
static double sum_of(const char *text, const char *key)
{
    double sum = 0, number;
    for (const char *at = text; (at = strstr(at, key)); at += strlen(key))
        if (proc_file_numbers(at + strlen(key), &number, 1))
            sum += number;
    return sum;
}

static void read_memory(struct proc_file *file, const char *folder, struct process_figures *figures)
{
    figures->resident_bytes = read_one(file, folder, "memory.current");
    if (!proc_file_read_in(file, folder, "memory.stat"))
        return;
    figures->major_faults = find(file, "pgmajfault ");
    figures->minor_faults = find(file, "pgfault ") - figures->major_faults;
}

bool process_cgroup_read(struct proc_file *file, const char *folder, struct process_figures *figures)
{
    *figures = (struct process_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0};
    if (!proc_file_read_in(file, folder, "cgroup.procs"))
        return false;
    figures->processes = 0;
    for (const char *at = file->text; (at = strchr(at, '\n')); at++)
        figures->processes++;
    if (proc_file_read_in(file, folder, "cpu.stat")) {
        figures->user_s = find(file, "user_usec ") / 1e6;
        figures->system_s = find(file, "system_usec ") / 1e6;
    }
    read_memory(file, folder, figures);
    figures->threads = read_one(file, folder, "pids.current");
    if (proc_file_read_in(file, folder, "io.stat")) {
        figures->read_bytes = sum_of(file->text, "rbytes=");
        figures->written_bytes = sum_of(file->text, "wbytes=");
    }
    return true;
}
