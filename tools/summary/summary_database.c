#include "summary_database.h"

#include <string.h>

#include "common/command.h"

bool summary_database_is(const char *bytes, size_t length)
{
    static const char magic[] = "SQLite format 3"; /* with its NUL */
    return length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

#ifndef HAVE_SQLITE

bool summary_database_read(const char *path, struct statistics *statistics)
{
    (void)statistics;
    command_fail("%s: is a database, and this weir was built without SQLite", path);
    return false;
}

#else

#include <json-c/json.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "statistics.h"

enum { BUSY_MS = 10000 };

/* ---- Labels ---------------------------------------------------------------------------------- */

/* {"key": "value", ...}. What is returned borrows from the object. */
struct labels {
    struct json_object *object;
    weir_label *list;
    size_t count;
};

static void free_labels(struct labels *labels)
{
    free(labels->list);
    json_object_put(labels->object);
    *labels = (struct labels){0};
}

/* Text that is no such object is no label. */
static void read_labels(struct labels *labels, const char *text)
{
    labels->object = text ? json_tokener_parse(text) : NULL;
    if (!json_object_is_type(labels->object, json_type_object))
        return;
    labels->list =
        command_must(calloc((size_t)json_object_object_length(labels->object) + 1, sizeof *labels->list));
    json_object_object_foreach(labels->object, key, value)
    {
        if (value)
            labels->list[labels->count++] = (weir_label){key, json_object_get_string(value)};
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static const char *text_at(sqlite3_stmt *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows, column);
    return text ? text : "";
}

/* SQLite has no NaN: such a value is NULL. */
static weir_typed_value value_at(sqlite3_stmt *rows, int column, const char *name)
{
    weir_typed_value value = {.name = name, .number.kind = WEIR_KIND_DOUBLE};
    switch (sqlite3_column_type(rows, column)) {
    case SQLITE_INTEGER:
        value.number.kind = WEIR_KIND_INT;
        value.number.is.i64 = sqlite3_column_int64(rows, column);
        break;
    case SQLITE_NULL: value.number.is.f64 = NAN; break;
    default: value.number.is.f64 = sqlite3_column_double(rows, column); break;
    }
    return value;
}

/* Rows are in the order of their series, so labels are parsed once for each. Returns SQLite's code. */
static int add_rows(sqlite3_stmt *rows, struct statistics *statistics)
{
    struct labels labels = {0};
    sqlite3_int64 series = 0;
    bool has_series = false;
    int code;
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        if (!has_series || series != sqlite3_column_int64(rows, 0)) {
            free_labels(&labels);
            read_labels(&labels, text_at(rows, 3));
            series = sqlite3_column_int64(rows, 0);
            has_series = true;
        }
        const weir_typed_value value = value_at(rows, 6, text_at(rows, 2));
        const struct wr_parse_record record = {
            .group = text_at(rows, 1),
            .labels = labels.list,
            .label_count = labels.count,
            .values = &value,
            .count = 1,
            .has_time = true,
            .time_ns = sqlite3_column_int64(rows, 5),
            .cumulative = sqlite3_column_int(rows, 4) != 0,
            .sample_rate = 1,
        };
        statistics_add(statistics, &record, NULL);
    }
    free_labels(&labels);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int prepare(sqlite3 *database, sqlite3_stmt **statement, char *text)
{
    if (!text)
        return SQLITE_NOMEM;
    int code = sqlite3_prepare_v2(database, text, -1, statement, NULL);
    sqlite3_free(text);
    return code;
}

static int add_table(sqlite3 *database, const char *prefix, struct statistics *statistics)
{
    sqlite3_stmt *rows = NULL;
    int code = prepare(database, &rows,
                       sqlite3_mprintf("SELECT s.id, s.group_name, s.name, s.labels, s.cumulative, v.time_ns, "
                                       "v.value FROM \"%wsamples\" v JOIN \"%wseries\" s ON s.id = v.series "
                                       "ORDER BY v.series, v.time_ns",
                                       prefix, prefix));
    if (!code)
        code = add_rows(rows, statistics);
    sqlite3_finalize(rows);
    return code;
}

/* The handler's tables are PREFIXsamples and PREFIXseries. */
static int add_tables(sqlite3 *database, struct statistics *statistics, size_t *count)
{
    sqlite3_stmt *tables = NULL;
    int code = sqlite3_prepare_v2(
        database,
        "SELECT substr(name, 1, length(name) - 7) FROM sqlite_master WHERE type = 'table' AND name LIKE "
        "'%samples' "
        "AND EXISTS (SELECT 1 FROM sqlite_master o WHERE o.type = 'table' AND "
        "o.name = substr(sqlite_master.name, 1, length(sqlite_master.name) - 7) || 'series') ORDER BY 1",
        -1, &tables, NULL);
    while (!code && (code = sqlite3_step(tables)) == SQLITE_ROW) {
        code = add_table(database, text_at(tables, 0), statistics);
        ++*count;
    }
    sqlite3_finalize(tables);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

bool summary_database_read(const char *path, struct statistics *statistics)
{
    sqlite3 *database = NULL;
    size_t count = 0;
    int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (!code)
        code = sqlite3_busy_timeout(database, BUSY_MS);
    if (!code)
        code = add_tables(database, statistics, &count);
    if (code)
        command_fail("%s: %s", path, database ? sqlite3_errmsg(database) : sqlite3_errstr(code));
    else if (!count)
        command_fail("%s: has no tables of the handler type sqlite", path);
    sqlite3_close(database);
    return !code && count;
}

#endif
