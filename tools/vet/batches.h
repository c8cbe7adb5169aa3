/* batches: samples to hand to a handler, of every kind that the core may hand it.
 *
 * A batch lies on pages that can only be read while it is lent, and not even that afterwards: a handler that
 * writes into one, or keeps one, is caught in the act. */
#ifndef WEIR_TOOLS_VET_BATCHES_H
#define WEIR_TOOLS_VET_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

enum vet_flavour {
    VET_PLAIN,   /* names and numbers as programs have them */
    VET_NAMES,   /* names, labels, units and metadata with everything that is allowed in them */
    VET_NUMBERS, /* NaN, infinities, extremes; times before 1970 and far ahead */
    VET_MIXED,   /* all of these */
};

struct vet_recipe {
    uint32_t count;
    uint32_t event; /* samples of each event; 0: of random lengths */
    uint32_t kinds; /* bits of WEIR_KINDS_*; 0: all */
    enum vet_flavour flavour;
    uint64_t seed;
    uint64_t sequence; /* of the first sample */
};

/* A number that looks random and follows from the state, which goes on. */
uint64_t vet_batches_draw(uint64_t *state);

/* Never NULL: without memory the check ends. */
const weir_batch *vet_batches_make(const struct vet_recipe *recipe);

/* What is left of a batch behind its first `done` samples, as a batch of its own. The old one must still be
 * lent. */
const weir_batch *vet_batches_rest(const weir_batch *batch, uint32_t done);

/* Ends the loan. */
void vet_batches_end(const weir_batch *batch);

/* 0: an address is in no batch; 1: in one that is lent; 2: in one that was. */
int vet_batches_place(const void *address);

#endif
