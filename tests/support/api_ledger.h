/* api_ledger: checks the ledger identities through the public API. */
#ifndef WEIR_TESTS_API_LEDGER_H
#define WEIR_TESTS_API_LEDGER_H

#include <criterion/criterion.h>

#include <weir/weir.h>

/* Checks the ledger of the process and, unless NULL, of one handler. Both hold at any time. */
static inline void assert_ledger(const char *handler)
{
    weir_stats process;
    weir_handler_stats stats;
    cr_assert_eq(weir_get_stats(&process, sizeof process), 0);
    cr_assert_eq(process.added, process.taken + process.in_rings);
    if (!handler)
        return;
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0, "%s", weir_last_error());
    uint64_t accounted = stats.delivered + stats.queued + stats.spooled;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        accounted += stats.dropped[i];
    cr_assert_eq(stats.offered + stats.recovered, accounted);
}

#endif
