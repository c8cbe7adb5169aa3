#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "batch_fixture.h"

static const weir_label route[] = {{"route", "/x"}}, other_route[] = {{"route", "/y"}};

/* The line of one sample. */
static const char *line_of(const char *text)
{
    static char line[3000];
    const char *last = text + strlen(text) - 1;
    cr_assert_eq(*last, '\n');
    while (last > text && last[-1] != '\n')
        last--;
    strcpy(line, last);
    return line;
}

static const char *line_of_value(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "n", NULL, 0), value);
    return line_of(encode(&wr_format_prometheus));
}

static const char *line_with_label(const char *key, const char *value)
{
    const weir_label label[] = {{key, value}};
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "n", label, 1), 1);
    return line_of(encode(&wr_format_prometheus));
}

static const char *line_with_name(const char *group, const char *name)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(group, name, NULL, 0), 1);
    return line_of(encode(&wr_format_prometheus));
}

/* ---- The document ---------------------------------------------------------------------------- */

Test(format_prometheus, a_sample_is_a_gauge_with_help_and_type_in_front)
{
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP my_app_latency latency of my_app\n"
                                                    "# TYPE my_app_latency gauge\n"
                                                    "my_app_latency{route=\"/x\"} 49.403\n");
}

Test(format_prometheus, a_running_total_is_a_counter)
{
    uint32_t series = add_series("my_app", "requests", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, 7);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP my_app_requests_total requests of my_app\n"
                                                    "# TYPE my_app_requests_total counter\n"
                                                    "my_app_requests_total 7\n");
}

Test(format_prometheus, a_name_that_ends_in_total_keeps_one)
{
    uint32_t series = add_series("my_app", "requests_total", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, 7);
    cr_assert_str_eq(line_of(encode(&wr_format_prometheus)), "my_app_requests_total 7\n");
}

Test(format_prometheus, an_increment_is_no_total)
{
    uint32_t series = add_series("my_app", "requests", NULL, 0);
    fixture.series[series].instrument = WEIR_COUNTER;
    add_double(series, 1);
    add_double(series, 1);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP my_app_requests requests of my_app\n"
                                                    "# TYPE my_app_requests gauge\n"
                                                    "my_app_requests 1\n");
}

Test(format_prometheus, descriptions_are_the_help_and_units_become_base_units)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    fixture.series[a].help = "how long \\ \"it\"\ntakes";
    fixture.series[a].unit = "ms";
    fixture.series[b].unit = "requests";
    add_double(a, 1);
    add_double(b, 2);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_a_seconds how long \\\\ \"it\"\\ntakes\n"
                                                    "# TYPE g_a_seconds gauge\n"
                                                    "g_a_seconds 0.001\n"
                                                    "# HELP g_b b of g (requests)\n"
                                                    "# TYPE g_b gauge\n"
                                                    "g_b 2\n");
}

Test(format_prometheus, units_may_stay_as_they_are)
{
    uint32_t series = add_series("g", "took.ms", NULL, 0);
    fixture.series[series].unit = "ms";
    add_double(series, 75);
    cr_assert_str_eq(encode_as(&wr_format_prometheus, "units", "as_is"),
                     "# HELP g_took_ms took.ms of g (ms)\n# TYPE g_took_ms gauge\ng_took_ms 75\n");
    cr_assert_str_eq(encode(&wr_format_prometheus),
                     "# HELP g_took_seconds took.ms of g\n# TYPE g_took_seconds gauge\ng_took_seconds 0.075\n");
}

Test(format_prometheus, the_last_value_of_each_series_is_written)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1);
    add_double(b, 2);
    add_double(a, 3)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 4);
    add_double(b, 1);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_a a of g\n# TYPE g_a gauge\ng_a 4\n"
                                                    "# HELP g_b b of g\n# TYPE g_b gauge\ng_b 1\n");
}

