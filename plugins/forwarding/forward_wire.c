#include "forward_wire.h"

#include <endian.h>
#include <string.h>

static const uint8_t magic[8] = {'W', 'E', 'I', 'R', 'F', 'W', 'D', '\n'};

enum {
    TOTALS_BYTES = 40,
    SAMPLE_BYTES = 28,
    SERIES_CUMULATIVE = 1,
    WELCOME_LATE = 1,
    SAMPLE_MORE = 1,
};

/* ---- Putting --------------------------------------------------------------------------------- */

static uint8_t *extend(struct wr_buffer *buffer, size_t length)
{
    if (!wr_buffer_reserve(buffer, length))
        return NULL;
    buffer->length += length;
    return (uint8_t *)buffer->data + buffer->length - length;
}

/* With a constant number of bytes it is one store. */
static inline void write_number(uint8_t *at, uint64_t value, size_t bytes)
{
    const uint64_t little = htole64(value);
    memcpy(at, &little, bytes);
}

static void put_number(struct wr_buffer *buffer, uint64_t value, size_t bytes)
{
    uint8_t *at = extend(buffer, bytes);
    if (at)
        write_number(at, value, bytes);
}

/* Cut at `most` bytes. */
static void put_text(struct wr_buffer *buffer, const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    put_number(buffer, length, 2);
    wr_buffer_put(buffer, text, length);
    put_number(buffer, 0, 1);
}

static unsigned digit_of(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 15u;
}

static void put_origin(struct wr_buffer *buffer, const char *origin)
{
    uint8_t *at = extend(buffer, WIRE_ID);
    for (size_t i = 0; at && i < WIRE_ID; i++)
        at[i] = (uint8_t)(digit_of(origin[2 * i]) << 4 | digit_of(origin[2 * i + 1]));
}

static void write_totals(uint8_t *at, const struct wire_totals *totals)
{
    write_number(at, totals->sent, 8);
    write_number(at + 8, totals->added, 8);
    write_number(at + 16, totals->recovered, 8);
    write_number(at + 24, totals->delivered, 8);
    write_number(at + 32, totals->lost, 8);
}

static void put_totals(struct wr_buffer *buffer, const struct wire_totals *totals)
{
    uint8_t *at = extend(buffer, TOTALS_BYTES);
    if (at)
        write_totals(at, totals);
}

static size_t begin_frame(struct wr_buffer *buffer, enum wire_type type)
{
    size_t begin = buffer->length;
    put_number(buffer, 0, 4);
    put_number(buffer, type, 4);
    return begin;
}

static void end_frame(const struct wr_buffer *buffer, size_t begin)
{
    if (!buffer->failed)
        write_number((uint8_t *)buffer->data + begin, buffer->length - begin - WIRE_HEADER, 4);
}

static void put_path(struct wr_buffer *buffer, const struct wire_path *path)
{
    put_number(buffer, path->depth, 1);
    put_number(buffer, path->count, 1);
    wr_buffer_put(buffer, path->ids, (size_t)path->count * WIRE_ID);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

void wr_wire_put_hello(struct wr_buffer *buffer, const struct wire_hello *hello)
{
    size_t begin = begin_frame(buffer, WIRE_HELLO);
    wr_buffer_put(buffer, magic, sizeof magic);
    put_number(buffer, hello->major, 2);
    put_number(buffer, hello->minor, 2);
    put_number(buffer, hello->ack, 1);
    wr_buffer_put(buffer, hello->id, WIRE_ID);
    put_path(buffer, &hello->path);
    put_number(buffer, hello->pid, 4);
    put_text(buffer, hello->process, WIRE_NAME);
    put_text(buffer, hello->machine, WIRE_NAME);
    put_text(buffer, hello->handler, WIRE_NAME);
    put_text(buffer, hello->token, WIRE_TOKEN);
    put_totals(buffer, &hello->totals);
    end_frame(buffer, begin);
}

void wr_wire_put_welcome(struct wr_buffer *buffer, const struct wire_welcome *welcome)
{
    size_t begin = begin_frame(buffer, WIRE_WELCOME);
    wr_buffer_put(buffer, magic, sizeof magic);
    put_number(buffer, welcome->major, 2);
    put_number(buffer, welcome->minor, 2);
    wr_buffer_put(buffer, welcome->id, WIRE_ID);
    put_number(buffer, welcome->is_late ? WELCOME_LATE : 0, 1);
    end_frame(buffer, begin);
}

/* Whether no text is longer than its length field can say. */
static bool has_short_texts(const struct wire_series *series)
{
    const char *const texts[] = {series->group, series->name, series->unit, series->help};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) > UINT16_MAX)
            return false;
    for (size_t i = 0; i < series->label_count; i++)
        if (strlen(series->labels[i].key) > UINT16_MAX || strlen(series->labels[i].value) > UINT16_MAX)
            return false;
    return true;
}

