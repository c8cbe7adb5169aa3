/* flight: which samples of a batch were handed to the producer, and what became of them.
 *
 * The samples of the batch that is being delivered, and perhaps some behind it, are numbered by (origin,
 * sequence). What is still on its way when emit returns RETRY stays known: when the same samples are offered
 * again, by the same batch or by one from the spool, they are not sent again. Used by the worker only. */
#ifndef KAFKA_FLIGHT_H
#define KAFKA_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Of an event, at its first sample. All zeros: nothing was sent. */
struct flight_slot {
    uint32_t sent;    /* messages handed to the producer */
    uint32_t pending; /* of these, those without a delivery report */
    int32_t error;    /* rd_kafka_resp_err_t with which a message was refused for good; 0: none */
    bool resend;      /* a message was not delivered; all are to be sent again */
    bool alone;       /* they are sent with no other message on its way */
};

/* All zeros: empty. */
struct flight {
    char origin[33];
    uint64_t sequence; /* of the first slot */
    uintptr_t number;  /* of the first slot; slots that were given up have smaller ones */
    struct flight_slot *slots;
    uint32_t head, count, room; /* the slots in use are [head, head + count) */
    uint32_t pending;           /* messages without a report, of all slots */

    /* Events before this index are sent, and the format left out none of their samples: they need not be
     * encoded again. */
    uint32_t plain;
};

void wr_flight_fini(struct flight *flight);

/* Makes the slots those of the batch. Returns false if out of memory. */
bool wr_flight_begin(struct flight *flight, const weir_batch *batch);

/* The slot of the event that begins with the batch's sample `index`. */
struct flight_slot *wr_flight_slot(const struct flight *flight, uint32_t index);

/* A message's identity for its delivery report. Never NULL. */
void *wr_flight_opaque(const struct flight *flight, uint32_t index);

/* A message was handed to the producer. */
void wr_flight_sent(struct flight *flight, struct flight_slot *slot);

/* Returns the slot of a message that is reported, which is no longer pending. NULL: nobody waits for it. */
struct flight_slot *wr_flight_reported(struct flight *flight, const void *opaque);

/* A message of the event was not delivered: all of it is to be sent again. */
void wr_flight_fail(struct flight *flight, struct flight_slot *slot);

/* The producer is gone: no more reports come, and what has none is to be sent again. */
void wr_flight_forget(struct flight *flight);

/* Sending the event begins anew. Nothing of it must be pending. */
void wr_flight_restart(struct flight_slot *slot);

#endif
