#include "store_fold.h"

#include <math.h>
#include <stdlib.h>

#include "chunk.h"
#include "store_file.h"

/* One of so many rows stays in the tail, the latest, and at least one: readers that look for new rows now and
 * then find those that came just before, and no id is used again. */
enum { PART_THAT_STAYS = 32 };

/* A row of the tail. */
struct row {
    int64_t series;
    int64_t id; /* in the order in which they came */
    struct chunk_point point;
};

struct fold {
    sqlite3 *db;
    struct row *rows;  /* in the order of their ids; those that are packed are sorted */
    size_t count, all; /* rows that are packed; with those that stay */
    struct chunk_point points[CHUNK_POINTS];
    uint8_t bytes[CHUNK_BYTES_MOST];
};

/* ---- Reading the tail ------------------------------------------------------------------------ */

static void read_row(sqlite3_stmt *statement, struct row *row)
{
    row->id = sqlite3_column_int64(statement, 0);
    row->series = sqlite3_column_int64(statement, 1);
    row->point = store_file_point(statement, 2);
}

static int read_tail(struct fold *fold, int64_t *stays)
{
    int64_t count = 0;
    int code = store_file_ask_number(fold->db, "SELECT count(*) FROM tail", &count);
    *stays = count / PART_THAT_STAYS > 0 ? count / PART_THAT_STAYS : count > 0;
    if (code || count == *stays)
        return code;
    sqlite3_stmt *statement;
    fold->rows = calloc((size_t)count, sizeof *fold->rows);
    if (!fold->rows)
        return SQLITE_NOMEM;
    code = sqlite3_prepare_v2(fold->db, "SELECT id, series, time_ns, value FROM tail ORDER BY id", -1,
                              &statement, NULL);
    if (code)
        return code;
    while (fold->all < (size_t)count && sqlite3_step(statement) == SQLITE_ROW)
        read_row(statement, &fold->rows[fold->all++]);
    code = sqlite3_finalize(statement);
    fold->count = code || fold->all < (size_t)*stays ? 0 : fold->all - (size_t)*stays;
    return code;
}

/* By series, time, and as they came. */
static int compare(const void *a, const void *b)
{
    const struct row *one = a, *other = b;
    if (one->series != other->series)
        return one->series < other->series ? -1 : 1;
    if (one->point.time_ns != other->point.time_ns)
        return one->point.time_ns < other->point.time_ns ? -1 : 1;
    return (one->id > other->id) - (one->id < other->id);
}

/* ---- Writing chunks -------------------------------------------------------------------------- */

static void bind_or_null(sqlite3_stmt *statement, int index, double value)
{
    if (isnan(value))
        sqlite3_bind_null(statement, index);
    else
        sqlite3_bind_double(statement, index, value);
}

static int put_chunk(struct fold *fold, sqlite3_stmt *statement, int64_t series, size_t count)
{
    struct chunk_totals totals = {.min = NAN, .max = NAN, .first = NAN, .last = NAN};
    for (size_t i = 0; i < count; i++)
        chunk_count(&totals, chunk_value(&fold->points[i]));
    size_t length = chunk_pack(fold->points, count, fold->bytes);
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, fold->points[0].time_ns);
    sqlite3_bind_int64(statement, 3, fold->points[count - 1].time_ns);
    sqlite3_bind_int64(statement, 4, (int64_t)totals.count);
    sqlite3_bind_int64(statement, 5, (int64_t)totals.finite);
    sqlite3_bind_double(statement, 6, isfinite(totals.sum) ? totals.sum : 0);
    bind_or_null(statement, 7, totals.min);
    bind_or_null(statement, 8, totals.max);
    bind_or_null(statement, 9, totals.first);
    bind_or_null(statement, 10, totals.last);
    bind_or_null(statement, 11, isfinite(totals.rise) ? totals.rise : NAN);
    sqlite3_bind_blob(statement, 12, fold->bytes, (int)length, SQLITE_STATIC);
    return store_file_step(statement);
}