Test(format_prometheus, lines_of_a_family_are_adjacent)
{
    uint32_t ax = add_series("g", "a", route, 1), ab = add_series("g", "a_b", NULL, 0),
             ay = add_series("g", "a", other_route, 1), a = add_series("g", "a", NULL, 0);
    add_double(ay, 1);
    add_double(ab, 2);
    add_double(ax, 3);
    add_double(a, 4);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_a a of g\n"
                                                    "# TYPE g_a gauge\n"
                                                    "g_a 4\n"
                                                    "g_a{route=\"/x\"} 3\n"
                                                    "g_a{route=\"/y\"} 1\n"
                                                    "# HELP g_a_b a_b of g\n"
                                                    "# TYPE g_a_b gauge\n"
                                                    "g_a_b 2\n");
}

Test(format_prometheus, the_next_document_starts_empty)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1);
    add_double(b, 2);
    encode_with(&encoder);
    clear_batch();
    add_double(b, 3);
    cr_assert_str_eq(encode_with(&encoder), "# HELP g_b b of g\n# TYPE g_b gauge\ng_b 3\n");
    clear_batch();
    cr_assert_str_eq(encode_with(&encoder), "");
    wr_encoder_fini(&encoder);
}

static weir_series later_view;
static int views_left; /* how often the series is still found as it was before it was described */

static const weir_series *find_described(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    return views_left-- > 0 ? &fixture.series[id] : &later_view;
}

Test(format_prometheus, a_series_described_while_a_document_is_made_is_named_so_in_the_next_one)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t a = add_series("g", "a", NULL, 0);
    later_view = fixture.series[a];
    later_view.unit = "ms";
    add_double(a, 1);
    add_double(a, 2);
    weir_batch batch = *fixture_batch();
    batch.series = find_described;
    views_left = 1;
    cr_assert(wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded));
    static const char before[] = "# HELP g_a a of g\n# TYPE g_a gauge\ng_a 2\n";
    cr_assert_eq(encoded.length, strlen(before));
    cr_assert_eq(memcmp(encoded.data, before, encoded.length), 0, "%.*s", (int)encoded.length, encoded.data);
    cr_assert(wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded));
    static const char after[] = "# HELP g_a_seconds a of g\n# TYPE g_a_seconds gauge\ng_a_seconds 0.002\n";
    cr_assert_eq(encoded.length, strlen(after));
    cr_assert_eq(memcmp(encoded.data, after, encoded.length), 0, "%.*s", (int)encoded.length, encoded.data);
    wr_encoder_fini(&encoder);
}

Test(format_prometheus, labels_of_the_configuration_are_merged_and_the_series_take_precedence)
{
    static const weir_label own[] = {{"host", "own"}}, common[] = {{"az", "eu"}, {"host", "all"}};
    set_labels(common, 2);
    add_double(add_series("g", "a", own, 1), 1);
    cr_assert_str_eq(line_of(encode(&wr_format_prometheus)), "g_a{az=\"eu\",host=\"own\"} 1\n");
}

/* ---- Values ---------------------------------------------------------------------------------- */

Test(format_prometheus, every_double_is_written)
{
    cr_assert_str_eq(line_of_value(NAN), "g_n NaN\n");
    cr_assert_str_eq(line_of_value(INFINITY), "g_n +Inf\n");
    cr_assert_str_eq(line_of_value(-INFINITY), "g_n -Inf\n");
    cr_assert_str_eq(line_of_value(-0.0), "g_n -0\n");
    cr_assert_str_eq(line_of_value(5e-324), "g_n 5e-324\n");
    cr_assert_str_eq(line_of_value(1e16), "g_n 1e+16\n");
}

Test(format_prometheus, integers_that_no_double_holds_exactly_are_left_out_and_counted)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t series = add_series("g", "n", NULL, 0);
    add_int(series, INT64_MAX);
    add_int(series, 42);
    add_int(series, 9007199254740993);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "g_n 42\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 1), 1);
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 3), 2);
    clear_batch();
    add_int(series, INT64_MAX);
    cr_assert_str_eq(encode_with(&encoder), "");
    wr_encoder_fini(&encoder);
}

