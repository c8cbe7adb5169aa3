#include "report_table.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "../../plugins/report/node_json.h"
#include "common/command.h"
#include "common/figures.h"
#include "text/buffer.h"

/* ---- Figures --------------------------------------------------------------------------------- */

enum { NAME_COLUMNS = 32, UNIT_COLUMNS = 14, NODE_COLUMNS = 16 };

static size_t count_columns(const struct report_documents *documents, const struct figures_screen *screen)
{
    size_t room = (size_t)screen->columns > NAME_COLUMNS + UNIT_COLUMNS + NODE_COLUMNS
                      ? ((size_t)screen->columns - NAME_COLUMNS - UNIT_COLUMNS) / NODE_COLUMNS
                      : 1;
    return documents->count < room ? documents->count : room;
}

static void put_head(struct wr_buffer *out, const struct report_documents *documents, size_t columns,
                     const struct figures_screen *screen)
{
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    figures_put_cell(out, "figure", NAME_COLUMNS);
    for (size_t i = 0; i < columns; i++) {
        struct wr_buffer name = {0};
        command_put_text(&name, documents->nodes[i].name);
        const char *text = wr_buffer_text(&name);
        size_t width = text ? figures_width(text, name.length) : 0;
        wr_buffer_put_char(out, ' ');
        if (width < NODE_COLUMNS - 1)
            figures_put_cell(out, text ? text : "", 1 - NODE_COLUMNS);
        else
            figures_put_cut(out, text, name.length, NODE_COLUMNS - 1);
        wr_buffer_fini(&name);
    }
    wr_buffer_put_text(out, screen->has_colours ? "  unit\033[0m\n" : "  unit\n");
}

static void put_value(struct wr_buffer *out, double value)
{
    struct wr_buffer number = {0};
    if (isnan(value))
        wr_buffer_put_char(&number, '-');
    else
        figures_put_value(&number, value);
    figures_put_right(out, &number, NODE_COLUMNS);
}

void report_table_put(struct wr_buffer *out, const struct report_documents *documents,
                      const struct figures_screen *screen)
{
    size_t columns = count_columns(documents, screen);
    put_head(out, documents, columns, screen);
    for (size_t i = 0; i < NODE_FIGURES; i++) {
        figures_put_cell(out, node_figure_table[i].name, NAME_COLUMNS);
        for (size_t k = 0; k < columns; k++)
            put_value(out, documents->nodes[k].figures[i]);
        wr_buffer_put_format(out, "  %s\n", node_figure_table[i].unit);
    }
    if (columns < documents->count)
        wr_buffer_put_format(out, "and %zu nodes more; --merge has all\n", documents->count - columns);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static bool is_unique(const struct report_documents *documents, size_t number)
{
    const struct report_document_node *node = &documents->nodes[number];
    for (size_t i = 0; i < number; i++)
        if (strcmp(documents->nodes[i].name, node->name) == 0) {
            command_fail("node \"%s\" is in %s and in %s; NAME=FILE renames the node of a file", node->name,
                         documents->nodes[i].path, node->path);
            return false;
        }
    return true;
}

static void put_metrics(struct wr_buffer *out, struct json_object *metrics)
{
    size_t count = metrics ? json_object_array_length(metrics) : 0;
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        struct json_object *metric = json_object_array_get_idx(metrics, i);
        const char *text =
            json_object_to_json_string_ext(metric, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
        if (!text)
            command_out_of_memory();
        node_json_begin(out, i == 0, 3, NULL);
        wr_buffer_put_text(out, text);
    }
    node_json_end(out, count == 0, 2, ']');
}

static void put_node(struct wr_buffer *out, const struct report_document_node *node)
{
    wr_buffer_put_char(out, '{');
    node_json_begin(out, true, 2, "figures");
    node_json_put_figures(out, node->figures, 2);
    node_json_begin(out, false, 2, "reports");
    node_json_put_reports(out, node->reports, node->count, 2);
    node_json_begin(out, false, 2, "metrics");
    put_metrics(out, node->metrics);
    node_json_end(out, false, 1, '}');
}

bool report_merge_put(struct wr_buffer *out, const struct report_documents *documents)
{
    bool are_unique = true;
    for (size_t i = 0; i < documents->count; i++)
        are_unique &= is_unique(documents, i);
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; are_unique && i < documents->count; i++) {
        node_json_begin(out, i == 0, 1, documents->nodes[i].name);
        put_node(out, &documents->nodes[i]);
    }
    node_json_end(out, documents->count == 0, 0, '}');
    wr_buffer_put_char(out, '\n');
    return are_unique;
}
