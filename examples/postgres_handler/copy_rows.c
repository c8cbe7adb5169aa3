#include "copy_rows.h"

#include <stdlib.h>
#include <string.h>

/* Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's times begin. */
#define EPOCH_US 946684800000000

static void put(struct rows *rows, const void *data, size_t length)
{
    if (rows->room - rows->length < length) {
        size_t room = (rows->length + length) * 2;
        char *bytes = realloc(rows->bytes, room);
        if (!bytes) {
            rows->failed = true;
            return;
        }
        rows->bytes = bytes;
        rows->room = room;
    }
    memcpy(rows->bytes + rows->length, data, length);
    rows->length += length;
}

/* In network byte order. */
static void put_number(struct rows *rows, uint64_t number, size_t size)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(number >> 8 * (size - 1 - i));
    put(rows, bytes, size);
}

/* ---- Fields: a length of four bytes, and the bytes ------------------------------------------- */

static void add_int64(struct rows *rows, int64_t number)
{
    put_number(rows, 8, 4);
    put_number(rows, (uint64_t)number, 8);
}

static void add_double(struct rows *rows, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_number(rows, 8, 4);
    put_number(rows, bits, 8);
}

static void add_text(struct rows *rows, const char *text)
{
    put_number(rows, strlen(text), 4);
    put(rows, text, strlen(text));
}

static unsigned digit(char character)
{
    return (unsigned)(character <= '9' ? character - '0' : character - 'a' + 10);
}

/* A uuid: 16 bytes from 32 hexadecimal digits. */
static void add_origin(struct rows *rows, const char *origin)
{
    put_number(rows, 16, 4);
    for (int i = 0; i < 32; i += 2)
        put_number(rows, digit(origin[i]) << 4 | digit(origin[i + 1]), 1);
}

/* ---- Labels: jsonb, the number of its version and a text ------------------------------------- */

static void put_quoted(struct rows *rows, const char *text)
{
    put(rows, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            put(rows, "\\", 1);
        put(rows, text, 1);
    }
    put(rows, "\"", 1);
}

static bool has_label(const weir_series *series, const char *key)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (strcmp(series->labels[i].key, key) == 0)
            return true;
    return false;
}

/* Labels have no control characters. The series' own take precedence over settings.labels. */
static void add_labels(struct rows *rows, const weir_batch *batch, const weir_series *series)
{
    size_t start = rows->length, common_count, count = 0;
    const weir_label *common = weir_batch_labels(batch, series, &common_count);
    put_number(rows, 0, 4); /* the length, once it is known */
    put(rows, "\1{", 2);
    for (size_t i = 0; i < common_count + series->label_count; i++) {
        const weir_label *label = i < common_count ? &common[i] : &series->labels[i - common_count];
        if (i < common_count && has_label(series, label->key))
            continue;
        put(rows, ",", count++ ? 1 : 0);
        put_quoted(rows, label->key);
        put(rows, ":", 1);
        put_quoted(rows, label->value);
    }
    put(rows, "}", 1);
    if (rows->failed)
        return;
    size_t end = rows->length;
    rows->length = start;
    put_number(rows, end - start - 4, 4);
    rows->length = end;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

void rows_begin(struct rows *rows)
{
    static const char signature[11] = "PGCOPY\n\377\r\n";
    rows->length = 0;
    rows->failed = false;
    put(rows, signature, sizeof signature);
    put_number(rows, 0, 4); /* flags */
    put_number(rows, 0, 4); /* length of an extension */
}

void rows_end(struct rows *rows)
{
    put_number(rows, 0xffff, 2);
}

void rows_add(struct rows *rows, const weir_batch *batch, uint32_t index)
{
    const weir_sample *sample = &batch->samples[index];
    const weir_series *series = weir_batch_series(batch, sample);
    put_number(rows, 7, 2); /* columns */
    add_origin(rows, batch->origin);
    add_int64(rows, (int64_t)(batch->sequence + index));
    add_int64(rows, sample->time_ns / 1000 - EPOCH_US);
    add_text(rows, series->group);
    add_text(rows, series->name);
    add_labels(rows, batch, series);
    add_double(rows, sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64);
}