/* ---- Names ----------------------------------------------------------------------------------- */

Test(format_prometheus, other_characters_of_names_become_one_underscore_each)
{
    cr_assert_str_eq(line_with_name("my_app.db", "a-b c"), "my_app_db_a_b_c 1\n");
    cr_assert_str_eq(line_with_name("caf\xc3\xa9", "\xe2\x82\xac:\xf0\x9f\x98\x80"), "caf___:_ 1\n");
    cr_assert_str_eq(line_with_name("9g", "7"), "_9g_7 1\n");
    cr_assert_str_eq(line_with_name("a\"{}\\", "#"), "a______ 1\n");
}

Test(format_prometheus, label_values_are_escaped)
{
    cr_assert_str_eq(line_with_label("k", "a\"b\\c\nd{}\te"), "g_n{k=\"a\\\"b\\\\c\\nd{}\te\"} 1\n");
}

Test(format_prometheus, label_keys_are_made_valid)
{
    cr_assert_str_eq(line_with_label("a.b:c", "v"), "g_n{a_b_c=\"v\"} 1\n");
    cr_assert_str_eq(line_with_label("1st", "v"), "g_n{_1st=\"v\"} 1\n");
    cr_assert_str_eq(line_with_label("__name__", "v"), "g_n{_name__=\"v\"} 1\n");
    cr_assert_str_eq(line_with_label("\xc3\xa9\xc3\xa9\xc3\xa9", "v"), "g_n{_=\"v\"} 1\n");
}

Test(format_prometheus, labels_without_a_value_are_left_out)
{
    static const weir_label labels[] = {{"a", ""}, {"b", "x"}, {"c", ""}};
    add_double(add_series("g", "n", labels, 3), 1);
    cr_assert_str_eq(line_of(encode(&wr_format_prometheus)), "g_n{b=\"x\"} 1\n");
    cr_assert_str_eq(line_with_label("a", ""), "g_n 1\n");
}

Test(format_prometheus, the_longest_names_fit)
{
    char longest[256], expected[800];
    memset(longest, '9', 255);
    longest[255] = '\0';
    snprintf(expected, sizeof expected, "g_n{_%s=\"v\"} 1\n", longest);
    cr_assert_str_eq(line_with_label(longest, "v"), expected);
    snprintf(expected, sizeof expected, "_%s_%s 1\n", longest, longest);
    cr_assert_str_eq(line_with_name(longest, longest), expected);
}

/* ---- Names that become equal ----------------------------------------------------------------- */

Test(format_prometheus, keys_that_become_equal_are_one_label_of_all_values)
{
    static const weir_label labels[] = {{"a b", "1"}, {"a.b", "2;"}, {"a_b", ""}, {"a_c", "3"}, {"a|b", "4"}};
    add_double(add_series("g", "n", labels, 5), 1);
    cr_assert_str_eq(line_of(encode(&wr_format_prometheus)), "g_n{a_b=\"1;2;;4\",a_c=\"3\"} 1\n");
}

/* In the order of their keys: else two sets that are equal would look different. */
Test(format_prometheus, label_sets_that_are_equal_in_another_order_are_kept_apart)
{
    static const weir_label first[] = {{"a", "1"}, {"b.", "2"}, {"b_", ""}},
                            second[] = {{"a", "1"}, {"b_", "2"}}, common[] = {{"A", "3"}};
    set_labels(common, 1);
    add_double(add_series("g", "n", first, 3), 1);
    add_double(add_series("g", "n", second, 2), 2);
    cr_assert_str_eq(encode(&wr_format_prometheus),
                     "# HELP g_n n of g\n# TYPE g_n gauge\n"
                     "g_n{A=\"3\",a=\"1\",b_=\"2\",weir_labels=\"a=1,b.=2,b_=\"} 1\n"
                     "g_n{A=\"3\",a=\"1\",b_=\"2\",weir_labels=\"a=1,b_=2\"} 2\n");
}

