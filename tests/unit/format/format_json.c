#include <json.h>
#include <math.h>
#include <stdio.h>

#include "format/format.h"
#include "batch_fixture.h"

/* The beginning of every line in this file. */
#define HEAD "{\"timestamp\":1795219607.576198123,\"group\":\"my_app\",\"name\":\"latency\",\"value\":"

static const weir_label route[] = {{"route", "/x"}};

static const char *line_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_json);
}

static const char *line_of_int(int64_t value)
{
    clear_batch();
    fixture.series_count = 0;
    add_int(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_json);
}

Test(format_json, a_sample_is_an_object_with_nine_decimals_of_time)
{
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    cr_assert_str_eq(encode(&wr_format_json), HEAD "49.403,\"labels\":{\"route\":\"/x\"}}\n");
}

Test(format_json, absent_properties_have_no_member)
{
    cr_assert_str_eq(line_of(49.403), HEAD "49.403}\n");
}

static const char *line_with_origin(const char *asked, const char *origin, uint64_t sequence)
{
    clear_batch();
    fixture.series_count = 0;
    fixture.batch.origin = origin;
    fixture.batch.sequence = sequence;
    add_double(add_series("my_app", "latency", NULL, 0), 49.403);
    return encode_as(&wr_format_json, "origin", asked);
}

Test(format_json, origin_and_sequence_are_written_if_the_option_is_set)
{
    cr_assert_str_eq(line_with_origin("true", "00000000deadbeef00000000deadbeef", 41),
                     HEAD "49.403,\"origin\":\"00000000deadbeef00000000deadbeef\",\"sequence\":41}\n");
    cr_assert_str_eq(line_with_origin("false", "00000000deadbeef00000000deadbeef", 41), HEAD "49.403}\n");
}

Test(format_json, help_is_written_if_the_option_is_set)
{
    uint32_t series = add_series("my_app", "latency", NULL, 0);
    fixture.series[series].unit = "ms";
    fixture.series[series].help = "of \"all\"";
    add_double(series, 49.403);
    cr_assert_str_eq(encode_as(&wr_format_json, "help", "true"),
                     HEAD "49.403,\"unit\":\"ms\",\"help\":\"of \\\"all\\\"\"}\n");
    cr_assert_str_eq(encode_as(&wr_format_json, "help", "false"), HEAD "49.403,\"unit\":\"ms\"}\n");
}

Test(format_json, integral_values_have_no_point)
{
    cr_assert_str_eq(line_of(100), HEAD "100}\n");
    cr_assert_str_eq(line_of(1e15), HEAD "1000000000000000}\n");
    cr_assert_str_eq(line_of(1e16), HEAD "1e+16}\n");
    cr_assert_str_eq(line_of(-0.0), HEAD "-0}\n");
    cr_assert_str_eq(line_of(5e-324), HEAD "5e-324}\n");
}

Test(format_json, infinities_and_nan_are_strings)
{
    cr_assert_str_eq(line_of(NAN), HEAD "\"NaN\"}\n");
    cr_assert_str_eq(line_of(-(double)NAN), HEAD "\"NaN\"}\n");
    cr_assert_str_eq(line_of(INFINITY), HEAD "\"Infinity\"}\n");
    cr_assert_str_eq(line_of(-INFINITY), HEAD "\"-Infinity\"}\n");
}

Test(format_json, integers_are_exact_up_to_both_ends)
{
    cr_assert_str_eq(line_of_int(0), HEAD "0}\n");
    cr_assert_str_eq(line_of_int(INT64_MIN), HEAD "-9223372036854775808}\n");
    cr_assert_str_eq(line_of_int(INT64_MAX), HEAD "9223372036854775807}\n");
    cr_assert_str_eq(line_of_int(INT64_C(9007199254740993)), HEAD "9007199254740993}\n");
}

Test(format_json, times_before_1970_and_at_both_ends_are_numbers)
{
    static const struct {
        int64_t time_ns;
        const char *text;
    } times[] = {{-1, "-0.000000001"},
                 {0, "0.000000000"},
                 {INT64_MIN, "-9223372036.854775808"},
                 {INT64_MAX, "9223372036.854775807"}};
    uint32_t series = add_series("g", "a", NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        char expected[200];
        clear_batch();
        add_double(series, 1)->time_ns = times[i].time_ns;
        snprintf(expected, sizeof expected, "{\"timestamp\":%s,\"group\":\"g\",\"name\":\"a\",\"value\":1}\n",
                 times[i].text);
        cr_assert_str_eq(encode(&wr_format_json), expected);
    }
}

Test(format_json, members_have_a_fixed_order)
{
    uint32_t series = add_series("my_app", "latency", route, 1);
    fixture.series[series].cumulative = true;
    set_metadata(add_double(series, 7), "warm");
    cr_assert_str_eq(encode(&wr_format_json),
                     HEAD "7,\"labels\":{\"route\":\"/x\"},\"cumulative\":true,\"metadata\":\"warm\"}\n");
}

Test(format_json, cumulative_and_metadata_need_no_labels)
{
    uint32_t series = add_series("my_app", "latency", NULL, 0);
    fixture.series[series].cumulative = true;
    add_double(series, 7);
    set_metadata(add_double(series, 8), "");
    cr_assert_str_eq(encode(&wr_format_json),
                     HEAD "7,\"cumulative\":true}\n" HEAD "8,\"cumulative\":true,\"metadata\":\"\"}\n");
}