bool wr_wire_put_series(struct wr_buffer *buffer, const struct wire_series *series)
{
    if (!has_short_texts(series))
        return false;
    size_t begin = begin_frame(buffer, WIRE_SERIES_IS);
    put_number(buffer, series->id, 4);
    put_number(buffer, series->instrument, 1);
    put_number(buffer, series->is_cumulative ? SERIES_CUMULATIVE : 0, 1);
    put_number(buffer, series->label_count, 2);
    put_text(buffer, series->group, UINT16_MAX);
    put_text(buffer, series->name, UINT16_MAX);
    put_text(buffer, series->unit, UINT16_MAX);
    put_text(buffer, series->help, UINT16_MAX);
    for (size_t i = 0; i < series->label_count; i++) {
        put_text(buffer, series->labels[i].key, UINT16_MAX);
        put_text(buffer, series->labels[i].value, UINT16_MAX);
    }
    if (!buffer->failed && buffer->length - begin - WIRE_HEADER > WIRE_PAYLOAD) {
        buffer->length = begin;
        return false;
    }
    end_frame(buffer, begin);
    return true;
}

void wr_wire_put_ack(struct wr_buffer *buffer, const struct wire_acknowledgement *ack)
{
    size_t begin = begin_frame(buffer, WIRE_ACK);
    put_origin(buffer, ack->origin);
    put_number(buffer, ack->sequence, 8);
    put_number(buffer, ack->end, 8);
    put_number(buffer, ack->refused, 4);
    put_number(buffer, ack->state, 1);
    end_frame(buffer, begin);
}

void wr_wire_put_refuse(struct wr_buffer *buffer, const char *reason)
{
    size_t begin = begin_frame(buffer, WIRE_REFUSE);
    put_text(buffer, reason, WIRE_REASON);
    end_frame(buffer, begin);
}

void wr_wire_put_path(struct wr_buffer *buffer, const struct wire_path *path)
{
    size_t begin = begin_frame(buffer, WIRE_PATH_IS);
    put_path(buffer, path);
    end_frame(buffer, begin);
}

void wr_wire_put_weights(struct wr_buffer *buffer, const uint64_t *values, uint32_t count)
{
    size_t begin = begin_frame(buffer, WIRE_WEIGHTS);
    put_number(buffer, count, 4);
    for (uint32_t i = 0; i < count; i++)
        put_number(buffer, values[i], 8);
    end_frame(buffer, begin);
}

