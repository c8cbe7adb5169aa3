#include "report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page_chart.h"
#include "page_text.h"
#include "text/buffer.h"

/* The policy allows the style below and nothing else: whatever a name contained, it could not load or run. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";

static const char style[] =
    "<style>\n"
    ":root{--back:#fff;--panel:#f6f7f9;--text:#1c2128;--faint:#5b6570;--rule:#d9dee4;"
    "--k0:#0b62c4;--k1:#c2410c;--k2:#157f3d;--k3:#7c3aed}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#14171b;--panel:#1d2126;--text:#e4e7eb;--faint:#9aa4af;"
    "--rule:#353c45;--k0:#6cb0ff;--k1:#ff9a5c;--k2:#5fd08a;--k3:#b79cff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1.5rem;max-width:84rem;background:var(--back);color:var(--text);"
    "font:15px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:0 0 .3rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2rem 0 .2rem;"
    "overflow-wrap:anywhere}h3{font-size:1rem;margin:1.6rem 0 .4rem}\n"
    "p{margin:.2rem 0;color:var(--faint)}a{color:var(--k0)}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem;"
    "margin-top:1rem}\n"
    "figure{margin:0;padding:.8rem;background:var(--panel);border-radius:6px}\n"
    "figcaption{color:var(--faint);margin-bottom:.4rem}figcaption b{color:var(--text)}\n"
    ".key{margin-left:1rem;white-space:nowrap}.key::before{content:\"\";display:inline-block;width:.9rem;"
    "height:.2rem;margin-right:.35rem;vertical-align:middle;background:var(--c)}\n"
    ".k0{--c:var(--k0)}.k1{--c:var(--k1)}.k2{--c:var(--k2)}.k3{--c:var(--k3)}\n"
    "svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:var(--faint)}\n"
    ".line{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\n"
    ".grid{stroke:var(--rule);stroke-width:1}text.y{text-anchor:end}text.x{text-anchor:middle}"
    "text.first{text-anchor:start}text.last{text-anchor:end}\n"
    "rect{fill:transparent}rect:hover{fill:var(--faint);fill-opacity:.25}.none{padding:3rem 0;"
    "text-align:center}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\n"
    "th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap;"
    "font-variant-numeric:tabular-nums}\n"
    "th{color:var(--faint);font-weight:600}th:first-child,td:first-child,td.text,th.text{text-align:left}\n"
    "td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:14rem}td small{color:var(--faint)}\n"
    ".spark{width:160px;height:28px}td.spark-cell{width:176px}\n"
    "summary{cursor:pointer;margin:1.2rem 0 .4rem;font-weight:600}\n"
    "@media print{body{max-width:none;padding:0}figure{break-inside:avoid}}\n"
    "</style></head>\n<body>\n";

/* ---- The machine ----------------------------------------------------------------------------- */

/* Columns that are made for the charts, beside those of a report: what the totals grow by in a second. */
enum { DISK_READ_RATE = NODE_KEYS, DISK_WRITE_RATE, SENT_RATE, RECEIVED_RATE, LOOPBACK_RATE, COLUMNS };

static const enum node_key rate_sources[] = {NODE_DISK_READ, NODE_DISK_WRITTEN, NODE_EXTERNAL_SENT,
                                             NODE_EXTERNAL_RECEIVED, NODE_LOOPBACK_SENT};

/* A total that has fallen began anew. */
static double find_rate(const double *before, const double *now, enum node_key key)
{
    double seconds = now[NODE_TIME] - before[NODE_TIME], growth = now[key] - before[key];
    return seconds > 0 && growth >= 0 ? growth / seconds : NAN;
}

/* Returns NULL if out of memory. The caller frees it. */
static double *make_columns(const struct collector *reports)
{
    double *rows = malloc((reports->count + 1) * COLUMNS * sizeof *rows);
    for (size_t i = 0; rows && i < reports->count; i++) {
        double *row = rows + i * COLUMNS;
        memcpy(row, collector_row(reports, i), NODE_KEYS * sizeof *row);
        for (size_t k = 0; k < COLUMNS - NODE_KEYS; k++)
            row[NODE_KEYS + k] = i ? find_rate(row - COLUMNS, row, rate_sources[k]) : NAN;
    }
    return rows;
}

static const struct chart machine_charts[] = {
    {.title = "Processors",
     .unit = "%",
     .names = {"mean", "busiest", "least busy"},
     .columns = {NODE_CPU_AVERAGE, NODE_CPU_MOST, NODE_CPU_LEAST},
     .most = 100},
    {.title = "Memory and space",
     .unit = "%",
     .names = {"memory in use", "space in use of /"},
     .columns = {NODE_MEMORY, NODE_DISK_USAGE},
     .most = 100},
    {.title = "Disks",
     .unit = "MiB/s",
     .names = {"read", "written"},
     .columns = {DISK_READ_RATE, DISK_WRITE_RATE}},
    {.title = "Network",
     .unit = "MiB/s",
     .names = {"received", "sent", "loopback"},
     .columns = {RECEIVED_RATE, SENT_RATE, LOOPBACK_RATE}},
};

