/* fixture: a lane driven by hand. The test is the dispatcher that offers, the worker that takes one step after
 * the other, the handler that answers, and the clock. The ledger is checked after each operation.
 *
 * Samples are numbered from 0 in the order in which they are offered; their values are their numbers. */
#ifndef LANE_FIXTURE_H
#define LANE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "os/wakeup.h"
#include "text/common.h"
#include "lane/lane_internal.h"
#include "os/log.h"
#include "logbook.h"
#include "lane/outcome.h"
#include "producer/ring.h"
#include "segment/segment.h"
#include "lane/lane_next.h"

enum { RIG_SAMPLE_BYTES = sizeof(weir_sample) };

struct lane_fixture {
    struct wr_log log;
    struct logbook book;
    struct wr_wakeup wakeup;
    struct wr_segment_pool pool;
    struct wr_segment *segment; /* being appended to */
    uint32_t offered;           /* of it */
    uint32_t slot;              /* the lane's, in the segment's file */
    uint32_t number;            /* of the next sample */
    struct wr_lane *lane;
    struct wr_lane_settings settings; /* put in force by fixture_apply */
    int64_t now_ns;
};

/* An open question in the settings is answered as the documents do: block, block_timeout 1s, batch 5000,
 * batch_bytes 1 MiB, linger 0, retry 500ms to 30s; the queue holds 100 samples. */
void fixture_init(struct lane_fixture *fixture);
void fixture_fini(struct lane_fixture *fixture);
void fixture_apply(struct lane_fixture *fixture);

static inline void fixture_pass_ms(struct lane_fixture *fixture, int64_t ms)
{
    fixture->now_ns += ms * WR_NS_PER_MS;
}

/* ---- The dispatcher -------------------------------------------------------------------------- */

/* Appends an event of so many samples, to be offered with the next offer; the first one with metadata, unless
 * that is NULL; flags go to all of them. */
void fixture_append(struct lane_fixture *fixture, uint32_t samples, uint16_t flags, const char *note);

/* Appends an event of one sample of a kind. */
void fixture_append_kind(struct lane_fixture *fixture, uint16_t kind);

/* Offers what was appended. Answers whether producers have to wait. */
bool fixture_offer_appended(struct lane_fixture *fixture, struct wr_ticket ticket);

/* Offers so many events of one sample each; one event of so many samples. */
bool fixture_offer(struct lane_fixture *fixture, uint32_t samples);
bool fixture_offer_event(struct lane_fixture *fixture, uint32_t samples);

/* Offers one sample that a call waits for. */
bool fixture_offer_sync(struct lane_fixture *fixture, struct wr_ticket ticket);

/* Lets the lane look at the clock. Answers whether producers have to wait; *next_ns, unless NULL: when to ask
 * again. */
bool fixture_check(struct lane_fixture *fixture, int64_t *next_ns);

/* ---- The worker and its handler -------------------------------------------------------------- */

/* The next step. */
struct wr_lane_next_step fixture_step(struct lane_fixture *fixture);
enum wr_lane_next_kind fixture_next(struct lane_fixture *fixture);

/* What is in flight, as numbers: "3 4 5"; "" for nothing. Static. */
const char *fixture_flight(const struct lane_fixture *fixture);

/* What is queued, in the same way. */
const char *fixture_queue(const struct lane_fixture *fixture);

/* The handler answers to open, emit, flush, wake. */
void fixture_answer_open(struct lane_fixture *fixture, int code, const char *reason);
void fixture_answer(struct lane_fixture *fixture, int code, uint32_t done, uint32_t rejected);
void fixture_answer_fully(struct lane_fixture *fixture, weir_outcome outcome, uint32_t omitted);
void fixture_answer_flush(struct lane_fixture *fixture, int code);
void fixture_answer_wake(struct lane_fixture *fixture, int why, int code);
void fixture_close(struct lane_fixture *fixture);

/* Takes the steps of a lane whose handler is all right, until it has nothing more to do. Answers how many
 * batches were delivered. */
uint32_t fixture_deliver_all(struct lane_fixture *fixture);

/* ---- The ledger ------------------------------------------------------------------------------ */

/* A snapshot, in which the ledger balances. */
weir_handler_stats fixture_stats(const struct lane_fixture *fixture);

/* What waits for an answer on a desk: -1000 while it waits, else the answer. */
enum { RIG_NO_ANSWER = -1000 };
int fixture_read_ticket(struct wr_ticket ticket);

/* Takes a ticket that one handler is going to answer. */
struct wr_ticket fixture_take_ticket(struct wr_ticket_desk *desk);

#endif
