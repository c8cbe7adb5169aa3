#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

/* ---- Opening --------------------------------------------------------------------------------- */

/* Each takes the prefix as often as it names a table. A value keeps the type it was added with, since its
 * column has none. */
static const char *const schema[] = {
    "CREATE TABLE IF NOT EXISTS \"%wseries\" (id INTEGER PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT "
    "NULL, "
    "labels TEXT NOT NULL, cumulative INTEGER NOT NULL, unit TEXT, help TEXT, "
    "UNIQUE (group_name, name, labels, cumulative))",
    "CREATE TABLE IF NOT EXISTS \"%wsamples\" (series INTEGER NOT NULL REFERENCES \"%wseries\" (id), "
    "time_ns INTEGER NOT NULL, value, metadata TEXT)",
    "CREATE INDEX IF NOT EXISTS \"%wsamples_by_time\" ON \"%wsamples\" (series, time_ns)",
    "CREATE VIEW IF NOT EXISTS \"%wvalues\" AS SELECT strftime('%%Y-%%m-%%d %%H:%%M:%%S', time_ns / "
    "1000000000, "
    "'unixepoch') || printf('.%%09d', time_ns %% 1000000000) AS time, group_name, name, value, labels, unit, "
    "metadata "
    "FROM \"%wsamples\" JOIN \"%wseries\" ON id = series",
};

static int run_text(sqlite3 *db, char *text)
{
    int code = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

static int make_tables(sqlite3 *db, const char *prefix)
{
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < sizeof schema / sizeof *schema; i++)
        code = run_text(db, sqlite3_mprintf(schema[i], prefix, prefix, prefix));
    return code;
}

static int prepare(sqlite3 *db, sqlite3_stmt **statement, char *text)
{
    int code =
        text ? sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

static int prepare_all(struct store *store, const char *prefix)
{
    sqlite3 *db = store->db;
    int code = prepare(db, &store->begin, sqlite3_mprintf("BEGIN IMMEDIATE"));
    if (!code)
        code = prepare(db, &store->commit, sqlite3_mprintf("COMMIT"));
    if (!code)
        code = prepare(db, &store->rollback, sqlite3_mprintf("ROLLBACK"));
    if (!code)
        code = prepare(
            db, &store->put_series,
            sqlite3_mprintf("INSERT INTO \"%wseries\" (group_name, name, labels, cumulative, unit, help) "
                            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                            "unit = ifnull(excluded.unit, unit), help = ifnull(excluded.help, help) "
                            "RETURNING id",
                            prefix));
    if (!code)
        code = prepare(db, &store->put_sample,
                       sqlite3_mprintf("INSERT INTO \"%wsamples\" VALUES (?, ?, ?, ?)", prefix));
    return code;
}

/* The mode has to be set before the first transaction; changing it needs the database for oneself. */
static int set_modes(sqlite3 *db, const struct store_settings *settings)
{
    int code = run_text(db, sqlite3_mprintf("PRAGMA synchronous = %s", settings->synchronous));
    return code ? code : run_text(db, sqlite3_mprintf("PRAGMA journal_mode = %s", settings->journal_mode));
}

int store_open(struct store *store, const struct store_settings *settings)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(settings->path, &store->db, flags, NULL);
    if (code)
        return code;
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_handler(store->db, settings->busy, settings->ctx);
    code = set_modes(store->db, settings);
    if (!code)
        code = make_tables(store->db, settings->prefix);
    return code ? code : prepare_all(store, settings->prefix);
}

void store_close(struct store *store)
{
    sqlite3_finalize(store->begin);
    sqlite3_finalize(store->commit);
    sqlite3_finalize(store->rollback);
    sqlite3_finalize(store->put_series);
    sqlite3_finalize(store->put_sample);
    sqlite3_close(store->db);
    sqlite3_free(store->commons);
    free(store->series);
    *store = (struct store){0};
}

const char *store_words(const struct store *store, int code)
{
    return store->db && sqlite3_errcode(store->db) != SQLITE_OK ? sqlite3_errmsg(store->db)
                                                                : sqlite3_errstr(code);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static void forget_series(struct store *store)
{
    memset(store->series, 0, store->room * sizeof *store->series);
}

/* The series of before have other labels once those of the configuration have changed. */
static int note_commons(struct store *store, const weir_batch *batch)
{
    char *json = labels_to_json(batch->labels, batch->label_count, NULL, 0);
    if (!json)
        return SQLITE_NOMEM;
    if (!store->commons || strcmp(json, store->commons) != 0)
        if (store->series)
            forget_series(store);
    sqlite3_free(store->commons);
    store->commons = json;
    return SQLITE_OK;
}

/* The place of a series; NULL: no memory. */
static struct store_series *find_series(struct store *store, uint32_t id)
{
    if (id < store->room)
        return &store->series[id];
    uint32_t room = id < 1024 ? 1024 : id < UINT32_MAX / 2 ? id * 2 : UINT32_MAX;
    struct store_series *series = realloc(store->series, room * sizeof *series);
    if (!series)
        return NULL;
    memset(series + store->room, 0, (room - store->room) * sizeof *series);
    store->series = series;
    store->room = room;
    return &series[id];
}

static int put_series(struct store *store, const weir_batch *batch, const weir_series *series,
                      struct store_series *known)
{
    sqlite3_stmt *put = store->put_series;
    char *labels = labels_to_json(series->labels, series->label_count, batch->labels, batch->label_count);
    if (!labels)
        return SQLITE_NOMEM;
    sqlite3_bind_text(put, 1, series->group, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 2, series->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 3, labels, -1, sqlite3_free);
    sqlite3_bind_int(put, 4, series->cumulative);
    sqlite3_bind_text(put, 5, series->unit, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 6, series->help, -1, SQLITE_STATIC);
    if (sqlite3_step(put) == SQLITE_ROW)
        *known = (struct store_series){sqlite3_column_int64(put, 0), series->unit, series->help};
    while (sqlite3_step(put) == SQLITE_ROW)
        ;
    return sqlite3_reset(put);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int put_sample(struct store *store, const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    struct store_series *known = find_series(store, sample->series);
    int code = known ? SQLITE_OK : SQLITE_NOMEM;
    if (!code && (!known->row || known->unit != series->unit || known->help != series->help))
        code = put_series(store, batch, series, known);
    if (code)
        return code;
    sqlite3_stmt *put = store->put_sample;
    sqlite3_bind_int64(put, 1, known->row);
    sqlite3_bind_int64(put, 2, sample->time_ns);
    if (sample->kind == WEIR_KIND_INT)
        sqlite3_bind_int64(put, 3, sample->value.i64);
    else
        sqlite3_bind_double(put, 3, sample->value.f64);
    sqlite3_bind_text(put, 4, sample->note ? batch->notes[sample->note] : NULL, -1, SQLITE_STATIC);
    sqlite3_step(put);
    return sqlite3_reset(put);
}

static int run(sqlite3_stmt *statement)
{
    sqlite3_step(statement);
    return sqlite3_reset(statement);
}

int store_put(struct store *store, const weir_batch *batch)
{
    int code = note_commons(store, batch);
    if (!code)
        code = run(store->begin);
    for (uint32_t i = 0; !code && i < batch->count; i++)
        code = put_sample(store, batch, &batch->samples[i]);
    return code ? code : run(store->commit);
}

/* Some failures have ended the transaction already. */
void store_undo(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        run(store->rollback);
    if (store->series)
        forget_series(store);
}
