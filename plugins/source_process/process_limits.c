#include "process_limits.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A line such as "Max open files            1024                 4096                 files". */
static double find_limit(const char *text, const char *name)
{
    double number;
    const char *line = strstr(text, name);
    if (!line)
        return NAN;
    line += strlen(name);
    line += strspn(line, " ");
    if (strncmp(line, "unlimited", strlen("unlimited")) == 0)
        return (double)UINT64_MAX;
    return proc_file_numbers(line, &number, 1) ? number : NAN;
}

static double read_start_time(struct process_list *list, double started)
{
    double boot_s, ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    return proc_file_read_in(&list->file, list->proc, "stat") &&
                   proc_file_find(list->file.text, "btime ", &boot_s)
               ? boot_s + started / ticks_per_s
               : NAN;
}

void process_limits_read(struct process_list *list, int64_t pid, double started, struct process_limits *limits)
{
    *limits = (struct process_limits){read_start_time(list, started), NAN, NAN};
    if (!process_list_read_file(list, pid, "limits"))
        return;
    limits->descriptors = find_limit(list->file.text, "Max open files");
    limits->virtual_bytes = find_limit(list->file.text, "Max address space");
}
