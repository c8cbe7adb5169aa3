/* status_find: finds running processes by their status files. */
#ifndef WEIR_TOOLS_STATUS_FIND_H
#define WEIR_TOOLS_STATUS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "status/status_page.h"

/* A running process and its snapshot. The snapshot has been checked, except that its texts may hold any bytes.
 */
struct status_process {
    const char *path; /* of the status file */
    uid_t user;       /* the owner of the file */
    bool foreign;     /* the pid belongs to another pid namespace */
    int64_t age_ns;   /* of the snapshot; -1: unknown */
    const struct wr_status_view *view;
};

struct status_search {
    const char *folder; /* NULL: the folders of the setting "auto", for root those of all users */
    int64_t pid;        /* -1: all */
    void (*visit)(void *ctx, const struct status_process *process);
    void *ctx;
    size_t found;      /* processes that were visited */
    size_t unreadable; /* files and folders that could not be read; each was reported on stderr */
};

/* Visits the processes that match. Modifies no file. */
void status_find(struct status_search *search);

#endif
