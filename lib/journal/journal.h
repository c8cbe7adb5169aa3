/* journal: the rings and queues of this process in mapped files, which survive it.
 *
 *     PLACE/                     settings.journal
 *         journal.91b33f2c.4711.0/   of process 4711; locked while it lives, see owner_dir.h
 *             lock
 *             meta.0                 the last committed round; conversion of ticks to time
 *             series.0, ...          definitions of series ids
 *             ring.1, ...            the slots of the threads' rings
 *             cells.2, ...           the threads' cells
 *             seg.3, ...             the segments of the feeds
 *             fronts.0, ...          which numbers of senders were taken, see fronts_file.h
 *
 * Rings, cells and segments are in these files, so nothing is written twice. Moving records from a ring to the
 * segments of one or more feeds is atomic: the dispatcher copies them, stores how far each ring is taken and
 * each segment filled for the next round (versioned.h), and commits the round by one store. Only then may lanes
 * see the copies, and the ring's writer reuse the slots. So whenever the process dies, each record is either in
 * its ring, or in all of its segments.
 *
 * [dispatcher's round], unless stated otherwise. Without disk space, rings and segments are in memory; the
 * journal tries again every second. */
#ifndef WR_JOURNAL_H
#define WR_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/common.h"
#include "os/mapped_file.h"
#include "journal/journal_series.h"
#include "registry/registry.h"
#include "producer/ring.h"
#include "segment/segment_file.h"
#include "os/owner_dir.h"
#include "os/timeline.h"
#include "os/deferred_log.h"

struct wr_error;

#define WR_JOURNAL_DIR "journal"
#define WR_JOURNAL_META_KIND "meta"
#define WR_JOURNAL_RING_KIND "ring"
#define WR_JOURNAL_CELLS_KIND "cells"

/* The file `meta.0`. Magic and version have these offsets in all versions. */
struct wr_journal_head {
    WR_ALIGNED_LINE uint64_t magic;
    uint32_t version;
    uint32_t pid;
    int64_t created_ns;
    _Atomic uint64_t has_left;              /* 1: values were moved from rings to memory, and may be lost */
    _Atomic uint32_t feeds;                 /* the last number given to a feed */
    _Atomic uint32_t line;                  /* index of the current line */
    _Atomic uint64_t segments;              /* number of times that a segment was begun */
    WR_ALIGNED_LINE _Atomic uint64_t round; /* the last committed one */
    WR_ALIGNED_LINE struct wr_timeline lines[2];
};

enum { WR_JOURNAL_RINGS_MOST = 1100 };

struct wr_journal {
    struct wr_owner_dir dir;
    struct wr_journal_map meta;
    struct wr_journal_head *head;
    struct wr_registry *registry;
    struct wr_ring_block *rings[WR_JOURNAL_RINGS_MOST];
    uint32_t ring_count;
    struct wr_cells_block *cells; /* the latest first */
    uint32_t files;               /* the last number given to a ring, cells or a segment */
    bool failing;
    bool has_space_again; /* rings and cells that could not be made are to be tried again */
    int64_t retry_at_ns, renew_at_ns;
    struct wr_deferred_log *deferred_log; /* borrowed */

    struct wr_journal_series series; /* [registry lock] */
    _Atomic int series_problem;      /* errno; 0: all series are defined */
};

/* Starts the journal of this process. deferred_log: for its messages. Returns NULL and sets the error on
 * failure. */
struct wr_journal *wr_journal_start(const char *place, struct wr_registry *registry,
                                    struct wr_deferred_log *deferred_log, struct wr_error *error);

/* [shutdown] Deletes the files if nothing is left in them, but not the fronts; otherwise releases the lock, for
 * the next process. */
void wr_journal_stop(struct wr_journal *journal);

/* [fork] Closes the lock's descriptor in a forked child. */
void wr_journal_abandon(const struct wr_journal *journal);

/* ---- Rings and segments ---------------------------------------------------------------------- */

/* Makes the block of a ring. Returns NULL if there is no space now. */
struct wr_ring_block *wr_journal_ring(struct wr_journal *journal, uint32_t size, int64_t now_ns);

/* Makes a file for cells, of that size. Returns NULL if there is no space now. */
struct wr_cells_block *wr_journal_cells(struct wr_journal *journal, size_t size, int64_t now_ns);

/* Makes the file of a segment, not in use yet. Returns NULL if there is no space now. */
struct wr_segment_file *wr_journal_segment(struct wr_journal *journal, const struct wr_segment_shape *shape,
                                           int64_t now_ns);

/* Takes a file into use. The caller has set file->ids. */
void wr_journal_begin(struct wr_journal *journal, struct wr_segment_file *file, uint32_t feed);

/* Values of its rings are going to be in a segment in memory: fronts that name them are not valid any more if
 * this process is killed. */
void wr_journal_let_out(struct wr_journal *journal);

/* Returns a new number for a feed. */
uint32_t wr_journal_feed(struct wr_journal *journal);

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* The last committed round. */
static inline uint64_t wr_journal_round(const struct wr_journal *journal)
{
    return atomic_load_explicit(&journal->head->round, memory_order_relaxed);
}

/* Commits everything that was stored for the next round. */
static inline void wr_journal_commit(struct wr_journal *journal)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&journal->head->round, wr_journal_round(journal) + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Stores the current conversion of ticks to time. */
void wr_journal_keep_line(struct wr_journal *journal, const struct wr_timeline *timeline);

/* Retries what failed before, if it is time. Returns whether rings that are not in the journal should be tried
 * again. Lowers *next_ns to the time of the next retry. */
bool wr_journal_tend(struct wr_journal *journal, int64_t now_ns, int64_t *next_ns);

/* Deletes all files but segments, then the directory if it is empty, and releases the lock. */
void wr_journal_remove(struct wr_owner_dir *dir);

#endif
