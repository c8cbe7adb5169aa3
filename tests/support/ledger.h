/* ledger: the identity that holds in every snapshot of a handler:
 *
 *     offered + recovered = delivered + dropped[...] + queued + spooled
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/weir.h>

static inline uint64_t ledger_dropped(const weir_handler_stats *stats)
{
    uint64_t dropped = 0;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        dropped += stats->dropped[i];
    return dropped;
}

static inline bool ledger_is_balanced(const weir_handler_stats *stats)
{
    return stats->offered + stats->recovered ==
           stats->delivered + ledger_dropped(stats) + stats->queued + stats->spooled;
}

enum { LEDGER_ROOM = 200 };

/* Formats the counts. Returns text. */
static inline const char *ledger_format(const weir_handler_stats *stats, char text[LEDGER_ROOM])
{
    snprintf(text, LEDGER_ROOM,
             "offered %" PRIu64 " and recovered %" PRIu64 ", delivered %" PRIu64 ", dropped %" PRIu64
             ", queued %" PRIu64 ", spooled %" PRIu64,
             stats->offered, stats->recovered, stats->delivered, ledger_dropped(stats), stats->queued,
             stats->spooled);
    return text;
}

#endif
