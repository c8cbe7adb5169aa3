/* lane_ledger: all values that a lane was given: where each is, how they are counted, and the calls that wait
 * for them. Caller holds the lane's lock.
 *
 * At any time, in values (a summary counts as many as it is of):
 *
 *     offered + recovered = delivered + dropped[...] + left_in_journal
 *                           + flight + spooled + moving + queue + summing
 *
 * Each function moves values from one term to another, or takes them into one on either side, so nothing else
 * changes a term or another field; of `waiters` also sync_waiters' own. `flight` is 0 if it is of `spooled`, or
 * settled early.
 *
 * Delivered first is what is in flight, then what is spooled, then what is being moved there, then the queue.
 */
#ifndef WR_LANE_LEDGER_H
#define WR_LANE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "lane/sync_waiters.h"
#include "segment/queue.h"

struct wr_label_set;
struct wr_lane_arrivals;
struct wr_spool_count;

/* The batch that the handler is working on, or is given next. */
struct wr_flight {
    struct wr_range range; /* segment NULL: none */
    bool in_handler;       /* the handler may be reading it: see wr_lane_ledger_enter_handler */
    bool spooled;          /* read from disk, where it stays until it is settled */
    bool settled_early;    /* settled while in the handler, whose outcome is going to be ignored */
};

/* What is on disk, and not settled. */
struct wr_spooled {
    uint64_t samples;
    uint64_t values; /* of damaged summaries more than one is known when nothing else is there */
    uint64_t own;    /* samples of this process */
    uint64_t front;  /* position of the oldest of these, or one before it */
};

/* The next of it, read into memory, but not in flight yet. */
struct wr_fetched {
    struct wr_range range; /* segment NULL: nothing */
    bool own;
    struct wr_label_set *labels; /* also of what is in flight */
};

struct wr_lane_ledger {
    uint64_t offered, recovered, delivered, dropped[WEIR_DROPPED_MAX];
    uint64_t left_in_journal; /* values that stayed there when the lane came to its end */
    struct wr_flight flight;
    struct wr_spooled spooled;
    struct wr_fetched fetched;
    struct wr_range moving; /* being written to disk; counts as queued. segment NULL: nothing */
    struct wr_queue queue;
    uint64_t summing;           /* values in the open interval of an aggregating lane */
    uint64_t summing_in_memory; /* of these, how many are in no journal */

    uint64_t position;                   /* of the next sample: how many were offered or came from a journal */
    struct wr_sample_id next_id;         /* of the next sample that is offered; its origin never changes */
    struct wr_sample_id next_summary_id; /* the same of summaries, with an origin of its own */
    struct wr_sync_waiters waiters;
};

void wr_lane_ledger_init(struct wr_lane_ledger *ledger);
void wr_lane_ledger_fini(struct wr_lane_ledger *ledger);

/* ---- What there is --------------------------------------------------------------------------- */

/* What is in flight, unless it is settled or on disk; else NULL. */
static inline const struct wr_range *wr_lane_ledger_flight(const struct wr_lane_ledger *ledger)
{
    const struct wr_flight *flight = &ledger->flight;
    return flight->range.segment && !flight->settled_early && !flight->spooled ? &flight->range : NULL;
}

/* Values and bytes that are neither settled nor on disk, and whether there are any. */
uint64_t wr_lane_ledger_queued(const struct wr_lane_ledger *ledger);

static inline uint64_t wr_lane_ledger_queued_bytes(const struct wr_lane_ledger *ledger)
{
    const struct wr_range *flight = wr_lane_ledger_flight(ledger);
    return ledger->queue.bytes + ledger->moving.bytes + (flight ? flight->bytes : 0);
}

static inline bool wr_lane_ledger_has_queued(const struct wr_lane_ledger *ledger)
{
    return ledger->moving.segment || wr_lane_ledger_flight(ledger) || !wr_queue_is_empty(&ledger->queue);
}

