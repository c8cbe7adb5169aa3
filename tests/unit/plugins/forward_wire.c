#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "../../../plugins/forwarding/forward_wire.h"

static const char origin[] = "00112233445566778899aabbccddeeff";

static struct wire_frame find(const struct wr_buffer *buffer)
{
    struct wire_frame frame = {0};
    const char *fault;
    cr_assert_eq(wr_wire_find((const uint8_t *)buffer->data, buffer->length, WIRE_PAYLOAD, &frame, &fault),
                 buffer->length);
    cr_assert_null(fault);
    return frame;
}

/* Each shorter payload is a fault, and is read no further than its end. */
static void check_cut(const struct wr_buffer *buffer, const char *(*get)(const struct wire_frame *, void *))
{
    struct wire_frame frame = find(buffer);
    void *into = malloc(sizeof(struct wire_block));
    for (uint32_t length = 0; length < frame.length; length++) {
        uint8_t *copy = malloc(length + 1u);
        memcpy(copy, frame.payload, length);
        const struct wire_frame cut = {frame.type, realloc(copy, length ? length : 1), length};
        cr_expect_not_null(get(&cut, into), "%u of %u bytes", length, frame.length);
        free((void *)(uintptr_t)cut.payload);
    }
    cr_expect_null(get(&frame, into));
    free(into);
}

static const char *get_hello(const struct wire_frame *frame, void *into)
{
    return wr_wire_get_hello(frame, into);
}

Test(forward_wire, a_greeting_comes_back_as_it_was_put)
{
    struct wr_buffer buffer = {0};
    struct wire_hello back, hello = {.major = WIRE_MAJOR,
                                     .minor = 3,
                                     .ack = WIRE_ACK_TAKEN,
                                     .path = {.depth = 3, .count = 2},
                                     .pid = 77,
                                     .process = "p",
                                     .machine = "",
                                     .handler = "up",
                                     .token = "secret",
                                     .totals = {0, 9, 2, 8, 1}};
    memset(hello.id, 9, sizeof hello.id);
    memset(hello.path.ids, 8, 2 * sizeof hello.path.ids[0]);
    wr_wire_put_hello(&buffer, &hello);
    struct wire_frame frame = find(&buffer);
    cr_assert_null(wr_wire_get_hello(&frame, &back));
    cr_expect(back.minor == 3 && back.ack == WIRE_ACK_TAKEN && back.path.depth == 3 && back.pid == 77);
    cr_expect_arr_eq(back.id, hello.id, sizeof hello.id);
    cr_expect_eq(memcmp(&back.path, &hello.path, sizeof hello.path), 0);
    cr_expect_str_eq(back.process, "p");
    cr_expect_str_eq(back.machine, "");
    cr_expect_str_eq(back.handler, "up");
    cr_expect_str_eq(back.token, "secret");
    cr_expect(back.totals.added == 9 && back.totals.delivered == 8 && back.totals.lost == 1);
    check_cut(&buffer, get_hello);
    wr_buffer_fini(&buffer);
}

Test(forward_wire, of_a_greeting_of_another_major_version_only_the_versions_are_read)
{
    struct wire_hello back;
    const struct wire_frame frame = {WIRE_HELLO, (const uint8_t *)"WEIRFWD\n\2\0\1\0\377\377", 14};
    cr_assert_null(wr_wire_get_hello(&frame, &back));
    cr_expect(back.major == 2 && back.minor == 1 && back.path.count == 0);
}

static const char *get_series(const struct wire_frame *frame, void *into)
{
    (void)into;
    static struct wire_series series;
    return wr_wire_get_series(frame, &series);
}

Test(forward_wire, a_series_comes_back_as_it_was_put)
{
    static struct wire_series back;
    struct wr_buffer buffer = {0};
    struct wire_series series = {.id = WIRE_SERIES - 1,
                                 .instrument = WEIR_HISTOGRAM,
                                 .is_cumulative = true,
                                 .group = "g",
                                 .name = "n",
                                 .unit = "",
                                 .help = "what it is",
                                 .label_count = 2,
                                 .labels = {{"a", ""}, {"b", "c"}}};
    cr_assert(wr_wire_put_series(&buffer, &series));
    struct wire_frame frame = find(&buffer);
    cr_assert_null(wr_wire_get_series(&frame, &back));
    cr_expect(back.id == WIRE_SERIES - 1 && back.instrument == WEIR_HISTOGRAM && back.is_cumulative);
    cr_expect(back.label_count == 2 && strcmp(back.labels[1].value, "c") == 0);
    cr_expect_str_eq(back.group, "g");
    cr_expect_str_eq(back.help, "what it is");
    check_cut(&buffer, get_series);
    wr_buffer_fini(&buffer);
}

Test(forward_wire, a_series_that_is_longer_than_a_frame_is_not_put)
{
    struct wr_buffer buffer = {0};
    static struct wire_series series = {
        .group = "g", .name = "n", .unit = "", .help = "", .label_count = WIRE_LABELS};
    static char value[4000];
    memset(value, 'x', sizeof value - 1);
    for (size_t i = 0; i < WIRE_LABELS; i++)
        series.labels[i] = (weir_label){"k", value};
    cr_expect_not(wr_wire_put_series(&buffer, &series));
    cr_expect_eq(buffer.length, 0);
    wr_buffer_fini(&buffer);
}

