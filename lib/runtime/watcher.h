/* watcher: polls the configuration's files (settings.reload) and reloads them when one has changed. */
#ifndef WR_WATCHER_H
#define WR_WATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "config/config.h"
#include "os/file_mark.h"
#include "os/lock.h"

/* A file, or a folder: that changes when a file is added, removed or renamed in it. */
struct wr_watcher_file {
    char *path;
    struct wr_file_mark mark;
};

/* All zeros: nothing to watch. */
struct wr_watcher {
    struct wr_lock lock;
    struct wr_condition changed;
    struct wr_watcher_file *files;
    size_t count;        /* 0: nothing to watch */
    uint64_t generation; /* of `files` */
    int64_t interval_ns; /* 0: never */
    bool running;
    bool stopping;             /* after a shutdown: the thread ends, and no other is started */
    void (*reload)(void *ctx); /* called on the watcher's thread, without locks */
    void *ctx;
};

/* Sets the files and folders to watch, which are copied; count or interval 0: none. Their marks are from before
 * they were read, so that a change since then is seen. */
void wr_watcher_set(struct wr_watcher *watcher, const struct wr_watched *watched, size_t count,
                    int64_t interval_ns);

/* Starts the thread, if there is something to watch and it is not running. */
void wr_watcher_start(struct wr_watcher *watcher);

/* [shutdown] Tells the thread to end; does not wait for it. */
void wr_watcher_stop(struct wr_watcher *watcher, int64_t deadline_ns);

#endif