/* Takes the points of a chunk: the next rows of one series. Returns how many. */
static size_t take_points(struct fold *fold, size_t first)
{
    const struct row *rows = fold->rows + first;
    size_t count = 0;
    while (count < CHUNK_POINTS && first + count < fold->count && rows[count].series == rows->series) {
        fold->points[count] = rows[count].point;
        count++;
    }
    return chunk_fit(fold->points, count);
}

static int put_all(struct fold *fold)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(
        fold->db,
        "INSERT INTO chunks (series, first_ns, last_ns, count, finite, sum, min, max, first, last, rise,"
        " points) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        -1, &statement, NULL);
    for (size_t first = 0, count; !code && first < fold->count; first += count) {
        count = take_points(fold, first);
        code = put_chunk(fold, statement, fold->rows[first].series, count);
    }
    sqlite3_finalize(statement);
    return code;
}

/* ---- Folding --------------------------------------------------------------------------------- */

/* Deleting all rows and adding some again is faster than deleting many. */
static int delete_packed(const struct fold *fold)
{
    sqlite3_stmt *statement;
    int code = store_file_run(fold->db, "DELETE FROM tail");
    if (!code)
        code = sqlite3_prepare_v2(fold->db, "INSERT INTO tail (id, series, time_ns, value) VALUES (?, ?, ?, ?)",
                                  -1, &statement, NULL);
    if (code)
        return code;
    for (size_t i = fold->count; !code && i < fold->all; i++) {
        const struct row *row = &fold->rows[i];
        sqlite3_bind_int64(statement, 1, row->id);
        sqlite3_bind_int64(statement, 2, row->series);
        sqlite3_bind_int64(statement, 3, row->point.time_ns);
        if (row->point.is_int)
            sqlite3_bind_int64(statement, 4, row->point.value.i64);
        else
            sqlite3_bind_double(statement, 4, row->point.value.f64);
        code = store_file_step(statement);
    }
    sqlite3_finalize(statement);
    return code;
}

static int fold_within(struct fold *fold, int64_t *stays)
{
    int code = read_tail(fold, stays);
    if (code || !fold->count)
        return code;
    qsort(fold->rows, fold->count, sizeof *fold->rows, compare);
    code = put_all(fold);
    return code ? code : delete_packed(fold);
}

static int end_transaction(sqlite3 *db, int code)
{
    if (!code)
        code = store_file_run(db, "COMMIT");
    if (code && !sqlite3_get_autocommit(db))
        store_file_run(db, "ROLLBACK");
    return code;
}

int store_fold(sqlite3 *db, int64_t *stays)
{
    struct fold *fold = calloc(1, sizeof *fold);
    if (!fold)
        return SQLITE_NOMEM;
    fold->db = db;
    int code = store_file_run(db, "BEGIN IMMEDIATE");
    if (!code)
        code = end_transaction(db, fold_within(fold, stays));
    free(fold->rows);
    free(fold);
    return code;
}

/* ---- Forgetting ------------------------------------------------------------------------------ */

static int run_with(sqlite3 *db, const char *text, int64_t number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
    if (code)
        return code;
    sqlite3_bind_int64(statement, 1, number);
    code = store_file_step(statement);
    sqlite3_finalize(statement);
    return code;
}

int store_fold_forget(sqlite3 *db, int64_t before_ns)
{
    int code = store_file_run(db, "BEGIN IMMEDIATE");
    if (code)
        return code;
    code = run_with(db, "DELETE FROM chunks WHERE last_ns < ?", before_ns);
    if (!code)
        code = run_with(db, "DELETE FROM notes WHERE time_ns < ?", before_ns);
    if (!code)
        code = run_with(db, "DELETE FROM metrics WHERE date_us < ? / 1000", before_ns);
    if (!code)
        code = run_with(db, "DELETE FROM origins WHERE seen_s < ? / 1000000000", before_ns);
    if (!code)
        code = run_with(db, "DELETE FROM marks WHERE at_us < ? / 1000", before_ns);
    return end_transaction(db, code);
}

