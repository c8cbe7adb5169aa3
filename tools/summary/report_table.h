/* report_table: the nodes of reports: their figures as a table, and all of them as one document. */
#ifndef WEIR_TOOLS_REPORT_TABLE_H
#define WEIR_TOOLS_REPORT_TABLE_H

#include <stdbool.h>

#include "report_document.h"

struct figures_screen;
struct wr_buffer;

/* Appends a row for each figure, with a column for each node, as far as the screen has room. */
void report_table_put(struct wr_buffer *out, const struct report_documents *documents,
                      const struct figures_screen *screen);

/* Appends {"NODE": {"figures": {...}, "reports": [...], "metrics": [...]}, ...}. Returns false after printing
 * which node is in two files. */
bool report_merge_put(struct wr_buffer *out, const struct report_documents *documents);

#endif
