#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch_fixture.h"

/* A format for testing the encoder: "name=value;" for each sample and a newline after each event. NaN cannot be
 * represented. */
static unsigned prefixes_made;

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    prefixes_made++;
    for (size_t i = 0; i < encoder->batch->label_count; i++)
        wr_buffer_put_format(out, "%s,", encoder->batch->labels[i].value);
    wr_buffer_put_format(out, "%s=", series->name);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    size_t start = encoder->out.length;
    for (uint32_t i = first; i < end; i++) {
        const weir_sample *sample = &encoder->batch->samples[i];
        if (isnan(sample->value.f64)) {
            wr_encoder_omit(encoder, i);
            continue;
        }
        const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
        wr_buffer_put(&encoder->out, wr_encoder_prefix(encoder, affixes), affixes->prefix);
        wr_buffer_put_format(&encoder->out, "%g;", sample->value.f64);
    }
    if (encoder->out.length > start)
        wr_buffer_put_char(&encoder->out, '\n');
}

static const struct wr_format lines = {
    .name = "lines", .shape = WEIR_FORMAT_LINES, .put_prefix = put_prefix, .put_event = put_event};
static const struct wr_format documents = {
    .name = "documents", .shape = WEIR_FORMAT_DOCUMENTS, .put_prefix = put_prefix, .put_event = put_event};
static const struct wr_format records = {
    .name = "records", .shape = WEIR_FORMAT_RECORDS, .put_prefix = put_prefix, .put_event = put_event};

static struct wr_encoder encoder;
static weir_encoded encoded;

static void start(const struct wr_format *format)
{
    wr_encoder_init(&encoder, format, NULL);
    wr_encoder_begin(&encoder);
}

static void stop(void)
{
    wr_encoder_fini(&encoder);
}

static bool run(uint32_t first, size_t limit)
{
    return wr_encoder_encode(&encoder, fixture_batch(), first, limit, &encoded);
}

static bool is_encoded(const char *text)
{
    return encoded.length == strlen(text) && memcmp(encoded.data, text, encoded.length) == 0;
}

/* Three events: one sample, three, two. */
static void add_three_events(void)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1);
    add_double(a, 2)->flags = WEIR_SAMPLE_MORE;
    add_double(b, 3)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 4);
    add_double(b, 5)->flags = WEIR_SAMPLE_MORE;
    add_double(b, 6);
}

static const char three_events[] = "a=1;\na=2;b=3;a=4;\nb=5;b=6;\n";
static const size_t event_ends[] = {5, 18, 27};
static const uint32_t sample_ends[] = {1, 4, 6};

Test(encoder, events_are_written_in_order)
{
    add_three_events();
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(is_encoded(three_events));
    cr_assert_eq(encoded.count, 6);
    stop();
}

Test(encoder, text_ends_after_the_first_event_that_reaches_the_limit)
{
    add_three_events();
    start(&lines);
    for (size_t limit = 0; limit <= sizeof three_events + 5; limit++) {
        size_t event = 0;
        while (event < 2 && event_ends[event] < limit)
            event++;
        cr_assert(run(0, limit));
        cr_assert_eq(encoded.length, event_ends[event], "limit %zu: %zu bytes", limit, encoded.length);
        cr_assert_eq(encoded.count, sample_ends[event], "limit %zu: %u samples", limit, encoded.count);
    }
    stop();
}

Test(encoder, encoding_starts_at_the_given_sample)
{
    add_three_events();
    start(&lines);
    cr_assert(run(1, 1));
    cr_assert(is_encoded("a=2;b=3;a=4;\n"));
    cr_assert_eq(encoded.count, 3);
    cr_assert(run(4, SIZE_MAX));
    cr_assert(is_encoded("b=5;b=6;\n"));
    cr_assert_eq(encoded.count, 2);
    stop();
}

Test(encoder, after_the_last_sample_nothing_is_encoded)
{
    add_three_events();
    start(&lines);
    cr_assert(run(6, SIZE_MAX));
    cr_assert_eq(encoded.count, 0);
    cr_assert_eq(encoded.length, 0);
    cr_assert_eq(wr_encoder_settled(&encoder, 100, NULL), 0);
    cr_assert(!run(7, SIZE_MAX));
    stop();
}

Test(encoder, an_event_cut_by_the_batch_ends_with_the_batch)
{
    add_three_events();
    fixture.samples[5].flags = WEIR_SAMPLE_MORE;
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(is_encoded(three_events));
    stop();
}

