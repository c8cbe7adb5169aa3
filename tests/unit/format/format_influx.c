#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "batch_fixture.h"

#define TIME "1795219607576198123"

static const weir_label route[] = {{"route", "/x"}};

static const char *line_of(double value)
{
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series("my_app", "latency", NULL, 0), value);
    return encode(&wr_format_influx);
}

static const char *line_of_int(int64_t value, const char *integers)
{
    clear_batch();
    fixture.series_count = 0;
    add_int(add_series("my_app", "latency", NULL, 0), value);
    return encode_as(&wr_format_influx, "integers", integers);
}

/* The part of the line before the value, for one sample of a group with a label and a name. */
static const char *head_of(const char *group, const char *key, const char *value, const char *name)
{
    static char head[2000];
    const weir_label label[] = {{key, value}};
    clear_batch();
    fixture.series_count = 0;
    add_double(add_series(group, name, label, 1), 1);
    const char *text = encode(&wr_format_influx);
    size_t length = strlen(text) - strlen("=1 " TIME "\n");
    cr_assert_str_eq(text + length, "=1 " TIME "\n");
    memcpy(head, text, length);
    head[length] = '\0';
    return head;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

Test(format_influx, a_sample_is_a_field_of_its_group_with_labels_as_tags_and_nanoseconds)
{
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    cr_assert_str_eq(encode(&wr_format_influx), "my_app,route=/x latency=49.403 " TIME "\n");
}

Test(format_influx, a_series_without_labels_has_no_tags)
{
    cr_assert_str_eq(line_of(49.403), "my_app latency=49.403 " TIME "\n");
}

Test(format_influx, labels_of_the_configuration_are_tags_and_the_series_take_precedence)
{
    static const weir_label own[] = {{"host", "own"}, {"route", "/x"}},
                            common[] = {{"az", "eu"}, {"host", "all"}};
    set_labels(common, 2);
    add_double(add_series("my_app", "latency", own, 2), 1);
    cr_assert_str_eq(encode(&wr_format_influx), "my_app,az=eu,host=own,route=/x latency=1 " TIME "\n");
}

Test(format_influx, an_event_is_one_line)
{
    add_double(add_series("my_app", "a", route, 1), 1)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("my_app", "b", route, 1), 2.5)->flags = WEIR_SAMPLE_MORE;
    add_int(add_series("my_app", "c", route, 1), 3);
    add_double(0, 4);
    cr_assert_str_eq(encode(&wr_format_influx), "my_app,route=/x a=1,b=2.5,c=3 " TIME "\n"
                                                "my_app,route=/x a=4 1795219607576198124\n");
}

Test(format_influx, a_field_repeated_in_an_event_begins_another_line)
{
    add_double(add_series("my_app", "a", NULL, 0), 1)->flags = WEIR_SAMPLE_MORE;
    add_double(0, 2)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("my_app", "b", NULL, 0), 3)->flags = WEIR_SAMPLE_MORE;
    add_double(0, 4);
    cr_assert_str_eq(encode(&wr_format_influx), "my_app a=1 " TIME "\n"
                                                "my_app a=2,b=3 1795219607576198124\n"
                                                "my_app a=4 1795219607576198125\n");
}

Test(format_influx, different_tags_in_an_event_begin_another_line)
{
    add_double(add_series("my_app", "a", NULL, 0), 1)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("my_app", "b", route, 1), 2)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("other", "c", route, 1), 3);
    cr_assert_str_eq(encode(&wr_format_influx), "my_app a=1 " TIME "\n"
                                                "my_app,route=/x b=2 " TIME "\n"
                                                "other,route=/x c=3 " TIME "\n");
}

/* ---- Values ---------------------------------------------------------------------------------- */

Test(format_influx, every_finite_double_is_written)
{
    cr_assert_str_eq(line_of(100), "my_app latency=100 " TIME "\n");
    cr_assert_str_eq(line_of(1e16), "my_app latency=1e+16 " TIME "\n");
    cr_assert_str_eq(line_of(-0.0), "my_app latency=-0 " TIME "\n");
    cr_assert_str_eq(line_of(5e-324), "my_app latency=5e-324 " TIME "\n");
    cr_assert_str_eq(line_of(1.7976931348623157e308), "my_app latency=1.7976931348623157e+308 " TIME "\n");
}