Test(format_json, what_the_values_mean_is_written_behind_cumulative)
{
    static const struct {
        int instrument;
        bool cumulative;
        const char *unit, *text;
    } each[] = {{WEIR_COUNTER, false, NULL, "\"instrument\":\"counter\""},
                {WEIR_GAUGE, false, "ms", "\"instrument\":\"gauge\",\"unit\":\"ms\""},
                {WEIR_HISTOGRAM, true, NULL, "\"cumulative\":true,\"instrument\":\"histogram\""},
                {WEIR_VALUE, false, "a \"b\"", "\"unit\":\"a \\\"b\\\"\""}};
    for (size_t i = 0; i < 4; i++) {
        char expected[200];
        clear_batch();
        fixture.series_count = 0;
        uint32_t series = add_series("my_app", "latency", NULL, 0);
        fixture.series[series].instrument = each[i].instrument;
        fixture.series[series].cumulative = each[i].cumulative;
        fixture.series[series].unit = each[i].unit;
        set_metadata(add_double(series, 7), "warm");
        snprintf(expected, sizeof expected, HEAD "7,%s,\"metadata\":\"warm\"}\n", each[i].text);
        cr_assert_str_eq(encode(&wr_format_json), expected);
    }
}

Test(format_json, labels_of_the_configuration_are_merged_and_the_series_take_precedence)
{
    static const weir_label own[] = {{"host", "own"}, {"route", "/x"}},
                            common[] = {{"az", "eu"}, {"host", "all"}};
    set_labels(common, 2);
    add_double(add_series("my_app", "latency", own, 2), 1);
    add_double(add_series("my_app", "latency", NULL, 0), 2);
    cr_assert_str_eq(encode(&wr_format_json),
                     HEAD "1,\"labels\":{\"az\":\"eu\",\"host\":\"own\",\"route\":\"/x\"}}\n" HEAD
                          "2,\"labels\":{\"az\":\"eu\",\"host\":\"all\"}}\n");
}

Test(format_json, changed_labels_of_the_configuration_apply_to_the_next_batch)
{
    static const weir_label before[] = {{"host", "h1"}}, after[] = {{"host", "h2"}};
    struct wr_encoder encoder;
    add_double(add_series("my_app", "latency", NULL, 0), 1);
    wr_encoder_init(&encoder, &wr_format_json, NULL);
    set_labels(before, 1);
    cr_assert_str_eq(encode_with(&encoder), HEAD "1,\"labels\":{\"host\":\"h1\"}}\n");
    set_labels(after, 1);
    cr_assert_str_eq(encode_with(&encoder), HEAD "1,\"labels\":{\"host\":\"h2\"}}\n");
    wr_encoder_fini(&encoder);
}

Test(format_json, an_event_is_a_line_for_each_of_its_samples)
{
    uint32_t series = add_series("my_app", "latency", NULL, 0);
    add_double(series, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(series, 2);
    cr_assert_str_eq(encode(&wr_format_json), HEAD "1}\n" HEAD "2}\n");
}

Test(format_json, texts_are_escaped_and_contain_no_line_break)
{
    static const weir_label odd[] = {{"k\"\\", "v\n\r\t\x1b\x01"}};
    set_metadata(add_double(add_series("g\"\\", "a\xc3\xa9\xe2\x80\xa8", odd, 1), 1), "line 1\nline 2");
    cr_assert_str_eq(
        encode(&wr_format_json),
        "{\"timestamp\":1795219607.576198123,\"group\":\"g\\\"\\\\\",\"name\":\"a\xc3\xa9\xe2\x80\xa8\","
        "\"value\":1,\"labels\":{\"k\\\"\\\\\":\"v\\n\\r\\t\\u001b\\u0001\"},"
        "\"metadata\":\"line 1\\nline 2\"}\n");
}

/* Parses a line with json-c, an independent parser. */
static struct json_object *parse(const char *line)
{
    struct json_tokener *tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *object = json_tokener_parse_ex(tokener, line, (int)strlen(line));
    cr_assert_eq(json_tokener_get_error(tokener), json_tokener_success, "%s", line);
    json_tokener_free(tokener);
    return object;
}

static const char *text_of(struct json_object *object, const char *key)
{
    return json_object_get_string(json_object_object_get(object, key));
}

Test(format_json, every_character_is_read_back_unchanged)
{
    char all[0x80] = "", note[0x100];
    for (char c = 1; c < 0x7f; c++)
        all[c - 1] = c;
    snprintf(note, sizeof note, "%s\x7f\xc2\x80\xe2\x82\xac\xef\xbf\xbf\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", all);
    const weir_label label[] = {{note, note}};
    set_metadata(add_double(add_series(note, note, label, 1), 0.1), note);
    struct json_object *object = parse(encode(&wr_format_json));
    cr_assert_str_eq(text_of(object, "group"), note);
    cr_assert_str_eq(text_of(object, "name"), note);
    cr_assert_str_eq(text_of(object, "metadata"), note);
    cr_assert_str_eq(text_of(json_object_object_get(object, "labels"), note), note);
    cr_assert_eq(json_object_get_double(json_object_object_get(object, "value")), 0.1);
    json_object_put(object);
}

Test(format_json, every_finite_value_is_read_back_unchanged)
{
    static const double values[] = {0.1,
                                    1.0 / 3,
                                    1e16,
                                    123456789012345680.0,
                                    5e-324,
                                    2.2250738585072014e-308,
                                    1.7976931348623157e308,
                                    -1e-7,
                                    9007199254740992.0,
                                    4.35,
                                    1e23};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct json_object *object = parse(line_of(values[i]));
        cr_assert_eq(json_object_get_double(json_object_object_get(object, "value")), values[i], "%a",
                     values[i]);
        json_object_put(object);
    }
}
