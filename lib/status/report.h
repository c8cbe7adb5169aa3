/* report: what became of a process's values, in words, when it ends: for whoever asks why one did not arrive.
 * Said at the level "info", some lines and never more than some, whatever the program did. */
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include "engine/engine.h"

/* After the engine was shut down. */
void wr_report_say(struct wr_engine *engine);

/* Why a call refused a value, as documents name it; NULL: there is none of that number. */
const char *wr_report_refusal_name(int why);

#endif
