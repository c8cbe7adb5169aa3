/* tally: what a handler gets of the groups of instruments: values one by one, summaries, or their parts. */
#ifndef MODEL_TALLY_H
#define MODEL_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

enum { TALLY_SAMPLES = 1 << 14 };

/* Of a handler's instance. */
struct tally {
    const weir_host *host;
    int handler; /* its number */
    bool takes_parts;
    uint32_t rejected_series; /* of a summary that is begun, and of which parts were rejected */
    int64_t rejected_ns;
    uint64_t values[TALLY_SAMPLES]; /* of each sample of the batch */
};

/* Sets `values` to how many values of the ledger each sample of the batch is. Returns false if each is one. */
bool tally_weigh(struct tally *tally, const weir_batch *batch);

/* Records that the first `end` samples of the batch, which was weighed, are settled, and rejected but for the
 * first `delivered`. Sets the numbers of values, by enum world_outcome. */
void tally_settle(struct tally *tally, const weir_batch *batch, uint32_t end, uint32_t delivered,
                  uint64_t values[3]);

#endif