Test(encoder, every_written_length_settles_the_whole_events_in_it)
{
    add_three_events();
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    for (size_t length = 0; length <= sizeof three_events + 5; length++) {
        uint32_t samples = 0;
        size_t bytes = 0, end = 99;
        for (size_t event = 0; event < 3 && event_ends[event] <= length; event++) {
            samples = sample_ends[event];
            bytes = event_ends[event];
        }
        cr_assert_eq(wr_encoder_settled(&encoder, length, &end), samples, "length %zu", length);
        cr_assert_eq(end, bytes, "length %zu: %zu", length, end);
        cr_assert_eq(wr_encoder_settled(&encoder, length, NULL), samples);
    }
    stop();
}

Test(encoder, settled_samples_are_counted_from_the_start_of_the_encoding)
{
    size_t end;
    add_three_events();
    start(&lines);
    cr_assert(run(1, SIZE_MAX));
    cr_assert_eq(wr_encoder_settled(&encoder, 12, &end), 0);
    cr_assert_eq(wr_encoder_settled(&encoder, 13, &end), 3);
    cr_assert_eq(end, 13);
    cr_assert_eq(wr_encoder_settled(&encoder, 22, &end), 5);
    stop();
}

Test(encoder, a_limited_text_settles_only_the_samples_in_it)
{
    add_three_events();
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(run(0, 1));
    cr_assert_eq(wr_encoder_settled(&encoder, 1000, NULL), 1);
    stop();
}

Test(encoder, a_document_is_one_text_of_all_remaining_samples_for_any_limit)
{
    add_three_events();
    start(&documents);
    cr_assert(run(0, 1));
    cr_assert(is_encoded("a=1;a=2;b=3;a=4;b=5;b=6;\n"));
    cr_assert_eq(encoded.count, 6);
    cr_assert(run(4, 1));
    cr_assert(is_encoded("b=5;b=6;\n"));
    cr_assert_eq(encoded.count, 2);
    stop();
}

Test(encoder, a_part_of_a_document_settles_nothing)
{
    size_t end = 99;
    add_three_events();
    start(&documents);
    cr_assert(run(0, 1));
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length - 1, &end), 0);
    cr_assert_eq(end, 0);
    cr_assert_eq(wr_encoder_settled(&encoder, encoded.length, &end), 6);
    cr_assert_eq(end, encoded.length);
    stop();
}

Test(encoder, a_shortened_batch_makes_a_shorter_document)
{
    add_three_events();
    start(&documents);
    weir_batch front = *fixture_batch();
    front.count = 4;
    cr_assert(wr_encoder_encode(&encoder, &front, 1, SIZE_MAX, &encoded));
    cr_assert(is_encoded("a=2;b=3;a=4;\n"));
    cr_assert_eq(encoded.count, 3);
    stop();
}

Test(encoder, a_record_is_one_sample_for_any_limit_and_event)
{
    static const char *const each[] = {"a=1;\n", "a=2;\n", "b=3;\n", "a=4;\n", "b=5;\n", "b=6;\n"};
    add_three_events();
    start(&records);
    for (uint32_t i = 0; i < 6; i++) {
        cr_assert(run(i, SIZE_MAX));
        cr_assert(is_encoded(each[i]));
        cr_assert_eq(encoded.count, 1);
    }
    stop();
}

Test(encoder, records_that_cannot_be_written_are_skipped)
{
    add_three_events();
    fixture.samples[1].value.f64 = NAN;
    fixture.samples[2].value.f64 = NAN;
    fixture.samples[5].value.f64 = NAN;
    start(&records);
    cr_assert(run(1, SIZE_MAX));
    cr_assert(is_encoded("a=4;\n"));
    cr_assert_eq(encoded.count, 3);
    cr_assert(run(5, SIZE_MAX));
    cr_assert(is_encoded(""));
    cr_assert_eq(encoded.count, 1);
    stop();
}

Test(encoder, shapes_have_names)
{
    cr_assert_str_eq(wr_encoder_shape_name(WEIR_FORMAT_LINES), "lines");
    cr_assert_str_eq(wr_encoder_shape_name(WEIR_FORMAT_DOCUMENTS), "documents");
    cr_assert_str_eq(wr_encoder_shape_name(WEIR_FORMAT_RECORDS), "records");
}

/* State of a format from one batch to the next. */
static int states_freed;

static void free_state(void *state)
{
    states_freed++;
    free(state);
}

static void put_count(struct wr_encoder *of, uint32_t first, uint32_t end)
{
    if (!of->state)
        of->state = calloc(1, sizeof(int));
    wr_buffer_put_format(&of->out, "%d,", *(int *)of->state += (int)(end - first));
}

Test(encoder, a_formats_state_lives_as_long_as_the_encoder)
{
    static const struct wr_format counting = {.name = "counting",
                                              .shape = WEIR_FORMAT_LINES,
                                              .put_prefix = put_prefix,
                                              .put_event = put_count,
                                              .free_state = free_state};
    add_three_events();
    start(&counting);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(is_encoded("1,4,6,"));
    cr_assert(run(0, 1));
    cr_assert(is_encoded("7,"));
    cr_assert_eq(states_freed, 0);
    stop();
    cr_assert_eq(states_freed, 1);
    start(&counting);
    stop();
    cr_assert_eq(states_freed, 1);
}