static void put_machine_charts(struct wr_buffer *out, const struct collector *reports)
{
    double *rows = make_columns(reports);
    if (!rows) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < sizeof machine_charts / sizeof *machine_charts; i++) {
        struct chart chart = machine_charts[i];
        chart.rows = rows;
        chart.count = reports->count;
        chart.width = COLUMNS;
        chart.time = NODE_TIME;
        page_put_chart(out, &chart);
    }
    free(rows);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static const char process_group[] = "process"; /* of the source type of that name */

static const struct {
    const char *name, *title, *unit;
    double scale;
} process_charts[] = {
    {"cpu.utilization", "Processes: processors", "% of all", 100},
    {"memory.usage", "Processes: memory", "MiB", 1.0 / (1 << 20)},
};

/* Returns whether there is one of the series. */
static bool put_process_chart(struct wr_buffer *out, const struct metric_row *row)
{
    for (size_t i = 0; i < sizeof process_charts / sizeof *process_charts; i++) {
        const struct chart chart = {.title = process_charts[i].title,
                                    .unit = process_charts[i].unit,
                                    .names = {"all of them"},
                                    .columns = {METRIC_VALUE},
                                    .rows = row->points.rows,
                                    .count = row->points.count,
                                    .width = METRIC_POINT,
                                    .time = METRIC_TIME,
                                    .scale = process_charts[i].scale};
        if (strcmp(row->series->name, process_charts[i].name) == 0) {
            page_put_chart(out, &chart);
            return true;
        }
    }
    return false;
}

/* With several sources each has charts of its own, as far as they are few. */
static void put_process_charts(struct wr_buffer *out, const struct report_node *node)
{
    enum { CHARTS_MOST = 8 };
    size_t count = 0;
    for (size_t i = 0; i < node->row_count && count < CHARTS_MOST; i++)
        if (strcmp(node->rows[i]->series->group, process_group) == 0)
            count += put_process_chart(out, node->rows[i]) ? 1 : 0;
}

static void put_charts(struct wr_buffer *out, const struct report_node *node)
{
    wr_buffer_put_text(out, "<div class=\"charts\">\n");
    if (node->machine.reports.count)
        put_machine_charts(out, &node->machine.reports);
    put_process_charts(out, node);
    wr_buffer_put_text(out, "</div>\n");
}

/* ---- Figures --------------------------------------------------------------------------------- */

static void put_figures(struct wr_buffer *out, const struct machine *machine, double now_s)
{
    double figures[NODE_FIGURES];
    node_figures_compute(machine->reports.rows, machine->reports.count, now_s, machine->cpus, figures);
    wr_buffer_put_text(out,
                       "<details open><summary>Figures</summary><div class=\"wide\"><table class=\"figures\">"
                       "<thead><tr><th>figure</th><th>value</th><th class=\"text\">unit</th>"
                       "<th class=\"text\">meaning</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < NODE_FIGURES; i++) {
        wr_buffer_put_format(out, "<tr><td>%s</td><td>", node_figure_table[i].name);
        page_put_number(out, figures[i]);
        wr_buffer_put_format(out, "</td><td class=\"text\">%s</td><td class=\"text\">%s</td></tr>\n",
                             node_figure_table[i].unit, node_figure_table[i].meaning);
    }
    wr_buffer_put_text(out, "</tbody></table></div></details>\n");
}

static void put_span(struct wr_buffer *out, const struct machine *machine)
{
    const struct collector *reports = &machine->reports;
    if (!reports->count) {
        wr_buffer_put_text(out, "<p>The machine was not measured: there was no report of the source system, "
                                "which has one from its second measurement on.</p>\n");
        return;
    }
    double first_s = collector_row(reports, 0)[NODE_TIME];
    double last_s = collector_row(reports, reports->count - 1)[NODE_TIME];
    wr_buffer_put_text(out, "<p>");
    page_put_time(out, first_s);
    wr_buffer_put_text(out, " to ");
    page_put_time(out, last_s);
    wr_buffer_put_text(out, ": ");
    page_put_duration(out, last_s - first_s);
    wr_buffer_put_text(out, "; ");
    page_put_count(out, reports->count);
    wr_buffer_put_text(out, " of ");
    page_put_count(out, reports->offered);
    wr_buffer_put_text(out, " reports");
    if (!isnan(machine->cpus)) {
        wr_buffer_put_text(out, "; ");
        page_put_number(out, machine->cpus);
        wr_buffer_put_text(out, machine->cpus == 1 ? " processor" : " processors");
    }
    wr_buffer_put_text(out, "</p>\n");
}

/* ---- Series ---------------------------------------------------------------------------------- */

