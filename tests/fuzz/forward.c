/* Frames of the link between processes: any bytes are frames or a fault, and nothing is read beyond them. What
 * is decoded and encoded again decodes to the same. */

#include "../../plugins/forwarding/forward_wire.h"
#include "fuzz.h"

static struct wire_block block, block_back;
static struct wire_series series, series_back;

static struct wire_frame find_only(const struct wr_buffer *buffer)
{
    struct wire_frame frame = {0};
    const char *fault;
    FUZZ_CHECK(wr_wire_find((const uint8_t *)buffer->data, buffer->length, WIRE_PAYLOAD, &frame, &fault) ==
               buffer->length);
    FUZZ_CHECK(!fault);
    return frame;
}

static void check_hello(const struct wire_frame *frame)
{
    struct wire_hello hello, back;
    struct wr_buffer buffer = {0};
    if (wr_wire_get_hello(frame, &hello) || hello.major != WIRE_MAJOR)
        return;
    wr_wire_put_hello(&buffer, &hello);
    struct wire_frame again = find_only(&buffer);
    FUZZ_CHECK(!wr_wire_get_hello(&again, &back));
    FUZZ_CHECK(strcmp(back.token, hello.token) == 0 && strcmp(back.process, hello.process) == 0);
    FUZZ_CHECK(memcmp(back.id, hello.id, sizeof hello.id) == 0 &&
               memcmp(&back.path, &hello.path, sizeof hello.path) == 0);
    wr_buffer_fini(&buffer);
}

static void check_series(const struct wire_frame *frame)
{
    struct wr_buffer buffer = {0};
    if (wr_wire_get_series(frame, &series))
        return;
    FUZZ_CHECK(series.id < WIRE_SERIES && series.label_count <= WIRE_LABELS);
    FUZZ_CHECK(wr_wire_put_series(&buffer, &series));
    struct wire_frame again = find_only(&buffer);
    FUZZ_CHECK(!wr_wire_get_series(&again, &series_back));
    FUZZ_CHECK(strcmp(series.name, series_back.name) == 0 && series.label_count == series_back.label_count);
    for (size_t i = 0; i < series.label_count; i++)
        FUZZ_CHECK(strcmp(series.labels[i].value, series_back.labels[i].value) == 0);
    wr_buffer_fini(&buffer);
}

static void check_block(const struct wire_frame *frame)
{
    struct wr_buffer buffer = {0};
    if (wr_wire_get_block(frame, &block))
        return;
    FUZZ_CHECK(block.count > 0 && block.count <= WIRE_SLOTS && !block.samples[block.count - 1].more);
    size_t begin = wr_wire_begin_block(&buffer, block.origin, block.sequence);
    for (uint32_t i = 0; i < block.count; i++)
        wr_wire_put_sample(&buffer, &block.samples[i]);
    wr_wire_end_block(&buffer, begin, block.count, &block.totals);
    struct wire_frame again = find_only(&buffer);
    FUZZ_CHECK(again.length == frame->length && memcmp(again.payload, frame->payload, again.length) == 0);
    FUZZ_CHECK(!wr_wire_get_block(&again, &block_back));
    wr_buffer_fini(&buffer);
}

static void check_replies(const struct wire_frame *frame)
{
    struct wire_welcome welcome;
    struct wire_acknowledgement ack;
    static struct wire_weights weights;
    struct wire_totals totals;
    const char *reason;
    if (!wr_wire_get_weights(frame, &weights))
        FUZZ_CHECK(weights.count && frame->length == 4 + 8 * weights.count);
    wr_wire_get_welcome(frame, &welcome);
    if (!wr_wire_get_ack(frame, &ack))
        FUZZ_CHECK(ack.end - ack.sequence >= ack.refused && strlen(ack.origin) == 32);
    if (!wr_wire_get_refuse(frame, &reason))
        FUZZ_CHECK(strlen(reason) <= WIRE_REASON);
    wr_wire_get_bye(frame, &totals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_frame frame;
    const char *fault;
    size_t length;
    while ((length = wr_wire_find(data, size, WIRE_PAYLOAD, &frame, &fault)) > 0) {
        FUZZ_CHECK(length <= size && !fault);
        uint8_t *copy = malloc(frame.length + 1u); /* so that a read beyond the payload is found */
        FUZZ_CHECK(copy);
        memcpy(copy, frame.payload, frame.length);
        const struct wire_frame alone = {frame.type, realloc(copy, frame.length ? frame.length : 1),
                                         frame.length};
        check_hello(&alone);
        check_series(&alone);
        check_block(&alone);
        check_replies(&alone);
        free((void *)(uintptr_t)alone.payload);
        data += length;
        size -= length;
    }
    return 0;
}
