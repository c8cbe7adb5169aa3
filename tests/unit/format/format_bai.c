#include <math.h>
#include <stdio.h>

#include "format/format.h"
#include "batch_fixture.h"

/* What Python's json.dumps({"v": value}) writes. */
static void expect(double value, const char *text)
{
    char expected[100];
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("g", "v", NULL, 0), value);
    snprintf(expected, sizeof expected, "{\"v\": %s}\n", text);
    cr_assert_str_eq(encode(&wr_format_bai), expected);
}

Test(format_bai, an_event_of_one_sample_is_an_object_with_one_member)
{
    add_double(add_series("my_app", "latency", NULL, 0), 49.403);
    cr_assert_str_eq(encode(&wr_format_bai), "{\"latency\": 49.403}\n");
}

Test(format_bai, an_event_of_several_samples_is_one_line)
{
    add_double(add_series("g", "alexnet.batchsize16.latency", NULL, 0), 0.5)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("g", "throughput", NULL, 0), 100)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("g", "epochs", NULL, 0), 3);
    cr_assert_str_eq(encode(&wr_format_bai),
                     "{\"alexnet.batchsize16.latency\": 0.5, \"throughput\": 100.0, \"epochs\": 3.0}\n");
}

Test(format_bai, a_name_that_is_twice_in_an_event_is_written_twice)
{
    uint32_t a = add_series("g", "a", NULL, 0);
    add_double(a, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 2);
    cr_assert_str_eq(encode(&wr_format_bai), "{\"a\": 1.0, \"a\": 2.0}\n");
}

Test(format_bai, several_events_are_several_lines)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1);
    add_double(a, 2)->flags = WEIR_SAMPLE_MORE;
    add_double(b, 3);
    add_double(b, 4);
    cr_assert_str_eq(encode(&wr_format_bai), "{\"a\": 1.0}\n{\"a\": 2.0, \"b\": 3.0}\n{\"b\": 4.0}\n");
}

Test(format_bai, numbers_are_written_as_pythons_repr)
{
    expect(100, "100.0");
    expect(-0.0, "-0.0");
    expect(0.1 + 0.2, "0.30000000000000004");
    expect(1.0 / 3, "0.3333333333333333");
    expect(1e15, "1000000000000000.0");
    expect(9999999999999998.0, "9999999999999998.0");
    expect(1e16, "1e+16");
    expect(9.223372036854775808e18, "9.223372036854776e+18");
    expect(1e22, "1e+22");
    expect(1e100, "1e+100");
    expect(0.0001, "0.0001");
    expect(1e-5, "1e-05");
    expect(-2.5e-7, "-2.5e-07");
    expect(5e-324, "5e-324");
    expect(1.7976931348623157e308, "1.7976931348623157e+308");
}

Test(format_bai, infinities_and_nan_are_written_as_python_does)
{
    expect(NAN, "NaN");
    expect(INFINITY, "Infinity");
    expect(-INFINITY, "-Infinity");
}

Test(format_bai, integers_have_no_point)
{
    add_int(add_series("g", "a", NULL, 0), INT64_MIN)->flags = WEIR_SAMPLE_MORE;
    add_int(add_series("g", "b", NULL, 0), INT64_MAX);
    cr_assert_str_eq(encode(&wr_format_bai), "{\"a\": -9223372036854775808, \"b\": 9223372036854775807}\n");
}

Test(format_bai, names_are_escaped_to_ascii_as_in_python)
{
    add_double(add_series("g", "\xc3\xa9\t\"\\/\x7f\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\xa8", NULL, 0), 1);
    cr_assert_str_eq(encode(&wr_format_bai),
                     "{\"\\u00e9\\t\\\"\\\\/\\u007f\\u20ac\\ud83d\\ude00\\u2028\": 1.0}\n");
}

Test(format_bai, group_time_labels_and_metadata_are_not_written)
{
    static const weir_label label[] = {{"route", "/x"}};
    set_labels(label, 1);
    uint32_t series = add_series("my_app", "latency", label, 1);
    fixture.series[series].cumulative = true;
    set_metadata(add_double(series, 1), "warm");
    cr_assert_str_eq(encode(&wr_format_bai), "{\"latency\": 1.0}\n");
}

Test(format_bai, a_short_write_settles_whole_lines_only)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    size_t end;
    uint32_t a = add_series("g", "a", NULL, 0);
    add_double(a, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 2);
    add_double(a, 3);
    wr_encoder_init(&encoder, &wr_format_bai, NULL);
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 0, SIZE_MAX, &encoded));
    size_t first = strlen("{\"a\": 1.0, \"a\": 2.0}\n");
    cr_assert_eq(wr_encoder_settled(&encoder, first - 1, &end), 0);
    cr_assert_eq(wr_encoder_settled(&encoder, first, &end), 2);
    cr_assert_eq(end, first);
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length - 1, &end), 2);
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length, &end), 3);
    wr_encoder_fini(&encoder);
}

