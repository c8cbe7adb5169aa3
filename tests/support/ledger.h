/* ledger: the identity that holds in every snapshot of a handler:
 *
 *     offered + recovered = delivered + dropped[...] + queued + spooled + summing
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
           stats->delivered + ledger_dropped(stats) + stats->queued + stats->spooled + stats->summing;
}

/* Of the process. */
static inline bool ledger_is_taken(const weir_stats *stats)
{
    return stats->added == stats->taken + stats->in_rings;
}

enum { LEDGER_ROOM = 240 };

/* Formats the counts. Returns text. */
static inline const char *ledger_format(const weir_handler_stats *stats, char text[LEDGER_ROOM])
{
    snprintf(text, LEDGER_ROOM,
             "offered %" PRIu64 " and recovered %" PRIu64 ", delivered %" PRIu64 ", dropped %" PRIu64
             ", queued %" PRIu64 ", spooled %" PRIu64 ", summing %" PRIu64,
             stats->offered, stats->recovered, stats->delivered, ledger_dropped(stats), stats->queued,
             stats->spooled, stats->summing);
    return text;
}

/* Whether the ledgers of this process and of all its handlers are balanced; prints those that are not. */
static inline bool ledger_all_are_balanced(void)
{
    const char *name;
    char text[LEDGER_ROOM];
    weir_stats process;
    weir_handler_stats stats;
    bool balanced = weir_get_stats(&process, sizeof process) == 0 && ledger_is_taken(&process);
    if (!balanced)
        fprintf(stderr, "%" PRIu64 " added, %" PRIu64 " taken, %" PRIu64 " in rings\n", process.added,
                process.taken, process.in_rings);
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        if (weir_get_handler_stats(name, &stats, sizeof stats) == 0 && ledger_is_balanced(&stats))
            continue;
        fprintf(stderr, "%s: %s\n", name, ledger_format(&stats, text));
        balanced = false;
    }
    return balanced;
}

#endif
