#include "format/otlp_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "text/buffer.h"
#include "text/escape.h"
#include "text/number.h"

/* https://protobuf.dev/programming-guides/encoding/, https://protobuf.dev/programming-guides/json/ */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

/* ---- Both encodings -------------------------------------------------------------------------- */

static void put_varint(struct wr_buffer *out, uint64_t value)
{
    if (wr_buffer_reserve(out, WR_OTLP_VARINT))
        out->length += wr_otlp_write_varint((unsigned char *)out->data + out->length, value);
}

/* A comma belongs between members and items, which never end with an opening brace or bracket. */
static void put_comma(struct wr_buffer *out)
{
    char last = out->length ? out->data[out->length - 1] : '{';
    if (last != '{' && last != '[')
        wr_buffer_put_char(out, ',');
}

static void put_name(struct wr_buffer *out, const char *name)
{
    put_comma(out);
    if (!name)
        return;
    wr_buffer_put_char(out, '"');
    wr_buffer_put_text(out, name);
    wr_buffer_put_text(out, "\":");
}

/* Begins a field. Returns whether it is JSON. */
static bool begin_field(const struct wr_otlp_writer *writer, struct wr_otlp_field field, unsigned wire)
{
    if (writer->json)
        put_name(writer->out, field.name);
    else
        put_varint(writer->out, (uint64_t)field.number << 3 | wire);
    return writer->json;
}

