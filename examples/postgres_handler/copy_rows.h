/* copy_rows: samples as rows in PostgreSQL's binary form of COPY, which has no quotes and loses no digit. */
#ifndef COPY_ROWS_H
#define COPY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Bytes that grow. Zeroed: empty. Its owner frees `bytes`. */
struct rows {
    char *bytes;
    size_t length, room;
    bool failed; /* out of memory: bytes are missing */
};

/* The columns of a row. */
#define ROWS_COLUMNS "origin, sequence, time, group_name, name, labels, value"

/* What the rows begin and end with. */
void rows_begin(struct rows *rows);
void rows_end(struct rows *rows);

/* Appends the row of a sample of the batch. */
void rows_add(struct rows *rows, const weir_batch *batch, uint32_t index);

#endif
