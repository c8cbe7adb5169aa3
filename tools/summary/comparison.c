#include "comparison.h"

#include <math.h>
#include <string.h>

#include "common/json.h"
#include "summary_table.h"
#include "text/buffer.h"

/* ---- The interval ---------------------------------------------------------------------------- */

/* The difference of the means, b - a, with its interval of 95 % confidence by Welch's t-test: B. L. Welch: The
 * generalization of "Student's" problem when several different population variances are involved, Biometrika 34
 * (1947). It takes the values for independent of each other. */
struct comparison {
    double difference, least, most; /* NAN: one has fewer than two values */
};

/* The factor of the standard error that holds 95 % of Student's distribution; freedom: at least 1.
 *
 * Exact for 1 and 2; else the expansion of Fisher and Cornish in 1 / freedom, which is off by less than 0.3 %
 * from 3 on (Abramowitz and Stegun, 26.7.5). Between, a line in 1 / freedom is above the curve. */
static double find_factor(double freedom)
{
    const double z = 1.959963984540054, z2 = z * z;
    const double one = 12.706204736174698, two = 4.302652729749464;
    if (freedom < 2)
        return two + (one - two) * (1 / freedom - 0.5) / 0.5;
    if (freedom < 3)
        return find_factor(3) + (two - find_factor(3)) * (1 / freedom - 1.0 / 3) * 6;
    double g1 = z * (z2 + 1) / 4;
    double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / freedom) / freedom) / freedom) / freedom;
}

static struct comparison compare(const struct statistics_series *a, const struct statistics_series *b)
{
    double first = (double)a->sketch.count, second = (double)b->sketch.count;
    struct comparison result = {NAN, NAN, NAN};
    if (first < 1 || second < 1)
        return result;
    result.difference = b->mean - a->mean;
    if (first < 2 || second < 2)
        return result;
    double va = a->squares / (first - 1) / first, vb = b->squares / (second - 1) / second;
    double freedom = va + vb > 0 ? (va + vb) * (va + vb) / (va * va / (first - 1) + vb * vb / (second - 1)) : 1;
    double half = va + vb > 0 ? find_factor(freedom) * sqrt(va + vb) : 0;
    result.least = result.difference - half;
    result.most = result.difference + half;
    return result;
}

static const char *judge(const struct comparison *comparison)
{
    if (isnan(comparison->least))
        return "too few values";
    return comparison->least > 0 ? "higher" : comparison->most < 0 ? "lower" : "noise";
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Calls `each` for the series of either, in the order of their ids; the other one is NULL. */
static void visit(const struct statistics *a, const struct statistics *b,
                  void (*each)(void *ctx, const struct statistics_series *a, const struct statistics_series *b),
                  void *ctx)
{
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count ? 1 : k == b->count ? -1 : strcmp(a->series[i]->id, b->series[k]->id);
        each(ctx, order <= 0 ? a->series[i] : NULL, order >= 0 ? b->series[k] : NULL);
        i += order <= 0;
        k += order >= 0;
    }
}

struct table {
    struct wr_buffer *out;
    const struct figures_screen *screen;
    size_t name;
};

static void put_interval(struct wr_buffer *out, const struct comparison *comparison)
{
    struct wr_buffer text = {0};
    if (!isnan(comparison->least)) {
        figures_put_value(&text, comparison->least);
        wr_buffer_put_text(&text, " to ");
        figures_put_value(&text, comparison->most);
    }
    figures_put_right(out, &text, 2 * SUMMARY_NUMBER_COLUMNS);
}

static void put_percent(struct wr_buffer *out, double percent)
{
    wr_buffer_put_format(out, fabs(percent) < 9.95 ? "%+.1f %%" : "%+.0f %%", percent);
}

static void put_row(void *ctx, const struct statistics_series *a, const struct statistics_series *b)
{
    const struct table *table = ctx;
    const struct statistics_series *one = a ? a : b;
    struct wr_buffer *out = table->out;
    figures_put_escaped(out, one ? one->id : "", table->name);
    summary_put_number(out, a && a->sketch.count ? a->mean : NAN, figures_put_value);
    summary_put_number(out, b && b->sketch.count ? b->mean : NAN, figures_put_value);
    if (!a || !b) {
        wr_buffer_put_format(out, "   only in the %s\n", a ? "first" : "second");
        return;
    }
    const struct comparison comparison = compare(a, b);
    const char *verdict = judge(&comparison);
    bool is_noise = strcmp(verdict, "higher") != 0 && strcmp(verdict, "lower") != 0;
    summary_put_number(out, a->mean != 0 ? comparison.difference / fabs(a->mean) * 100 : NAN, put_percent);
    put_interval(out, &comparison);
    wr_buffer_put_format(out, table->screen->has_colours && !is_noise ? "   \033[1m%s\033[0m\n" : "   %s\n",
                         verdict);
}

void comparison_put(struct wr_buffer *out, const struct statistics *a, const struct statistics *b,
                    const struct figures_screen *screen)
{
    enum { REST = 5 * SUMMARY_NUMBER_COLUMNS + 3 + 14, LEAST = 12 };
    size_t left = screen->columns > REST + LEAST ? (size_t)screen->columns - REST : LEAST;
    size_t first = summary_find_width(a, left), second = summary_find_width(b, left);
    struct table table = {out, screen, first > second ? first : second};
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    figures_put_cell(out, "series", (int)table.name);
    figures_put_cell(out, "mean of A", -SUMMARY_NUMBER_COLUMNS);
    figures_put_cell(out, "of B", -SUMMARY_NUMBER_COLUMNS);
    figures_put_cell(out, "B - A", -SUMMARY_NUMBER_COLUMNS);
    figures_put_cell(out, "95 % sure", -2 * SUMMARY_NUMBER_COLUMNS);
    wr_buffer_put_text(out, screen->has_colours ? "   B is\033[0m\n" : "   B is\n");
    visit(a, b, put_row, &table);
}

static void add_side(struct json_object *object, const char *key, const struct statistics_series *series)
{
    if (!series)
        return;
    struct json_object *side = json_add_object(object, key);
    json_add_count(side, "count", series->sketch.count);
    json_add_number(side, "mean", series->sketch.count ? series->mean : NAN);
    json_add_number(side, "sd", statistics_deviation(series));
}

static void add_object(void *ctx, const struct statistics_series *a, const struct statistics_series *b)
{
    const struct statistics_series *one = a ? a : b;
    struct json_object *object = json_add_object(ctx, NULL), *labels;
    json_add_text(object, "group", one->group);
    json_add_text(object, "name", one->name);
    labels = json_add_object(object, "labels");
    for (size_t i = 0; i < one->label_count; i++)
        json_add_text(labels, one->labels[i].key, one->labels[i].value);
    add_side(object, "a", a);
    add_side(object, "b", b);
    if (!a || !b)
        return;
    const struct comparison comparison = compare(a, b);
    json_add_number(object, "difference", comparison.difference);
    json_add_number(object, "least", comparison.least);
    json_add_number(object, "most", comparison.most);
    json_add_text(object, "b_is", judge(&comparison));
}

int comparison_print_json(const struct statistics *a, const struct statistics *b, int result)
{
    struct json_object *array = json_start_array();
    visit(a, b, add_object, array);
    return json_print(array, JSON_LINES, result);
}
