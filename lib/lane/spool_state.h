/* spool_state: the part of a lane that is on disk, being written or being read, as known under the lane's lock.
 * The disk itself (spool.h) is used without the lock, by the thread that has set `busy`. */
#ifndef WR_SPOOL_STATE_H
#define WR_SPOOL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/labels.h"
#include "segment/queue.h"

struct wr_registry;
struct wr_spool;

/* All zeros: nothing, and no spool. */
struct wr_spool_state {
    char *place;                  /* folder for new samples; NULL: none */
    struct wr_registry *registry; /* NULL: the lane has had no worker yet */
    struct wr_spool *spool;       /* NULL: not used so far */
    bool busy;                    /* a thread is using the disk */

    uint64_t samples; /* on disk, and not settled */
    uint64_t extra; /* of them, see wr_segment_extra: those of damaged ones are known when the spool is empty */
    uint64_t own;   /* of them, this process's own */
    uint64_t front; /* position of the oldest of its own, or one before it */
    uint64_t bytes; /* disk space that all of it takes */

    struct wr_range moving;  /* being written; counts as queued. segment NULL: nothing */
    struct wr_range fetched; /* read, but not in flight yet; counts as on disk, also in flight */
    bool fetched_own;
    struct wr_label_set *labels; /* of what was fetched */
    uint32_t settled;            /* of what was fetched, samples that are not settled in the spool yet */
    uint64_t settled_extra;

    bool spilling;        /* more is to be moved, up to... */
    uint64_t spill_end;   /* ... this position */
    bool handler_turn;    /* the disk had its turn: nothing more is moved until the handler has had one */
    int64_t put_at_ns;    /* no attempt to move anything before this */
    int64_t search_at_ns; /* no search for samples of other processes before this */
    int64_t save_at_ns;   /* when the lane stops: everything is moved from here on */

    char trouble[200]; /* why nothing could be written at the last attempt; "": it could */

    bool spooling_logged;                  /* that samples go to disk */
    int64_t spooling_log_ns, error_log_ns; /* no further message about that, or about an error, before this */
    uint64_t replayed;                     /* samples settled since the spool was empty */
};

/* How many values are on disk. */
static inline uint64_t wr_spool_state_values(const struct wr_spool_state *spool_state)
{
    return spool_state->samples + spool_state->extra;
}

/* place: NULL: no spool; copied. Returns false if out of memory; there is no spool then. */
bool wr_spool_state_set_place(struct wr_spool_state *spool_state, const char *place);

void wr_spool_state_fini(struct wr_spool_state *spool_state);

/* The lane has to stop by a deadline: reserves a part of the time for moving what is left. */
void wr_spool_state_plan(struct wr_spool_state *spool_state, int64_t now_ns, int64_t deadline_ns);

/* Drops what was fetched from memory; it stays on disk. */
void wr_spool_state_forget_fetched(struct wr_spool_state *spool_state);

#endif
