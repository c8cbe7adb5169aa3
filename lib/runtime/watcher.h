/* watcher: looks now and then whether the configuration's file has changed (settings.reload), and has it read
 * again. */
#ifndef WR_WATCHER_H
#define WR_WATCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "os/lock.h"

/* What tells one state of a file from another. */
struct wr_watcher_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct wr_watcher {
    struct wr_lock lock;
    struct wr_condition changed;
    char *path;          /* NULL: nothing to watch */
    int64_t interval_ns; /* 0: not at all */
    struct wr_watcher_mark mark;
    bool running;
    void (*reload)(void *ctx); /* called by the watcher's thread, without locks */
    void *ctx;
};

/* Watches a file from now on, or nothing (path NULL or interval 0). Needs no thread before wr_watcher_start. */
void wr_watcher_set(struct wr_watcher *watcher, const char *path, int64_t interval_ns);

/* Starts the thread, if there is something to watch and it does not run. */
void wr_watcher_start(struct wr_watcher *watcher);

/* In a forked child: there is no thread. */
void wr_watcher_after_fork(struct wr_watcher *watcher);

#endif
