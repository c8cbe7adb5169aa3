#include "summary_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "common/json.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/number.h"

enum { NAME_LEAST = 12, NAME_MOST = 60, BARS_LEAST = 8, BARS_MOST = 24, GAP = 3, RANK_BEFORE_BARS = 5 };

/* ---- What is known of a series --------------------------------------------------------------- */

static double count_of(const struct statistics_series *series)
{
    return (double)(series->sketch.count + series->others);
}

static double mean_of(const struct statistics_series *series)
{
    return series->sketch.count ? series->mean : NAN;
}

static double quantile_of(const struct statistics_series *series, double q)
{
    return series->sketch.count ? wr_sketch_quantile(&series->sketch, q) : NAN;
}

static double p50_of(const struct statistics_series *series)
{
    return quantile_of(series, 0.5);
}

static double p90_of(const struct statistics_series *series)
{
    return quantile_of(series, 0.9);
}

static double p99_of(const struct statistics_series *series)
{
    return quantile_of(series, 0.99);
}

static double least_of(const struct statistics_series *series)
{
    return series->sketch.count ? series->sketch.min : NAN;
}

static double most_of(const struct statistics_series *series)
{
    return series->sketch.count ? series->sketch.max : NAN;
}

static double sum_of(const struct statistics_series *series)
{
    return wr_sketch_sum(&series->sketch);
}

/* The lower its rank, the narrower the screen that still has the column; 0: not in the table. */
static const struct column {
    const char *name;
    double (*of)(const struct statistics_series *series);
    unsigned rank;
} columns[] = {
    {"count", count_of, 1}, {"mean", mean_of, 2}, {"sd", statistics_deviation, 6},
    {"min", least_of, 7},   {"p50", p50_of, 5},   {"p90", p90_of, 8},
    {"p99", p99_of, 4},     {"max", most_of, 3},  {"sum", sum_of, 0},
};

/* ---- The table ------------------------------------------------------------------------------- */

void summary_put_number(struct wr_buffer *out, double value, void (*put)(struct wr_buffer *out, double value))
{
    struct wr_buffer number = {0};
    if (!isnan(value))
        put(&number, value);
    figures_put_right(out, &number, SUMMARY_NUMBER_COLUMNS);
}

size_t summary_find_width(const struct statistics *statistics, size_t most)
{
    size_t longest = NAME_LEAST;
    for (size_t i = 0; i < statistics->count && longest < most; i++) {
        struct wr_buffer text = {0};
        command_put_text(&text, statistics->series[i]->id);
        size_t width = text.data ? figures_width(text.data, text.length) : 0;
        longest = width > longest ? width : longest;
        wr_buffer_fini(&text);
    }
    return longest < most ? longest : most;
}

struct layout {
    size_t name, bars;
    unsigned rank; /* the highest of the columns that fit */
};

/* Names come first, then numbers, then bars. */
static struct layout lay_out(const struct statistics *statistics, const struct figures_screen *screen)
{
    size_t width = (size_t)screen->columns, most = width / 2 > NAME_LEAST ? width / 2 : NAME_LEAST;
    struct layout layout = {.name = summary_find_width(statistics, most < NAME_MOST ? most : NAME_MOST)};
    size_t left = width > layout.name ? width - layout.name : 0;
    layout.rank = (unsigned)(left / SUMMARY_NUMBER_COLUMNS);
    if (layout.rank > WR_COUNT_OF(columns) - 1)
        layout.rank = WR_COUNT_OF(columns) - 1;
    while (layout.rank > RANK_BEFORE_BARS && left - layout.rank * SUMMARY_NUMBER_COLUMNS < BARS_LEAST + GAP)
        layout.rank--;
    left -= layout.rank * SUMMARY_NUMBER_COLUMNS;
    if (left >= BARS_LEAST + GAP)
        layout.bars = left - GAP < BARS_MOST ? left - GAP : BARS_MOST;
    return layout;
}

static bool is_shown(const struct column *column, const struct layout *layout)
{
    return column->rank && column->rank <= layout->rank;
}

