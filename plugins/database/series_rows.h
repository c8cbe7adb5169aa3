/* series_rows: which row of a database a series of this process has. */
#ifndef WEIR_PLUGINS_SERIES_ROWS_H
#define WEIR_PLUGINS_SERIES_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

#include <weir/handler.h>

/* All zeros: none is known. */
struct series_rows {
    struct series_row **pages; /* by series id; NULL: none is known there */
    uint32_t room;             /* pages */
    uint64_t labels_hash;      /* of the batch; the labels of the rows include its labels */
};

void series_rows_fini(struct series_rows *rows);

/* Forgets all rows. */
void series_rows_clear(struct series_rows *rows);

/* To be called for each batch. If the configuration's labels have changed, the rows are of other series, and
 * forgotten. */
void series_rows_begin(struct series_rows *rows, const weir_batch *batch);

/* Finds the row of a series, and inserts it first unless it is there as the series is now. Returns a code of
 * SQLite.
 *
 * The parameters of `insert` are group, name, labels, cumulative, unit, help and, if it has seven, instrument;
 * it returns the row. The labels are those of the series with those of the batch, as JSON: {"a":"1","b":"2"},
 * sorted by key, so that equal ones give equal text. */
int series_rows_get(struct series_rows *rows, sqlite3_stmt *insert, const weir_batch *batch,
                    const weir_series *series, int64_t *row);

#endif