Test(format_prometheus, names_that_become_equal_are_kept_apart_from_then_on)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t dot = add_series("a.b", "n", NULL, 0), line = add_series("a_b", "n", NULL, 0),
             part = add_series("a", "b.n", route, 1);
    fixture.series[line].help = "the one described";
    add_double(dot, 1);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "a_b_n 1\n");
    add_double(line, 4);
    add_double(part, 3);
    cr_assert_str_eq(encode_with(&encoder), "# HELP a_b_n the one described\n"
                                            "# TYPE a_b_n gauge\n"
                                            "a_b_n{route=\"/x\",group=\"a\"} 3\n"
                                            "a_b_n{group=\"a.b\"} 1\n"
                                            "a_b_n{group=\"a_b\"} 4\n");
    clear_batch();
    add_double(dot, 2);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "a_b_n{group=\"a.b\"} 2\n");
    wr_encoder_fini(&encoder);
}

Test(format_prometheus, keys_that_are_added_are_free)
{
    static const weir_label labels[] = {{"weir-labels", "1"}, {"weir.name", "2"}, {"weir_group", "3"}};
    add_double(add_series("g", "n", labels, 3), 1);
    cr_assert_str_eq(line_of(encode(&wr_format_prometheus)),
                     "g_n{exported_weir_group=\"3\",exported_weir_labels=\"1\",exported_weir_name=\"2\"} 1\n");
}

Test(format_prometheus, a_family_has_no_name_of_another_ones_samples)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t counter = add_series("g", "n_value", NULL, 0), gauge = add_series("g", "n", NULL, 0),
             other = add_series("g", "n", NULL, 0), own = add_series("weir", "unscraped_processes", NULL, 0);
    fixture.series[counter].cumulative = fixture.series[other].cumulative = true;
    add_double(gauge, 1);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "g_n 1\n");
    add_double(counter, 2);
    add_double(other, 3);
    add_double(own, 4);
    cr_assert_str_eq(encode_with(&encoder),
                     "# HELP g_n_counter_total n of g\n# TYPE g_n_counter_total counter\ng_n_counter_total 3\n"
                     "# HELP g_n n of g\n# TYPE g_n gauge\ng_n 1\n"
                     "# HELP g_n_value_total n_value of g\n# TYPE g_n_value_total counter\ng_n_value_total 2\n"
                     "# HELP weir_unscraped_processes_value unscraped_processes of weir\n"
                     "# TYPE weir_unscraped_processes_value gauge\nweir_unscraped_processes_value 4\n");
    clear_batch();
    add_double(other, 5);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "g_n_counter_total 5\n");
    wr_encoder_fini(&encoder);
}

Test(format_prometheus, label_sets_that_become_equal_are_kept_apart_from_then_on)
{
    static const weir_label dot[] = {{"a.b", "v"}}, line[] = {{"a_b", "v"}}, other[] = {{"a_b", "w"}};
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_prometheus, make_options(&wr_format_prometheus, NULL, NULL));
    uint32_t first = add_series("g", "n", dot, 1), second = add_series("g", "n", line, 1);
    add_double(first, 1);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "g_n{a_b=\"v\"} 1\n");
    add_double(second, 2);
    add_double(add_series("g", "n", other, 1), 3);
    cr_assert_str_eq(encode_with(&encoder), "# HELP g_n n of g\n# TYPE g_n gauge\n"
                                            "g_n{a_b=\"v\",weir_labels=\"a.b=v\"} 1\n"
                                            "g_n{a_b=\"v\",weir_labels=\"a_b=v\"} 2\n"
                                            "g_n{a_b=\"w\"} 3\n");
    clear_batch();
    add_double(second, 4);
    cr_assert_str_eq(line_of(encode_with(&encoder)), "g_n{a_b=\"v\",weir_labels=\"a_b=v\"} 4\n");
    wr_encoder_fini(&encoder);
}

