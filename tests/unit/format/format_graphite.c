#include <math.h>

#include "format/format.h"
#include "batch_fixture.h"

static const weir_label route[] = {{"route", "/x"}};

static const char *line_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_graphite);
}

static const char *line_with_name(const char *group, const char *name)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(group, name, NULL, 0), 1);
    return encode(&wr_format_graphite);
}

static const char *line_with_tag(const char *key, const char *value)
{
    const weir_label label[] = {{key, value}};
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "n", label, 1), 1);
    return encode_as(&wr_format_graphite, "tags", "true");
}

Test(format_graphite, a_sample_is_a_path_a_value_and_seconds)
{
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    cr_assert_str_eq(encode(&wr_format_graphite), "my_app.latency 49.403 1795219607\n");
}

Test(format_graphite, an_event_is_a_line_for_each_of_its_samples)
{
    add_double(add_series("my_app.db", "a", NULL, 0), 1)->flags = WEIR_SAMPLE_MORE;
    add_int(add_series("my_app.db", "b.c", NULL, 0), INT64_MAX);
    cr_assert_str_eq(encode(&wr_format_graphite), "my_app.db.a 1 1795219607\n"
                                                  "my_app.db.b.c 9223372036854775807 1795219607\n");
}

Test(format_graphite, every_finite_double_is_written)
{
    cr_assert_str_eq(line_of(-0.0), "my_app.latency -0 1795219607\n");
    cr_assert_str_eq(line_of(1e16), "my_app.latency 1e+16 1795219607\n");
    cr_assert_str_eq(line_of(-5e-324), "my_app.latency -5e-324 1795219607\n");
}

Test(format_graphite, infinities_and_nan_are_left_out_and_counted)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_graphite, make_options(&wr_format_graphite, NULL, NULL));
    uint32_t series = add_series("g", "n", NULL, 0);
    add_double(series, NAN)->flags = WEIR_SAMPLE_MORE;
    add_double(series, 1);
    add_double(series, INFINITY);
    add_double(series, -INFINITY);
    cr_assert_str_eq(encode_with(&encoder), "g.n 1 1795219607\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 1), 1);
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 4), 3);
    wr_encoder_fini(&encoder);
}

Test(format_graphite, times_are_truncated_to_seconds_and_those_before_1970_are_left_out)
{
    uint32_t series = add_series("g", "n", NULL, 0);
    add_double(series, 1)->time_ns = 1999999999;
    add_double(series, 2)->time_ns = 0;
    add_double(series, 3)->time_ns = -1;
    add_double(series, 4)->time_ns = INT64_MAX;
    cr_assert_str_eq(encode(&wr_format_graphite), "g.n 1 1\ng.n 2 0\ng.n 4 9223372036\n");
}

Test(format_graphite, characters_not_allowed_in_a_path_are_replaced)
{
    cr_assert_str_eq(line_with_name("a b", "c;d/e\\f"), "a_b.c_d_e_f 1 1795219607\n");
    cr_assert_str_eq(line_with_name("g", "a(b){c}[d]*?,|='\"e"), "g.a_b__c__d________e 1 1795219607\n");
    cr_assert_str_eq(line_with_name("g", "../../etc"), "g._._._._._etc 1 1795219607\n");
    cr_assert_str_eq(line_with_name("g", "caf\xc3\xa9:1@2#3%"), "g.caf\xc3\xa9:1@2#3% 1 1795219607\n");
}

Test(format_graphite, labels_are_tags_if_configured)
{
    static const weir_label common[] = {{"az", "eu"}};
    set_labels(common, 1);
    add_double(add_series("my_app", "latency", route, 1), 1);
    cr_assert_str_eq(encode(&wr_format_graphite), "my_app.latency 1 1795219607\n");
    cr_assert_str_eq(encode_as(&wr_format_graphite, "tags", "true"),
                     "my_app.latency;az=eu;route=/x 1 1795219607\n");
}