Test(encoder, samples_that_a_format_cannot_represent_are_left_out_and_counted)
{
    add_three_events();
    fixture.samples[0].value.f64 = NAN;
    fixture.samples[2].value.f64 = NAN;
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(is_encoded("a=2;a=4;\nb=5;b=6;\n"));
    cr_assert_eq(encoded.count, 6);
    static const uint32_t omitted[] = {0, 1, 1, 2, 2, 2, 2, 2};
    for (uint32_t samples = 0; samples < 8; samples++)
        cr_assert_eq(wr_encoder_count_omitted(&encoder, samples), omitted[samples], "of %u samples", samples);
    stop();
}

Test(encoder, samples_left_out_at_the_front_are_settled_by_zero_bytes)
{
    size_t end = 99;
    add_three_events();
    for (int i = 0; i < 4; i++)
        fixture.samples[i].value.f64 = NAN;
    start(&lines);
    cr_assert(run(0, 1));
    cr_assert(is_encoded("b=5;b=6;\n"), "a limit counts bytes, not events");
    cr_assert_eq(encoded.count, 6);
    cr_assert_eq(wr_encoder_settled(&encoder, 0, &end), 4);
    cr_assert_eq(end, 0);
    cr_assert_eq(wr_encoder_settled(&encoder, 9, &end), 6);
    stop();
}

Test(encoder, a_batch_without_representable_samples_is_settled_at_once)
{
    uint32_t a = add_series("g", "a", NULL, 0);
    add_double(a, NAN);
    add_double(a, NAN);
    start(&lines);
    cr_assert(run(0, 100));
    cr_assert_eq(encoded.count, 2);
    cr_assert_eq(encoded.length, 0);
    cr_assert_not_null(encoded.data);
    cr_assert_eq(wr_encoder_settled(&encoder, 0, NULL), 2);
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 2), 2);
    stop();
}

Test(encoder, encoding_again_does_not_count_again)
{
    add_three_events();
    fixture.samples[0].value.f64 = NAN;
    fixture.samples[4].value.f64 = NAN;
    start(&lines);
    for (int i = 0; i < 3; i++)
        cr_assert(run(0, SIZE_MAX));
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 6), 2);
    cr_assert(run(1, SIZE_MAX));
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 6), 2, "samples before the start were counted earlier");
    cr_assert(run(1, 1));
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 6), 1,
                 "samples not yet encoded are not counted as left out");
    wr_encoder_begin(&encoder);
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 6), 0);
    stop();
}

Test(encoder, any_number_of_samples_may_be_left_out)
{
    uint32_t a = add_series("g", "a", NULL, 0);
    for (int i = 0; i < 200; i++)
        add_double(a, i % 2 ? NAN : i);
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert_eq(encoded.count, 200);
    for (uint32_t samples = 0; samples <= 200; samples++)
        cr_assert_eq(wr_encoder_count_omitted(&encoder, samples), samples / 2);
    stop();
}

Test(encoder, the_prefix_of_a_series_is_built_once)
{
    add_three_events();
    start(&lines);
    for (int i = 0; i < 3; i++)
        cr_assert(run(0, SIZE_MAX));
    cr_assert_eq(prefixes_made, 2);
    stop();
}

Test(encoder, series_ids_may_have_any_value)
{
    static const uint32_t ids[] = {0, 63, 64, 127, 1000, 70000, 3};
    for (uint32_t i = 0; i < 16; i++)
        add_series("g", i == 15 ? "fifteen" : i == 8 ? "eight" : "other", NULL, 0);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        add_double(ids[i], (double)i);
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert(is_encoded("other=0;\nfifteen=1;\nother=2;\nfifteen=3;\neight=4;\nother=5;\nother=6;\n"));
    cr_assert_eq(prefixes_made, 7);
    stop();
}

Test(encoder, changed_labels_of_the_configuration_rebuild_all_prefixes)
{
    static const weir_label first[] = {{"host", "h1"}}, second[] = {{"host", "h2"}};
    add_series("g", "a", NULL, 0);
    add_double(0, 1);
    start(&lines);
    cr_assert_str_eq(encode_with(&encoder), "a=1;\n");
    set_labels(first, 1);
    cr_assert_str_eq(encode_with(&encoder), "h1,a=1;\n");
    cr_assert_str_eq(encode_with(&encoder), "h1,a=1;\n");
    cr_assert_eq(prefixes_made, 2, "the same set must not be written again");
    set_labels(second, 1);
    cr_assert_str_eq(encode_with(&encoder), "h2,a=1;\n");
    set_labels(NULL, 0);
    fixture.core.labels_number = 0;
    cr_assert_str_eq(encode_with(&encoder), "a=1;\n");
    cr_assert_eq(prefixes_made, 4);
    stop();
}

