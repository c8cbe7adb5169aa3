/* api_ledger: checks the ledger identities through the public API. */
#ifndef WEIR_TESTS_API_LEDGER_H
#define WEIR_TESTS_API_LEDGER_H

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "ledger.h"

/* Checks the ledger of the process and, unless NULL, of one handler. Both hold at any time. */
static inline void assert_ledger(const char *handler)
{
    weir_stats process;
    weir_handler_stats stats;
    char text[LEDGER_ROOM];
    cr_assert_eq(weir_get_stats(&process, sizeof process), 0);
    cr_assert(ledger_is_taken(&process));
    if (!handler)
        return;
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0, "%s", weir_last_error());
    cr_assert(ledger_is_balanced(&stats), "%s", ledger_format(&stats, text));
}

#endif