/* Whether the newest `samples` in the queue are all that is not settled. */
static inline bool wr_lane_ledger_has_only(const struct wr_lane_ledger *ledger, uint64_t samples)
{
    return ledger->queue.samples == samples && !ledger->flight.range.segment && !ledger->moving.segment &&
           !ledger->spooled.samples && !ledger->fetched.range.segment;
}

static inline uint64_t wr_lane_ledger_spooled(const struct wr_lane_ledger *ledger)
{
    return ledger->spooled.values;
}

/* Position of the oldest sample that is not settled; of the oldest that is not on disk either. */
uint64_t wr_lane_ledger_front(const struct wr_lane_ledger *ledger);
uint64_t wr_lane_ledger_front_in_memory(const struct wr_lane_ledger *ledger);

/* How many samples are settled or on disk. */
uint64_t wr_lane_ledger_done(const struct wr_lane_ledger *ledger);

/* ---- What comes ------------------------------------------------------------------------------ */

/* Takes the identities of `count` samples that do not come by an offer, and returns the first. */
static inline struct wr_sample_id wr_lane_ledger_take_ids(struct wr_lane_ledger *ledger, uint64_t count)
{
    struct wr_sample_id first = ledger->next_id;
    ledger->next_id.sequence += count;
    return first;
}

/* Counts new samples, and gives their range position and identity. The caller queues, drops or discards them
 * then. */
static inline void wr_lane_ledger_offer(struct wr_lane_ledger *ledger, struct wr_range *range)
{
    range->position = ledger->position;
    range->id = wr_lane_ledger_take_ids(ledger, range->count);
    ledger->offered += range->count;
    ledger->position += range->count;
}

/* The same of the summaries of the open interval, which are all of a segment. */
void wr_lane_ledger_offer_sums(struct wr_lane_ledger *ledger, struct wr_range *range);

/* Queues a range; drops it if out of memory for the queue's list. */
void wr_lane_ledger_drop_unqueued(struct wr_lane_ledger *ledger, const struct wr_range *range);
static inline void wr_lane_ledger_push(struct wr_lane_ledger *ledger, const struct wr_range *range)
{
    if (!wr_queue_push(&ledger->queue, range))
        wr_lane_ledger_drop_unqueued(ledger, range);
}

/* Queues samples of an earlier process. Returns false, and counts nothing, if out of memory. */
bool wr_lane_ledger_recover(struct wr_lane_ledger *ledger, struct wr_range *range);

/* Counts values that are dropped before they are queued, and get neither a position here nor an identity. */
void wr_lane_ledger_pass(struct wr_lane_ledger *ledger, bool recovered, enum weir_drop why, uint64_t count);

/* Values have arrived in the open interval; it is discarded, and `left` of it stay in the journal. */
void wr_lane_ledger_sum(struct wr_lane_ledger *ledger, const struct wr_lane_arrivals *arrivals);
void wr_lane_ledger_discard_sums(struct wr_lane_ledger *ledger, enum weir_drop why, uint64_t left);

/* ---- What is dropped ------------------------------------------------------------------------- */

/* Settles a range that is nowhere any more: drops it, or at the end of the process leaves it in the journal for
 * the next one. Returns the result of calls that wait for it. */
int wr_lane_ledger_discard(struct wr_lane_ledger *ledger, const struct wr_range *range, enum weir_drop why);

/* The same, and completes these calls. It need not be the oldest: calls for earlier samples keep waiting. */
void wr_lane_ledger_drop(struct wr_lane_ledger *ledger, const struct wr_range *range, enum weir_drop why);

/* Drops some of the oldest of the queue, of `bytes` or one event, for WEIR_DROPPED_FULL. */
void wr_lane_ledger_drop_oldest(struct wr_lane_ledger *ledger, uint64_t bytes);

/* Drops everything that is queued, in flight or being moved; what is on disk stays there. is_writing: a thread
 * is writing what is being moved. */