Test(format_prometheus, a_label_without_a_value_is_kept_apart_from_none)
{
    static const weir_label empty[] = {{"route", ""}};
    add_double(add_series("g", "n", empty, 1), 1);
    add_double(add_series("g", "n", NULL, 0), 2);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_n n of g\n# TYPE g_n gauge\n"
                                                    "g_n 2\ng_n{weir_labels=\"route=\"} 1\n");
}

Test(format_prometheus, values_that_become_equal_are_kept_apart)
{
    static const weir_label one[] = {{"a.b", "1"}, {"a_b", "2\";3"}},
                            other[] = {{"a.b", "1;2\""}, {"a_b", "3"}};
    add_double(add_series("g", "n", one, 2), 1);
    add_double(add_series("g", "n", other, 2), 2);
    cr_assert_str_eq(encode(&wr_format_prometheus),
                     "# HELP g_n n of g\n# TYPE g_n gauge\n"
                     "g_n{a_b=\"1;2\\\";3\",weir_labels=\"a.b=1,a_b=2\\\";3\"} 1\n"
                     "g_n{a_b=\"1;2\\\";3\",weir_labels=\"a.b=1;2\\\",a_b=3\"} 2\n");
}

Test(format_prometheus, labels_in_a_label_are_escaped)
{
    static const weir_label one[] = {{"a.b", "c:\\d"}}, other[] = {{"a_b", "c:\\d"}, {"e", "f\ng"}};
    add_double(add_series("g", "n", one, 1), 1);
    add_double(add_series("g", "n", other, 2), 2);
    add_double(add_series("g", "n", other, 1), 3);
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_n n of g\n# TYPE g_n gauge\n"
                                                    "g_n{a_b=\"c:\\\\d\",weir_labels=\"a.b=c:\\\\d\"} 1\n"
                                                    "g_n{a_b=\"c:\\\\d\",weir_labels=\"a_b=c:\\\\d\"} 3\n"
                                                    "g_n{a_b=\"c:\\\\d\",e=\"f\\ng\"} 2\n");
}

Test(format_prometheus, a_name_that_is_both_a_total_and_not_is_two)
{
    uint32_t plain = add_series("g", "n", NULL, 0), total = add_series("g", "n", route, 1);
    fixture.series[total].cumulative = true;
    add_double(total, 1);
    add_double(plain, 2);
    cr_assert_str_eq(encode(&wr_format_prometheus),
                     "# HELP g_n_total n of g\n# TYPE g_n_total counter\ng_n_total{route=\"/x\"} 1\n"
                     "# HELP g_n_value n of g\n# TYPE g_n_value gauge\ng_n_value 2\n");
}

/* ---- Histograms ------------------------------------------------------------------------------ */

static weir_label bounds[6][2];

/* The parts of a histogram, as they come from a summary. */
static void add_histogram_of(const char *name, const char *unit, const char *first, const weir_label *label)
{
    static uint32_t bound_count;
    const char *const texts[] = {first, "75", "+Inf"};
    char *part;
    for (uint32_t i = 0; i < 5; i++) {
        static const char *const suffixes[] = {"bucket", "bucket", "bucket", "sum", "count"};
        static const double values[] = {1, 3, 4, 100.5, 4};
        cr_assert_gt(asprintf(&part, "%s.%s", name, suffixes[i]), 0);
        if (i < 3) {
            bounds[bound_count][0] = (weir_label){"le", texts[i]};
            bounds[bound_count++][1] = *label;
        }
        uint32_t series =
            i < 3 ? add_series("g", part, bounds[bound_count - 1], 2) : add_series("g", part, label, 1);
        fixture.series[series].cumulative = true;
        fixture.series[series].instrument = WEIR_HISTOGRAM;
        fixture.series[series].unit = unit;
        add_double(series, values[i]);
    }
}

static void add_histogram(const char *name, const char *unit, const char *first)
{
    add_histogram_of(name, unit, first, route);
}

