/* snapshot: the state of the process at one moment, for the status file, and the rates since the snapshot
 * before.
 *
 * The numbers of each handler are consistent, and so are those of the process. Between them time passes, as no
 * thread is stopped for a snapshot. Not thread-safe. */
#ifndef WR_SNAPSHOT_H
#define WR_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "engine/engine.h"
#include "status/status_page.h"

/* The counts of the snapshot before, for rates. */
struct wr_snapshot_before {
    const struct wr_lane *lane; /* lanes are never freed */
    uint64_t offered, delivered, dropped;
};

/* Reads the state of the source with that index. Returns false if there are not that many. Sources are above
 * this folder. */
typedef bool wr_snapshot_read_source(void *ctx, size_t index, struct wr_status_source *source);

/* Copies senders of the source with that index, at most room. Returns how many there are. */
typedef size_t wr_snapshot_read_senders(void *ctx, size_t index, struct wr_status_sender *senders, size_t room);

/* How to read what sources have read; both NULL: there are none. */
struct wr_snapshot_sources {
    wr_snapshot_read_source *read;
    wr_snapshot_read_senders *read_senders;
    void *ctx;
};

struct wr_snapshot {
    struct wr_status_view view;
    int64_t before_ns; /* time of the snapshot before (monotonic); 0: there was none */
    uint64_t added_before;
    struct wr_snapshot_before before[WR_STATUS_HANDLERS_MOST];
    uint64_t start_ticks, pid_namespace;
};

/* Sets what does not change during the life of the process; there is no snapshot before. */
void wr_snapshot_init(struct wr_snapshot *snapshot);

/* Takes a snapshot, into snapshot->view. */
void wr_snapshot_take(struct wr_snapshot *snapshot, struct wr_engine *engine,
                      const struct wr_snapshot_sources *sources);

/* When a process of the caller's pid namespace started, in clock ticks since boot; with the pid it identifies a
 * process, as pids are reused. pid 0: the calling process. Returns 0 if there is no such process. */
uint64_t wr_snapshot_start_ticks(int64_t pid);

/* Identifies the caller's pid namespace; 0: not known. */
uint64_t wr_snapshot_pid_namespace(void);

#endif