static void put_fixed64(struct wr_buffer *out, uint64_t value)
{
    if (!wr_buffer_reserve(out, 8))
        return;
    wr_otlp_write_fixed64((unsigned char *)out->data + out->length, value);
    out->length += 8;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* The length of a message of protobuf stands before it: there is room for one byte of it until it is known. */
size_t wr_otlp_begin(const struct wr_otlp_writer *writer, struct wr_otlp_field field)
{
    begin_field(writer, field, WIRE_BYTES);
    wr_buffer_put_char(writer->out, writer->json ? '{' : '\0');
    return writer->out->length;
}

void wr_otlp_end(const struct wr_otlp_writer *writer, size_t begin)
{
    struct wr_buffer *out = writer->out;
    unsigned char length[WR_OTLP_VARINT];
    if (writer->json) {
        wr_buffer_put_char(out, '}');
        return;
    }
    if (out->failed)
        return;
    size_t bytes = out->length - begin, size = wr_otlp_write_varint(length, bytes);
    if (!wr_buffer_reserve(out, size))
        return;
    memmove(out->data + begin + size - 1, out->data + begin, bytes);
    memcpy(out->data + begin - 1, length, size);
    out->length += size - 1;
}

void wr_otlp_begin_list(const struct wr_otlp_writer *writer, const char *name)
{
    if (!writer->json)
        return;
    put_name(writer->out, name);
    wr_buffer_put_char(writer->out, '[');
}

void wr_otlp_end_list(const struct wr_otlp_writer *writer)
{
    if (writer->json)
        wr_buffer_put_char(writer->out, ']');
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* What JSON has no number for is a string. With a point, so that no reader takes -0.0 for the integer 0. */
void wr_otlp_put_json_double(struct wr_buffer *out, double value)
{
    if (!wr_buffer_reserve(out, WR_NUMBER_ROOM + 2))
        return;
    if (isfinite(value)) {
        out->length += wr_number_put_repr(out->data + out->length, value);
        return;
    }
    out->data[out->length++] = '"';
    out->length += wr_number_put_double(out->data + out->length, value);
    out->data[out->length++] = '"';
}

/* Integers of 64 bits are strings. */
void wr_otlp_put_json_int(struct wr_buffer *out, int64_t value)
{
    if (!wr_buffer_reserve(out, WR_NUMBER_ROOM + 2))
        return;
    out->data[out->length++] = '"';
    out->length += wr_number_put_int(out->data + out->length, value);
    out->data[out->length++] = '"';
}

static void put_json_uint(struct wr_buffer *out, uint64_t value)
{
    if (!wr_buffer_reserve(out, WR_NUMBER_ROOM + 2))
        return;
    out->data[out->length++] = '"';
    out->length += wr_number_put_uint(out->data + out->length, value);
    out->data[out->length++] = '"';
}

void wr_otlp_put_text(const struct wr_otlp_writer *writer, struct wr_otlp_field field, const char *text)
{
    if (begin_field(writer, field, WIRE_BYTES)) {
        wr_escape_json(writer->out, text);
        return;
    }
    size_t length = strlen(text);
    put_varint(writer->out, length);
    wr_buffer_put(writer->out, text, length);
}

void wr_otlp_put_double(const struct wr_otlp_writer *writer, struct wr_otlp_field field, double value)
{
    if (begin_field(writer, field, WIRE_FIXED64))
        wr_otlp_put_json_double(writer->out, value);
    else
        put_fixed64(writer->out, bits_of(value));
}

void wr_otlp_put_fixed64(const struct wr_otlp_writer *writer, struct wr_otlp_field field, uint64_t value)
{
    if (begin_field(writer, field, WIRE_FIXED64))
        put_json_uint(writer->out, value);
    else
        put_fixed64(writer->out, value);
}

void wr_otlp_put_enum(const struct wr_otlp_writer *writer, struct wr_otlp_field field, unsigned value)
{
    if (begin_field(writer, field, WIRE_VARINT))
        wr_buffer_put_format(writer->out, "%u", value);
    else
        put_varint(writer->out, value);
}

void wr_otlp_put_true(const struct wr_otlp_writer *writer, struct wr_otlp_field field)
{
    if (begin_field(writer, field, WIRE_VARINT))
        wr_buffer_put_text(writer->out, "true");
    else
        put_varint(writer->out, 1);
}

/* In protobuf as zigzag, so that small negative numbers are short. */
void wr_otlp_put_sint32(const struct wr_otlp_writer *writer, struct wr_otlp_field field, int32_t value)
{
    if (begin_field(writer, field, WIRE_VARINT))
        wr_buffer_put_format(writer->out, "%" PRId32, value);
    else
        put_varint(writer->out, (uint32_t)value << 1 ^ (value < 0 ? UINT32_MAX : 0));
}

/* ---- Lists of numbers ------------------------------------------------------------------------ */

static void put_json_bits_of_double(struct wr_buffer *out, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    wr_otlp_put_json_double(out, value);
}

/* items: of 8 bytes; put_json: writes one of them. */
static void put_items(const struct wr_otlp_writer *writer, struct wr_otlp_field field, const void *items,
                      size_t count, void (*put_json)(struct wr_buffer *out, uint64_t bits))
{
    const char *item = items;
    bool json = begin_field(writer, field, WIRE_BYTES);
    if (json)
        wr_buffer_put_char(writer->out, '[');
    else
        put_varint(writer->out, count * 8);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, item + i * sizeof bits, sizeof bits);
        if (json) {
            put_comma(writer->out);
            put_json(writer->out, bits);
        } else {
            put_fixed64(writer->out, bits);
        }
    }
    wr_otlp_end_list(writer);
}

void wr_otlp_put_doubles(const struct wr_otlp_writer *writer, struct wr_otlp_field field, const double *values,
                         size_t count)
{
    put_items(writer, field, values, count, put_json_bits_of_double);
}

void wr_otlp_put_fixed64s(const struct wr_otlp_writer *writer, struct wr_otlp_field field,
                          const uint64_t *values, size_t count)
{
    put_items(writer, field, values, count, put_json_uint);
}

void wr_otlp_put_varints(const struct wr_otlp_writer *writer, struct wr_otlp_field field,
                         const uint64_t *values, size_t count)
{
    if (writer->json) {
        put_items(writer, field, values, count, put_json_uint);
        return;
    }
    size_t begin = wr_otlp_begin(writer, field);
    for (size_t i = 0; i < count; i++)
        put_varint(writer->out, values[i]);
    wr_otlp_end(writer, begin);
}
