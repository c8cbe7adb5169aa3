/* status: lets others look into the process (settings.status): a thread writes once a second (at first
 * more often) what there is to tell into a file, see status_page.h and status_file.h. Nobody who reads it can
 * hold up the process, which does not even know whether somebody does. */
#ifndef WR_STATUS_H
#define WR_STATUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "os/lock.h"
#include "status/status_file.h"

struct wr_status {
    struct wr_lock lock; /* for all below, but the file */
    struct wr_condition changed;
    char *setting; /* settings.status; NULL: off */
    uint64_t turn; /* changes with it */
    bool running, stopping;
    pthread_t thread;
    struct wr_engine *engine;
    struct wr_status_file file;
};

/* The setting of the configuration in force. Needs no thread before wr_status_start. */
void wr_status_set(struct wr_status *status, const char *setting);

/* Starts the thread, if it has something to do and does not run. engine: the process's, for ever. */
void wr_status_start(struct wr_status *status, struct wr_engine *engine);

/* Removes the file and ends the thread; a disk that takes longer than until deadline_ns is left to itself. */
void wr_status_stop(struct wr_status *status, int64_t deadline_ns);

/* In a forked child: there is no thread, and the file is the parent's. */
void wr_status_after_fork(struct wr_status *status);

#endif
