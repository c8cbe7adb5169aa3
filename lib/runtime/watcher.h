/* watcher: polls the configuration's file (settings.reload) and reloads it when it has changed. */
#ifndef WR_WATCHER_H
#define WR_WATCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "os/lock.h"

/* Identifies a state of a file. */
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
    int64_t interval_ns; /* 0: never */
    struct wr_watcher_mark mark;
    bool running;
    bool stopping;             /* after a shutdown: the thread ends, and no other is started */
    void (*reload)(void *ctx); /* called on the watcher's thread, without locks */
    void *ctx;
};

/* Sets the file to watch; path NULL or interval 0: none. The path is copied. */
void wr_watcher_set(struct wr_watcher *watcher, const char *path, int64_t interval_ns);

/* Starts the thread, if there is a file to watch and it is not running. */
void wr_watcher_start(struct wr_watcher *watcher);

/* [shutdown] Tells the thread to end; does not wait for it. */
void wr_watcher_stop(struct wr_watcher *watcher, int64_t deadline_ns);

/* In a forked child: forgets thread and path. */
void wr_watcher_after_fork(struct wr_watcher *watcher);

#endif
