/* ledger: the identity that holds in every snapshot of a handler:
 *
 *     offered + recovered = delivered + dropped[...] + queued + spooled
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

static inline uint64_t ledger_dropped(const weir_handler_stats *stats)
{
    uint64_t dropped = 0;
    for (int i = 0; i < WEIR_DROPS; i++)
        dropped += stats->dropped[i];
    return dropped;
}

static inline bool ledger_is_balanced(const weir_handler_stats *stats)
{
    return stats->offered + stats->recovered ==
           stats->delivered + ledger_dropped(stats) + stats->queued + stats->spooled;
}

#endif
