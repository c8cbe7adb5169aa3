/* otlp_writer: messages of protobuf, or the same as JSON by protobuf's rules for it. A field is named by its
 * number and its name in JSON.
 *
 * weir writes these few messages itself: protobuf-c would be a library that libweir brings into its host. */
#ifndef WR_OTLP_WRITER_H
#define WR_OTLP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_buffer;

struct wr_otlp_writer {
    struct wr_buffer *out;
    bool json;
};

/* name: NULL for an item of a list. */
struct wr_otlp_field {
    unsigned number;
    const char *name;
};

/* Begins a message that is a field. Returns where; for wr_otlp_end. */
size_t wr_otlp_begin(const struct wr_otlp_writer *writer, struct wr_otlp_field field);
void wr_otlp_end(const struct wr_otlp_writer *writer, size_t begin);

/* Begins the messages of a repeated field; each is written with the same number and no name. */
void wr_otlp_begin_list(const struct wr_otlp_writer *writer, const char *name);
void wr_otlp_end_list(const struct wr_otlp_writer *writer);

/* An empty text is written as well. */
void wr_otlp_put_text(const struct wr_otlp_writer *writer, struct wr_otlp_field field, const char *text);
void wr_otlp_put_double(const struct wr_otlp_writer *writer, struct wr_otlp_field field, double value);
void wr_otlp_put_fixed64(const struct wr_otlp_writer *writer, struct wr_otlp_field field, uint64_t value);
void wr_otlp_put_sint32(const struct wr_otlp_writer *writer, struct wr_otlp_field field, int32_t value);
void wr_otlp_put_enum(const struct wr_otlp_writer *writer, struct wr_otlp_field field, unsigned value);
void wr_otlp_put_true(const struct wr_otlp_writer *writer, struct wr_otlp_field field);

/* Packed repeated fields. */
void wr_otlp_put_doubles(const struct wr_otlp_writer *writer, struct wr_otlp_field field, const double *values,
                         size_t count);
void wr_otlp_put_fixed64s(const struct wr_otlp_writer *writer, struct wr_otlp_field field,
                          const uint64_t *values, size_t count);
void wr_otlp_put_varints(const struct wr_otlp_writer *writer, struct wr_otlp_field field,
                         const uint64_t *values, size_t count);

/* Text of JSON without its place in a message. */
void wr_otlp_put_json_double(struct wr_buffer *out, double value);
void wr_otlp_put_json_int(struct wr_buffer *out, int64_t value);

enum { WR_OTLP_VARINT = 10 };

/* Writes a varint of at most WR_OTLP_VARINT bytes. Returns its length. */
static inline size_t wr_otlp_write_varint(unsigned char *out, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (unsigned char)(value | 0x80);
    out[length++] = (unsigned char)value;
    return length;
}

/* Writes 8 bytes, the lowest first. */
static inline void wr_otlp_write_fixed64(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

#endif
