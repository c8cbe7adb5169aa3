/* sums: checks what the handlers of groups of instruments got against what was added to these. */
#ifndef MODEL_SUMS_H
#define MODEL_SUMS_H

#include <stdint.h>

#include "world.h"

/* What the ledger of a process must say, of calls that returned 0. */
struct sums {
    uint64_t added, least_unrouted, most_unrouted;
    uint64_t least_offered[WORLD_HANDLERS], most_offered[WORLD_HANDLERS];
};

/* The first configuration of this process. */
extern uint32_t sums_first_config;

/* Adds the values that this process has added to instruments. */
void sums_add_values(struct sums *sums);

/* Checks what the handlers of this process got, after weir_shutdown: the ledgers are those of its end. */
void sums_check_process(void);

/* Checks what the handlers of all processes got together, after the last one. */
void sums_check_life(void);

#endif
