#include "report_json.h"

#include <math.h>

#include "node_json.h"
#include "text/buffer.h"
#include "text/escape.h"
#include "text/number.h"

static void put_number(struct wr_buffer *out, double value)
{
    char text[WR_NUMBER_ROOM];
    if (isfinite(value))
        wr_buffer_put(out, text, wr_number_put_double(text, value));
    else
        wr_buffer_put_text(out, "null");
}

static void put_count(struct wr_buffer *out, uint64_t count)
{
    char text[WR_NUMBER_ROOM];
    wr_buffer_put(out, text, wr_number_put_uint(text, count));
}

/* ---- Reports and figures --------------------------------------------------------------------- */

static void put_reports(struct wr_buffer *out, const struct machine *machine, int depth)
{
    node_json_put_reports(out, machine->reports.rows, machine->reports.count, depth);
}

static void put_figures(struct wr_buffer *out, const struct machine *machine, double now_s, int depth)
{
    double figures[NODE_FIGURES];
    node_figures_compute(machine->reports.rows, machine->reports.count, now_s, machine->cpus, figures);
    node_json_put_figures(out, figures, depth);
}

void report_json_put_reports(struct wr_buffer *out, const struct run_report *report)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < report->node_count; i++) {
        node_json_begin(out, i == 0, 1, report->nodes[i]->name);
        put_reports(out, &report->nodes[i]->machine, 1);
    }
    node_json_end(out, report->node_count == 0, 0, '}');
}

void report_json_put_figures(struct wr_buffer *out, const struct run_report *report, double now_s)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < report->node_count; i++) {
        node_json_begin(out, i == 0, 1, report->nodes[i]->name);
        put_figures(out, &report->nodes[i]->machine, now_s, 1);
    }
    node_json_end(out, report->node_count == 0, 0, '}');
    wr_buffer_put_char(out, '\n');
}

/* ---- Details --------------------------------------------------------------------------------- */

static void put_text(struct wr_buffer *out, const char *text)
{
    if (text)
        wr_escape_json_ascii(out, text);
    else
        wr_buffer_put_text(out, "null");
}

static void put_labels(struct wr_buffer *out, const weir_series *series)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < series->label_count; i++) {
        wr_buffer_put_text(out, i ? ", " : "");
        put_text(out, series->labels[i].key);
        wr_buffer_put_text(out, ": ");
        put_text(out, series->labels[i].value);
    }
    wr_buffer_put_char(out, '}');
}

static void put_points(struct wr_buffer *out, const struct collector *points)
{
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < points->count; i++) {
        const double *point = collector_row(points, i);
        wr_buffer_put_text(out, i ? ", [" : "[");
        put_number(out, point[METRIC_TIME]);
        wr_buffer_put_text(out, ", ");
        put_number(out, point[METRIC_VALUE]);
        wr_buffer_put_char(out, ']');
    }
    wr_buffer_put_char(out, ']');
}

static void put_statistics(struct wr_buffer *out, const struct metric_row *row, int depth)
{
    const struct wr_sketch *sketch = &row->sketch;
    bool has_values = sketch->count > 0;
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"sum", wr_sketch_sum(sketch)},
        {"mean", metric_row_mean(row)},
        {"min", has_values ? sketch->min : NAN},
        {"max", has_values ? sketch->max : NAN},
        {"p50", has_values ? wr_sketch_quantile(sketch, 0.5) : NAN},
        {"p99", has_values ? wr_sketch_quantile(sketch, 0.99) : NAN},
        {"last", has_values ? row->last : NAN},
    };
    node_json_begin(out, false, depth, "count");
    put_count(out, sketch->count);
    node_json_begin(out, false, depth, "not_finite");
    put_count(out, row->others);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        node_json_begin(out, false, depth, numbers[i].key);
        put_number(out, numbers[i].value);
    }
}

static void put_row(struct wr_buffer *out, const struct metric_row *row, int depth)
{
    static const char *const instruments[] = {"value", "counter", "gauge", "histogram"};
    const weir_series *series = row->series;
    const char *instrument =
        series->instrument >= 0 && series->instrument < 4 ? instruments[series->instrument] : NULL;
    wr_buffer_put_char(out, '{');
    node_json_begin(out, true, depth + 1, "group");
    put_text(out, series->group);
    node_json_begin(out, false, depth + 1, "name");
    put_text(out, series->name);
    node_json_begin(out, false, depth + 1, "labels");
    put_labels(out, series);
    node_json_begin(out, false, depth + 1, "unit");
    put_text(out, series->unit);
    node_json_begin(out, false, depth + 1, "instrument");
    put_text(out, instrument);
    put_statistics(out, row, depth + 1);
    node_json_begin(out, false, depth + 1, "stride");
    put_count(out, row->points.stride);
    node_json_begin(out, false, depth + 1, "points");
    put_points(out, &row->points);
    node_json_end(out, false, depth, '}');
}

static void put_rows(struct wr_buffer *out, const struct report_node *node, int depth)
{
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < node->row_count; i++) {
        node_json_begin(out, i == 0, depth + 1, NULL);
        put_row(out, node->rows[i], depth + 1);
    }
    node_json_end(out, node->row_count == 0, depth, ']');
}

void report_json_put_details(struct wr_buffer *out, const struct run_report *report, double now_s)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < report->node_count; i++) {
        const struct report_node *node = report->nodes[i];
        node_json_begin(out, i == 0, 1, node->name);
        wr_buffer_put_char(out, '{');
        node_json_begin(out, true, 2, "figures");
        put_figures(out, &node->machine, now_s, 2);
        node_json_begin(out, false, 2, "reports");
        put_reports(out, &node->machine, 2);
        node_json_begin(out, false, 2, "metrics");
        put_rows(out, node, 2);
        node_json_end(out, false, 1, '}');
    }
    node_json_end(out, report->node_count == 0, 0, '}');
    wr_buffer_put_char(out, '\n');
}