Test(format_influx, infinities_and_nan_are_left_out_and_counted)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_influx, make_options(&wr_format_influx, NULL, NULL));
    uint32_t series = add_series("my_app", "latency", NULL, 0);
    for (int i = 0; i < 3; i++)
        add_double(series, odd[i]);
    add_double(series, 1);
    cr_assert_str_eq(encode_with(&encoder), "my_app latency=1 " TIME "\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 4), 3);
    wr_encoder_fini(&encoder);
}

Test(format_influx, leaving_out_a_sample_keeps_the_rest_of_its_event)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_influx, make_options(&wr_format_influx, NULL, NULL));
    static const double values[] = {NAN, 1, NAN, 2, NAN};
    for (int i = 0; i < 5; i++)
        add_double(add_series("g", (const char *[]){"a", "b", "c", "d", "e"}[i], NULL, 0), values[i])->flags =
            i < 4 ? WEIR_SAMPLE_MORE : 0;
    add_double(0, NAN)->flags = WEIR_SAMPLE_MORE;
    add_double(1, NAN);
    cr_assert_str_eq(encode_with(&encoder), "g b=1,d=2 " TIME "\n");
    static const uint32_t omitted[] = {0, 1, 1, 2, 2, 3, 4, 5};
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_eq(wr_encoder_count_omitted(&encoder, i), omitted[i], "of %u", i);
    wr_encoder_fini(&encoder);
}

Test(format_influx, integers_are_written_as_doubles_so_that_a_field_has_one_type)
{
    cr_assert_str_eq(line_of_int(42, "false"), "my_app latency=42 " TIME "\n");
    cr_assert_str_eq(line_of_int(INT64_MIN, "false"), "my_app latency=-9223372036854775808 " TIME "\n");
    cr_assert_str_eq(line_of_int(9007199254740992, "false"), "my_app latency=9007199254740992 " TIME "\n");
}

Test(format_influx, integers_that_no_double_holds_exactly_are_left_out)
{
    cr_assert_str_eq(line_of_int(9007199254740993, "false"), "");
    cr_assert_str_eq(line_of_int(INT64_MAX, "false"), "");
}

Test(format_influx, integers_may_be_written_as_integers)
{
    cr_assert_str_eq(line_of_int(42, "true"), "my_app latency=42i " TIME "\n");
    cr_assert_str_eq(line_of_int(9007199254740993, "true"), "my_app latency=9007199254740993i " TIME "\n");
    cr_assert_str_eq(line_of_int(INT64_MAX, "true"), "my_app latency=9223372036854775807i " TIME "\n");
    cr_assert_str_eq(line_of_int(INT64_MIN, "true"), "my_app latency=-9223372036854775808i " TIME "\n");
}

/* ---- Names ----------------------------------------------------------------------------------- */

Test(format_influx, separators_are_escaped)
{
    cr_assert_str_eq(head_of("a b,c=d", "k y,e=e", "v l,u=e", "n m,e=f"),
                     "a\\ b\\,c=d,k\\ y\\,e\\=e=v\\ l\\,u\\=e n\\ m\\,e\\=f");
}

Test(format_influx, other_characters_are_not_escaped)
{
    cr_assert_str_eq(head_of("a\"'.{}", "k\"", "v\xc3\xa9\"#", "n:\"#"), "a\"'.{},k\"=v\xc3\xa9\"# n:%22#");
}

Test(format_influx, control_characters_are_written_as_percent_and_two_digits)
{
    cr_assert_str_eq(head_of("g", "k", "a\nb\r\x01\x7f", "n"), "g,k=a%0Ab%0D%01%7F n");
}

Test(format_influx, a_percent_sign_is_written_so_only_where_it_would_be_ambiguous)
{
    cr_assert_str_eq(head_of("cpu%", "%0A", "100%", "%2%22%zz%2"), "cpu%,%250A=100% %2%2522%zz%2");
}

