/* producer: one producer of librdkafka: its descriptors, its messages to the log, and the state that its
 * callbacks report. Used by the worker only, except for what librdkafka's threads call: they write to the log
 * and open and close sockets. librdkafka blocks all signals in its threads. */
#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "pipes.h"
#include "statistics.h"

enum { PRODUCER_SOCKETS = 64, PRODUCER_TEXT = 256 };

/* What an outage is known by. */
enum producer_state {
    PRODUCER_WORKS,
    PRODUCER_ALL_DOWN, /* no broker is connected */
    PRODUCER_REFUSED,  /* the brokers do not accept the credentials */
    PRODUCER_FATAL,    /* it cannot send any more: a new one is needed */
};

struct producer {
    const weir_host *host;
    const weir_waiting *waiting;                                      /* NULL: not provided by this core */
    void (*report)(void *context, const rd_kafka_message_t *message); /* a delivery report */
    void *context;

    rd_kafka_t *client; /* NULL: not open */
    rd_kafka_queue_t *queue;
    int event_fd;                         /* readable when there may be reports; -1: none */
    atomic_int sockets[PRODUCER_SOCKETS]; /* of librdkafka; -1: none */
    struct pipes pipes;                   /* of librdkafka, as far as they are known */
    atomic_bool knows_pipes;              /* they are those of an open producer */
    enum producer_state state;
    rd_kafka_resp_err_t error;   /* of the state */
    char problem[PRODUCER_TEXT]; /* the latest failure in words; "": none */
    uint64_t reports;            /* number of reports so far */
    struct statistics statistics;
};

/* Initializes a producer that is not open. */
void wr_producer_init(struct producer *producer, const weir_host *host);

/* Creates the producer, which connects by itself. conf is copied. Returns false with `problem` set. */
bool wr_producer_open(struct producer *producer, const rd_kafka_conf_t *conf);

/* Ends the producer: what it still has is reported as not delivered. Allowed if not open. */
void wr_producer_close(struct producer *producer);

/* Call it from time to time: looks whether the known descriptors are still librdkafka's. */
void wr_producer_tend(struct producer *producer);

/* Handles reports and events that are there, without waiting. */
void wr_producer_poll(struct producer *producer);

/* Returns whether the producer cannot send any more. The state and `problem` are then set. */
bool wr_producer_check_fatal(struct producer *producer);

/* Waits until there may be reports, for timeout_ms at most, and handles them. Returns false if a stop is
 * requested and the time for it is over. */
bool wr_producer_wait(struct producer *producer, int64_t timeout_ms);

/* The time that waits go by. */
int64_t wr_producer_now_ms(const struct producer *producer);

/* Whether a broker can be reached within the timeout. Sets `problem` if not. */
bool wr_producer_probe(struct producer *producer, int64_t timeout_ms, int *brokers);

/* [fork] Closes the known descriptors with close(2). */
void wr_producer_abandon(const struct producer *producer);

#endif
