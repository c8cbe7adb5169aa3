/* actor: a thread that calls weir's functions at random, and checks each result. */
#ifndef MODEL_ACTOR_H
#define MODEL_ACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

enum {
    ACTOR_THREADS = 4,
    ACTOR_OF_CHILDREN = ACTOR_THREADS - 1 /* the id of a child's actor is this plus its process number */
};

struct actor {
    uint32_t id;
    uint32_t operations;
    uint64_t state;
    bool configures, forks;
    uint32_t lo;                      /* of the current call */
    uint32_t awaited[WORLD_HANDLERS]; /* one past the last sample that each handler must have received */
    uint8_t level_handlers;           /* the handlers that must have received the last level of its gauge */
};

/* Applies the first configuration. */
void actor_configure_first(uint32_t number);

/* The last configuration that was applied, and the one that is being applied: the same if there is none. */
uint32_t actor_applied(void);
uint32_t actor_applying(void);

/* Counts what a call has refused. */
void actor_count_refused(int result, uint32_t count);

/* Runs the actor's operations. Stops when weir was shut down. */
void *actor_run(void *actor);

/* The refused samples of all actors of this process. */
extern _Atomic uint64_t actor_refused[WEIR_REFUSED_MAX];

/* Adds one value to each group. */
void actor_add_some(struct actor *actor);

#endif
