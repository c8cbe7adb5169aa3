/* store: the database: its tables, its statements, and which series it knows already. All codes are SQLite's;
 * the words to them are in store_words. */
#ifndef WEIR_PLUGINS_SQLITE_STORE_H
#define WEIR_PLUGINS_SQLITE_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

struct store_settings {
    const char *path, *prefix;
    const char *journal_mode, *synchronous; /* as PRAGMA takes them */
    int (*busy)(void *ctx, int count);      /* as sqlite3_busy_handler takes it */
    void *ctx;
};

/* What the database has of a series of this process. */
struct store_series {
    sqlite3_int64 row; /* 0: nothing yet */
    const char *unit, *help;
};

/* All zeros: not open. */
struct store {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *put_series, *put_sample;
    struct store_series *series; /* by the sample's series */
    uint32_t room;
    char *commons; /* the labels of the whole configuration that those were made with, as JSON */
};

/* Opens, or creates, the database and its tables. store_close is due also after a failure. */
int store_open(struct store *store, const struct store_settings *settings);
void store_close(struct store *store);

/* Puts a batch into the database, in one transaction. Where that fails, store_undo takes back what of it is
 * there already, once store_words has told why. */
int store_put(struct store *store, const weir_batch *batch);
void store_undo(struct store *store);

/* The words of the last failure. */
const char *store_words(const struct store *store, int code);

#endif
