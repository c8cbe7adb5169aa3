/* batches: batches of samples of every kind that the core may pass to a handler.
 *
 * The pages of a batch are read-only while it is in use, and inaccessible afterwards, so that a handler that
 * writes to a batch or keeps it faults at once. */
#ifndef WEIR_TOOLS_VET_BATCHES_H
#define WEIR_TOOLS_VET_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

enum vet_flavour {
    VET_PLAIN,   /* ordinary names and numbers */
    VET_NAMES,   /* names, labels, units and metadata with unusual but valid characters */
    VET_NUMBERS, /* NaN, infinities, extremes; times before 1970 and in the far future */
    VET_MIXED,   /* all of these */
};

struct vet_recipe {
    uint32_t count;
    uint32_t event; /* samples of each event; 0: random */
    uint32_t kinds; /* bits of WEIR_KINDS_*; 0: all */
    enum vet_flavour flavour;
    uint64_t seed;
    uint64_t sequence; /* of the first sample */
};

/* Returns the next pseudo-random number and advances the state. */
uint64_t vet_batches_draw(uint64_t *state);

/* Never returns NULL: if out of memory, the check is skipped. */
const weir_batch *vet_batches_make(const struct vet_recipe *recipe);

/* Returns a new batch with the samples after the first `done` ones. The old batch must still be in use. */
const weir_batch *vet_batches_rest(const weir_batch *batch, uint32_t done);

/* Makes the batch inaccessible. */
void vet_batches_end(const weir_batch *batch);

/* Returns 1 if the address is in a batch in use, 2 if in an ended one, otherwise 0. */
int vet_batches_place(const void *address);

#endif
