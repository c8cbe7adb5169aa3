/* ledger: what became of every value, exact at any time, without touching a producer. */
#ifndef WR_LEDGER_H
#define WR_LEDGER_H

#include <stdbool.h>

#include <weir/weir.h>

#include "engine/engine.h"
#include "lane/lane_stats.h"

/* As weir_get_stats. */
void wr_ledger_read(struct wr_engine *engine, weir_stats *stats);

/* Values of a group that nobody listened to. */
struct wr_ledger_unheard {
    struct wr_group *group;
    uint64_t values;
};

/* All groups that have such values, in no order; the caller frees them. Answers how many there are. Their sum
 * is weir_stats.unrouted at rest, and never more. NULL: there are none, or no memory. */
struct wr_ledger_unheard *wr_ledger_list_unheard(struct wr_engine *engine, size_t *count);

/* As weir_get_handler_stats; false: there is no handler of that name. */
bool wr_ledger_read_handler(struct wr_engine *engine, const char *name, weir_handler_stats *stats);

/* Copies the counters that a handler has made itself, at most WR_LANE_COUNTERS, and returns how many there are.
 */
size_t wr_ledger_read_counters(struct wr_engine *engine, const char *name, struct wr_lane_counter *counters);

/* As weir_get_handler_name. */
const char *wr_ledger_handler_name(struct wr_engine *engine, size_t index);

#endif
