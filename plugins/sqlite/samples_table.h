/* samples_table: the database: its tables, its statements, and a cache of series ids. All codes are SQLite's;
 * wr_samples_table_message describes them. */
#ifndef WEIR_PLUGINS_SAMPLES_TABLE_H
#define WEIR_PLUGINS_SAMPLES_TABLE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "../database/series_rows.h"

struct samples_table_settings {
    const char *path, *prefix;
    const char *journal_mode, *synchronous; /* values of the PRAGMA statements */
    int (*busy)(void *ctx, int count);      /* callback of sqlite3_busy_handler */
    void *ctx;
};

/* Zero-initialized: not open. */
struct samples_table {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *put_series, *put_sample;
    struct series_rows rows;
};

/* Opens or creates the database and its tables. Call wr_samples_table_close also after a failure. */
int wr_samples_table_open(struct samples_table *table, const struct samples_table_settings *settings);
void wr_samples_table_close(struct samples_table *table);

/* Inserts a batch in one transaction. If it fails, call wr_samples_table_message and then
 * wr_samples_table_roll_back. */
int wr_samples_table_put(struct samples_table *table, const weir_batch *batch);
void wr_samples_table_roll_back(struct samples_table *table);

#endif
