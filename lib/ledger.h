/* ledger: what became of every value, exact at any time, without touching a producer. */
#ifndef WR_LEDGER_H
#define WR_LEDGER_H

#include <stdbool.h>

#include <weir/weir.h>

#include "engine.h"

/* As weir_get_stats. */
void wr_ledger_read(struct wr_engine *engine, weir_stats *stats);

/* As weir_get_handler_stats; false: there is no handler of that name. */
bool wr_ledger_read_handler(struct wr_engine *engine, const char *name, weir_handler_stats *stats);

#endif
