/* snapshot: what a process has to tell of itself at one moment, and how fast that changes.
 *
 * Each handler's part is of one moment, and so is the process's; between them time passes, as nobody is held up
 * for a snapshot. [one thread at a time] */
#ifndef WR_SNAPSHOT_H
#define WR_SNAPSHOT_H

#include <stdint.h>

#include "engine/engine.h"
#include "status/status_page.h"

/* What rates are counted from. */
struct wr_snapshot_before {
    const struct wr_lane *lane; /* lanes are never freed */
    uint64_t offered, delivered, dropped;
};

struct wr_snapshot {
    struct wr_status_view view;
    int64_t before_ns; /* monotonic: when the one before was taken; 0: there was none */
    uint64_t added_before;
    struct wr_snapshot_before before[WR_STATUS_HANDLERS_MOST];
    uint64_t start_ticks, pid_namespace;
};

/* Starts afresh: learns what does not change while the process lives. */
void wr_snapshot_init(struct wr_snapshot *snapshot);

/* Takes another one, into snapshot->view. */
void wr_snapshot_take(struct wr_snapshot *snapshot, struct wr_engine *engine);

/* When a process of the caller's pid namespace started, in clock ticks since boot; with the pid it identifies a
 * process, as pids are reused. pid 0: the calling process. Returns 0 if there is no such process. */
uint64_t wr_snapshot_start_ticks(int64_t pid);

/* Identifies the caller's pid namespace; 0: not known. */
uint64_t wr_snapshot_pid_namespace(void);

#endif