Test(format_influx, different_names_stay_different)
{
    static const char *const names[] = {"a\\",    "a/",      "a%5C",  "a\"",  "a%22",  "a%2522",
                                        "a\n",    "a ",      "a%0A",  "time", "time_", "time__",
                                        "_field", "_field_", "a\\\\", "a\\/"};
    char seen[WR_COUNT_OF(names)][100];
    for (size_t i = 0; i < WR_COUNT_OF(names); i++) {
        snprintf(seen[i], sizeof *seen, "%s", head_of("g", names[i], names[i], names[i]));
        for (size_t k = 0; k < i; k++)
            cr_assert_str_neq(seen[i], seen[k], "%s and %s", names[i], names[k]);
    }
}

Test(format_influx, backslashes_that_would_escape_something_are_written_as_percent_and_two_digits)
{
    cr_assert_str_eq(head_of("g\\", "k\\", "C:\\dir\\", "n\\"), "g%5C,k%5C=C:\\dir%5C n%5C");
    cr_assert_str_eq(head_of("g\\ x", "k\\=x", "v\\,x", "n\\\\x"), "g%5C\\ x,k%5C\\=x=v%5C\\,x n%5C\\x");
    cr_assert_str_eq(head_of("g", "k", "v\\\nw", "n"), "g,k=v%5C%0Aw n");
}

Test(format_influx, a_group_that_begins_with_a_hash_is_not_a_comment)
{
    cr_assert_str_eq(head_of("#g", "k", "v", "n"), "_#g,k=v n");
    cr_assert_str_eq(head_of("_#g", "k", "v", "n"), "__#g,k=v n");
}

Test(format_influx, keys_that_influxdb_reserves_are_renamed)
{
    cr_assert_str_eq(head_of("time", "time", "time", "time"), "time,time_=time time_");
    cr_assert_str_eq(head_of("g", "_field", "v", "_measurement"), "g,_field_=v _measurement_");
    cr_assert_str_eq(head_of("g", "time_", "v", "time__"), "g,time__=v time___");
    cr_assert_str_eq(head_of("g", "times", "v", "_time"), "g,times=v _time");
}

Test(format_influx, empty_tags_are_left_out)
{
    static const weir_label labels[] = {{"a", ""}, {"b", "x"}, {"c", ""}};
    add_double(add_series("g", "n", labels, 3), 1);
    cr_assert_str_eq(encode(&wr_format_influx), "g,b=x n=1 " TIME "\n");
}

/* ---- Times ----------------------------------------------------------------------------------- */

static struct wr_encoder encoder;

static void start(void)
{
    wr_encoder_init(&encoder, &wr_format_influx, make_options(&wr_format_influx, NULL, NULL));
}

static void stop(void)
{
    wr_encoder_fini(&encoder);
}

/* Encodes the next batch in sequence, with one sample for each time. */
static const char *encode_times(uint32_t series, const int64_t *times, uint32_t count)
{
    fixture.batch.sequence += fixture.batch.count;
    clear_batch();
    for (uint32_t i = 0; i < count; i++)
        add_double(series, 0)->time_ns = times[i];
    return encode_with(&encoder);
}

Test(format_influx, a_repeated_time_is_raised_by_a_nanosecond)
{
    static const int64_t times[] = {5, 5, 5, 6, 20, 5};
    add_series("g", "a", NULL, 0);
    start();
    cr_assert_str_eq(encode_times(0, times, 6), "g a=0 5\ng a=0 6\ng a=0 7\ng a=0 8\ng a=0 20\ng a=0 9\n");
    stop();
}

Test(format_influx, times_of_earlier_batches_are_in_use)
{
    static const int64_t times[] = {5};
    add_series("g", "a", NULL, 0);
    start();
    cr_assert_str_eq(encode_times(0, times, 1), "g a=0 5\n");
    cr_assert_str_eq(encode_times(0, times, 1), "g a=0 6\n");
    cr_assert_str_eq(encode_times(0, times, 1), "g a=0 7\n");
    stop();
}

