/* store: the database: its tables, its statements, and a cache of series ids. All codes are SQLite's;
 * wr_store_message describes them. */
#ifndef WEIR_PLUGINS_SQLITE_STORE_H
#define WEIR_PLUGINS_SQLITE_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

struct store_settings {
    const char *path, *prefix;
    const char *journal_mode, *synchronous; /* values of the PRAGMA statements */
    int (*busy)(void *ctx, int count);      /* callback of sqlite3_busy_handler */
    void *ctx;
};

/* The row of a series of this process in the table "series". */
struct store_series {
    sqlite3_int64 row; /* 0: not inserted yet */
    const char *unit, *help;
};

/* Zero-initialized: not open. */
struct store {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *put_series, *put_sample;
    struct store_series *series; /* indexed by weir_sample.series */
    uint32_t capacity;
    char *common_labels; /* the configuration's labels as JSON; the labels of `series` include them */
};

/* Opens or creates the database and its tables. Call wr_store_close also after a failure. */
int wr_store_open(struct store *store, const struct store_settings *settings);
void wr_store_close(struct store *store);

/* Inserts a batch in one transaction. If it fails, call wr_store_message and then wr_store_roll_back. */
int wr_store_put(struct store *store, const weir_batch *batch);
void wr_store_roll_back(struct store *store);

/* Describes the last error. Valid until the next call. */
const char *wr_store_message(const struct store *store, int code);

#endif
