#include "reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../store/store_file.h"
#include "../system.h"
#include "text/array.h"

enum { STEPS_BETWEEN_CHECKS = 2000 };

/* ---- Opening --------------------------------------------------------------------------------- */

static int is_too_late(void *ctx)
{
    const struct reader *reader = ctx;
    return reader->deadline_ns && wr_system_clock_ns(CLOCK_MONOTONIC) > reader->deadline_ns;
}

static int prepare(struct reader *reader)
{
    int code = store_file_prepare(reader->db,
                                  "SELECT id, first_ns, last_ns, count, finite, sum, min, max, first, last, "
                                  "rise FROM chunks WHERE series = ? "
                                  "AND first_ns < ? AND last_ns >= ?",
                                  &reader->find_pieces);
    if (!code)
        code = store_file_prepare(reader->db, "SELECT points FROM chunks WHERE id = ?", &reader->get_points);
    if (!code)
        code = store_file_prepare(reader->db,
                                  "SELECT time_ns, value FROM tail WHERE id < ?1 AND series = ?2 ORDER BY id",
                                  &reader->read_tail);
    return code;
}

int reader_open(struct reader *reader, sqlite3 *db)
{
    reader->db = db;
    sqlite3_progress_handler(db, STEPS_BETWEEN_CHECKS, is_too_late, reader);
    int code = store_file_run(db, "PRAGMA cache_size = -16384"); /* KiB */
    return code ? code : prepare(reader);
}

void reader_close(struct reader *reader)
{
    sqlite3_finalize(reader->find_pieces);
    sqlite3_finalize(reader->get_points);
    sqlite3_finalize(reader->read_tail);
    tail_fini(&reader->tail);
    *reader = (struct reader){0};
}

/* ---- Transactions ---------------------------------------------------------------------------- */

void reader_limit(struct reader *reader, int64_t limit_ns)
{
    reader->deadline_ns = limit_ns ? wr_system_clock_ns(CLOCK_MONOTONIC) + limit_ns : 0;
}

int reader_begin(struct reader *reader, int64_t limit_ns)
{
    reader_limit(reader, limit_ns);
    int code = store_file_run(reader->db, "BEGIN");
    return code ? code : tail_refresh(&reader->tail, reader->db);
}

void reader_end(struct reader *reader)
{
    reader_limit(reader, 0);
    if (reader->db && !sqlite3_get_autocommit(reader->db))
        store_file_run(reader->db, "COMMIT");
}

int reader_check(const struct reader *reader)
{
    return wr_system_clock_ns(CLOCK_MONOTONIC) > reader->deadline_ns ? SQLITE_INTERRUPT : SQLITE_OK;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

void pieces_fini(struct pieces *pieces)
{
    free(pieces->all);
    free(pieces->tail);
    *pieces = (struct pieces){0};
}

static double number_or_nan(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN : sqlite3_column_double(row, column);
}

static struct piece read_piece(sqlite3_stmt *row)
{
    struct piece piece = {.id = sqlite3_column_int64(row, 0),
                          .first_ns = sqlite3_column_int64(row, 1),
                          .last_ns = sqlite3_column_int64(row, 2)};
    piece.totals.count = (uint64_t)sqlite3_column_int64(row, 3);
    piece.totals.finite = (uint64_t)sqlite3_column_int64(row, 4);
    piece.totals.sum = sqlite3_column_double(row, 5);
    piece.totals.min = number_or_nan(row, 6);
    piece.totals.max = number_or_nan(row, 7);
    piece.totals.first = number_or_nan(row, 8);
    piece.totals.last = number_or_nan(row, 9);
    piece.totals.rise = sqlite3_column_double(row, 10);
    piece.has_rise = sqlite3_column_type(row, 10) != SQLITE_NULL;
    return piece;
}

static bool put_piece(struct pieces *pieces, struct piece piece)
{
    struct piece *all = wr_array_reserve(pieces->all, &pieces->room, pieces->count + 1, sizeof *all);
    if (!all)
        return false;
    pieces->all = all;
    all[pieces->count++] = piece;
    return true;
}

static void keep_latest(struct piece *latest, const struct piece *piece)
{
    if (!piece->totals.finite)
        return;
    if (!latest->totals.count || piece->last_ns > latest->last_ns ||
        (piece->last_ns == latest->last_ns && piece->id > latest->id))
        *latest = *piece;
}

static int find_chunks(struct reader *reader, int64_t series, int64_t from_ns, int64_t to_ns, bool with_before,
                       struct pieces *pieces)
{
    sqlite3_stmt *statement = reader->find_pieces;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, to_ns);
    sqlite3_bind_int64(statement, 3, with_before ? INT64_MIN : from_ns);
    bool has_room = true;
    while (has_room && sqlite3_step(statement) == SQLITE_ROW) {
        struct piece piece = read_piece(statement);
        if (piece.last_ns >= from_ns)
            has_room = put_piece(pieces, piece);
        else
            keep_latest(&pieces->before, &piece);
    }
    int code = sqlite3_reset(statement);
    return has_room ? code : SQLITE_NOMEM;
}

/* ---- The tail -------------------------------------------------------------------------------- */

static bool put_point(struct pieces *pieces, struct chunk_point point)
{
    struct chunk_point *tail =
        wr_array_reserve(pieces->tail, &pieces->tail_room, pieces->tail_count + 1, sizeof *tail);
    if (!tail)
        return false;
    pieces->tail = tail;
    tail[pieces->tail_count++] = point;
    return true;
}

