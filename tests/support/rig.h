/* rig: a lane driven by hand. The test is the dispatcher that offers, the worker that takes one step after the
 * other, the handler that answers, and the clock. The ledger is checked after each operation.
 *
 * Samples are numbered from 0 in the order in which they are offered; their values are their numbers. */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "bell.h"
#include "common.h"
#include "lane.h"
#include "log.h"
#include "logbook.h"
#include "outcome.h"
#include "ring.h"
#include "segment.h"
#include "step.h"

enum { RIG_SAMPLE_BYTES = sizeof(weir_sample) };

struct rig {
    struct wr_log log;
    struct logbook book;
    struct wr_bell bell;
    struct wr_segment_pool pool;
    struct wr_segment *segment; /* being appended to */
    uint32_t offered;           /* of it */
    uint32_t slot;              /* the lane's, in the segment's file */
    uint32_t number;            /* of the next sample */
    struct wr_lane *lane;
    struct wr_lane_settings settings; /* put in force by rig_apply */
    int64_t now_ns;
};

/* An open question in the settings is answered as the documents do: block, block_timeout 1s, batch 5000,
 * batch_bytes 1 MiB, linger 0, retry 500ms to 30s; the queue holds 100 samples. */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);
void rig_apply(struct rig *rig);

static inline void rig_pass_ms(struct rig *rig, int64_t ms)
{
    rig->now_ns += ms * WR_NS_PER_MS;
}

/* ---- The dispatcher -------------------------------------------------------------------------- */

/* Appends an event of so many samples, to be offered with the next offer; the first one with metadata, unless
 * that is NULL; flags go to all of them. */
void rig_append(struct rig *rig, uint32_t samples, uint16_t flags, const char *note);

/* Appends an event of one sample of a kind. */
void rig_append_kind(struct rig *rig, uint16_t kind);

/* Offers what was appended. Answers whether producers have to wait. */
bool rig_offer_appended(struct rig *rig, struct wr_ticket ticket);

/* Offers so many events of one sample each; one event of so many samples. */
bool rig_offer(struct rig *rig, uint32_t samples);
bool rig_offer_event(struct rig *rig, uint32_t samples);

/* Offers one sample that a call waits for. */
bool rig_offer_sync(struct rig *rig, struct wr_ticket ticket);

/* Lets the lane look at the clock. Answers whether producers have to wait; *next_ns, unless NULL: when to ask
 * again. */
bool rig_check(struct rig *rig, int64_t *next_ns);

/* ---- The worker and its handler -------------------------------------------------------------- */

/* The next step. */
struct wr_step rig_step(struct rig *rig);
enum wr_step_kind rig_next(struct rig *rig);

/* What is in flight, as numbers: "3 4 5"; "" for nothing. Static. */
const char *rig_flight(const struct rig *rig);

/* What is queued, in the same way. */
const char *rig_queue(const struct rig *rig);

/* The handler answers to open, emit, flush, wake. */
void rig_answer_open(struct rig *rig, int code, const char *reason);
void rig_answer(struct rig *rig, int code, uint32_t done, uint32_t rejected);
void rig_answer_fully(struct rig *rig, weir_outcome outcome, uint32_t omitted);
void rig_answer_flush(struct rig *rig, int code);
void rig_answer_wake(struct rig *rig, int why, int code);
void rig_close(struct rig *rig);

/* Takes the steps of a lane whose handler is all right, until it has nothing more to do. Answers how many
 * batches were delivered. */
uint32_t rig_deliver_all(struct rig *rig);

/* ---- The ledger ------------------------------------------------------------------------------ */

/* A snapshot, in which the ledger balances. */
weir_handler_stats rig_stats(const struct rig *rig);

/* What waits for an answer on a desk: -1000 while it waits, else the answer. */
enum { RIG_NO_ANSWER = -1000 };
int rig_read_ticket(struct wr_ticket ticket);

/* Takes a ticket that one handler is going to answer. */
struct wr_ticket rig_take_ticket(struct wr_ticket_desk *desk);

#endif
