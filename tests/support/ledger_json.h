/* ledger_json: prints ledgers as members of a JSON object, for Python tests, which check them with
 * harness.assert_ledgers(). */
#ifndef LEDGER_JSON_H
#define LEDGER_JSON_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/weir.h>

static inline void ledger_json_counts(const char *key, const uint64_t *counts, int count)
{
    printf("\"%s\":[", key);
    for (int i = 0; i < count; i++)
        printf("%s%" PRIu64, i ? "," : "", counts[i]);
    printf("]");
}

/* Of a handler: an object. */
static inline void ledger_json_stats(const weir_handler_stats *stats)
{
    printf("{\"offered\":%" PRIu64 ",\"recovered\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"queued\":%" PRIu64
           ",\"spooled\":%" PRIu64 ",\"summing\":%" PRIu64 ",\"queue_bytes\":%" PRIu64 ",\"retries\":%" PRIu64
           ",\"faults\":%" PRIu64 ",\"failing\":%d,\"open\":%d,",
           stats->offered, stats->recovered, stats->delivered, stats->queued, stats->spooled, stats->summing,
           stats->queue_bytes, stats->retries, stats->faults, stats->failing, stats->open);
    ledger_json_counts("dropped", stats->dropped, WEIR_DROPPED_MAX);
    printf("}");
}

/* A member with the name of the handler; null: there is no such handler. */
static inline void ledger_json_handler(const char *name)
{
    weir_handler_stats stats;
    printf("\"%s\":", name);
    if (weir_get_handler_stats(name, &stats, sizeof stats))
        printf("null");
    else
        ledger_json_stats(&stats);
}

/* The member "process". */
static inline void ledger_json_process(void)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    printf("\"process\":{\"added\":%" PRIu64 ",\"taken\":%" PRIu64 ",\"in_rings\":%" PRIu64
           ",\"unrouted\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"series\":%" PRIu64 ",",
           stats.added, stats.taken, stats.in_rings, stats.unrouted, stats.threads, stats.series);
    ledger_json_counts("refused", stats.refused, WEIR_REFUSED_MAX);
    printf("}");
}

/* Members: the process and all its handlers. */
static inline void ledger_json_members(void)
{
    const char *name;
    ledger_json_process();
    printf(",\"handlers\":{");
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        printf("%s", i ? "," : "");
        ledger_json_handler(name);
    }
    printf("}");
}

/* One line with them. */
static inline void ledger_json_all(void)
{
    printf("{");
    ledger_json_members();
    printf("}\n");
    fflush(stdout);
}

#endif