static const char *get_block(const struct wire_frame *frame, void *into)
{
    return wr_wire_get_block(frame, into);
}

static size_t begin_block(struct wr_buffer *buffer)
{
    return wr_wire_begin_block(buffer, origin, 5);
}

Test(forward_wire, a_block_comes_back_bit_for_bit)
{
    static struct wire_block back;
    struct wr_buffer buffer = {0};
    const struct wire_totals totals = {1, 4, 5, 2, 3};
    const struct wire_sample samples[] = {
        {.series = 7, .kind = WEIR_KIND_INT, .more = true, .time_ns = -1, .bits = UINT64_MAX, .text = ""},
        {.kind = WEIR_KIND_DOUBLE,
         .time_ns = INT64_MAX,
         .bits = 0x7ff8000000000001u,
         .text = "no\te",
         .text_length = 4},
    };
    size_t begin = begin_block(&buffer);
    wr_wire_put_sample(&buffer, &samples[0]);
    wr_wire_put_sample(&buffer, &samples[1]);
    wr_wire_end_block(&buffer, begin, 2, &totals);
    struct wire_frame frame = find(&buffer);
    cr_assert_null(wr_wire_get_block(&frame, &back));
    cr_expect_str_eq(back.origin, origin);
    cr_expect(back.sequence == 5 && back.count == 2 && back.totals.sent == 1 && back.totals.added == 4 &&
              back.totals.delivered == 2 && back.totals.lost == 3);
    cr_expect(back.samples[0].series == 7 && back.samples[0].more && back.samples[0].time_ns == -1);
    cr_expect(back.samples[0].bits == UINT64_MAX && back.samples[0].text_length == 0);
    cr_expect(back.samples[1].bits == 0x7ff8000000000001u && memcmp(back.samples[1].text, "no\te", 4) == 0);
    check_cut(&buffer, get_block);
    wr_buffer_fini(&buffer);
}

Test(forward_wire, a_block_with_a_part_of_an_event_or_too_much_metadata_is_a_fault)
{
    static struct wire_block back;
    static char text[32 * WIRE_SLOTS];
    const struct wire_totals totals = {0};
    memset(text, 'x', sizeof text);
    const struct wire_sample samples[] = {{.more = true, .text = ""},
                                          {.text = text, .text_length = sizeof text}};
    for (size_t i = 0; i < 2; i++) {
        struct wr_buffer buffer = {0};
        size_t begin = begin_block(&buffer);
        wr_wire_put_sample(&buffer, &samples[i]);
        wr_wire_end_block(&buffer, begin, 1, &totals);
        struct wire_frame frame = find(&buffer);
        cr_expect_not_null(wr_wire_get_block(&frame, &back));
        wr_buffer_fini(&buffer);
    }
}

static const char *get_ack(const struct wire_frame *frame, void *into)
{
    return wr_wire_get_ack(frame, into);
}

Test(forward_wire, answers_come_back_as_they_were_put)
{
    struct wr_buffer buffer = {0};
    struct wire_acknowledgement back, ack = {.sequence = 5, .end = 9, .refused = 4, .state = WIRE_IS_DROPPED};
    const char *reason;
    memcpy(ack.origin, origin, sizeof ack.origin);
    wr_wire_put_ack(&buffer, &ack);
    struct wire_frame frame = find(&buffer);
    cr_assert_null(wr_wire_get_ack(&frame, &back));
    cr_expect(back.sequence == 5 && back.end == 9 && back.refused == 4 && back.state == WIRE_IS_DROPPED);
    cr_expect_str_eq(back.origin, origin);
    check_cut(&buffer, get_ack);
    buffer.length = 0;
    wr_wire_put_refuse(&buffer, "no");
    frame = find(&buffer);
    cr_assert_null(wr_wire_get_refuse(&frame, &reason));
    cr_expect_str_eq(reason, "no");
    wr_buffer_fini(&buffer);
}

static const char *get_weights(const struct wire_frame *frame, void *into)
{
    return wr_wire_get_weights(frame, into);
}

Test(forward_wire, weights_come_back_as_they_were_put)
{
    static const uint64_t values[] = {0, UINT64_MAX, 7};
    struct wr_buffer buffer = {0};
    struct wire_weights back;
    wr_wire_put_weights(&buffer, values, 3);
    struct wire_frame frame = find(&buffer);
    cr_assert_null(wr_wire_get_weights(&frame, &back));
    cr_expect_eq(back.count, 3);
    cr_expect_arr_eq(back.values, values, sizeof values);
    check_cut(&buffer, get_weights);
    wr_buffer_fini(&buffer);
}

Test(forward_wire, a_frame_that_is_not_complete_is_waited_for_and_a_long_one_is_a_fault)
{
    static const uint8_t header[WIRE_HEADER] = {9, 0, 0, 0, WIRE_BYE};
    struct wire_frame frame;
    const char *fault;
    cr_expect_eq(wr_wire_find(header, 7, 9, &frame, &fault), 0);
    cr_expect_null(fault);
    cr_expect_eq(wr_wire_find(header, 8, 9, &frame, &fault), 0);
    cr_expect_null(fault);
    cr_expect_eq(wr_wire_find(header, 8, 8, &frame, &fault), 0);
    cr_expect_not_null(fault);
}