/* Rows of the tail that are not in memory. */
static int read_older(struct reader *reader, int64_t series, int64_t from_ns, int64_t to_ns,
                      struct pieces *pieces)
{
    sqlite3_stmt *statement = reader->read_tail;
    int64_t begins = tail_memory_begins(&reader->tail);
    if (!reader->tail.first_id || begins <= reader->tail.first_id)
        return SQLITE_OK;
    sqlite3_bind_int64(statement, 1, begins);
    sqlite3_bind_int64(statement, 2, series);
    bool has_room = true;
    while (has_room && sqlite3_step(statement) == SQLITE_ROW) {
        struct chunk_point point = store_file_point(statement, 0);
        if (point.time_ns >= from_ns && point.time_ns < to_ns)
            has_room = put_point(pieces, point);
    }
    int code = sqlite3_reset(statement);
    return has_room ? code : SQLITE_NOMEM;
}

static void reverse(struct chunk_point *points, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct chunk_point point = points[i];
        points[i] = points[count - 1 - i];
        points[count - 1 - i] = point;
    }
}

static int read_memory(struct reader *reader, int64_t series, int64_t from_ns, int64_t to_ns,
                       struct pieces *pieces)
{
    const struct tail *tail = &reader->tail;
    size_t before = pieces->tail_count;
    for (const struct tail_row *row = tail_last(tail, series); row; row = tail_before(tail, row))
        if (row->time_ns >= from_ns && row->time_ns < to_ns && !put_point(pieces, tail_point(row)))
            return SQLITE_NOMEM;
    if (pieces->tail_count > before)
        reverse(pieces->tail + before, pieces->tail_count - before);
    return SQLITE_OK;
}

static void merge(const struct chunk_point *from, struct chunk_point *to, size_t count, size_t width)
{
    for (size_t start = 0; start < count; start += 2 * width) {
        size_t middle = start + width < count ? start + width : count;
        size_t end = start + 2 * width < count ? start + 2 * width : count;
        size_t one = start, other = middle;
        for (size_t i = start; i < end; i++) {
            bool takes_one = one < middle && (other == end || from[one].time_ns <= from[other].time_ns);
            to[i] = takes_one ? from[one++] : from[other++];
        }
    }
}

static bool is_sorted(const struct chunk_point *points, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (points[i].time_ns < points[i - 1].time_ns)
            return false;
    return true;
}

int reader_sort(struct chunk_point *points, size_t count)
{
    if (is_sorted(points, count))
        return SQLITE_OK;
    struct chunk_point *other = malloc(count * sizeof *other), *from = points, *to = other;
    if (!other)
        return SQLITE_NOMEM;
    for (size_t width = 1; width < count; width *= 2) {
        merge(from, to, count, width);
        struct chunk_point *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != points)
        memcpy(points, from, count * sizeof *points);
    free(other);
    return SQLITE_OK;
}

static struct piece tail_piece(const struct pieces *pieces)
{
    struct piece piece = {.id = INT64_MAX,
                          .first_ns = pieces->tail[0].time_ns,
                          .last_ns = pieces->tail[pieces->tail_count - 1].time_ns,
                          .totals = {.min = NAN, .max = NAN, .first = NAN, .last = NAN},
                          .has_rise = true};
    for (size_t i = 0; i < pieces->tail_count; i++)
        chunk_count(&piece.totals, chunk_value(&pieces->tail[i]));
    return piece;
}

/* ---- Both ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const struct piece *one = a, *other = b;
    if (one->first_ns != other->first_ns)
        return one->first_ns < other->first_ns ? -1 : 1;
    return (one->id > other->id) - (one->id < other->id);
}

int reader_find(struct reader *reader, int64_t series, int64_t from_ns, int64_t to_ns, bool with_before,
                struct pieces *pieces)
{
    int64_t tail_from_ns = with_before ? INT64_MIN : from_ns;
    *pieces = (struct pieces){0};
    int code = find_chunks(reader, series, from_ns, to_ns, with_before, pieces);
    if (!code)
        code = read_older(reader, series, tail_from_ns, to_ns, pieces);
    if (!code)
        code = read_memory(reader, series, tail_from_ns, to_ns, pieces);
    if (!code)
        code = reader_sort(pieces->tail, pieces->tail_count);
    if (!code && pieces->tail_count && !put_piece(pieces, tail_piece(pieces)))
        code = SQLITE_NOMEM;
    if (!code && pieces->count)
        qsort(pieces->all, pieces->count, sizeof *pieces->all, compare);
    return code;
}

int reader_get(struct reader *reader, const struct pieces *pieces, const struct piece *piece,
               const struct chunk_point **points, size_t *count)
{
    sqlite3_stmt *statement = reader->get_points;
    if (piece->id == INT64_MAX) {
        *points = pieces->tail;
        *count = pieces->tail_count;
        return SQLITE_OK;
    }
    *points = reader->points;
    *count = 0;
    sqlite3_bind_int64(statement, 1, piece->id);
    if (sqlite3_step(statement) == SQLITE_ROW)
        *count = chunk_unpack(sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0),
                              reader->points);
    int code = sqlite3_reset(statement);
    if (!code && !*count)
        code = SQLITE_CORRUPT;
    return code ? code : reader_check(reader);
}