void wr_wire_put_bye(struct wr_buffer *buffer, const struct wire_totals *totals)
{
    size_t begin = begin_frame(buffer, WIRE_BYE);
    put_totals(buffer, totals);
    end_frame(buffer, begin);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

size_t wr_wire_begin_block(struct wr_buffer *buffer, const char *origin, uint64_t sequence)
{
    static const struct wire_totals later;
    size_t begin = begin_frame(buffer, WIRE_BLOCK);
    put_origin(buffer, origin);
    put_number(buffer, sequence, 8);
    put_totals(buffer, &later);
    put_number(buffer, 0, 4);
    return begin;
}

static inline void write_sample(uint8_t *at, uint32_t series, uint8_t kind, bool more, int64_t time_ns,
                                uint64_t bits, uint32_t text_length)
{
    write_number(at, series | (uint64_t)kind << 32 | (uint64_t)(more ? SAMPLE_MORE : 0) << 40, 8);
    write_number(at + 8, (uint64_t)time_ns, 8);
    write_number(at + 16, bits, 8);
    write_number(at + 24, text_length, 4);
}

void wr_wire_put_sample(struct wr_buffer *buffer, const struct wire_sample *sample)
{
    uint8_t *at = extend(buffer, SAMPLE_BYTES);
    if (!at)
        return;
    write_sample(at, sample->series, sample->kind, sample->more, sample->time_ns, sample->bits,
                 sample->text_length);
    wr_buffer_put(buffer, sample->text, sample->text_length);
}

void wr_wire_put_plain(struct wr_buffer *buffer, const weir_sample *samples, uint32_t count,
                       const uint32_t *ids)
{
    uint8_t *at = extend(buffer, (size_t)count * SAMPLE_BYTES);
    for (uint32_t i = 0; at && i < count; i++, at += SAMPLE_BYTES) {
        const weir_sample *sample = &samples[i];
        uint64_t bits;
        memcpy(&bits, &sample->value, sizeof bits);
        write_sample(at, ids[sample->series] - 1, (uint8_t)sample->kind, false, sample->time_ns, bits, 0);
    }
}

void wr_wire_end_block(struct wr_buffer *buffer, size_t begin, uint32_t count, const struct wire_totals *totals)
{
    end_frame(buffer, begin);
    if (buffer->failed)
        return;
    uint8_t *at = (uint8_t *)buffer->data + begin + WIRE_HEADER + WIRE_ID + 8;
    write_totals(at, totals);
    write_number(at + TOTALS_BYTES, count, 4);
}

/* ---- Getting --------------------------------------------------------------------------------- */

/* What is left of a payload. Behind a fault, numbers are 0 and texts empty. */
struct reader {
    const uint8_t *at, *end;
    bool is_bad;
};

static struct reader read_frame(const struct wire_frame *frame)
{
    return (struct reader){frame->payload, frame->payload + frame->length, false};
}

static const uint8_t *get_bytes(struct reader *reader, size_t length)
{
    if (reader->is_bad || length > (size_t)(reader->end - reader->at)) {
        reader->is_bad = true;
        return NULL;
    }
    reader->at += length;
    return reader->at - length;
}

static inline uint64_t read_number(const uint8_t *at, size_t bytes)
{
    uint64_t little = 0;
    memcpy(&little, at, bytes);
    return le64toh(little);
}

static uint64_t get_number(struct reader *reader, size_t bytes)
{
    const uint8_t *at = get_bytes(reader, bytes);
    return at ? read_number(at, bytes) : 0;
}

static const char *get_text(struct reader *reader, size_t most)
{
    size_t length = (size_t)get_number(reader, 2);
    const char *text = (const char *)get_bytes(reader, length + 1);
    if (text && length <= most && strnlen(text, length + 1) == length)
        return text;
    reader->is_bad = true;
    return "";
}

static void get_origin(struct reader *reader, char origin[2 * WIRE_ID + 1])
{
    const uint8_t *at = get_bytes(reader, WIRE_ID);
    for (size_t i = 0; at && i < WIRE_ID; i++) {
        origin[2 * i] = "0123456789abcdef"[at[i] >> 4];
        origin[2 * i + 1] = "0123456789abcdef"[at[i] & 15];
    }
    origin[at ? 2 * WIRE_ID : 0] = '\0';
}

static void get_totals(struct reader *reader, struct wire_totals *totals)
{
    totals->sent = get_number(reader, 8);
    totals->added = get_number(reader, 8);
    totals->recovered = get_number(reader, 8);
    totals->delivered = get_number(reader, 8);
    totals->lost = get_number(reader, 8);
}

static bool get_magic(struct reader *reader)
{
    const uint8_t *at = get_bytes(reader, sizeof magic);
    return at && memcmp(at, magic, sizeof magic) == 0;
}

/* Later minor versions append to HELLO, WELCOME, SERIES, ACK and BYE: what follows is not looked at. */
static const char *finish(const struct reader *reader, const char *fault)
{
    return reader->is_bad ? fault : NULL;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

size_t wr_wire_find(const uint8_t *data, size_t length, uint32_t most, struct wire_frame *frame,
                    const char **fault)
{
    *fault = NULL;
    if (length < WIRE_HEADER)
        return 0;
    uint32_t payload = (uint32_t)read_number(data, 4);
    if (payload > most)
        *fault = "a frame is longer than allowed; is the sender a handler of the type forward?";
    else if (data[5] || data[6] || data[7])
        *fault = "a frame has bits in its header that this version does not know";
    if (*fault || length - WIRE_HEADER < payload)
        return 0;
    *frame = (struct wire_frame){data[4], data + WIRE_HEADER, payload};
    return WIRE_HEADER + payload;
}

static void get_path(struct reader *reader, struct wire_path *path)
{
    path->depth = (uint8_t)get_number(reader, 1);
    path->count = (uint8_t)get_number(reader, 1);
    const uint8_t *ids = path->count <= WIRE_PATH ? get_bytes(reader, (size_t)path->count * WIRE_ID) : NULL;
    if (ids)
        memcpy(path->ids, ids, (size_t)path->count * WIRE_ID);
    else
        reader->is_bad = true;
}

const char *wr_wire_get_hello(const struct wire_frame *frame, struct wire_hello *hello)
{
    struct reader reader = read_frame(frame);
    *hello = (struct wire_hello){.process = "", .machine = "", .handler = "", .token = ""};
    if (frame->type != WIRE_HELLO || !get_magic(&reader))
        return "the first frame is not HELLO; is the sender a handler of the type forward?";
    hello->major = (uint16_t)get_number(&reader, 2);
    hello->minor = (uint16_t)get_number(&reader, 2);
    if (!reader.is_bad && hello->major != WIRE_MAJOR)
        return NULL;
    hello->ack = (uint8_t)get_number(&reader, 1);
    if (hello->ack > WIRE_ACK_TAKEN)
        return "HELLO has a number that is not allowed";
    const uint8_t *id = get_bytes(&reader, WIRE_ID);
    if (id)
        memcpy(hello->id, id, WIRE_ID);
    get_path(&reader, &hello->path);
    hello->pid = (uint32_t)get_number(&reader, 4);
    hello->process = get_text(&reader, WIRE_NAME);
    hello->machine = get_text(&reader, WIRE_NAME);
    hello->handler = get_text(&reader, WIRE_NAME);
    hello->token = get_text(&reader, WIRE_TOKEN);
    get_totals(&reader, &hello->totals);
    return finish(&reader, "HELLO is cut, or has a text that is not allowed");
}

const char *wr_wire_get_welcome(const struct wire_frame *frame, struct wire_welcome *welcome)
{
    struct reader reader = read_frame(frame);
    *welcome = (struct wire_welcome){0};
    if (frame->type != WIRE_WELCOME || !get_magic(&reader))
        return "the first frame is not WELCOME; is it a source of the type forward?";
    welcome->major = (uint16_t)get_number(&reader, 2);
    welcome->minor = (uint16_t)get_number(&reader, 2);
    if (!reader.is_bad && welcome->major != WIRE_MAJOR)
        return NULL;
    const uint8_t *id = get_bytes(&reader, WIRE_ID);
    if (id)
        memcpy(welcome->id, id, WIRE_ID);
    if (reader.at < reader.end) /* from 1.2 on */
        welcome->is_late = get_number(&reader, 1) & WELCOME_LATE;
    return finish(&reader, "WELCOME is cut");
}

const char *wr_wire_get_series(const struct wire_frame *frame, struct wire_series *series)
{
    struct reader reader = read_frame(frame);
    series->id = (uint32_t)get_number(&reader, 4);
    series->instrument = (uint8_t)get_number(&reader, 1);
    uint64_t flags = get_number(&reader, 1);
    series->is_cumulative = flags & SERIES_CUMULATIVE;
    series->label_count = (size_t)get_number(&reader, 2);
    if (series->id >= WIRE_SERIES || series->instrument > WEIR_HISTOGRAM || flags > SERIES_CUMULATIVE ||
        series->label_count > WIRE_LABELS)
        return "SERIES has a number that is not allowed";
    series->group = get_text(&reader, UINT16_MAX);
    series->name = get_text(&reader, UINT16_MAX);
    series->unit = get_text(&reader, UINT16_MAX);
    series->help = get_text(&reader, UINT16_MAX);
    for (size_t i = 0; i < series->label_count; i++) {
        series->labels[i].key = get_text(&reader, UINT16_MAX);
        series->labels[i].value = get_text(&reader, UINT16_MAX);
    }
    return finish(&reader, "SERIES is cut, or has a text that is not allowed");
}

static bool get_sample(struct reader *reader, struct wire_sample *sample)
{
    if ((size_t)(reader->end - reader->at) < SAMPLE_BYTES)
        return false;
    const uint8_t *at = reader->at;
    reader->at += SAMPLE_BYTES;
    *sample = (struct wire_sample){
        .series = (uint32_t)read_number(at, 4),
        .kind = at[4],
        .more = at[5] & SAMPLE_MORE,
        .time_ns = (int64_t)read_number(at + 8, 8),
        .bits = read_number(at + 16, 8),
        .text_length = (uint32_t)read_number(at + 24, 4),
    };
    if (sample->series >= WIRE_SERIES || sample->kind > WEIR_KIND_INT || read_number(at + 5, 3) > SAMPLE_MORE)
        return false;
    sample->text = (const char *)reader->at;
    if (!sample->text_length)
        return true;
    return get_bytes(reader, sample->text_length) && !memchr(sample->text, 0, sample->text_length);
}

const char *wr_wire_get_block(const struct wire_frame *frame, struct wire_block *block)
{
    struct reader reader = read_frame(frame);
    uint64_t slots = 0;
    get_origin(&reader, block->origin);
    block->sequence = get_number(&reader, 8);
    get_totals(&reader, &block->totals);
    block->count = (uint32_t)get_number(&reader, 4);
    if (reader.is_bad || !block->count || block->count > WIRE_SLOTS ||
        block->sequence > UINT64_MAX - block->count)
        return "BLOCK is cut, or has a number that is not allowed";
    for (uint32_t i = 0; i < block->count; i++) {
        if (!get_sample(&reader, &block->samples[i]))
            return "BLOCK is cut, or has a sample that is not allowed";
        slots += wr_wire_slots(block->samples[i].text_length);
    }
    if (reader.at != reader.end || slots > WIRE_SLOTS || block->samples[block->count - 1].more)
        return "BLOCK has more than its samples, more metadata than allowed, or a part of an event";
    return NULL;
}

const char *wr_wire_get_ack(const struct wire_frame *frame, struct wire_acknowledgement *ack)
{
    struct reader reader = read_frame(frame);
    get_origin(&reader, ack->origin);
    ack->sequence = get_number(&reader, 8);
    ack->end = get_number(&reader, 8);
    ack->refused = (uint32_t)get_number(&reader, 4);
    ack->state = (uint8_t)get_number(&reader, 1);
    if (ack->state > WIRE_IS_DROPPED || ack->end < ack->sequence || ack->refused > ack->end - ack->sequence)
        return "ACK has a number that is not allowed";
    return finish(&reader, "ACK is cut");
}

const char *wr_wire_get_refuse(const struct wire_frame *frame, const char **reason)
{
    struct reader reader = read_frame(frame);
    *reason = get_text(&reader, WIRE_REASON);
    return finish(&reader, "REFUSE is cut, or has a text that is not allowed");
}

const char *wr_wire_get_path(const struct wire_frame *frame, struct wire_path *path)
{
    struct reader reader = read_frame(frame);
    *path = (struct wire_path){0};
    get_path(&reader, path);
    return finish(&reader, "PATH is cut, or has more than 64 processes");
}

const char *wr_wire_get_weights(const struct wire_frame *frame, struct wire_weights *weights)
{
    struct reader reader = read_frame(frame);
    weights->count = (uint32_t)get_number(&reader, 4);
    if (!weights->count || weights->count > WIRE_SLOTS)
        return "WEIGHTS is cut, or has a number that is not allowed";
    for (uint32_t i = 0; i < weights->count; i++)
        weights->values[i] = get_number(&reader, 8);
    return reader.is_bad || reader.at != reader.end ? "WEIGHTS has other than its numbers" : NULL;
}

const char *wr_wire_get_bye(const struct wire_frame *frame, struct wire_totals *totals)
{
    struct reader reader = read_frame(frame);
    get_totals(&reader, totals);
    return finish(&reader, "BYE is cut");
}