Test(encoder, a_changed_meaning_rebuilds_prefixes_for_which_memory_is_needed)
{
    add_series("g", "a", NULL, 0);
    add_double(0, 1);
    start(&lines);
    cr_assert_str_eq(encode_with(&encoder), "a=1;\n");
    fixture.series[0].name = "b";
    fixture.core.redefinitions++;
    wr_encoder_set_fixed(&encoder, true);
    cr_assert_not(run(0, SIZE_MAX));
    wr_encoder_set_fixed(&encoder, false);
    cr_assert_str_eq(encode_with(&encoder), "b=1;\n");
    cr_assert_str_eq(encode_with(&encoder), "b=1;\n");
    cr_assert_eq(prefixes_made, 2);
    stop();
}

Test(encoder, metadata_is_found_by_its_number)
{
    add_series("g", "a", NULL, 0);
    add_double(0, 1);
    set_metadata(add_double(0, 2), "warm");
    set_metadata(add_double(0, 3), "cold");
    start(&lines);
    cr_assert(run(0, SIZE_MAX));
    cr_assert_null(wr_encoder_note(&encoder, &fixture.samples[0]));
    cr_assert_str_eq(wr_encoder_note(&encoder, &fixture.samples[1]), "warm");
    cr_assert_str_eq(wr_encoder_note(&encoder, &fixture.samples[2]), "cold");
    stop();
}

static const char *show_time(int64_t time_ns, int decimals)
{
    static char text[33];
    size_t length = wr_encoder_put_time(&encoder, text, time_ns, decimals);
    cr_assert_leq(length, 32);
    text[length] = '\0';
    return text;
}

Test(encoder, times_are_seconds_with_the_requested_decimals)
{
    start(&lines);
    cr_assert_str_eq(show_time(SOME_TIME_NS, 9), "1795219607.576198123");
    cr_assert_str_eq(show_time(SOME_TIME_NS, 6), "1795219607.576198");
    cr_assert_str_eq(show_time(SOME_TIME_NS, 3), "1795219607.576");
    cr_assert_str_eq(show_time(SOME_TIME_NS, 1), "1795219607.5");
    cr_assert_str_eq(show_time(0, 9), "0.000000000");
    cr_assert_str_eq(show_time(5, 9), "0.000000005");
    cr_assert_str_eq(show_time(INT64_C(7000000000), 2), "7.00");
    stop();
}

Test(encoder, times_are_truncated_not_rounded)
{
    start(&lines);
    cr_assert_str_eq(show_time(INT64_C(1999999999), 6), "1.999999");
    cr_assert_str_eq(show_time(INT64_C(1999999999), 1), "1.9");
    cr_assert_str_eq(show_time(INT64_C(-1999999999), 6), "-1.999999");
    stop();
}

Test(encoder, times_before_1970_are_negative)
{
    start(&lines);
    cr_assert_str_eq(show_time(-1, 9), "-0.000000001");
    cr_assert_str_eq(show_time(INT64_C(-1500000000), 9), "-1.500000000");
    cr_assert_str_eq(show_time(INT64_MIN, 9), "-9223372036.854775808");
    cr_assert_str_eq(show_time(INT64_MAX, 9), "9223372036.854775807");
    cr_assert_str_eq(show_time(INT64_MIN, 9), "-9223372036.854775808", "beside the second before");
    stop();
}

Test(encoder, consecutive_times_do_not_share_cached_digits)
{
    start(&lines);
    cr_assert_str_eq(show_time(INT64_C(1500000000), 3), "1.500");
    cr_assert_str_eq(show_time(INT64_C(1700000000), 3), "1.700");
    cr_assert_str_eq(show_time(INT64_C(-1700000000), 3), "-1.700");
    cr_assert_str_eq(show_time(INT64_C(-1800000000), 3), "-1.800");
    cr_assert_str_eq(show_time(INT64_C(1800000000), 3), "1.800");
    cr_assert_str_eq(show_time(INT64_C(99999999999), 3), "99.999");
    cr_assert_str_eq(show_time(INT64_C(1800000000), 3), "1.800");
    stop();
}

Test(encoder, an_event_that_is_split_omits_each_sample_once)
{
    start(&lines);
    uint32_t a = add_series("g", "a", NULL, 0);
    for (int i = 1; i < 4; i++)
        add_double(a, i == 2 ? NAN : i)->flags = WEIR_SAMPLE_MORE;
    add_double(a, 4);
    encoder.line_limit = 6;
    cr_assert(run(0, SIZE_MAX));
    cr_assert_eq(encoded.count, 4);
    cr_assert_eq(wr_encoder_count_omitted(&encoder, 4), 1);
    stop();
}
