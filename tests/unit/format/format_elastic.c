#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/format.h"
#include "format/index_name.h"
#include "batch_fixture.h"

#define ID "0123456789abcdef0123456789abcdef-"
#define ACTION(number) "{\"create\":{\"_index\":\"weir\",\"_id\":\"" ID number "\"}}\n"
#define HEAD "{\"@timestamp\":\"2026-11-21T00:06:47.576198123Z\",\"group\":\"my_app\""

static const char *encode_weir(void)
{
    return encode(&wr_format_elastic);
}

static const char *encode_index(const char *index)
{
    return encode_as(&wr_format_elastic, "index", index);
}

static void more(weir_sample *sample)
{
    sample->flags |= WEIR_SAMPLE_MORE;
}

Test(format_elastic, an_event_is_an_action_and_a_document)
{
    static const weir_label labels[] = {{"route", "/\"x\""}};
    more(add_double(add_series("my_app", "latency", labels, 1), 49.403));
    add_int(add_series("my_app", "calls", labels, 1), -7);
    cr_assert_str_eq(encode_weir(), ACTION("0") HEAD ",\"labels\":{\"route\":\"/\\\"x\\\"\"},"
                                                     "\"metrics\":{\"latency\":49.403,\"calls\":-7}}\n");
}

Test(format_elastic, doubles_have_a_point_or_an_exponent)
{
    static const double values[] = {100, -0.0, 1e16, 1e-5, 9007199254740993.0};
    static const char *const expected[] = {"100.0", "-0.0", "1e+16", "1e-05", "9007199254740992.0"};
    for (size_t i = 0; i < 5; i++) {
        char text[300];
        clear_batch();
        fixture.series_count = 0;
        add_double(add_series("my_app", "v", NULL, 0), values[i]);
        snprintf(text, sizeof text, ACTION("0") HEAD ",\"metrics\":{\"v\":%s}}\n", expected[i]);
        cr_assert_str_eq(encode_weir(), text);
    }
}

Test(format_elastic, each_event_has_the_id_of_its_first_sample)
{
    uint32_t a = add_series("my_app", "a", NULL, 0), b = add_series("my_app", "b", NULL, 0);
    more(add_double(a, 1));
    add_double(b, 2);
    add_double(a, 3);
    fixture.batch.sequence = UINT64_MAX - 5;
    cr_assert_str_eq(encode_weir(), ACTION("18446744073709551610") HEAD
                     ",\"metrics\":{\"a\":1.0,\"b\":2.0}}\n" ACTION("18446744073709551612") HEAD
                     ",\"metrics\":{\"a\":3.0}}\n");
}

Test(format_elastic, without_an_origin_the_server_chooses_the_id)
{
    add_double(add_series("my_app", "a", NULL, 0), 1);
    fixture.batch.origin = "";
    cr_assert_str_eq(encode_weir(), "{\"create\":{\"_index\":\"weir\"}}\n" HEAD ",\"metrics\":{\"a\":1.0}}\n");
}

Test(format_elastic, a_name_that_comes_twice_begins_another_document)
{
    uint32_t a = add_series("my_app", "a", NULL, 0), b = add_series("my_app", "b", NULL, 0);
    more(add_double(a, 1));
    more(add_double(b, 2));
    more(add_double(a, 3));
    more(add_double(a, 4));
    add_double(b, 5);
    cr_assert_str_eq(encode_weir(), ACTION("0") HEAD ",\"metrics\":{\"a\":1.0,\"b\":2.0}}\n" ACTION("2") HEAD
                     ",\"metrics\":{\"a\":3.0}}\n" ACTION("3") HEAD ",\"metrics\":{\"a\":4.0,\"b\":5.0}}\n");
}

Test(format_elastic, a_name_of_the_batch_before_begins_no_document)
{
    struct wr_encoder encoder;
    uint32_t a = add_series("my_app", "a", NULL, 0), b = add_series("my_app", "b", NULL, 0);
    wr_encoder_init(&encoder, &wr_format_elastic, make_options(&wr_format_elastic, NULL, NULL));
    more(add_double(a, 1));
    add_double(b, 2);
    encode_with(&encoder);
    clear_batch();
    more(add_double(b, 1));
    add_double(a, 2);
    cr_assert_str_eq(encode_with(&encoder), ACTION("0") HEAD ",\"metrics\":{\"b\":1.0,\"a\":2.0}}\n");
    wr_encoder_fini(&encoder);
}

