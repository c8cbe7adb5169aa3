/* spool_state: how a lane uses its disk, as known under the lane's lock; what is there is in lane_ledger.h.
 * The disk itself (spool.h) is used without the lock, by the thread that has set `busy`. */
#ifndef WR_SPOOL_STATE_H
#define WR_SPOOL_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct wr_registry;
struct wr_spool;

/* All zeros: nothing, and no spool. */
struct wr_spool_state {
    char *place;                  /* folder for new samples; NULL: none. Set by the functions below */
    int64_t save_at_ns;           /* when the lane stops: everything is moved from here on. The same */
    struct wr_registry *registry; /* lane_worker's; NULL: the lane has had no worker yet */

    /* spool_policy's; spool_io ends `spilling` as well, when something cannot be moved */
    bool spilling;      /* more is to be moved, up to... */
    uint64_t spill_end; /* ... this position */
    bool handler_turn;  /* the disk had its turn: nothing more is moved until the handler has had one */

    /* spool_io's; the functions below set the times to 0, for another attempt at once */
    int64_t put_at_ns;      /* no attempt to move anything before this */
    int64_t search_at_ns;   /* no search for samples of other processes before this */
    uint64_t bytes;         /* disk space that all samples there take */
    char trouble[200];      /* why the last attempt to move something failed; "": it did not */
    struct wr_spool *spool; /* NULL: not used so far */
    bool busy;              /* a thread is using the disk */
    uint32_t settled; /* of what was fetched, samples that are settled in the ledger only, not in the spool */
    uint64_t settled_values;
    uint64_t replayed;                     /* values settled since the spool was empty */
    bool spooling_logged;                  /* that samples go to disk */
    int64_t spooling_log_ns, error_log_ns; /* no further message about that, or about an error, before this */
};

/* place: NULL: no spool; copied. Returns false if out of memory; there is no spool then. */
bool wr_spool_state_set_place(struct wr_spool_state *spool_state, const char *place);

/* The lane has to stop by a deadline: reserves a part of the time for moving what is left. */
void wr_spool_state_plan(struct wr_spool_state *spool_state, int64_t now_ns, int64_t deadline_ns);

#endif
