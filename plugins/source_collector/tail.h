/* tail: the latest rows of a store's tail, in memory: linked by series, which the table has no index for, since
 * it would cost the writer more than it gains. Rows are read once: those that are new, when they are asked for.
 */
#ifndef WEIR_PLUGINS_COLLECTOR_TAIL_H
#define WEIR_PLUGINS_COLLECTOR_TAIL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../store/chunk.h"

/* The most rows in memory, which takes up to 64 MiB. Older ones are read from the table each time. */
enum { TAIL_ROWS_MOST = 1 << 20 };

struct tail_row {
    int64_t id, time_ns;
    union {
        double f64;
        int64_t i64;
    } value;
    uint32_t slot : 31; /* of the series */
    uint32_t is_int : 1;
    uint32_t before; /* how many rows before is the previous row of the same series; 0: there is none */
};

/* A series of these rows. */
struct tail_slot {
    int64_t series;
    uint64_t last; /* the number of its last row, from 1, since the tail was cleared */
};

/* All zeros: empty. */
struct tail {
    struct tail_row *rows;
    size_t first, end; /* rows[first..end) are in the table */
    uint32_t room;
    uint64_t dropped; /* rows before rows[0] since the tail was cleared */
    struct tail_slot *slots;
    uint32_t *map; /* a hash of series: the number of the slot plus 1 */
    size_t slot_count, slot_room, map_size;
    int64_t first_id; /* of the table; 0: it is empty */
    int64_t last_id;  /* the last one that was read */
    uint64_t missed;  /* rows that were packed before they were read, ever */
};

void tail_fini(struct tail *tail);

/* Reads what is new, within the caller's transaction. Returns a code of SQLite; then it may be tried again. */
int tail_refresh(struct tail *tail, sqlite3 *db);

/* The series of a row. */
static inline int64_t tail_series(const struct tail *tail, const struct tail_row *row)
{
    return tail->slots[row->slot].series;
}

struct chunk_point tail_point(const struct tail_row *row);

/* The last row of a series that is in the table, and the one before it; NULL: there is none in memory. */
const struct tail_row *tail_last(const struct tail *tail, int64_t series);
const struct tail_row *tail_before(const struct tail *tail, const struct tail_row *row);

/* The first row in memory with a larger id; tail->rows + tail->end: none. */
const struct tail_row *tail_after(const struct tail *tail, int64_t id);

/* The ids of rows that are in the table, but not in memory, are below this and not below first_id. */
int64_t tail_memory_begins(const struct tail *tail);

#endif
