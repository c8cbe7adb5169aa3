/* series_rows: which row of a database a series of this process has. */
#ifndef WEIR_PLUGINS_SERIES_ROWS_H
#define WEIR_PLUGINS_SERIES_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

/* A series as it was inserted. */
struct series_row {
    int64_t row; /* 0: not inserted yet */
    const char *unit, *help;
    int32_t instrument;
    uint64_t serial;
};

/* Ids are dense in a process, as a rule, but may also be far apart. */
enum { SERIES_ROWS_IN_PAGE = 256 };

/* All zeros: none is known. */
struct series_rows {
    /* indexed by weir_sample.series / SERIES_ROWS_IN_PAGE; NULL: none is known there */
    struct series_row **pages;
    uint32_t room;        /* pages */
    uint64_t labels_hash; /* of the batch; the labels of the rows include its labels */
};

void series_rows_fini(struct series_rows *rows);

/* Forgets all rows. */
void series_rows_clear(struct series_rows *rows);

/* To be called for each batch. If the configuration's labels have changed, the rows are of other series, and
 * forgotten. */
void series_rows_begin(struct series_rows *rows, const weir_batch *batch);

/* Returns the entry of a series; NULL: out of memory. */
struct series_row *series_rows_find(struct series_rows *rows, uint32_t id);

/* Whether the row was inserted, and nothing that it has of the series has changed since. */
bool series_row_is_current(const struct series_row *row, const weir_series *series);

/* What a row has of a series that was inserted. */
struct series_row series_row_of(int64_t row, const weir_series *series);

/* The series' labels with those of the batch, as JSON: {"a":"1","b":"2"}, sorted by key, so that equal ones
 * give equal text. Free it with sqlite3_free. NULL: out of memory. */
char *series_rows_labels(const weir_batch *batch, const weir_series *series);

#endif
