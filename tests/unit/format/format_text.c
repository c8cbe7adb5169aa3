#include <math.h>

#include "format/format.h"
#include "batch_fixture.h"

static const weir_label route[] = {{"route", "/x"}};

/* One sample of my_app's latency with a value. */
static const char *line_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_text);
}

Test(format_text, a_sample_is_a_line_with_six_decimals_of_time)
{
    cr_assert_str_eq(line_of(49.403), "[1795219607.576198][my_app]: latency=49.403\n");
}

Test(format_text, labels_follow_the_value)
{
    static const weir_label two[] = {{"method", "GET"}, {"route", "/x"}};
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    add_double(add_series("my_app", "latency", two, 2), 1);
    cr_assert_str_eq(encode(&wr_format_text),
                     "[1795219607.576198][my_app]: latency=49.403 {route=\"/x\"}\n"
                     "[1795219607.576198][my_app]: latency=1 {method=\"GET\",route=\"/x\"}\n");
}

Test(format_text, values_are_written_in_shortest_form)
{
    cr_assert_str_eq(line_of(100), "[1795219607.576198][my_app]: latency=100\n");
    cr_assert_str_eq(line_of(-0.0), "[1795219607.576198][my_app]: latency=-0\n");
    cr_assert_str_eq(line_of(1e-5), "[1795219607.576198][my_app]: latency=1e-05\n");
    cr_assert_str_eq(line_of(NAN), "[1795219607.576198][my_app]: latency=NaN\n");
    cr_assert_str_eq(line_of(-INFINITY), "[1795219607.576198][my_app]: latency=-Infinity\n");
}

/* ---- As Python prints it --------------------------------------------------------------------- */

static const char *python_line(double value, int64_t time_ns)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", route, 1), value)->time_ns = time_ns;
    return encode_as(&wr_format_text, "style", "python");
}

/* The expected lines are those of torchelastic's ConsoleMetricHandler: f"[{t}][{group}]: {name}={value}". */
Test(format_text, style_python_prints_what_torchelastic_prints)
{
    const int64_t time_ns = INT64_C(1574213883418285800);
    cr_assert_str_eq(python_line(12, time_ns), "[1574213883.4182858][my_app]: latency=12.0\n");
    cr_assert_str_eq(python_line(-0.0, INT64_C(1795337561071422000)),
                     "[1795337561.0714219][my_app]: latency=-0.0\n");
    cr_assert_str_eq(python_line(1e16, INT64_C(1574213883000000000)),
                     "[1574213883.0][my_app]: latency=1e+16\n");
    cr_assert_str_eq(python_line(1e-5, time_ns), "[1574213883.4182858][my_app]: latency=1e-05\n");
    cr_assert_str_eq(python_line(NAN, time_ns), "[1574213883.4182858][my_app]: latency=nan\n");
    cr_assert_str_eq(python_line(INFINITY, time_ns), "[1574213883.4182858][my_app]: latency=inf\n");
    cr_assert_str_eq(python_line(-INFINITY, time_ns), "[1574213883.4182858][my_app]: latency=-inf\n");
}

Test(format_text, style_python_cuts_durations_only_if_asked_and_omits_metadata)
{
    uint32_t duration = add_series("g", "run.duration.ms", NULL, 0), other = add_series("g", "ms", NULL, 0);
    set_metadata(add_double(duration, 12.75), "note");
    add_double(other, 12.75);
    add_int(other, 7);
    cr_assert_str_eq(encode_as(&wr_format_text, "style", "python"),
                     "[1795219607.576198][g]: run.duration.ms=12.75\n[1795219607.576198][g]: ms=12.75\n"
                     "[1795219607.576198][g]: ms=7\n");
    bool *python = make_options(&wr_format_text, "style", "python");
    python[sizeof(int64_t)] = true; /* the option after it, integer_durations */
    cr_assert_str_eq(encode_by(&wr_format_text, python),
                     "[1795219607.576198][g]: run.duration.ms=12\n[1795219607.576198][g]: ms=12.75\n"
                     "[1795219607.576198][g]: ms=7\n");
}

