/* threads: how many threads this process has. */
#ifndef THREADS_H
#define THREADS_H

#include <dirent.h>

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

#endif
