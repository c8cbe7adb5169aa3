/* forward_link: the connection to a source `forward`: what was sent on it, and what of that is acknowledged.
 *
 * All of it runs on the handler's worker. What is sent and not acknowledged stays known between two calls of
 * emit: a batch that is offered again because the acknowledgement took too long is not sent again on the same
 * connection, nor is what was sent ahead of its batch. */
#ifndef FORWARD_LINK_H
#define FORWARD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "../forwarding/forward_wire.h"
#include "../socket/connection.h"
#include "forward_reported.h"

/* A part of a batch that waits for its acknowledgement. Parts that are not sent wait for those before them. */
struct flight {
    uint64_t sequence, end;
    uint32_t refused;
    bool is_local; /* it is not sent: no block can hold it */
    bool is_old;   /* of another batch: its acknowledgement is not looked at */
};

struct forward_link {
    struct connection connection;
    const char *token_file; /* NULL: none */
    enum wire_ack ack;

    struct wr_buffer out;
    size_t out_at;
    uint8_t in[2048]; /* holds the longest frame that a receiver sends */
    size_t in_length;
    char reason[WIRE_REASON + 1]; /* of a refusal, or what is wrong with the peer; "": none */
    bool is_welcome;
    bool has_weights; /* the receiver knows WEIGHTS */
    bool is_late;     /* it acknowledges at the end of an interval */
    bool has_warned;  /* of that */
    bool is_lost;     /* there is no leave to be taken: the receiver would not get it */

    uint32_t *ids; /* by weir_series.id: the id on the wire + 1; 0: none yet */
    uint32_t id_room;
    uint32_t id_count;
    uint64_t labels_hash; /* of the batch's labels that the series were sent with */
    uint64_t definitions; /* weir_batch.definitions, then */

    struct flight *flights;
    size_t flight_count, flight_first;
    uint32_t flight_room;
    char origin[2 * WIRE_ID + 1]; /* of the flights that are not old */
    uint64_t begin, sent_end, settled_end;
    uint64_t refused;   /* samples of flights that are settled, not reported yet */
    weir_batch next;    /* what is sent ahead, within a call of deliver; no samples: none was got yet */
    bool next_is_other; /* it does not continue what was sent */
    const weir_ahead *ahead;
    struct wire_totals totals;
    struct reported *reported; /* NULL before the first connection */
    struct wire_path path;     /* that the receiver knows */
    const weir_upstream *upstream;
    const weir_ledger *ledger;
};

void wr_forward_link_init(struct forward_link *link, const weir_host *host);
void wr_forward_link_fini(struct forward_link *link);

/* Connects, and waits for the receiver's welcome. Returns false with RETRY and the reason. */
bool wr_forward_link_open(struct forward_link *link, int64_t timeout_ms, weir_outcome *outcome);

/* Says good-bye, without waiting. */
void wr_forward_link_close(struct forward_link *link);

/* Sends what the batch has beyond what was sent already, and waits until all of it is settled, or for the time
 * (BUSY). Meanwhile it sends what is queued behind the batch. LOST: the connection must be closed; the reason
 * is set by wr_forward_link_fail. */
enum connection_state wr_forward_link_deliver(struct forward_link *link, const weir_batch *batch,
                                              int64_t timeout_ms);

/* Sets the code and the reason. Returns false. */
bool wr_forward_link_fail(const struct forward_link *link, enum connection_state state, int code,
                          weir_outcome *outcome);

/* How many samples at the front of the batch are settled, and how many of these were refused. */
uint32_t wr_forward_link_settled(struct forward_link *link, const weir_batch *batch, uint32_t *refused);

#endif
