#include "node_json.h"

#include <math.h>

#include "text/buffer.h"
#include "text/escape.h"
#include "text/number.h"

/* As Python writes a float. */
static void put_float(struct wr_buffer *out, double value)
{
    char text[WR_NUMBER_ROOM];
    if (isfinite(value))
        wr_buffer_put(out, text, wr_number_put_repr(text, value));
    else
        wr_buffer_put_text(out, "null");
}

static void put_indent(struct wr_buffer *out, int depth)
{
    enum { STEP = 4 };
    wr_buffer_put_char(out, '\n');
    for (int i = 0; i < depth * STEP; i++)
        wr_buffer_put_char(out, ' ');
}

void node_json_begin(struct wr_buffer *out, bool is_first, int depth, const char *key)
{
    if (!is_first)
        wr_buffer_put_char(out, ',');
    put_indent(out, depth);
    if (!key)
        return;
    wr_escape_json_ascii(out, key);
    wr_buffer_put_text(out, ": ");
}

void node_json_end(struct wr_buffer *out, bool is_empty, int depth, char closing)
{
    if (!is_empty)
        put_indent(out, depth);
    wr_buffer_put_char(out, closing);
}

static void put_report(struct wr_buffer *out, const double *report, int depth)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < NODE_KEYS; i++) {
        node_json_begin(out, i == 0, depth + 1, node_key_names[i]);
        put_float(out, report[i]);
    }
    node_json_end(out, false, depth, '}');
}

void node_json_put_reports(struct wr_buffer *out, const double *reports, size_t count, int depth)
{
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        node_json_begin(out, i == 0, depth + 1, NULL);
        put_report(out, reports + i * NODE_KEYS, depth + 1);
    }
    node_json_end(out, count == 0, depth, ']');
}

void node_json_put_figures(struct wr_buffer *out, const double figures[NODE_FIGURES], int depth)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < NODE_FIGURES; i++) {
        node_json_begin(out, i == 0, depth + 1, node_figure_table[i].name);
        put_float(out, figures[i]);
    }
    node_json_end(out, false, depth, '}');
}
