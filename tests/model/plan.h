/* plan: the configurations of a life, drawn from its seed, and where each says that a group goes. */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

enum { PLAN_CONFIGS = 24, PLAN_LAST = PLAN_CONFIGS, PLAN_TEXT = 4096 };

/* What holds for all configurations of a life. */
struct plan_terms {
    uint64_t seed;
    bool lossless; /* nothing may be lost but what a handler refuses */
    bool spool, journal;
    bool picky; /* the last handler takes no integers */
    bool sync;  /* some configurations have delivery "sync" */
    const char *folder;
};

struct plan_config {
    char text[PLAN_TEXT];
    uint8_t routes[WORLD_GROUPS]; /* a bit for each handler */
    uint8_t sync;                 /* handlers with delivery "sync" */
};

extern struct plan_terms plan_terms;
/* Those of the first process, in the order in which they are put in force, and that of the last process, by
 * which everything goes to all handlers. */
extern struct plan_config plan_configs[PLAN_CONFIGS + 1];

/* The handlers that take no such sample. */
uint8_t plan_withheld(const struct world_sample *sample);

/* Draws all of them. */
void plan_draw(uint64_t *state);

#endif