void wr_lane_ledger_drop_all(struct wr_lane_ledger *ledger, enum weir_drop why, bool is_writing);

/* Completes the calls that wait for samples before a position. */
void wr_lane_ledger_complete(struct wr_lane_ledger *ledger, uint64_t position, int result);

/* ---- What is delivered ----------------------------------------------------------------------- */

/* The next samples, unless there is a flight. NULL: none are in memory, or older ones are on disk. */
static inline const struct wr_range *wr_lane_ledger_next(const struct wr_lane_ledger *ledger)
{
    if (ledger->fetched.range.segment)
        return &ledger->fetched.range;
    if (ledger->spooled.samples)
        return NULL;
    if (ledger->moving.segment)
        return &ledger->moving;
    return wr_queue_is_empty(&ledger->queue) ? NULL : wr_queue_front(&ledger->queue);
}

/* Makes them the flight. */
void wr_lane_ledger_load(struct wr_lane_ledger *ledger, uint32_t most, uint64_t most_bytes);

struct wr_lane_dropped {
    uint32_t samples;
    uint64_t values, no_room; /* no_room: how many of the values are of summaries without room */
    uint64_t end;             /* position behind the last one */
};

/* Drops samples of the next range because the handler does not get their kinds. */
struct wr_lane_dropped wr_lane_ledger_drop_next(struct wr_lane_ledger *ledger, uint32_t count);

/* Of the flight's first `done` samples the last are rejected, and before them some omitted; the others are
 * delivered. Returns how many values they are. */
uint64_t wr_lane_ledger_settle(struct wr_lane_ledger *ledger, uint32_t done, uint32_t rejected,
                               uint32_t omitted);

/* The flight is settled. */
void wr_lane_ledger_end_flight(struct wr_lane_ledger *ledger);

/* The handler is given the flight; from WR_LANE_NEXT_EMIT, or the claim of a caller, to the outcome. */
static inline void wr_lane_ledger_enter_handler(struct wr_lane_ledger *ledger)
{
    ledger->flight.in_handler = true;
}

/* It has returned. Returns false if the flight was settled meanwhile: it has ended. */
static inline bool wr_lane_ledger_leave_handler(struct wr_lane_ledger *ledger)
{
    bool is_due = !ledger->flight.settled_early;
    ledger->flight.in_handler = false;
    if (!is_due)
        wr_lane_ledger_end_flight(ledger);
    return is_due;
}

/* ---- What is on disk ------------------------------------------------------------------------- */

/* Prepares `moving`: what an earlier attempt has left there, else the flight, else up to most_bytes of the
 * queue. also_in_handler: even a flight that the handler is working on, whose outcome is then ignored. */
void wr_lane_ledger_move(struct wr_lane_ledger *ledger, bool also_in_handler, uint64_t most_bytes);

/* It is on disk; calls that wait for it return WEIR_ERR_SPOOLED. It is not: what is to be delivered before
 * that which is there becomes the flight. */
void wr_lane_ledger_moved(struct wr_lane_ledger *ledger);
void wr_lane_ledger_not_moved(struct wr_lane_ledger *ledger);

/* No own sample on disk has a position before it. */
static inline void wr_lane_ledger_set_spooled_front(struct wr_lane_ledger *ledger, uint64_t front)
{
    if (front > ledger->spooled.front)
        ledger->spooled.front = front;
}

/* Samples of earlier processes were adopted. */
void wr_lane_ledger_found(struct wr_lane_ledger *ledger, uint64_t samples, uint64_t values);

/* Samples that were on disk are dropped. */
void wr_lane_ledger_lose(struct wr_lane_ledger *ledger, enum weir_drop why, const struct wr_spool_count *lost);

/* Samples were read; takes their references. NULL: what was read last is no longer needed. */
void wr_lane_ledger_fetched(struct wr_lane_ledger *ledger, const struct wr_fetched *fetched);

#endif
