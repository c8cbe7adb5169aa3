/* report_json: a report as JSON, in three forms. Each is an object with a member for each node. */
#ifndef WEIR_PLUGINS_REPORT_JSON_H
#define WEIR_PLUGINS_REPORT_JSON_H

#include "run_report.h"

struct wr_buffer;

/* {"NODE": [report, ...]}, as perf.py's json.dump with indent=4 writes it. What is not known is null. */
void report_json_put_reports(struct wr_buffer *out, const struct run_report *report);

/* {"NODE": {"max_t_cpu_pct_per_cpu_avg": 12.5, ...}}: the 18 figures. now_s: since 1970. */
void report_json_put_figures(struct wr_buffer *out, const struct run_report *report, double now_s);

/* {"NODE": {"figures": {...}, "reports": [...], "metrics": [...]}}: all of it. */
void report_json_put_details(struct wr_buffer *out, const struct run_report *report, double now_s);

#endif