static void put_heading(struct wr_buffer *out, const struct layout *layout, const struct figures_screen *screen)
{
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    figures_put_cell(out, "series", (int)layout->name);
    for (size_t i = 0; i < WR_COUNT_OF(columns); i++)
        if (is_shown(&columns[i], layout))
            figures_put_cell(out, columns[i].name, -SUMMARY_NUMBER_COLUMNS);
    wr_buffer_put_text(out, screen->has_colours ? "\033[0m\n" : "\n");
}

static void put_bars(struct wr_buffer *out, const struct statistics *statistics,
                     const struct statistics_series *series, size_t width, const struct figures_screen *screen)
{
    double means[BARS_MOST];
    int64_t duration_ns = series->has_time ? statistics->end_ns - statistics->start_ns
                                           : ((int64_t)series->sketch.count - 1) * WR_NS_PER_MS;
    size_t shown = width ? bins_find_means(&series->bins, duration_ns, width, means) : 0;
    wr_buffer_put_text(out, shown ? "   " : "");
    figures_put_bars(out, means, shown, screen);
}

static void put_row(struct wr_buffer *out, const struct statistics *statistics,
                    const struct statistics_series *series, const struct layout *layout,
                    const struct figures_screen *screen)
{
    figures_put_escaped(out, series->id, layout->name);
    for (size_t i = 0; i < WR_COUNT_OF(columns); i++)
        if (is_shown(&columns[i], layout))
            summary_put_number(out, columns[i].of(series),
                               columns[i].of == count_of ? figures_put_count : figures_put_value);
    put_bars(out, statistics, series, layout->bars, screen);
    figures_trim(out);
    wr_buffer_put_char(out, '\n');
}

void summary_table_put(struct wr_buffer *out, const struct statistics *statistics,
                       const struct figures_screen *screen)
{
    const struct layout layout = lay_out(statistics, screen);
    put_heading(out, &layout, screen);
    for (size_t i = 0; i < statistics->count; i++)
        put_row(out, statistics, statistics->series[i], &layout, screen);
}

/* ---- For programs ---------------------------------------------------------------------------- */

int summary_print_json(const struct statistics *statistics, int result)
{
    struct json_object *array = json_start_array();
    for (size_t i = 0; i < statistics->count; i++) {
        const struct statistics_series *series = statistics->series[i];
        struct json_object *object = json_add_object(array, NULL), *labels;
        json_add_text(object, "group", series->group);
        json_add_text(object, "name", series->name);
        labels = json_add_object(object, "labels");
        for (size_t k = 0; k < series->label_count; k++)
            json_add_text(labels, series->labels[k].key, series->labels[k].value);
        for (size_t k = 0; k < WR_COUNT_OF(columns); k++)
            json_add_number(object, columns[k].name, columns[k].of(series));
        json_add_count(object, "not_finite", series->others);
    }
    return json_print(array, JSON_LINES, result);
}

static void put_quoted(struct wr_buffer *out, const char *text)
{
    wr_buffer_put_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            wr_buffer_put_char(out, '"');
        wr_buffer_put_char(out, *text);
    }
    wr_buffer_put_char(out, '"');
}

static void put_exact(struct wr_buffer *out, double value)
{
    char text[WR_NUMBER_ROOM + 1];
    if (!isfinite(value))
        return;
    text[wr_number_put_double(text, value)] = '\0';
    wr_buffer_put_text(out, text);
}

void summary_put_csv(struct wr_buffer *out, const struct statistics *statistics)
{
    wr_buffer_put_text(out, "series");
    for (size_t i = 0; i < WR_COUNT_OF(columns); i++)
        wr_buffer_put_format(out, ",%s", columns[i].name);
    wr_buffer_put_text(out, "\n");
    for (size_t i = 0; i < statistics->count; i++) {
        put_quoted(out, statistics->series[i]->id);
        for (size_t k = 0; k < WR_COUNT_OF(columns); k++) {
            wr_buffer_put_char(out, ',');
            put_exact(out, columns[k].of(statistics->series[i]));
        }
        wr_buffer_put_char(out, '\n');
    }
}
