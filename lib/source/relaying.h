/* relaying: what the core does for the source `forward` alone. It is a part of weir: both are of one build. */
#ifndef WR_RELAYING_H
#define WR_RELAYING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

struct wr_levels_sender;

/* A struct wr_relaying. Not every core that runs a source has it. */
#define WR_SERVICE_RELAYING "weir-relaying/1"

/* All [source]. */
struct wr_relaying {
    size_t size; /* sizeof(struct wr_relaying) */

    /* A sender has connected. id: of its process and handler. Returns NULL if out of memory. */
    struct wr_levels_sender *(*enter)(const weir_host *host, const char *id);

    /* As weir_blocks.add of a sender's block. samples: those of the block; the levels of gauges with `merge`
     * become those of the series. A block that has found no room is given with the sender's levels again. */
    int (*add)(const weir_host *host, struct wr_levels_sender *sender, weir_block_sample *samples,
               const weir_block *block, uint64_t *refused);

    /* The connection has ended: the sender's levels do not count any more. Frees the sender. */
    void (*leave)(const weir_host *host, struct wr_levels_sender *sender);

    /* Adds the levels that have changed since senders came and went. What finds no room is added by a later
     * call: the next wait ends when there may be room. */
    void (*publish)(const weir_host *host);

    /* Whether values wait for the end of a handler's interval before they are settled: there is no journal. */
    bool (*is_late)(const weir_host *host);
};

#endif