Test(format_bai, an_event_longer_than_the_line_limit_is_several_lines_and_still_one_event)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    size_t end;
    uint32_t a = add_series("g", "a", NULL, 0);
    for (int i = 1; i < 5; i++)
        add_double(a, i)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 5);
    add_double(a, 6);
    wr_encoder_init(&encoder, &wr_format_bai, NULL);
    encoder.line_limit = strlen("{\"a\": 1.0, \"a\": 2.0}\n");
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 0, SIZE_MAX, &encoded));
    const char *text = "{\"a\": 1.0, \"a\": 2.0}\n{\"a\": 3.0}\n{\"a\": 4.0, \"a\": 5.0}\n{\"a\": 6.0}\n";
    cr_assert_eq(encoded.length, strlen(text));
    cr_assert_eq(memcmp(encoded.data, text, encoded.length), 0);
    size_t event = encoded.length - strlen("{\"a\": 6.0}\n");
    cr_assert_eq(wr_encoder_settled(&encoder, event - 1, &end), 0);
    cr_assert_eq(wr_encoder_settled(&encoder, event, &end), 5);
    cr_assert_eq(end, event);
    encoder.line_limit = 3; /* a line of one sample is as long as it is */
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 5, SIZE_MAX, &encoded));
    cr_assert_eq(encoded.length, strlen("{\"a\": 6.0}\n"));
    wr_encoder_fini(&encoder);
}

/* ---- The records of metrics-pusher ----------------------------------------------------------- */

#define JOB "\"action-id\": \"ACT\", \"client-id\": \"CLI\""

static const weir_label job[] = {
    {"action-id", "ACT"}, {"branch", "b"}, {"client-id", "CLI"}, {"task_name", "t\xc3\xa9"}};

/* One event of loss and epoch. */
static void add_event(void)
{
    set_labels(job, sizeof job / sizeof *job);
    add_double(add_series("g", "loss", NULL, 0), 0.5)->flags = WEIR_SAMPLE_MORE;
    add_int(add_series("g", "epoch \xe2\x82\xac", NULL, 0), 3);
}

Test(format_bai, style_stdout_adds_the_labels_to_the_event)
{
    add_event();
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "stdout"),
                     "{\"loss\": 0.5, \"epoch \\u20ac\": 3, \"labels\": {" JOB
                     ", \"branch\": \"b\", \"task_name\": \"t\\u00e9\"}}\n");
}

Test(format_bai, style_stdout_without_labels_has_an_empty_object)
{
    add_double(add_series("g", "loss", NULL, 0), 0.5);
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "stdout"), "{\"loss\": 0.5, \"labels\": {}}\n");
}

Test(format_bai, style_stdout_replaces_a_value_called_labels_at_its_place)
{
    struct wr_encoder encoder;
    set_labels(job, 1);
    uint32_t labels = add_series("g", "labels", NULL, 0), loss = add_series("g", "loss", NULL, 0);
    add_double(labels, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(loss, 0.5)->flags = WEIR_SAMPLE_MORE;
    add_double(labels, 2);
    add_double(labels, 3);
    wr_encoder_init(&encoder, &wr_format_bai, make_options(&wr_format_bai, "style", "stdout"));
    cr_assert_str_eq(encode_with(&encoder), "{\"labels\": {\"action-id\": \"ACT\"}, \"loss\": 0.5}\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 4), 3);
    wr_encoder_fini(&encoder);
    cr_assert_str_eq(encode(&wr_format_bai),
                     "{\"labels\": 1.0, \"loss\": 0.5, \"labels\": 2.0}\n{\"labels\": 3.0}\n");
}

Test(format_bai, style_elasticsearch_is_a_document_for_each_event)
{
    add_event();
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "elasticsearch"),
                     "{" JOB ", \"branch\": \"b\", \"task_name\": \"t\\u00e9\", "
                     "\"timestamp\": \"2026-11-21T00:06:47.576198\", "
                     "\"metrics\": {\"loss\": 0.5, \"epoch \\u20ac\": 3}, "
                     "\"tracing\": {\"service\": \"metrics-pusher\"}}\n");
}

Test(format_bai, style_elasticsearch_leaves_out_labels_that_its_members_replace)
{
    static const weir_label labels[] = {
        {"metrics", "m"}, {"route", "/x"}, {"timestamp", "t"}, {"tracing", "t"}};
    add_double(add_series("g", "labels", labels, 4), 1);
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "elasticsearch"),
                     "{\"route\": \"/x\", \"timestamp\": \"2026-11-21T00:06:47.576198\", "
                     "\"metrics\": {\"labels\": 1.0}, \"tracing\": {\"service\": \"metrics-pusher\"}}\n");
}