Test(format_text, both_ends_of_the_integer_range_are_written)
{
    uint32_t series = add_series("my_app", "count", NULL, 0);
    add_int(series, INT64_MIN);
    add_int(series, INT64_MAX);
    add_int(series, INT64_C(9007199254740993));
    cr_assert_str_eq(encode(&wr_format_text), "[1795219607.576198][my_app]: count=-9223372036854775808\n"
                                              "[1795219607.576198][my_app]: count=9223372036854775807\n"
                                              "[1795219607.576198][my_app]: count=9007199254740993\n");
}

Test(format_text, times_before_1970_are_negative)
{
    add_double(add_series("g", "a", NULL, 0), 1)->time_ns = -1500000;
    cr_assert_str_eq(encode(&wr_format_text), "[-0.001500][g]: a=1\n");
}

Test(format_text, metadata_is_at_the_end)
{
    set_metadata(add_double(add_series("my_app", "latency", route, 1), 1), "run \"7\"\nwarm");
    cr_assert_str_eq(
        encode(&wr_format_text),
        "[1795219607.576198][my_app]: latency=1 {route=\"/x\"} metadata=\"run \\\"7\\\"\\nwarm\"\n");
}

Test(format_text, empty_metadata_is_written)
{
    set_metadata(add_double(add_series("g", "a", NULL, 0), 1), "");
    cr_assert_str_eq(encode(&wr_format_text), "[1795219607.576198][g]: a=1 metadata=\"\"\n");
}

Test(format_text, labels_of_the_configuration_are_merged_and_the_series_take_precedence)
{
    static const weir_label own[] = {{"host", "own"}, {"route", "/x"}},
                            common[] = {{"az", "eu"}, {"host", "all"}};
    set_labels(common, 2);
    add_double(add_series("g", "a", own, 2), 1);
    add_double(add_series("g", "b", NULL, 0), 2);
    cr_assert_str_eq(encode(&wr_format_text),
                     "[1795219607.576198][g]: a=1 {az=\"eu\",host=\"own\",route=\"/x\"}\n"
                     "[1795219607.576198][g]: b=2 {az=\"eu\",host=\"all\"}\n");
}

Test(format_text, an_event_is_a_line_for_each_of_its_samples)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(b, 2);
    cr_assert_str_eq(encode(&wr_format_text), "[1795219607.576198][g]: a=1\n[1795219607.576198][g]: b=2\n");
}

Test(format_text, characters_that_affect_a_terminal_are_escaped)
{
    static const weir_label evil[] = {{"k\xe2\x80\xae", "v\x1b[2J\"\r\n"}};
    add_double(add_series("g\\\xef\xbb\xbf", "a\xe2\x81\xa6", evil, 1), 1);
    cr_assert_str_eq(encode(&wr_format_text),
                     "[1795219607.576198][g\\\\\\ufeff]: a\\u2066=1 {k\\u202e=\"v\\x1b[2J\\\"\\r\\n\"}\n");
}

Test(format_text, other_characters_are_unchanged)
{
    add_double(add_series("h\xc3\xb6he", "a b=c", NULL, 0), 1);
    cr_assert_str_eq(encode(&wr_format_text), "[1795219607.576198][h\xc3\xb6he]: a b=c=1\n");
}

Test(format_text, on_a_terminal_the_time_is_dimmed_and_the_group_highlighted)
{
    struct wr_encoder encoder;
    add_double(add_series("g", "a", route, 1), 1);
    wr_encoder_init(&encoder, &wr_format_text, make_options(&wr_format_text, NULL, NULL));
    encoder.color = true;
    cr_assert_str_eq(encode_with(&encoder),
                     "\x1b[2m[1795219607.576198]\x1b[0m\x1b[36m[g]\x1b[0m: a=1 {route=\"/x\"}\n");
    wr_encoder_fini(&encoder);
}
