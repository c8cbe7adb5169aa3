/* nats_window: the events that are published and wait for their acknowledgement, in the order of their samples.
 *
 * Each has a number, which the subject of its acknowledgement ends in. It stays known between two calls of
 * emit, so an event that is offered again because the core asked for progress is not published again. */
#ifndef NATS_WINDOW_H
#define NATS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

struct nats_slot {
    uint32_t samples; /* of the event */
    bool settled, refused;
};

struct nats_window {
    struct nats_slot *slots; /* a ring; that of event n is at n & mask */
    uint64_t first, next;    /* numbers of the oldest event, and of the one to be published next */
    uint64_t mask;
    uint32_t room; /* how many events there may be */

    char origin[33];                 /* of the samples */
    uint64_t sequence, end_sequence; /* of the oldest event's first sample, and behind the newest event */
};

/* Returns false if out of memory. */
bool wr_nats_window_init(struct nats_window *window, uint32_t room);
void wr_nats_window_fini(struct nats_window *window);

/* Forgets all events. Numbers are not used again, so late acknowledgements have no effect. */
void wr_nats_window_clear(struct nats_window *window);

/* Prepares for a batch. Keeps the events of an earlier call if the batch begins with them. Returns how many
 * samples of the batch are published already. */
uint32_t wr_nats_window_begin(struct nats_window *window, const weir_batch *batch);

/* How many more events there may be. */
uint32_t wr_nats_window_free(const struct nats_window *window);

/* Adds an event, whose number is window->next before the call. There must be room. settled: it needs no
 * acknowledgement. refused: it cannot be published. */
void wr_nats_window_add(struct nats_window *window, uint32_t samples, bool settled, bool refused);

/* Settles an event; of a number that is not known: does nothing. Returns whether it was waiting. */
bool wr_nats_window_settle(struct nats_window *window, uint64_t number, bool refused);

/* Settles all events with smaller numbers than this. */
void wr_nats_window_settle_before(struct nats_window *window, uint64_t number);

/* Removes the settled events at the front, up to one that was not refused behind one that was: emit's refused
 * samples are the last ones. Returns the number of their samples; adds to *refused how many of them were
 * refused. */
uint32_t wr_nats_window_take(struct nats_window *window, uint32_t *refused);

#endif
