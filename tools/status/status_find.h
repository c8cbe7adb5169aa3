/* status_find: the processes that can be looked into. */
#ifndef WEIR_TOOLS_STATUS_FIND_H
#define WEIR_TOOLS_STATUS_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "status/status_page.h"

/* A process that lives, and what it tells of itself: checked, but for what is in texts. */
struct status_process {
    const char *path; /* of its file */
    uid_t user;       /* who owns the file */
    bool foreign;     /* its number is of another pid namespace */
    int64_t age_ns;   /* of what it tells; -1: not known */
    const struct wr_status_view *view;
};

struct status_search {
    const char *folder; /* NULL: those that "auto" may stand for, and for root everybody's */
    int64_t pid;        /* -1: all */
    void (*visit)(void *ctx, const struct status_process *process);
    void *ctx;
    size_t found;      /* so many were visited */
    size_t unreadable; /* files that another user's process may have made, or that cannot be read: said */
};

/* Visits the processes that are looked for. Changes nothing anywhere. */
void status_find(struct status_search *search);

#endif