Test(format_prometheus, histograms_whose_labels_become_equal_are_kept_apart)
{
    static const weir_label dot = {"r.s", "v"}, line = {"r_s", "v"};
    add_histogram_of("took", NULL, "5", &line);
    add_histogram_of("took", NULL, "6", &dot);
    cr_assert_str_eq(encode(&wr_format_prometheus),
                     "# HELP g_took took of g\n"
                     "# TYPE g_took histogram\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r.s=v\",le=\"6.0\"} 1\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r.s=v\",le=\"75.0\"} 3\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r.s=v\",le=\"+Inf\"} 4\n"
                     "g_took_sum{r_s=\"v\",weir_labels=\"r.s=v\"} 100.5\n"
                     "g_took_count{r_s=\"v\",weir_labels=\"r.s=v\"} 4\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r_s=v\",le=\"5.0\"} 1\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r_s=v\",le=\"75.0\"} 3\n"
                     "g_took_bucket{r_s=\"v\",weir_labels=\"r_s=v\",le=\"+Inf\"} 4\n"
                     "g_took_sum{r_s=\"v\",weir_labels=\"r_s=v\"} 100.5\n"
                     "g_took_count{r_s=\"v\",weir_labels=\"r_s=v\"} 4\n");
}

Test(format_prometheus, the_parts_of_a_histogram_are_one_family)
{
    add_histogram("took.ms", "ms", "5");
    cr_assert_str_eq(encode(&wr_format_prometheus), "# HELP g_took_seconds took.ms of g\n"
                                                    "# TYPE g_took_seconds histogram\n"
                                                    "g_took_seconds_bucket{route=\"/x\",le=\"0.005\"} 1\n"
                                                    "g_took_seconds_bucket{route=\"/x\",le=\"0.075\"} 3\n"
                                                    "g_took_seconds_bucket{route=\"/x\",le=\"+Inf\"} 4\n"
                                                    "g_took_seconds_sum{route=\"/x\"} 0.1005\n"
                                                    "g_took_seconds_count{route=\"/x\"} 4\n");
}

/* ---- OpenMetrics ----------------------------------------------------------------------------- */

Test(format_openmetrics, a_counter_is_named_without_its_ending)
{
    uint32_t series = add_series("g", "sent", NULL, 0);
    fixture.series[series].cumulative = true;
    fixture.series[series].unit = "KiB";
    fixture.series[series].help = "\"all\" of it";
    add_double(series, 2);
    cr_assert_str_eq(encode(&wr_format_openmetrics), "# HELP g_sent_bytes \\\"all\\\" of it\n"
                                                     "# TYPE g_sent_bytes counter\n"
                                                     "# UNIT g_sent_bytes bytes\n"
                                                     "g_sent_bytes_total 2048\n"
                                                     "# EOF\n");
}

Test(format_openmetrics, a_counter_that_is_no_number_is_left_out_and_counted)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_openmetrics, make_options(&wr_format_openmetrics, NULL, NULL));
    uint32_t series = add_series("g", "n", NULL, 0), gauge = add_series("g", "m", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, NAN);
    add_double(series, -1);
    cr_assert_str_eq(encode_with(&encoder), "");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 2), 2);
    wr_encoder_begin(&encoder);
    add_double(gauge, NAN);
    cr_assert_str_eq(encode_with(&encoder), "# HELP g_m m of g\n# TYPE g_m gauge\ng_m NaN\n# EOF\n");
    wr_encoder_fini(&encoder);
}

Test(format_openmetrics, a_histogram_that_may_have_negative_values_has_buckets_only)
{
    add_histogram("n", NULL, "-5");
    cr_assert_str_eq(encode(&wr_format_openmetrics), "# HELP g_n n of g\n"
                                                     "# TYPE g_n histogram\n"
                                                     "g_n_bucket{route=\"/x\",le=\"-5.0\"} 1\n"
                                                     "g_n_bucket{route=\"/x\",le=\"75.0\"} 3\n"
                                                     "g_n_bucket{route=\"/x\",le=\"+Inf\"} 4\n"
                                                     "# EOF\n");
}