Test(format_graphite, characters_not_allowed_in_a_tag_are_replaced)
{
    cr_assert_str_eq(line_with_tag("a;b!c^d=e f", "v;w=x y\nz"),
                     "g.n;a%3Bb%21c%5Ed%3De%20f=v%3Bw=x%20y%0Az 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("k", "50%;%3B"), "g.n;k=50%%3B%253B 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("k", "~v~"), "g.n;k=_~v~ 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("k", "_~v"), "g.n;k=__~v 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("name_", "v"), "g.n;name__=v 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("name", "v"), "g.n;name_=v 1 1795219607\n");
    cr_assert_str_eq(line_with_tag("k", ""), "g.n 1 1795219607\n");
}

Test(format_graphite, without_tags_the_bound_of_a_bucket_is_a_node)
{
    static const weir_label half[] = {{"le", "0.5"}}, rest[] = {{"le", "+Inf"}};
    add_double(add_series("g", "n.bucket", half, 1), 1);
    add_double(add_series("g", "n.bucket", rest, 1), 2);
    cr_assert_str_eq(encode(&wr_format_graphite), "g.n.bucket.0_5 1 1795219607\ng.n.bucket.inf 2 1795219607\n");
    cr_assert_str_eq(encode_as(&wr_format_graphite, "tags", "true"),
                     "g.n.bucket;le=0.5 1 1795219607\ng.n.bucket;le=+Inf 2 1795219607\n");
}

static const char *line_with_name_of_statsd(const char *group, const char *name)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(group, name, NULL, 0), 1);
    return encode_as(&wr_format_graphite, "names", "statsd");
}

Test(format_graphite, with_names_of_statsd_the_group_statsd_is_no_part_of_the_path)
{
    cr_assert_str_eq(line_with_name_of_statsd("statsd", "hits"), "stats.timers.hits 1 1795219607\n");
    cr_assert_str_eq(line_with_name_of_statsd("statsd", "app.hits"), "stats.timers.app.hits 1 1795219607\n");
    cr_assert_str_eq(line_with_name_of_statsd("app", "hits"), "stats.timers.app.hits 1 1795219607\n");
    cr_assert_str_eq(line_with_name_of_statsd("statsd.a", "hits"), "stats.timers.statsd.a.hits 1 1795219607\n");
    cr_assert_str_eq(line_with_name_of_statsd("a.statsd", "hits"), "stats.timers.a.statsd.hits 1 1795219607\n");
    cr_assert_str_eq(line_with_name("statsd", "hits"), "statsd.hits 1 1795219607\n");
}

static const char *line_of_gauge(const char *unit, const char *names)
{
    clear_batch();
    fixture.series_count = 0;
    uint32_t series = add_series("statsd", "users", NULL, 0);
    fixture.series[series].instrument = WEIR_GAUGE;
    fixture.series[series].unit = unit;
    add_double(series, 2);
    return encode_as(&wr_format_graphite, "names", names);
}

Test(format_graphite, with_names_of_statsd_a_gauge_of_members_is_a_set)
{
    cr_assert_str_eq(line_of_gauge("members", "statsd"), "stats.sets.users.count 2 1795219607\n");
    cr_assert_str_eq(line_of_gauge("bytes", "statsd"), "stats.gauges.users 2 1795219607\n");
    cr_assert_str_eq(line_of_gauge(NULL, "statsd"), "stats.gauges.users 2 1795219607\n");
    cr_assert_str_eq(line_of_gauge("members", "weir"), "statsd.users 2 1795219607\n");
}

Test(format_graphite, other_names_keep_their_labels_to_themselves)
{
    static const weir_label le[] = {{"le", "0.5"}}, other[] = {{"more", "0.5"}};
    add_double(add_series("g", "bucket", le, 1), 1);
    add_double(add_series("g", "n.bucket", other, 1), 2);
    cr_assert_str_eq(encode(&wr_format_graphite), "g.bucket 1 1795219607\ng.n.bucket 2 1795219607\n");
}
