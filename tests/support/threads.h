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

/* Whether the thread waits in the kernel. */
static inline bool thread_sleeps(const char *id)
{
    char path[300], text[200] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return true; /* it has ended */
    const char *name_end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    fclose(file);
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

static inline bool all_others_sleep(void)
{
    bool all = true;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        all &= entry->d_name[0] == '.' || atoi(entry->d_name) == gettid() || thread_sleeps(entry->d_name);
    if (folder)
        closedir(folder);
    return all;
}

#endif
