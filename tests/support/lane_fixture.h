/* lane_fixture: a lane without threads. The test is the dispatcher that offers, the worker, the handler and the
 * clock. The ledger is checked after each operation.
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

enum { FIXTURE_SAMPLE_BYTES = sizeof(weir_sample) };

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
    struct wr_lane_settings settings; /* applied by fixture_apply */
    bool keeps;                       /* offers are to be kept: their samples come from sources */
    int64_t now_ns;
};

/* With the documented defaults: block, block_timeout 1s, batch 5000, batch_bytes 1 MiB, linger 0, retry 500ms
 * to 30s; but the queue holds 100 samples. */
void fixture_init(struct lane_fixture *fixture);
void fixture_fini(struct lane_fixture *fixture);
void fixture_apply(struct lane_fixture *fixture);

static inline void fixture_pass_ms(struct lane_fixture *fixture, int64_t ms)
{
    fixture->now_ns += ms * WR_NS_PER_MS;
}

/* ---- The dispatcher -------------------------------------------------------------------------- */

/* Appends an event of `samples` samples, for the next offer. note: metadata of the first one, or NULL. flags:
 * of all of them. */
void fixture_append(struct lane_fixture *fixture, uint32_t samples, uint16_t flags, const char *note);

/* Appends an event of one sample of a kind. */
void fixture_append_kind(struct lane_fixture *fixture, uint16_t kind);

/* Offers what was appended. Returns whether producers have to wait. */
bool fixture_offer_appended(struct lane_fixture *fixture, struct wr_ticket ticket);

/* Offers `samples` events of one sample each; one event of `samples` samples. */
bool fixture_offer(struct lane_fixture *fixture, uint32_t samples);
bool fixture_offer_event(struct lane_fixture *fixture, uint32_t samples);

/* Offers one sample that a call waits for. */
bool fixture_offer_sync(struct lane_fixture *fixture, struct wr_ticket ticket);

/* Whether sources have to wait for the lane. */
static inline bool fixture_holds_sources(const struct lane_fixture *fixture)
{
    return wr_backpressure_who_waits(&fixture->lane->pressure) != WR_NOBODY_WAITS;
}

/* Calls wr_lane_check. Returns whether producers have to wait. *next_ns, unless NULL: when to check again. */
bool fixture_check(struct lane_fixture *fixture, int64_t *next_ns);

/* ---- The worker and its handler -------------------------------------------------------------- */

/* The next step. */
struct wr_lane_next_step fixture_step(struct lane_fixture *fixture);
enum wr_lane_next_kind fixture_next(struct lane_fixture *fixture);

/* The numbers of the samples in flight: "3 4 5"; "" for none. The text is static. */
const char *fixture_flight(const struct lane_fixture *fixture);

/* The same of the queue. */
const char *fixture_queue(const struct lane_fixture *fixture);

/* The outcome of open, emit, flush, wake. */
void fixture_finish_open(struct lane_fixture *fixture, int code, const char *reason);
void fixture_finish_emit(struct lane_fixture *fixture, int code, uint32_t done, uint32_t rejected);
void fixture_finish_emit_with(struct lane_fixture *fixture, weir_outcome outcome, uint32_t omitted);
void fixture_finish_flush(struct lane_fixture *fixture, int code);
void fixture_finish_wake(struct lane_fixture *fixture, int why, int code);
void fixture_close(struct lane_fixture *fixture);

/* Takes steps with a handler that always returns OK, until there is nothing to do. Returns how many batches
 * were delivered. */
uint32_t fixture_deliver_all(struct lane_fixture *fixture);

/* ---- The ledger ------------------------------------------------------------------------------ */

/* A snapshot; asserts that the ledger balances. */
weir_handler_stats fixture_stats(const struct lane_fixture *fixture);

/* The result of a ticket, or FIXTURE_PENDING. */
enum { FIXTURE_PENDING = -1000 };
int fixture_read_ticket(struct wr_ticket ticket);

/* Takes a ticket that one handler is going to complete. */
struct wr_ticket fixture_take_ticket(struct wr_ticket_state *desk);

#endif
