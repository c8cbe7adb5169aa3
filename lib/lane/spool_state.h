/* spool_state: how a lane uses its disk, as known under the lane's lock; what is there is in lane_ledger.h.
 * The disk itself (spool.h) is used without the lock, by the thread that has set `busy`. Only the functions
 * below change the state, and spool_policy and spool_io their parts of it. */
#ifndef WR_SPOOL_STATE_H
#define WR_SPOOL_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct wr_registry;
struct wr_spool;

/* All zeros: nothing, and no spool. */
struct wr_spool_state {
    char *place;                  /* folder for new samples; NULL: none */
    struct wr_registry *registry; /* NULL: the lane has had no worker yet */
    uint64_t bytes;               /* disk space that all samples there take */
    char trouble[200];            /* why the last attempt to move something failed; "": it did not */
    int64_t put_at_ns;            /* no attempt to move anything before this */
    int64_t search_at_ns;         /* no search for samples of other processes before this */
    int64_t save_at_ns;           /* when the lane stops: everything is moved from here on */

    /* spool_policy's; a delay ends `spilling` as well */
    bool spilling;      /* more is to be moved, up to... */
    uint64_t spill_end; /* ... this position */
    bool handler_turn;  /* the disk had its turn: nothing more is moved until the handler has had one */

    /* spool_io's */
    struct wr_spool *spool; /* NULL: not used so far */
    bool busy;              /* a thread is using the disk */
    uint32_t settled; /* of what was fetched, samples that are settled in the ledger only, not in the spool */
    uint64_t settled_values;
    uint64_t replayed;                     /* samples settled since the spool was empty */
    bool spooling_logged;                  /* that samples go to disk */
    int64_t spooling_log_ns, error_log_ns; /* no further message about that, or about an error, before this */
};

/* place: NULL: no spool; copied. Returns false if out of memory; there is no spool then. */
bool wr_spool_state_set_place(struct wr_spool_state *spool_state, const char *place);

static inline void wr_spool_state_set_registry(struct wr_spool_state *spool_state, struct wr_registry *registry)
{
    spool_state->registry = registry;
}

/* The disk space; if it is less than before, there is room again. */
void wr_spool_state_set_bytes(struct wr_spool_state *spool_state, uint64_t bytes);

/* Samples were moved. They could not be, for the reason of a message: no attempt is made before until_ns. */
static inline void wr_spool_state_moved(struct wr_spool_state *spool_state)
{
    spool_state->trouble[0] = '\0';
}

void wr_spool_state_delay(struct wr_spool_state *spool_state, const char *message, int64_t until_ns);

static inline void wr_spool_state_delay_search(struct wr_spool_state *spool_state, int64_t until_ns)
{
    spool_state->search_at_ns = until_ns;
}

/* The lane has to stop by a deadline: reserves a part of the time for moving what is left. */
void wr_spool_state_plan(struct wr_spool_state *spool_state, int64_t now_ns, int64_t deadline_ns);

#endif
