/* report_page: a report as a page of HTML that needs nothing else: no scripts, no other files, no network. */
#ifndef WEIR_PLUGINS_REPORT_PAGE_H
#define WEIR_PLUGINS_REPORT_PAGE_H

#include "run_report.h"

struct wr_buffer;

/* title: NULL: one of its own. now_s: since 1970. Rows are in the order of run_report_sort. */
void report_page_put(struct wr_buffer *out, const struct run_report *report, const char *title, double now_s);

#endif
