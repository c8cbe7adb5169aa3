/* store_fold: moves the tail into chunks, and deletes what is too old or too much. All codes are SQLite's. */
#ifndef WEIR_PLUGINS_STORE_FOLD_H
#define WEIR_PLUGINS_STORE_FOLD_H

#include <sqlite3.h>
#include <stdint.h>

/* Moves the values of the tail into chunks, but the latest 32nd of them and at least one, in one transaction.
 * Needs 48 bytes of memory for each. *stays: how many rows the tail has then. On failure nothing has changed.
 */
int store_fold(sqlite3 *db, int64_t *stays);

/* Deletes chunks whose last value is older than that, older notes, marks and metrics of runs, and senders that
 * have sent nothing since. A row of the tail is not deleted before it is in a chunk. Series stay: their numbers
 * may be in use by writers. */
int store_fold_forget(sqlite3 *db, int64_t before_ns);

/* Deletes the oldest chunks, with the notes and the metrics of runs up to their end, until the file uses at
 * most so many bytes. *deleted: values. *table: NULL, or the table that has the most, if the others cannot make
 * room for it: then what it needs is not taken from the chunks, or none is left. */
int store_fold_shrink(sqlite3 *db, int64_t bytes, int64_t *deleted, const char **table);

#endif
