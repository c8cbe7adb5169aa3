/* store_writer: stores batches in the database: values, series, notes, and which numbers of a sender are there.
 * All codes are SQLite's. */
#ifndef WEIR_PLUGINS_STORE_WRITER_H
#define WEIR_PLUGINS_STORE_WRITER_H

#include <sqlite3.h>
#include <stdint.h>

#include <weir/handler.h>

#include "../database/series_rows.h"

/* All zeros: not open. */
struct store_writer {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *put_series, *put_sample, *put_note, *get_next, *set_next;
    struct series_rows rows;
    uint64_t tail_count; /* rows of the tail, at most so many */
    uint64_t repeats;    /* values that were there already, of the last batch */
};

/* Prepares the statements; the database stays the caller's. Call store_writer_fini also after a failure. */
int store_writer_init(struct store_writer *writer, sqlite3 *db);
void store_writer_fini(struct store_writer *writer);

/* Stores a batch in one transaction, without what is there already. If it fails, ask the database for a message
 * and then call store_writer_roll_back. */
int store_writer_put(struct store_writer *writer, const weir_batch *batch);
void store_writer_roll_back(struct store_writer *writer);

#endif
