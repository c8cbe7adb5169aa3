/* status: the thread that writes the status file (settings.status) once a second, at first more often; see
 * status_page.h and status_file.h. Readers of the file cannot delay the process. */
#ifndef WR_STATUS_H
#define WR_STATUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "os/lock.h"
#include "status/snapshot.h"
#include "status/status_file.h"

/* All zeros, but for sources: off. */
struct wr_status {
    struct wr_lock lock; /* protects all fields below except file and sources */
    struct wr_condition changed;
    char *setting; /* settings.status; NULL: off */
    uint64_t turn; /* incremented when the setting changes */
    bool running, stopping;
    pthread_t thread;
    struct wr_engine *engine;
    struct wr_snapshot_sources sources; /* set before the start */
    struct wr_status_file file;
};

/* Applies the setting of the current configuration; the thread is only started by wr_status_start. */
void wr_status_set(struct wr_status *status, const char *setting);

/* Starts the thread, if a folder is set and it does not run yet. engine: borrowed until the process ends. */
void wr_status_start(struct wr_status *status, struct wr_engine *engine);

/* Removes the file and ends the thread. If the disk is too slow for deadline_ns, the thread is detached. */
void wr_status_stop(struct wr_status *status, int64_t deadline_ns);

#endif