Test(format_influx, times_of_other_series_are_not_in_use)
{
    add_double(add_series("g", "a", NULL, 0), 1);
    add_double(add_series("g", "b", NULL, 0), 2);
    add_double(add_series("h", "a", NULL, 0), 3);
    add_double(add_series("g", "a", route, 1), 4);
    cr_assert_str_eq(encode(&wr_format_influx), "g a=1 " TIME "\ng b=2 " TIME "\nh a=3 " TIME "\n"
                                                "g,route=/x a=4 " TIME "\n");
}

Test(format_influx, series_written_as_the_same_field_share_its_times)
{
    static const weir_label empty[] = {{"e", ""}, {"k", "a b"}}, blank[] = {{"k", "a b"}};
    add_double(add_series("g", "a", empty, 2), 1);
    add_double(add_series("g", "a", blank, 1), 2);
    uint32_t total = add_series("g", "a", blank, 1);
    fixture.series[total].cumulative = true;
    add_double(total, 3);
    cr_assert_str_eq(encode(&wr_format_influx), "g,k=a\\ b a=1 1795219607576198123\n"
                                                "g,k=a\\ b a=2 1795219607576198124\n"
                                                "g,k=a\\ b a=3 1795219607576198125\n");
}

Test(format_influx, a_line_gets_a_time_that_is_free_for_all_its_fields)
{
    add_series("g", "a", NULL, 0);
    add_series("g", "b", NULL, 0);
    add_double(0, 1)->time_ns = 10;
    add_double(1, 2)->time_ns = 11;
    for (uint32_t i = 0; i < 2; i++) {
        weir_sample *sample = add_double(i, 3);
        sample->time_ns = 10;
        sample->flags = i ? 0 : WEIR_SAMPLE_MORE;
    }
    add_double(1, 4)->time_ns = 10;
    cr_assert_str_eq(encode(&wr_format_influx), "g a=1 10\ng b=2 11\ng a=3,b=3 12\ng b=4 13\n");
}

Test(format_influx, a_time_repeated_many_times_is_never_written_twice)
{
    enum { ROUNDS = 1000, EACH = 250 };
    int64_t times[EACH];
    for (int i = 0; i < EACH; i++)
        times[i] = 1000;
    add_series("g", "a", NULL, 0);
    start();
    for (int64_t round = 0; round < ROUNDS; round++) {
        const char *text = encode_times(0, times, EACH);
        for (int64_t i = 0; i < EACH; i++) {
            char line[40];
            int length = snprintf(line, sizeof line, "g a=0 %lld\n", (long long)(1000 + round * EACH + i));
            cr_assert_eq(memcmp(text, line, (size_t)length), 0, "round %lld: %.40s", (long long)round, text);
            text += length;
        }
    }
    stop();
}

Test(format_influx, retried_samples_get_the_same_times)
{
    static const int64_t times[] = {5, 5, 7, 5};
    add_series("g", "a", NULL, 0);
    start();
    char first[100];
    strcpy(first, encode_times(0, times, 4));
    cr_assert_str_eq(first, "g a=0 5\ng a=0 6\ng a=0 7\ng a=0 8\n");
    cr_assert_str_eq(encode_with(&encoder), first);
    /* two were settled; one sample is new */
    fixture.batch.sequence += 2;
    memmove(fixture.samples, fixture.samples + 2, 2 * sizeof *fixture.samples);
    fixture.batch.count = 2;
    add_double(0, 0)->time_ns = 5;
    cr_assert_str_eq(encode_with(&encoder), "g a=0 7\ng a=0 8\ng a=0 9\n");
    stop();
}

Test(format_influx, a_partly_settled_batch_continues_with_the_same_times)
{
    weir_encoded encoded;
    static const int64_t times[] = {5, 5, 5, 5};
    add_series("g", "a", NULL, 0);
    start();
    encode_times(0, times, 4);
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 2, SIZE_MAX, &encoded));
    cr_assert_eq(encoded.length, strlen("g a=0 7\ng a=0 8\n"));
    cr_assert_eq(memcmp(encoded.data, "g a=0 7\ng a=0 8\n", encoded.length), 0);
    stop();
}

