#include "status/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

/* The 22nd field of stat; the second one, the program's name in brackets, may hold anything. */
uint64_t wr_process_started_ticks(int64_t pid)
{
    enum { BEHIND_NAME = 20 };
    char path[64] = "/proc/self/stat", text[1024];
    if (pid)
        snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int file = wr_fd_open(path, O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int i = 0; at && i < BEHIND_NAME; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t wr_process_pid_space(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}