Test(format_bai, style_elasticsearch_writes_times_as_isoformat_does)
{
    static const struct {
        int64_t time_ns;
        const char *text;
    } each[] = {
        {0, "1970-01-01T00:00:00"},
        {999, "1970-01-01T00:00:00"},
        {1000, "1970-01-01T00:00:00.000001"},
        {-1, "1969-12-31T23:59:59.999999"},
        {INT64_C(1709251199) * 1000000000, "2024-02-29T23:59:59"},
        {INT64_MAX, "2262-04-11T23:47:16.854775"},
        {INT64_MIN, "1677-09-21T00:12:43.145224"},
    };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        char expected[200];
        clear_batch();
        fixture.series_count = 0;
        add_double(add_series("g", "v", NULL, 0), 1)->time_ns = each[i].time_ns;
        snprintf(expected, sizeof expected,
                 "{\"timestamp\": \"%s\", \"metrics\": {\"v\": 1.0}, "
                 "\"tracing\": {\"service\": \"metrics-pusher\"}}\n",
                 each[i].text);
        cr_assert_str_eq(encode_as(&wr_format_bai, "style", "elasticsearch"), expected);
    }
}

Test(format_bai, style_kafka_is_a_record_for_each_value)
{
    add_event();
    cr_assert_str_eq(
        encode_as(&wr_format_bai, "style", "kafka"),
        "{\"name\": \"loss\", \"value\": 0.5, \"timestamp\": 1795219607576, \"labels\": {" JOB
        ", \"branch\": \"b\", \"task_name\": \"t\\u00e9\"}}\n"
        "{\"name\": \"epoch \\u20ac\", \"value\": 3, \"timestamp\": 1795219607576, \"labels\": {" JOB
        ", \"branch\": \"b\", \"task_name\": \"t\\u00e9\"}}\n");
}

Test(format_bai, style_kafka_rounds_times_down_and_writes_numbers_as_python_does)
{
    add_double(add_series("g", "v", NULL, 0), NAN)->time_ns = -1;
    add_double(0, 100)->time_ns = 999999;
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "kafka"),
                     "{\"name\": \"v\", \"value\": NaN, \"timestamp\": -1, \"labels\": {}}\n"
                     "{\"name\": \"v\", \"value\": 100.0, \"timestamp\": 0, \"labels\": {}}\n");
}

Test(format_bai, samples_of_an_event_with_other_labels_are_an_object_of_their_own)
{
    static const weir_label folded[] = {{"weir_overflow", "true"}}, route[] = {{"route", "/x"}};
    add_double(add_series("g", "a", route, 1), 1)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("g", "b", route, 1), 2)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("g", "c", folded, 1), 3);
    cr_assert_str_eq(encode_as(&wr_format_bai, "style", "stdout"),
                     "{\"a\": 1.0, \"b\": 2.0, \"labels\": {\"route\": \"/x\"}}\n"
                     "{\"c\": 3.0, \"labels\": {\"weir_overflow\": \"true\"}}\n");
    cr_assert_str_eq(encode(&wr_format_bai), "{\"a\": 1.0, \"b\": 2.0, \"c\": 3.0}\n");
}

Test(format_bai, new_labels_of_the_configuration_are_written_from_then_on)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_bai, make_options(&wr_format_bai, "style", "stdout"));
    add_double(add_series("g", "v", NULL, 0), 1);
    set_labels(job, 1);
    cr_assert_str_eq(encode_with(&encoder), "{\"v\": 1.0, \"labels\": {\"action-id\": \"ACT\"}}\n");
    set_labels((const weir_label[]){{"action-id", "OTHER"}}, 1);
    cr_assert_str_eq(encode_with(&encoder), "{\"v\": 1.0, \"labels\": {\"action-id\": \"OTHER\"}}\n");
    wr_encoder_fini(&encoder);
}

Test(format_bai, only_styles_with_labels_can_tell_buckets_apart)
{
    const struct wr_format *format = &wr_format_bai;
    cr_assert_eq(format->wanted(make_options(format, NULL, NULL)), WR_WANTS_NO_BUCKETS);
    cr_assert_eq(format->wanted(make_options(format, "style", "stdout")), 0);
    cr_assert_eq(format->wanted(make_options(format, "style", "elasticsearch")), 0);
    cr_assert_eq(format->wanted(make_options(format, "style", "kafka")), WR_WANTS_INSTANCE);
}
