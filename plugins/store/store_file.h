/* store_file: the database of the handler type store and of those that read it: its tables and its version.
 *
 * All codes are SQLite's. `tail` has values in the order in which they came; when there are many, all but the
 * latest move to `chunks`, a row for up to 4,096 of a series. A value is in one of the two. Ids of the tail are
 * never used again, since a row always stays. Others may read at any time: the journal mode is WAL. */
#ifndef WEIR_PLUGINS_STORE_FILE_H
#define WEIR_PLUGINS_STORE_FILE_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunk.h"

enum { STORE_APPLICATION_ID = 0x57454952 /* "WEIR" */, STORE_VERSION = 3 };

/* Opens the file; makes it and its tables if it is missing or empty. busy: as for sqlite3_busy_handler. On
 * failure *db may be set: close it after asking it for a message. A file that is
 * not a store, or is one of another version, is not changed: SQLITE_NOTADB, with `problem` set. */
int store_file_open(sqlite3 **db, const char *path, bool syncs, int (*busy)(void *ctx, int count), void *ctx,
                    char *problem, size_t room);

/* Call it before a connection is closed whose file was moved or deleted: the path of its journal may be that of
 * another file by now, which SQLite would delete. */
void store_file_keep_journal(sqlite3 *db);

/* Runs a statement without a result. */
int store_file_run(sqlite3 *db, const char *statement);

/* Prepares a statement that is used often. */
int store_file_prepare(sqlite3 *db, const char *text, sqlite3_stmt **statement);

/* Sets *number to the result of a query, one number; leaves it if there is none. */
int store_file_ask_number(sqlite3 *db, const char *query, int64_t *number);

/* A value of the tail: of the columns time_ns and, behind it, value. */
struct chunk_point store_file_point(sqlite3_stmt *row, int column);

/* Binds, in order, what follows: 'i' int64_t, else const char *, which must stay valid; NULL is NULL. */
void store_file_bind(sqlite3_stmt *statement, const char *types, va_list arguments);

/* Steps a statement to its end and resets it. */
int store_file_step(sqlite3_stmt *statement);

#endif
