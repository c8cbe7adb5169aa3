/* delivery: whether a lane's handler is open, and whether its attempts succeed. Caller holds the lane's lock.
 * Nothing is logged here.
 *
 * These are two states, since each of the one goes with nearly each of the other: a handler may fail while it
 * is open, and is retried while it is closed. Only BROKEN implies a failure, and GIVEN_UP that it is not OPEN.
 */
#ifndef WR_DELIVERY_H
#define WR_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "lane/backoff.h"

enum wr_delivery_connection {
    WR_DELIVERY_CLOSED, /* nothing can be delivered before it is opened */
    WR_DELIVERY_OPEN,
    WR_DELIVERY_BROKEN, /* it is open, and is closed before anything else */
};

enum wr_delivery_health {
    WR_DELIVERY_WORKS,    /* the last attempt has succeeded, or there was none */
    WR_DELIVERY_FAILS,    /* it has failed, and there will be another */
    WR_DELIVERY_HOPELESS, /* the same, but the handler says that others are of no use */
    WR_DELIVERY_GIVEN_UP, /* there will be none until the handler is configured again or reloaded */
};

/* Only the functions below change it, and backoff's. All zeros: CLOSED, and there was no attempt. */
struct wr_delivery {
    enum wr_delivery_connection connection;
    enum wr_delivery_health health;
    bool needs_flush;    /* it has a flush, and has settled samples since the last one; not if it is CLOSED */
    int64_t retry_at_ns; /* no attempt before this; 0: none is delayed; WR_NEVER: GIVEN_UP */
    struct wr_backoff backoff;
    uint64_t retries, faults;
    unsigned faults_in_a_row;
    const char *breach; /* process state that the handler changed, not counted as a fault yet; NULL: none */

    int64_t failing_since_ns; /* unless it WORKS */
    char last_error[sizeof((weir_outcome *)0)->reason];
    int64_t last_error_ns; /* when it was set; 0: never */
    int last_error_code;   /* of calls that failed with it, enum weir_error; 0: the last outcome was OK */
};

static inline bool wr_delivery_is_open(const struct wr_delivery *delivery)
{
    return delivery->connection != WR_DELIVERY_CLOSED;
}

static inline bool wr_delivery_is_failing(const struct wr_delivery *delivery)
{
    return delivery->health != WR_DELIVERY_WORKS;
}

/* Why it fails, for messages; NULL: it does not. */
static inline const char *wr_delivery_why_failing(const struct wr_delivery *delivery)
{
    return wr_delivery_is_failing(delivery) ? delivery->last_error : NULL;
}

/* ---- The connection -------------------------------------------------------------------------- */

static inline void wr_delivery_opened(struct wr_delivery *delivery)
{
    delivery->connection = WR_DELIVERY_OPEN;
}

void wr_delivery_closed(struct wr_delivery *delivery);

/* Has it closed, if it is open. */
void wr_delivery_break(struct wr_delivery *delivery);

/* Samples were settled; it has flushed, or is not flushed again. */
static inline void wr_delivery_settled(struct wr_delivery *delivery, bool has_flush)
{
    delivery->needs_flush = has_flush;
}

static inline void wr_delivery_flushed(struct wr_delivery *delivery)
{
    delivery->needs_flush = false;
}

/* ---- Faults: violations of the contract ------------------------------------------------------ */

/* The handler has changed process state. */
static inline void wr_delivery_breach(struct wr_delivery *delivery, const char *breach)
{
    delivery->breach = breach;
}

/* What was wrong with a call, and is counted: its outcome (outcome_fault), or else a breach. NULL: nothing. */
static inline const char *wr_delivery_take_fault(struct wr_delivery *delivery, const char *outcome_fault)
{
    const char *fault = outcome_fault ? outcome_fault : delivery->breach;
    delivery->breach = NULL;
    delivery->faults += fault != NULL;
    delivery->faults_in_a_row += fault != NULL;
    return fault;
}

/* A call without any fault ends a row of faults. */
static inline void wr_delivery_end_faults(struct wr_delivery *delivery)
{
    delivery->faults_in_a_row = 0;
}

/* ---- Attempts -------------------------------------------------------------------------------- */

/* What was wrong with the last outcome; code 0: nothing. */
void wr_delivery_set_error(struct wr_delivery *delivery, int code, const char *reason, int64_t now_ns);

/* An attempt has failed; there will be another. */
void wr_delivery_fail(struct wr_delivery *delivery, const weir_outcome *outcome, int64_t now_ns);

/* An attempt has succeeded. Returns whether the handler was failing. */
bool wr_delivery_succeed(struct wr_delivery *delivery);

/* There will be no further attempt. error: of the calls that do not wait for one. */
void wr_delivery_give_up(struct wr_delivery *delivery, int error, int64_t now_ns);

/* No attempt is made before `until_ns`, for a reason that is not the handler's. */
static inline void wr_delivery_delay(struct wr_delivery *delivery, int64_t until_ns)
{
    delivery->retry_at_ns = until_ns;
}

/* The next attempt is made at once, if there will be one. */
void wr_delivery_hurry(struct wr_delivery *delivery);

/* There will be attempts again, the next one at once. Returns whether it had given up. */
bool wr_delivery_revive(struct wr_delivery *delivery);

/* The handler is replaced. breach: as above. */
void wr_delivery_replace(struct wr_delivery *delivery, const char *breach);

/* The lane is to come to its end: one more attempt is made at once, whatever the handler has said of that. */
void wr_delivery_stop(struct wr_delivery *delivery);

#endif
