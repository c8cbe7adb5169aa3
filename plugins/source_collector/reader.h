/* reader: reads the values of series from a store: its chunks and its tail, as one. It limits how long a
 * request may take. All codes are SQLite's. */
#ifndef WEIR_PLUGINS_COLLECTOR_READER_H
#define WEIR_PLUGINS_COLLECTOR_READER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../store/chunk.h"
#include "tail.h"

/* Values of one series, in the order of their times: a chunk, or those of the tail. */
struct piece {
    int64_t id; /* of the chunk, in the order in which they were made; INT64_MAX: the tail */
    int64_t first_ns, last_ns;
    struct chunk_totals totals;
    bool has_rise; /* totals.first and totals.rise are known */
};

struct pieces {
    struct piece *all; /* by first_ns, then id */
    uint32_t count, room;
    struct piece before;            /* the chunk that ends last before the time; count 0: none */
    struct chunk_point *tail;       /* by time, then as they came */
    uint32_t tail_count, tail_room; /* those before the time are there, too */
};

struct reader {
    sqlite3 *db; /* NULL: closed. Borrowed */
    struct tail tail;
    sqlite3_stmt *find_pieces, *get_points, *read_tail;
    int64_t deadline_ns; /* monotonic; 0: none */
    struct chunk_point points[CHUNK_POINTS];
};

/* Prepares a connection to a store, which others may use between transactions of the reader. Close it after a
 * failure, too; and before the connection. */
int reader_open(struct reader *reader, sqlite3 *db);
void reader_close(struct reader *reader);

/* Statements of the connection fail with SQLITE_INTERRUPT once so much time has passed; 0: they take any time.
 */
void reader_limit(struct reader *reader, int64_t limit_ns);

/* Begins and ends a transaction: what is read within it is of one moment. SQLITE_INTERRUPT: limit_ns have
 * passed, here and from all functions below. */
int reader_begin(struct reader *reader, int64_t limit_ns);
void reader_end(struct reader *reader);

/* Whether there is time left. To be asked in loops that read nothing. */
int reader_check(const struct reader *reader);

/* Finds where values of a series with times in [from_ns, to_ns) are. with_before: also sets `before`, and reads
 * the tail's values before from_ns. The tail's values are the last piece but for its place by time. */
int reader_find(struct reader *reader, int64_t series, int64_t from_ns, int64_t to_ns, bool with_before,
                struct pieces *pieces);
void pieces_fini(struct pieces *pieces);

/* Sets *points and *count to the values of a piece; valid until the next call and pieces_fini. */
int reader_get(struct reader *reader, const struct pieces *pieces, const struct piece *piece,
               const struct chunk_point **points, size_t *count);

/* Sorts by time; equal ones stay as they are. SQLITE_NOMEM: nothing has changed. */
int reader_sort(struct chunk_point *points, size_t count);

#endif
