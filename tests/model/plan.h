/* plan: the configurations of a life, drawn from its seed, and the routes of each. */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

enum { PLAN_CONFIGS = 24, PLAN_LAST = PLAN_CONFIGS, PLAN_TEXT = 8192 };

/* Properties of all configurations of a life. */
struct plan_terms {
    uint64_t seed;
    bool lossless; /* no values may be lost except those that a handler refuses */
    bool spool, journal;
    bool picky; /* the last handler accepts no integers */
    bool sync;  /* some configurations have delivery "sync" */
    const char *folder;
};

struct plan_config {
    char text[PLAN_TEXT];
    uint8_t routes[WORLD_GROUPS]; /* a bit for each handler */
    uint8_t sync;                 /* handlers with delivery "sync" */
    uint8_t sums;                 /* handlers with "aggregate" */
    uint8_t lacks;                /* handlers that it does not have */
};

extern struct plan_terms plan_terms;
/* The configurations of the first process, in the order of use, and that of the last process, which routes
 * all groups to all handlers. */
extern struct plan_config plan_configs[PLAN_CONFIGS + 1];

/* The handlers that sum up what is added to a group of instruments. */
uint8_t plan_summing(uint32_t config, uint32_t group);

/* The handlers that do not accept this sample. */
uint8_t plan_withheld(const struct world_sample *sample);

/* Draws all of them. */
void plan_draw(uint64_t *state);

#endif