static void add_pairs(uint32_t events)
{
    add_series("g", "a", NULL, 0);
    add_series("g", "b", NULL, 0);
    for (uint32_t i = 0; i < 2 * events; i++) {
        weir_sample *sample = add_double(i % 2, i);
        sample->time_ns = 10;
        sample->flags = i % 2 ? 0 : WEIR_SAMPLE_MORE;
    }
}

Test(format_influx, parts_of_a_line_that_is_too_long_have_its_time)
{
    static const char lines[] = "g a=0 10\ng b=1 10\ng a=2 11\ng b=3 11\n";
    add_pairs(2);
    start();
    encoder.line_limit = strlen(lines) / 4;
    cr_assert_str_eq(encode_with(&encoder), lines);
    cr_assert_str_eq(encode_with(&encoder), lines);
    stop();
}

Test(format_influx, changed_labels_of_the_configuration_make_different_series)
{
    static const weir_label one[] = {{"h", "1"}}, two[] = {{"h", "2"}};
    static const int64_t times[] = {5};
    add_series("g", "a", NULL, 0);
    start();
    set_labels(one, 1);
    cr_assert_str_eq(encode_times(0, times, 1), "g,h=1 a=0 5\n");
    set_labels(two, 1);
    cr_assert_str_eq(encode_times(0, times, 1), "g,h=2 a=0 5\n");
    set_labels(one, 1);
    cr_assert_str_eq(encode_times(0, times, 1), "g,h=1 a=0 6\n");
    stop();
}

Test(format_influx, times_reserved_by_influxdb_are_left_out)
{
    static const int64_t times[] = {INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, -1, 0, INT64_MAX - 1, INT64_MAX};
    add_series("g", "a", NULL, 0);
    start();
    cr_assert_str_eq(encode_times(0, times, 7), "g a=0 -9223372036854775806\ng a=0 -1\ng a=0 0\n"
                                                "g a=0 9223372036854775806\n");
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 7), 3);
    stop();
}

/* ---- Dots in names --------------------------------------------------------------------------- */

Test(format_influx, dots_of_groups_and_names_can_be_replaced)
{
    static const weir_label dotted[] = {{"a.b", "1.5"}};
    add_double(add_series("my.app", "took.p99", dotted, 1), 1);
    cr_assert_str_eq(encode_as(&wr_format_influx, "name_separator", "_"),
                     "my_app,a.b=1.5 took_p99=1 1795219607576198123\n");
    cr_assert_str_eq(encode_as(&wr_format_influx, "name_separator", "::"),
                     "my::app,a.b=1.5 took::p99=1 1795219607576198123\n");
    cr_assert_str_eq(encode(&wr_format_influx), "my.app,a.b=1.5 took.p99=1 1795219607576198123\n");
}

Test(format_influx, names_that_become_equal_are_lines_with_times_of_their_own)
{
    add_double(add_series("g", "a.b", NULL, 0), 1)->flags = WEIR_SAMPLE_MORE;
    add_double(add_series("g", "a_b", NULL, 0), 2);
    cr_assert_str_eq(encode(&wr_format_influx), "g a.b=1,a_b=2 1795219607576198123\n");
    cr_assert_str_eq(encode_as(&wr_format_influx, "name_separator", "_"),
                     "g a_b=1 1795219607576198123\ng a_b=2 1795219607576198124\n");
}

Test(format_influx, a_name_that_becomes_a_reserved_one_is_changed)
{
    add_double(add_series("g", ".field", NULL, 0), 1);
    cr_assert_str_eq(encode_as(&wr_format_influx, "name_separator", "_"), "g _field_=1 1795219607576198123\n");
}

Test(format_influx, a_separator_is_short_and_of_a_few_characters)
{
    static const char *const wrong[] = {"", " ", ",", "=", "#", "\\", "a", "........."};
    struct {
        bool integers;
        int64_t temporality;
        const char *name_separator;
    } options = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.name_separator = wrong[i];
        cr_assert(wr_format_influx.find_fault(&options), "%s", wrong[i]);
    }
    options.name_separator = "._-:/";
    cr_assert_null(wr_format_influx.find_fault(&options));
}
