/* spool_state: the part of a lane that is on disk, on its way there, or on its way back: what is known of it
 * under the lane's lock. Of what is on disk itself (spool.h) only whoever has set `busy` knows more; he does
 * not hold the lock then. */
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
    char *place;                  /* where new samples go; NULL: nowhere */
    struct wr_registry *registry; /* NULL: the lane has had no worker yet */
    struct wr_spool *spool;       /* NULL: not used so far */
    bool busy;                    /* somebody is at the disk */

    uint64_t samples; /* on disk, and not settled */
    uint64_t own;     /* those of them that this process was offered */
    uint64_t front;   /* the position of the oldest of these, or one before it */
    uint64_t bytes;   /* that all of it takes on disk */

    struct wr_range moving;  /* on its way there; counts as queued. segment NULL: nothing */
    struct wr_range fetched; /* on its way back, as what is in flight may be; both count as on disk */
    bool fetched_own;
    struct wr_label_set *labels; /* true of what was fetched */
    uint32_t settled;            /* of what was fetched: the spool does not know yet */

    bool spilling;        /* more is to be moved, up to... */
    uint64_t spill_end;   /* ... this position */
    bool tired;           /* it was the disk's turn; now it is the handler's */
    int64_t put_at_ns;    /* no try to move anything before this */
    int64_t search_at_ns; /* no search for what others left before this */
    int64_t save_at_ns;   /* when the lane stops: what is left goes to disk from here on */

    bool filling_said;                                /* that samples go to disk */
    int64_t filling_reminder_ns, trouble_reminder_ns; /* no further word on that before this */
    uint64_t replayed;                                /* since there was nothing on disk */
};

/* place: NULL, no spool; copied. false: no memory, and no spool. */
bool wr_spool_state_set_place(struct wr_spool_state *spool_state, const char *place);

void wr_spool_state_fini(struct wr_spool_state *spool_state);

/* The lane is asked to stop by a deadline: some of the time is set aside for moving what is left. */
void wr_spool_state_plan(struct wr_spool_state *spool_state, int64_t now_ns, int64_t deadline_ns);

/* Gives up what was fetched: it stays on disk. */
void wr_spool_state_forget_fetched(struct wr_spool_state *spool_state);

#endif
