#include "tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../store/store_file.h"
#include "text/array.h"

static void clear(struct tail *tail)
{
    tail->first = tail->end = 0;
    tail->dropped = 0;
    tail->slot_count = 0;
    tail->last_id = tail->first_id = 0;
    if (tail->map)
        memset(tail->map, 0, tail->map_size * sizeof *tail->map);
}

void tail_fini(struct tail *tail)
{
    free(tail->rows);
    free(tail->slots);
    free(tail->map);
    *tail = (struct tail){0};
}

/* ---- Series ---------------------------------------------------------------------------------- */

static size_t place_of(const struct tail *tail, int64_t series)
{
    size_t at = (size_t)((uint64_t)series * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (tail->map_size - 1);
    while (tail->map[at] && tail->slots[tail->map[at] - 1].series != series)
        at = (at + 1) & (tail->map_size - 1);
    return at;
}

static bool grow_slots(struct tail *tail)
{
    size_t room = tail->slot_room ? 2 * tail->slot_room : 64, size = 2 * room;
    struct tail_slot *slots = realloc(tail->slots, room * sizeof *slots);
    if (slots)
        tail->slots = slots;
    uint32_t *map = slots ? calloc(size, sizeof *map) : NULL;
    if (!map)
        return false;
    free(tail->map);
    tail->map = map;
    tail->map_size = size;
    tail->slot_room = room;
    for (size_t i = 0; i < tail->slot_count; i++)
        tail->map[place_of(tail, tail->slots[i].series)] = (uint32_t)i + 1;
    return true;
}

/* Returns NULL if out of memory. */
static struct tail_slot *take_slot(struct tail *tail, int64_t series)
{
    if (tail->slot_count == tail->slot_room && !grow_slots(tail))
        return NULL;
    size_t place = place_of(tail, series);
    if (!tail->map[place]) {
        tail->slots[tail->slot_count++] = (struct tail_slot){series, 0};
        tail->map[place] = (uint32_t)tail->slot_count;
    }
    return &tail->slots[tail->map[place] - 1];
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Makes room for a row: by moving the rows to the front if that is half empty. */
static bool reserve_row(struct tail *tail)
{
    if (tail->end < tail->room)
        return true;
    if (tail->room && tail->first >= tail->room / 2) {
        memmove(tail->rows, tail->rows + tail->first, (tail->end - tail->first) * sizeof *tail->rows);
        tail->dropped += tail->first;
        tail->end -= tail->first;
        tail->first = 0;
        return true;
    }
    struct tail_row *rows = wr_array_reserve(tail->rows, &tail->room, tail->room + 1, sizeof *rows);
    if (rows)
        tail->rows = rows;
    return rows;
}

static bool take_row(struct tail *tail, sqlite3_stmt *statement)
{
    struct tail_slot *slot = take_slot(tail, sqlite3_column_int64(statement, 1));
    if (!slot || !reserve_row(tail))
        return false;
    struct tail_row *row = &tail->rows[tail->end];
    uint64_t number = tail->dropped + tail->end + 1, distance = number - slot->last;
    row->id = sqlite3_column_int64(statement, 0);
    const struct chunk_point point = store_file_point(statement, 2);
    row->time_ns = point.time_ns;
    row->is_int = point.is_int;
    memcpy(&row->value, &point.value, sizeof row->value);
    row->slot = (uint32_t)(slot - tail->slots) & INT32_MAX;
    row->before = slot->last && distance <= TAIL_ROWS_MOST ? (uint32_t)distance : 0;
    slot->last = number;
    tail->end++;
    tail->last_id = row->id;
    if (tail->end - tail->first > TAIL_ROWS_MOST)
        tail->first++;
    return true;
}

static int read_new(struct tail *tail, sqlite3 *db, int64_t after)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "SELECT id, series, time_ns, value FROM tail WHERE id > ? ORDER BY id",
                                  -1, &statement, NULL);
    if (code)
        return code;
    sqlite3_bind_int64(statement, 1, after);
    while (sqlite3_step(statement) == SQLITE_ROW)
        if (!take_row(tail, statement)) {
            sqlite3_finalize(statement);
            return SQLITE_NOMEM;
        }
    return sqlite3_finalize(statement);
}

static int ask_ids(sqlite3 *db, int64_t *first, int64_t *last)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "SELECT (SELECT min(id) FROM tail), (SELECT max(id) FROM tail)", -1,
                                  &statement, NULL);
    if (code)
        return code;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *first = sqlite3_column_int64(statement, 0);
        *last = sqlite3_column_int64(statement, 1);
    }
    return sqlite3_finalize(statement);
}

int tail_refresh(struct tail *tail, sqlite3 *db)
{
    int64_t first = 0, last = 0;
    int code = ask_ids(db, &first, &last);
    if (code)
        return code;
    if (last < tail->last_id) /* another file, or a version that used ids again */
        clear(tail);
    tail->first_id = first;
    while (tail->first < tail->end && tail->rows[tail->first].id < first)
        tail->first++;
    if (tail->last_id && first > tail->last_id + 1)
        tail->missed += (uint64_t)(first - tail->last_id - 1);
    if (last <= tail->last_id)
        return SQLITE_OK;
    int64_t most_after = last - TAIL_ROWS_MOST;
    return read_new(tail, db, tail->last_id > most_after ? tail->last_id : most_after);
}

/* ---- Using ----------------------------------------------------------------------------------- */

struct chunk_point tail_point(const struct tail_row *row)
{
    struct chunk_point point = {.time_ns = row->time_ns, .is_int = row->is_int};
    memcpy(&point.value, &row->value, sizeof point.value);
    return point;
}

const struct tail_row *tail_last(const struct tail *tail, int64_t series)
{
    uint32_t slot = tail->map ? tail->map[place_of(tail, series)] : 0;
    uint64_t last = slot ? tail->slots[slot - 1].last : 0;
    return last > tail->dropped + tail->first ? &tail->rows[last - tail->dropped - 1] : NULL;
}

const struct tail_row *tail_before(const struct tail *tail, const struct tail_row *row)
{
    size_t index = (size_t)(row - tail->rows);
    return row->before && index >= tail->first + row->before ? row - row->before : NULL;
}

const struct tail_row *tail_after(const struct tail *tail, int64_t id)
{
    size_t low = tail->first, high = tail->end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tail->rows[middle].id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return tail->rows + low;
}

int64_t tail_memory_begins(const struct tail *tail)
{
    return tail->first < tail->end ? tail->rows[tail->first].id : tail->last_id + 1;
}