Test(format_elastic, samples_with_other_labels_or_metadata_begin_another_document)
{
    static const weir_label labels[] = {{"k", "v"}};
    more(add_double(add_series("my_app", "a", NULL, 0), 1));
    more(add_double(add_series("my_app", "b", labels, 1), 2));
    weir_sample *noted = add_double(add_series("my_app", "c", labels, 1), 3);
    set_metadata(noted, "a \"note\"");
    fixture.series[add_series("my_app", "d", NULL, 0)].cumulative = true;
    more(noted);
    add_double(3, 4);
    cr_assert_str_eq(
        encode_weir(), ACTION("0") HEAD ",\"metrics\":{\"a\":1.0}}\n" ACTION("1") HEAD
        ",\"labels\":{\"k\":\"v\"},\"metrics\":{\"b\":2.0}}\n" ACTION("2") HEAD
        ",\"labels\":{\"k\":\"v\"},\"metrics\":{\"c\":3.0},\"metadata\":\"a \\\"note\\\"\"}\n" ACTION("3") HEAD
        ",\"cumulative\":true,\"metrics\":{\"d\":4.0}}\n");
}

Test(format_elastic, what_json_has_no_number_for_is_left_out_and_counted)
{
    uint32_t a = add_series("my_app", "a", NULL, 0), b = add_series("my_app", "b", NULL, 0);
    more(add_double(a, NAN));
    add_double(b, 1);
    add_double(a, INFINITY);
    cr_assert_str_eq(encode_weir(), ACTION("0") HEAD ",\"metrics\":{\"b\":1.0}}\n");
    clear_batch();
    add_double(a, -INFINITY);
    cr_assert_str_eq(encode_weir(), "");
}

Test(format_elastic, empty_parts_of_field_names_become_underscores)
{
    static const char *const names[] = {".", "a..b", ".a", "a.", "  ", "a. .b", "a.b"};
    static const char *const fields[] = {"_._", "a._.b", "_.a", "a._", "_", "a._.b", "a.b"};
    for (size_t i = 0; i < 7; i++) {
        char text[300];
        clear_batch();
        fixture.series_count = 0;
        add_double(add_series("my_app", names[i], NULL, 0), 1);
        snprintf(text, sizeof text, ACTION("0") HEAD ",\"metrics\":{\"%s\":1.0}}\n", fields[i]);
        cr_assert_str_eq(encode_weir(), text);
    }
}

Test(format_elastic, times_before_1970_and_the_extremes_are_dates)
{
    static const int64_t times[] = {-1, INT64_MAX, INT64_MIN, 0};
    static const char *const dates[] = {"1969-12-31T23:59:59.999999999Z", "2262-04-11T23:47:16.854775807Z",
                                        "1677-09-21T00:12:43.145224192Z", "1970-01-01T00:00:00.000000000Z"};
    uint32_t a = add_series("my_app", "a", NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        clear_batch();
        add_double(a, 1)->time_ns = times[i];
        cr_assert(strstr(encode_weir(), dates[i]), "%s", dates[i]);
    }
}

/* ---- Indexes --------------------------------------------------------------------------------- */

Test(format_elastic, an_index_may_have_group_name_and_labels)
{
    static const weir_label labels[] = {{"env", "Prod/1"}};
    more(add_double(add_series("My App", "a", labels, 1), 1));
    add_double(add_series("My App", "b", labels, 1), 2);
    const char *text = encode_index("m-{group}-{name}-{label.env}-{label.none}.x");
    cr_assert(strstr(text, "\"_index\":\"m-my_app-a-prod_1-none.x\""), "%s", text);
    cr_assert(strstr(text, "\"_index\":\"m-my_app-b-prod_1-none.x\""), "another document: %s", text);
}

Test(format_elastic, labels_of_the_configuration_name_an_index_too)
{
    static const weir_label common[] = {{"host", "h\xc3\xa4"}};
    set_labels(common, 1);
    add_double(add_series("g", "a", NULL, 0), 1);
    cr_assert(strstr(encode_index("{label.host}"), "\"_index\":\"h_\""));
}

Test(format_elastic, names_of_indexes_are_always_allowed)
{
    static const char *const groups[] = {"_x", "-x", ".", "..", "\xc3\x84", "a*b?c\"d"};
    static const char *const indexes[] = {"weir_x", "weir-x", "weir.", "weir..", "weir_", "a_b_c_d"};
    for (size_t i = 0; i < 6; i++) {
        char text[100];
        clear_batch();
        fixture.series_count = 0;
        add_double(add_series(groups[i], "a", NULL, 0), 1);
        snprintf(text, sizeof text, "\"_index\":\"%s\"", indexes[i]);
        cr_assert(strstr(encode_index("{group}"), text), "%s", text);
    }
    char longest[300];
    memset(longest, 'g', sizeof longest);
    longest[255] = '\0';
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(longest, "a", NULL, 0), 1);
    longest[254] = '"';
    cr_assert(strstr(encode_index("x{group}"), longest), "cut at 255");
}

Test(format_elastic, an_index_is_checked)
{
    static const char *const bad[] = {"",  "A",       "a b", "_a",       "-a", ".",   "..",
                                      "{", "a{group", "{x}", "{label.}", "}",  "a/b", "a:b"};
    static const char *const good[] = {"a",         "{group}",       "{name}", "{label.k}",
                                       "{label._}", "a-{group}_1.2", ".a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not_null(wr_index_name_find_fault(bad[i]), "%s", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert_null(wr_index_name_find_fault(good[i]), "%s", good[i]);
}
