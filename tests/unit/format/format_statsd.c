#include <math.h>

#include "format/format.h"
#include "batch_fixture.h"

static const weir_label route[] = {{"route", "/x"}};

static const char *line_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_statsd);
}

static const char *line_with_name(const char *group, const char *name)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(group, name, NULL, 0), 1);
    return encode(&wr_format_statsd);
}

static const char *line_with_tag(const char *key, const char *value)
{
    const weir_label label[] = {{key, value}};
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "n", label, 1), 1);
    return encode_as(&wr_format_statsd, "tags", "true");
}

Test(format_statsd, a_sample_is_a_gauge)
{
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.latency:49.403|g\n");
}

Test(format_statsd, a_running_total_is_a_gauge_too)
{
    uint32_t series = add_series("my_app", "requests", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, 7);
    add_double(series, 9);
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.requests:7|g\nmy_app.requests:9|g\n");
}

static const char *line_of_instrument(int instrument, const char *unit, double value, const char *histograms)
{
    clear_batch();
    fixture.series_count = 0;
    uint32_t series = add_series("my_app", "n", route, 1);
    fixture.series[series].instrument = instrument;
    fixture.series[series].unit = unit;
    add_double(series, value);
    return encode_as(&wr_format_statsd, "histograms", histograms);
}

Test(format_statsd, instruments_have_their_types)
{
    cr_assert_str_eq(line_of_instrument(WEIR_COUNTER, NULL, 1, "ms"), "my_app.n:1|c\n");
    cr_assert_str_eq(line_of_instrument(WEIR_GAUGE, NULL, 1, "ms"), "my_app.n:1|g\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, NULL, 1.5, "ms"), "my_app.n:1.5|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "s", 1.5, "h"), "my_app.n:1.5|h\n");
}

Test(format_statsd, timers_are_in_milliseconds)
{
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "ns", 75e6, "ms"), "my_app.n:75|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "us", 75, "ms"), "my_app.n:0.075|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "ms", 75, "ms"), "my_app.n:75|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "s", 0.075, "ms"), "my_app.n:75|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "min", 1, "ms"), "my_app.n:60000|ms\n");
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, "KiB", 2, "ms"), "my_app.n:2|ms\n");
}

Test(format_statsd, integers_of_timers_are_converted_too)
{
    uint32_t series = add_series("my_app", "n", NULL, 0);
    fixture.series[series].instrument = WEIR_HISTOGRAM;
    fixture.series[series].unit = "s";
    add_int(series, 3);
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.n:3000|ms\n");
}

/* StatsD refuses them. */
Test(format_statsd, timers_below_zero_are_left_out_and_counted)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_statsd, make_options(&wr_format_statsd, NULL, NULL));
    uint32_t series = add_series("my_app", "n", NULL, 0);
    fixture.series[series].instrument = WEIR_HISTOGRAM;
    add_double(series, -1);
    add_double(series, 1);
    cr_assert_str_eq(encode_with(&encoder), "my_app.n:1|ms\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 2), 1);
    wr_encoder_fini(&encoder);
    cr_assert_str_eq(line_of_instrument(WEIR_HISTOGRAM, NULL, -1, "h"), "my_app.n:-1|h\n");
}

Test(format_statsd, what_an_interval_adds_is_a_counter_and_is_not_set_from_zero)
{
    uint32_t series = add_series("my_app", "n.sum", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, -5)->flags = WR_SAMPLE_INCREMENT;
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.n.sum:-5|c\n");
}

Test(format_statsd, without_tags_the_bound_of_a_bucket_is_in_the_name)
{
    static const weir_label half[] = {{"le", "0.5"}}, rest[] = {{"le", "+Inf"}};
    add_double(add_series("my_app", "n.bucket", half, 1), 1)->flags = WR_SAMPLE_INCREMENT;
    add_double(add_series("my_app", "n.bucket", rest, 1), 2)->flags = WR_SAMPLE_INCREMENT;
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.n.bucket.0_5:1|c\nmy_app.n.bucket.inf:2|c\n");
    cr_assert_str_eq(encode_as(&wr_format_statsd, "tags", "true"),
                     "my_app.n.bucket:1|c|#le:0.5\nmy_app.n.bucket:2|c|#le:+Inf\n");
}

Test(format_statsd, an_event_is_a_line_for_each_of_its_samples)
{
    add_double(add_series("g", "a", NULL, 0), 1)->flags = WEIR_SAMPLE_MORE;
    add_int(add_series("g", "b", NULL, 0), INT64_MAX);
    cr_assert_str_eq(encode(&wr_format_statsd), "g.a:1|g\ng.b:9223372036854775807|g\n");
}

Test(format_statsd, a_negative_value_is_set_from_zero)
{
    cr_assert_str_eq(line_of(-5.5), "my_app.latency:0|g\nmy_app.latency:-5.5|g\n");
    add_int(0, INT64_MIN);
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.latency:0|g\nmy_app.latency:-5.5|g\n"
                                                "my_app.latency:0|g\nmy_app.latency:-9223372036854775808|g\n");
}

Test(format_statsd, a_zero_has_no_sign)
{
    cr_assert_str_eq(line_of(-0.0), "my_app.latency:0|g\n");
    cr_assert_str_eq(line_of(0.0), "my_app.latency:0|g\n");
}

Test(format_statsd, zero_and_the_negative_value_are_settled_together)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    size_t end;
    wr_encoder_init(&encoder, &wr_format_statsd, make_options(&wr_format_statsd, NULL, NULL));
    add_double(add_series("g", "n", NULL, 0), -1);
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 0, SIZE_MAX, &encoded));
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length - 1, &end), 0);
    cr_assert_eq(end, 0);
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length, &end), 1);
    wr_encoder_fini(&encoder);
}

Test(format_statsd, infinities_and_nan_are_left_out_and_counted)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_statsd, make_options(&wr_format_statsd, NULL, NULL));
    uint32_t series = add_series("g", "n", NULL, 0);
    add_double(series, NAN);
    add_double(series, -INFINITY);
    add_double(series, 1);
    cr_assert_str_eq(encode_with(&encoder), "g.n:1|g\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 3), 2);
    wr_encoder_fini(&encoder);
}

Test(format_statsd, separators_of_statsd_are_stripped_from_names)
{
    cr_assert_str_eq(line_with_name("a:b|c", "d@e#f,g"), "abc.defg:1|g\n");
    cr_assert_str_eq(line_with_name("a b", "c\xc2\xa0"
                                           "d"),
                     "a_b.c_d:1|g\n");
    cr_assert_str_eq(line_with_name("g", "#"), "g._:1|g\n");
}

Test(format_statsd, labels_are_tags_if_configured)
{
    static const weir_label common[] = {{"az", "eu"}};
    set_labels(common, 1);
    add_double(add_series("my_app", "latency", route, 1), -1);
    cr_assert_str_eq(encode(&wr_format_statsd), "my_app.latency:0|g\nmy_app.latency:-1|g\n");
    cr_assert_str_eq(encode_as(&wr_format_statsd, "tags", "true"),
                     "my_app.latency:0|g|#az:eu,route:/x\nmy_app.latency:-1|g|#az:eu,route:/x\n");
}

Test(format_statsd, separators_are_stripped_from_tags)
{
    cr_assert_str_eq(line_with_tag("a:b,c", "v:w|x,y#z\n@"), "g.n:1|g|#abc:v:wxyz_\n");
    cr_assert_str_eq(line_with_tag("k", ""), "g.n:1|g|#k\n");
    cr_assert_str_eq(line_with_tag("@", "|"), "g.n:1|g|#_:_\n");
}
