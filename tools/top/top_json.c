#include "top_json.h"

#include <math.h>
#include <stdlib.h>

#include "common/json.h"
#include "os/clock.h"
#include "text/common.h"
#include "top_page.h"
#include "top_rows.h"
#include "top_series.h"

static struct json_object *start(const struct top_page *page)
{
    struct json_object *root = json_start_object();
    json_add_decimals(root, "time", (double)wr_clock_wall_ns() / WR_NS_PER_S, 3);
    json_add_text(root, "url", page->url);
    return root;
}

static void add_row(struct json_object *array, const struct top_row *row)
{
    static const char *const types[] = {"gauge", "counter", "histogram", "summary"};
    const struct top_series *series = row->series;
    bool is_gauge = series->kind == TOP_GAUGE;
    struct json_object *object = json_add_object(array, NULL);
    json_add_text(object, "name", series->key);
    struct json_object *labels = json_add_object(object, "labels");
    for (const char *label = top_series_first_label(series); label;
         label = top_series_next_label(series, label))
        json_add_text(labels, label, top_series_label_value(label));
    json_add_text(object, "type", types[series->kind]);
    json_add_number(object, "per_second", row->per_s);
    json_add_number(object, "increase", is_gauge ? NAN : row->increase);
    json_add_number(object, "change", is_gauge ? row->increase : NAN);
    json_add_number(object, "mean", row->mean);
    json_add_number(object, "p99", row->p99);
    json_add_number(object, "value", series->value);
}

int top_json_print(const struct top_page *page, const struct top_rows *rows)
{
    struct json_object *root = start(page);
    json_add_number(root, "seconds", rows->passed_s);
    json_add_count(root, "series", rows->series);
    json_add_count(root, "moved", rows->count);
    json_add_number(root, "per_second", rows->per_s);
    json_add_count(root, "bad_lines", page->bad_lines);
    struct json_object *metrics = json_add_array(root, "metrics");
    for (size_t i = 0; i < rows->count; i++)
        add_row(metrics, &rows->rows[i]);
    return json_print(root, JSON_LINES, EXIT_SUCCESS);
}

int top_json_print_lost(const struct top_page *page)
{
    struct json_object *root = start(page);
    json_add_text(root, "error", page->problem);
    return json_print(root, JSON_LINES, EXIT_SUCCESS);
}
