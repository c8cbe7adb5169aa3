/* ledger: counts what became of every value, exactly and at any time, without involving producers. */
#ifndef WR_LEDGER_H
#define WR_LEDGER_H

#include <stdbool.h>

#include <weir/weir.h>

#include "engine/engine.h"
#include "lane/lane_stats.h"

/* As weir_get_stats. */
void wr_ledger_read(struct wr_engine *engine, weir_stats *stats);

/* Values of a group that had no handler. */
struct wr_ledger_unrouted {
    struct wr_group *group;
    uint64_t values;
};

/* Returns all groups with such values, in no particular order; the caller frees them. NULL if there are none,
 * or if out of memory. Their sum is weir_stats.unrouted when no thread adds values, and never more. */
struct wr_ledger_unrouted *wr_ledger_list_unrouted(struct wr_engine *engine, size_t *count);

/* As weir_get_handler_stats. Returns false if there is no handler with this name. */
bool wr_ledger_read_handler(struct wr_engine *engine, const char *name, weir_handler_stats *stats);

/* Copies the counters that a handler has made itself, at most WR_LANE_COUNTERS, and returns how many there are.
 */
size_t wr_ledger_read_counters(struct wr_engine *engine, const char *name, struct wr_lane_counter *counters);

/* As weir_get_handler_name. */
const char *wr_ledger_handler_name(struct wr_engine *engine, size_t index);

#endif