static void put_name(struct wr_buffer *out, const weir_series *series)
{
    wr_buffer_put_text(out, "<bdi>");
    page_put_text(out, series->group);
    wr_buffer_put_char(out, '.');
    page_put_text(out, series->name);
    wr_buffer_put_text(out, "</bdi>");
    for (size_t i = 0; i < series->label_count; i++) {
        wr_buffer_put_text(out, " <small><bdi>");
        page_put_text(out, series->labels[i].key);
        wr_buffer_put_char(out, '=');
        page_put_text(out, series->labels[i].value);
        wr_buffer_put_text(out, "</bdi></small>");
    }
}

static void put_cell(struct wr_buffer *out, double value, const char *unit)
{
    wr_buffer_put_text(out, "<td>");
    page_put_amount(out, value, unit);
    wr_buffer_put_text(out, "</td>");
}

static void put_row(struct wr_buffer *out, const struct metric_row *row)
{
    const struct wr_sketch *sketch = &row->sketch;
    const char *unit = row->series->unit;
    const struct chart course = {.names = {"value"},
                                 .columns = {METRIC_VALUE},
                                 .rows = row->points.rows,
                                 .count = row->points.count,
                                 .width = METRIC_POINT,
                                 .time = METRIC_TIME};
    const double numbers[] = {metric_row_mean(row),
                              sketch->count ? wr_sketch_quantile(sketch, 0.5) : NAN,
                              sketch->count ? wr_sketch_quantile(sketch, 0.99) : NAN,
                              sketch->count ? sketch->min : NAN,
                              sketch->count ? sketch->max : NAN,
                              wr_sketch_sum(sketch)};
    wr_buffer_put_text(out, "<tr><td>");
    put_name(out, row->series);
    wr_buffer_put_text(out, "</td><td class=\"text\">");
    page_put_text(out, unit ? unit : "");
    wr_buffer_put_text(out, "</td><td>");
    page_put_count(out, sketch->count);
    wr_buffer_put_text(out, "</td>");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_cell(out, numbers[i], unit);
    wr_buffer_put_text(out, "<td class=\"spark-cell\">");
    page_put_sparkline(out, &course);
    wr_buffer_put_text(out, "</td></tr>\n");
}

/* Of the job, or of what measures it. */
static bool is_measured(const struct run_report *report, const struct metric_row *row)
{
    return strcmp(row->series->group, report->settings->machine) == 0 ||
           strcmp(row->series->group, process_group) == 0;
}

static size_t count_rows(const struct run_report *report, const struct report_node *node, bool measured)
{
    size_t count = 0;
    for (size_t i = 0; i < node->row_count; i++)
        count += is_measured(report, node->rows[i]) == measured;
    return count;
}

static void put_rows(struct wr_buffer *out, const struct run_report *report, const struct report_node *node,
                     bool measured, const char *heading)
{
    size_t count = count_rows(report, node, measured);
    if (!count)
        return;
    wr_buffer_put_format(out, "<details%s><summary>%s (", measured ? "" : " open", heading);
    page_put_count(out, count);
    wr_buffer_put_text(out, ")</summary><div class=\"wide\"><table class=\"metrics\"><thead><tr><th>series</th>"
                            "<th class=\"text\">unit</th><th>count</th><th>mean</th><th>p50</th><th>p99</th>"
                            "<th>min</th><th>max</th><th>sum</th><th>course</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < node->row_count; i++)
        if (is_measured(report, node->rows[i]) == measured)
            put_row(out, node->rows[i]);
    wr_buffer_put_text(out, "</tbody></table></div></details>\n");
}

/* ---- The page -------------------------------------------------------------------------------- */

static void put_node(struct wr_buffer *out, const struct run_report *report, const struct report_node *node,
                     double now_s)
{
    wr_buffer_put_text(out, "<section><h2><bdi>");
    page_put_text(out, node->name);
    wr_buffer_put_text(out, "</bdi></h2>\n");
    put_span(out, &node->machine);
    put_charts(out, node);
    put_rows(out, report, node, false, "Metrics of the job");
    if (node->machine.reports.count)
        put_figures(out, &node->machine, now_s);
    put_rows(out, report, node, true, "Machine and processes");
    wr_buffer_put_text(out, "</section>\n");
}

void report_page_put(struct wr_buffer *out, const struct run_report *report, const char *title, double now_s)
{
    const char *heading = title ? title : "weir report";
    wr_buffer_put_text(out, head);
    wr_buffer_put_text(out, "<title>");
    page_put_text(out, heading);
    wr_buffer_put_text(out, "</title>\n");
    wr_buffer_put_text(out, style);
    wr_buffer_put_text(out, "<h1><bdi>");
    page_put_text(out, heading);
    wr_buffer_put_text(out, "</bdi></h1>\n<p>written ");
    page_put_time(out, now_s);
    wr_buffer_put_text(out, "</p>\n");
    if (!report->node_count)
        wr_buffer_put_text(out, "<p>There were no values.</p>\n");
    for (size_t i = 0; i < report->node_count; i++)
        put_node(out, report, report->nodes[i], now_s);
    wr_buffer_put_text(out, "</body></html>\n");
}
