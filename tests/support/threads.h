/* threads: how many threads this process has, and whether they sleep. */
#ifndef THREADS_H
#define THREADS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns 0 if they cannot be counted. */
static inline int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

/* Whether the thread waits in the kernel. switches: how often it has begun to run is added. */
static inline bool thread_sleeps(const char *id, unsigned long *switches)
{
    char path[300], line[200];
    bool sleeps = false;
    unsigned long count;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return true; /* it has ended */
    while (fgets(line, sizeof line, file)) {
        sleeps |= strncmp(line, "State:\tS", 8) == 0;
        if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1)
            *switches += count;
    }
    fclose(file);
    return sleeps;
}

static inline bool all_others_sleep(unsigned long *switches)
{
    bool all = true;
    DIR *folder = opendir("/proc/self/task");
    *switches = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        all &= entry->d_name[0] == '.' || atoi(entry->d_name) == gettid() ||
               thread_sleeps(entry->d_name, switches);
    if (folder)
        closedir(folder);
    return all;
}

/* Waits until the other threads sleep and none has run for so long: then none waits for a shorter time, however
 * late the machine runs them. */
static inline void wait_until_others_rest(unsigned us)
{
    unsigned long before, after;
    bool sleep_before, sleep_after = all_others_sleep(&after);
    do {
        before = after;
        sleep_before = sleep_after;
        usleep(us);
        sleep_after = all_others_sleep(&after);
    } while (!sleep_before || !sleep_after || before != after);
}

#endif
