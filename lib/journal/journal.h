/* journal: a copy, as it were, of what is in this process's rings and queues, which outlives it.
 *
 *     PLACE/                     settings.journal
 *         journal.91b33f2c.4711.0/   of process 4711; locked while it lives, see spool_box.h
 *             lock
 *             meta.0                 the last committed round; how ticks become time
 *             series.0, ...          what ids mean
 *             ring.1, ...            the slots of the threads' rings
 *             seg.2, ...             the segments of the feeds
 *
 * Nothing is written a second time: rings and segments lie in these files. The way of a record from a ring to
 * the segments of one or more feeds is one step: the dispatcher copies, puts down for the coming round how far
 * each ring is taken and each segment filled, and commits the round by one store; only then may lanes see what
 * was copied, and the ring's writer use its slots again. So whenever the process dies, each record is either in
 * its ring, or in all segments it belongs to.
 *
 * Under the dispatcher's round, but for what is said to be called elsewhere. Where there is no space values go
 * on without it, and from time to time it is tried again. */
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

#define WR_JOURNAL_BOX "journal"
#define WR_JOURNAL_META_KIND "meta"
#define WR_JOURNAL_RING_KIND "ring"

/* The file `meta.0`. */
struct wr_journal_head {
    WR_ALIGNED_LINE uint64_t magic;
    uint32_t version;
    uint32_t pid;
    int64_t created_ns;
    uint64_t reserved;                      /* 0 */
    _Atomic uint32_t feeds;                 /* the last number that a feed got */
    _Atomic uint32_t line;                  /* which of the two counts */
    _Atomic uint64_t segments;              /* how often a segment was begun */
    WR_ALIGNED_LINE _Atomic uint64_t round; /* the last one that was committed */
    WR_ALIGNED_LINE struct wr_timeline lines[2];
};

enum { WR_JOURNAL_RINGS_MOST = 1100 };

struct wr_journal {
    struct wr_owner_dir box;
    struct wr_journal_map meta;
    struct wr_journal_head *head;
    struct wr_registry *registry;
    struct wr_ring_block *rings[WR_JOURNAL_RINGS_MOST];
    uint32_t ring_count;
    uint32_t files; /* the last number that a ring or a segment got */
    bool failing;
    int64_t retry_at_ns, renew_at_ns;
    struct wr_deferred_log *words; /* borrowed */

    struct wr_journal_series series; /* where series are made */
    _Atomic int series_problem;      /* errno; 0: all are defined */
};

/* Starts the journal of this process. words: what it has to say goes there. NULL: the error tells why there is
 * none. */
struct wr_journal *wr_journal_start(const char *place, struct wr_registry *registry,
                                    struct wr_deferred_log *words, struct wr_error *error);

/* [shutdown] Deletes it, if nothing in it is left; otherwise leaves it to whoever comes. */
void wr_journal_stop(struct wr_journal *journal);

/* [fork] Closes the lock in a forked child. */
void wr_journal_abandon(const struct wr_journal *journal);

/* ---- Rings and segments ---------------------------------------------------------------------- */

/* The block of a ring, or NULL: there is no space at present. */
struct wr_ring_block *wr_journal_ring(struct wr_journal *journal, uint32_t size, int64_t now_ns);

/* The file of a segment, not in use yet, or NULL: there is no space at present. */
struct wr_segment_file *wr_journal_segment(struct wr_journal *journal, const struct wr_segment_shape *shape,
                                           int64_t now_ns);

/* Takes a file into use. The caller has set file->ids. */
void wr_journal_begin(struct wr_journal *journal, struct wr_segment_file *file, uint32_t feed);

/* A number for a feed. */
uint32_t wr_journal_feed(struct wr_journal *journal);

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* The last committed round: what twins are put for. */
static inline uint64_t wr_journal_round(const struct wr_journal *journal)
{
    return atomic_load_explicit(&journal->head->round, memory_order_relaxed);
}

/* Commits all that was put for the round after it. */
static inline void wr_journal_commit(struct wr_journal *journal)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&journal->head->round, wr_journal_round(journal) + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Remembers how ticks become time at present. */
void wr_journal_keep_line(struct wr_journal *journal, const struct wr_timeline *timeline);

/* Tries what failed before again, when it is time to. Answers whether rings that are not in the journal should
 * be tried again. Lowers *next_ns. */
bool wr_journal_tend(struct wr_journal *journal, int64_t now_ns, int64_t *next_ns);

/* ---- Parts, for those who read journals too ---------------------------------------------------- */

/* Deletes all files but segments, and then the box if nothing is left in it. */
void wr_journal_remove(struct wr_owner_dir *box);

#endif