static int ask_size(sqlite3 *db, int64_t *bytes)
{
    return store_file_ask_number(db,
                                 "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
                                 " pragma_freelist_count, pragma_page_size",
                                 bytes);
}

/* Sets *table to the table that has the most of what is not deleted here, if all of it is more than so many
 * bytes.
 */
static int find_too_large(sqlite3 *db, int64_t bytes, const char **table)
{
    static const struct {
        const char *name, *query;
    } tables[] = {
        {"series", "SELECT ifnull(sum(2 * (length(group_name) + length(name) + length(labels)) + "
                   "ifnull(length(help), 0)), 0) FROM series"},
        {"runs", "SELECT ifnull(sum(length(stdout) + length(stderr)), 0) FROM runs"},
        {"tail", "SELECT 20 * count(*) FROM tail"},
    };
    int64_t all = 0, most = -1;
    const char *largest = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        int64_t size = 0;
        int code = store_file_ask_number(db, tables[i].query, &size);
        if (code)
            return code;
        all += size;
        if (size > most)
            largest = tables[i].name;
        most = size > most ? size : most;
    }
    *table = all > bytes ? largest : NULL;
    return SQLITE_OK;
}

/* Chunks of one round: a sixteenth, so that most of a small file stays. */
#define OLDEST "FROM chunks ORDER BY last_ns LIMIT (SELECT min(1 + count(*) / 16, 1000) FROM chunks)"

/* The end of the oldest chunks or, without any, of the oldest metrics of runs. */
static int find_oldest(sqlite3 *db, int64_t *values, int64_t *end_ns)
{
    *values = 0;
    int code = store_file_ask_number(db, "SELECT ifnull(sum(count), 0) FROM (SELECT count " OLDEST ")", values);
    if (!code)
        code = store_file_ask_number(
            db,
            *values
                ? "SELECT max(last_ns) FROM (SELECT last_ns " OLDEST ")"
                : "SELECT max(date_us) * 1000 FROM (SELECT date_us FROM metrics ORDER BY date_us LIMIT 10000)",
            end_ns);
    return code;
}

static int delete_oldest(sqlite3 *db, int64_t end_ns, int64_t *metrics)
{
    int code = store_file_run(db, "DELETE FROM chunks WHERE id IN (SELECT id " OLDEST ")");
    if (!code)
        code = run_with(db, "DELETE FROM notes WHERE time_ns <= ?", end_ns);
    if (!code)
        code = run_with(db, "DELETE FROM metrics WHERE date_us <= ? / 1000", end_ns);
    *metrics = code ? 0 : sqlite3_changes(db);
    return code;
}

/* One round, in a transaction: a note is not deleted without its value. */
static int shrink_once(sqlite3 *db, int64_t *deleted)
{
    int64_t values = 0, metrics = 0, end_ns = INT64_MIN;
    int code = store_file_run(db, "BEGIN IMMEDIATE");
    if (code)
        return code;
    code = find_oldest(db, &values, &end_ns);
    if (!code)
        code = delete_oldest(db, end_ns, &metrics);
    code = end_transaction(db, code);
    *deleted = code ? 0 : values + metrics;
    return code;
}

/* Whether the file uses too much, and deleting can help. */
static int must_shrink(sqlite3 *db, int64_t bytes, const char **table, bool *must)
{
    int64_t used = 0;
    int code = ask_size(db, &used);
    *must = false;
    if (code || used <= bytes)
        return code;
    code = find_too_large(db, bytes, table);
    *must = !code && !*table;
    return code;
}

int store_fold_shrink(sqlite3 *db, int64_t bytes, int64_t *deleted, const char **table)
{
    bool must;
    int64_t used = 0, round = 1;
    *deleted = 0;
    *table = NULL;
    int code = must_shrink(db, bytes, table, &must);
    while (!code && must && round) {
        code = shrink_once(db, &round);
        *deleted += round;
        if (!code)
            code = ask_size(db, &used);
        must = used > bytes;
    }
    if (!code && must) /* nothing is left to be deleted */
        code = find_too_large(db, -1, table);
    return code;
}
