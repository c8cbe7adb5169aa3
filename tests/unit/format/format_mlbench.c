#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format/format.h"
#include "batch_fixture.h"

#define DATE "2026-11-21+00%3A06%3A47.576198"

static const char *form_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode_as(&wr_format_mlbench, "run_id", "7");
}

/* A form's date, for one time. */
static const char *date_of(int64_t time_ns)
{
    static char date[60];
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "n", NULL, 0), 1)->time_ns = time_ns;
    const char *text = strstr(encode_as(&wr_format_mlbench, "run_id", "7"), "&date=");
    snprintf(date, sizeof date, "%.30s", text + strlen("&date="));
    return date;
}

Test(format_mlbench, a_sample_is_a_form_with_all_fields)
{
    static const weir_label labels[] = {{"route", "/x"}};
    add_double(add_series("my_app", "latency", labels, 1), 49.403);
    cr_assert_str_eq(encode_as(&wr_format_mlbench, "run_id", "7"),
                     "run_id=7&name=latency&cumulative=False&date=" DATE "&value=49.403&metadata=");
}

Test(format_mlbench, values_belong_to_a_pod_or_a_run)
{
    add_double(add_series("my_app", "latency", NULL, 0), 1);
    cr_assert_str_eq(encode_as(&wr_format_mlbench, "pod_name", "worker-0"),
                     "pod_name=worker-0&name=latency&cumulative=False&date=" DATE "&value=1&metadata=");
}

Test(format_mlbench, a_pod_or_a_run_is_required)
{
    const struct wr_format *format = &wr_format_mlbench;
    cr_assert_null(format->find_fault(make_options(format, "run_id", "7")));
    cr_assert_null(format->find_fault(make_options(format, "pod_name", "p")));
    cr_assert(strstr(format->find_fault(make_options(format, NULL, NULL)), "is missing"));
    void *both = make_options(format, "run_id", "7");
    *(const char **)((char *)both + wr_options_find(&format->options, "pod_name")->offset) = "p";
    cr_assert(strstr(format->find_fault(both), "only one of"));
}

Test(format_mlbench, a_running_total_and_metadata_are_written)
{
    uint32_t series = add_series("my_app", "samples seen", NULL, 0);
    fixture.series[series].cumulative = true;
    set_metadata(add_double(series, 7), "epoch=3&a+b%c d\n\xc3\xa9");
    cr_assert_str_eq(encode_as(&wr_format_mlbench, "run_id", "a b"),
                     "run_id=a+b&name=samples+seen&cumulative=True&date=" DATE
                     "&value=7&metadata=epoch%3D3%26a%2Bb%25c+d%0A%C3%A9");
}

Test(format_mlbench, the_group_may_precede_the_name)
{
    add_double(add_series("my_app", "a/b", NULL, 0), 1);
    void *options = make_options(&wr_format_mlbench, "group", "true");
    *(const char **)((char *)options + wr_options_find(&wr_format_mlbench.options, "run_id")->offset) = "7";
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_mlbench, options);
    cr_assert_str_eq(encode_with(&encoder),
                     "run_id=7&name=my_app.a%2Fb&cumulative=False&date=" DATE "&value=1&metadata=");
    wr_encoder_fini(&encoder);
}

Test(format_mlbench, every_value_can_be_written)
{
    static const struct {
        double value;
        const char *text;
    } each[] = {{NAN, "NaN"},      {INFINITY, "Infinity"}, {-INFINITY, "-Infinity"}, {-0.0, "-0"},
                {1e16, "1e%2B16"}, {5e-324, "5e-324"},     {1e-5, "1e-05"}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "%s&value=%s&metadata=", "run_id=7&name=latency&cumulative=False&date=" DATE, each[i].text);
        cr_assert_str_eq(form_of(each[i].value), expected);
    }
    clear_batch();
    add_int(0, INT64_MIN);
    cr_assert(strstr(encode_as(&wr_format_mlbench, "run_id", "7"), "&value=-9223372036854775808&"));
}

Test(format_mlbench, each_sample_of_an_event_is_a_form_of_its_own)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    wr_encoder_init(&encoder, &wr_format_mlbench, make_options(&wr_format_mlbench, "run_id", "7"));
    uint32_t series = add_series("g", "n", NULL, 0);
    add_double(series, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(series, 2)->flags = WEIR_SAMPLE_MORE;
    add_double(series, 3);
    for (uint32_t i = 0; i < 3; i++) {
        char value[20];
        snprintf(value, sizeof value, "&value=%u&metadata=", i + 1);
        cr_assert(wr_encoder_encode(&encoder, fixture_batch(), i, SIZE_MAX, &encoded));
        cr_assert_eq(encoded.count, 1);
        cr_assert_eq(memcmp(encoded.data + encoded.length - strlen(value), value, strlen(value)), 0);
    }
    wr_encoder_fini(&encoder);
}

Test(format_mlbench, dates_are_gregorian)
{
    cr_assert_str_eq(date_of(0), "1970-01-01+00%3A00%3A00.000000");
    cr_assert_str_eq(date_of(-1), "1969-12-31+23%3A59%3A59.999999");
    cr_assert_str_eq(date_of(INT64_C(951782400000000000)), "2000-02-29+00%3A00%3A00.000000");
    cr_assert_str_eq(date_of(INT64_MAX), "2262-04-11+23%3A47%3A16.854775");
    cr_assert_str_eq(date_of(INT64_MIN), "1677-09-21+00%3A12%3A43.145224");
}

Test(format_mlbench, every_day_agrees_with_the_c_library)
{
    for (int64_t day = -106750; day <= 106750; day += 7) {
        char expected[60];
        time_t seconds = day * 86400 + 12 * 3600 + 34 * 60 + 56;
        struct tm broken;
        gmtime_r(&seconds, &broken);
        strftime(expected, sizeof expected, "%Y-%m-%d+%H%%3A%M%%3A%S.000000", &broken);
        cr_assert_str_eq(date_of(seconds * INT64_C(1000000000)), expected);
    }
}
