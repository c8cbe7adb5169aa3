/* batches: batches of samples of every kind that the core may pass to a handler.
 *
 * The pages of a batch, with its notes and labels, are read-only while it is in use, and inaccessible
 * afterwards, so that a handler that writes to a batch or keeps a part of it faults at once. */
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
    VET_SERIES,  /* series whose ids are large and far apart; after vet_batches_spread */
    VET_MARKED,  /* each sample has a name and a value of its own: see vet_batches_mark */
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

/* Creates the series of VET_SERIES, with ids up to `largest`. */
void vet_batches_spread(uint32_t largest);

/* The name of the marked sample with this number, unique to this process, and its value: a different one for
 * each number, of seven digits, exact in six (%g and %e) and as a float. */
enum { VET_MARK_SIZE = 32 };
void vet_batches_mark(uint64_t number, char name[VET_MARK_SIZE], int *value);

/* Never returns NULL: if out of memory, the check is skipped. */
const weir_batch *vet_batches_make(const struct vet_recipe *recipe);

/* Returns a new batch with the samples after the first `done` ones. The old batch must still be in use. */
const weir_batch *vet_batches_rest(const weir_batch *batch, uint32_t done);

/* Makes the batch inaccessible. */
void vet_batches_end(const weir_batch *batch);

/* Returns 1 if the address is in a batch in use, 2 if in an ended one, otherwise 0. */
int vet_batches_place(const void *address);

#endif
