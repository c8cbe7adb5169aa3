/* report: logs the ledger at the end of the process, with hints why values did not arrive: at the level "info",
 * and with a bounded number of lines. */
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include "engine/engine.h"

/* To be called after the engine was shut down. */
void wr_report_write(struct wr_engine *engine);

/* To be called when nothing of the program runs any more: logs at this level how many values were refused
 * since, if there are any. */
void wr_report_write_late(const struct wr_engine *engine, int level);

/* Logs, at this level, the groups whose values had no handler, and why. */
void wr_report_unrouted(struct wr_engine *engine, int level);

/* Returns the documented name of an enum weir_refusal; NULL if it is not one. */
const char *wr_report_refusal_name(int why);

#endif
