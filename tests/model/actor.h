/* actor: a thread that does what a program may do with weir, at random, and checks what each call answers. */
#ifndef MODEL_ACTOR_H
#define MODEL_ACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

enum { ACTOR_THREADS = 4, ACTOR_OF_CHILDREN = ACTOR_THREADS - 1 /* a child's is this plus its process */ };

struct actor {
    uint32_t id;
    uint32_t operations;
    uint64_t state;
    bool configures, forks;
    uint32_t lo;                      /* of the call that is on its way */
    uint32_t awaited[WORLD_HANDLERS]; /* behind the last sample that each must have been given */
    uint64_t added, unrouted[2];      /* this actor's; between these */
    uint64_t refused[WEIR_REFUSED_MAX];
};

/* Puts the first configuration in force. */
void actor_configure_first(uint32_t number);

/* Does so many operations; each ends what it has begun. Stops when weir was shut down. */
void *actor_run(void *actor);

/* What all actors of this process have had refused so far. */
extern _Atomic uint64_t actor_refused[WEIR_REFUSED_MAX];

/* Adds one value to each group. */
void actor_add_some(struct actor *actor);

#endif
