#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

/* ---- Opening --------------------------------------------------------------------------------- */

/* All conversions are the prefix. `value` has no type, so that SQLite keeps the type of the inserted value. */
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

/* The journal mode must be set before the first transaction. Changing it requires that no other connection
 * uses the database. */
static int set_modes(sqlite3 *db, const struct store_settings *settings)
{
    int code = run_text(db, sqlite3_mprintf("PRAGMA synchronous = %s", settings->synchronous));
    return code ? code : run_text(db, sqlite3_mprintf("PRAGMA journal_mode = %s", settings->journal_mode));
}

int wr_store_open(struct store *store, const struct store_settings *settings)
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

void wr_store_close(struct store *store)
{
    sqlite3_finalize(store->begin);
    sqlite3_finalize(store->commit);
    sqlite3_finalize(store->rollback);
    sqlite3_finalize(store->put_series);
    sqlite3_finalize(store->put_sample);
    sqlite3_close(store->db);
    sqlite3_free(store->common_labels);
    free(store->series);
    *store = (struct store){0};
}

const char *wr_store_message(const struct store *store, int code)
{
    return store->db && sqlite3_errcode(store->db) != SQLITE_OK ? sqlite3_errmsg(store->db)
                                                                : sqlite3_errstr(code);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static void clear_series(struct store *store)
{
    memset(store->series, 0, store->capacity * sizeof *store->series);
}

/* The cached rows are of series with the old labels. If the configuration's labels have changed, these are
 * other series. */
static int update_common_labels(struct store *store, const weir_batch *batch)
{
    char *json = wr_labels_to_json(batch->labels, batch->label_count, NULL, 0);
    if (!json)
        return SQLITE_NOMEM;
    if (!store->common_labels || strcmp(json, store->common_labels) != 0)
        if (store->series)
            clear_series(store);
    sqlite3_free(store->common_labels);
    store->common_labels = json;
    return SQLITE_OK;
}

/* The cache entry of a series. Returns NULL if out of memory. */
static struct store_series *find_series(struct store *store, uint32_t id)
{
    if (id < store->capacity)
        return &store->series[id];
    uint32_t capacity = id < 1024 ? 1024 : id < UINT32_MAX / 2 ? id * 2 : UINT32_MAX;
    struct store_series *series = realloc(store->series, capacity * sizeof *series);
    if (!series)
        return NULL;
    memset(series + store->capacity, 0, (capacity - store->capacity) * sizeof *series);
    store->series = series;
    store->capacity = capacity;
    return &series[id];
}

static int put_series(struct store *store, const weir_batch *batch, const weir_series *series,
                      struct store_series *cached)
{
    sqlite3_stmt *statement = store->put_series;
    char *labels = wr_labels_to_json(series->labels, series->label_count, batch->labels, batch->label_count);
    if (!labels)
        return SQLITE_NOMEM;
    sqlite3_bind_text(statement, 1, series->group, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, series->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, labels, -1, sqlite3_free);
    sqlite3_bind_int(statement, 4, series->cumulative);
    sqlite3_bind_text(statement, 5, series->unit, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 6, series->help, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW)
        *cached = (struct store_series){sqlite3_column_int64(statement, 0), series->unit, series->help};
    while (sqlite3_step(statement) == SQLITE_ROW)
        ;
    return sqlite3_reset(statement);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int put_sample(struct store *store, const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    struct store_series *cached = find_series(store, sample->series);
    int code = cached ? SQLITE_OK : SQLITE_NOMEM;
    if (!code && (!cached->row || cached->unit != series->unit || cached->help != series->help))
        code = put_series(store, batch, series, cached);
    if (code)
        return code;
    sqlite3_stmt *statement = store->put_sample;
    sqlite3_bind_int64(statement, 1, cached->row);
    sqlite3_bind_int64(statement, 2, sample->time_ns);
    if (sample->kind == WEIR_KIND_INT)
        sqlite3_bind_int64(statement, 3, sample->value.i64);
    else
        sqlite3_bind_double(statement, 3, sample->value.f64);
    sqlite3_bind_text(statement, 4, sample->note ? batch->notes[sample->note] : NULL, -1, SQLITE_STATIC);
    sqlite3_step(statement);
    return sqlite3_reset(statement);
}

static int run(sqlite3_stmt *statement)
{
    sqlite3_step(statement);
    return sqlite3_reset(statement);
}

int wr_store_put(struct store *store, const weir_batch *batch)
{
    int code = update_common_labels(store, batch);
    if (!code)
        code = run(store->begin);
    for (uint32_t i = 0; !code && i < batch->count; i++)
        code = put_sample(store, batch, &batch->samples[i]);
    return code ? code : run(store->commit);
}

/* Some errors have already rolled back the transaction. */
void wr_store_roll_back(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        run(store->rollback);
    if (store->series)
        clear_series(store);
}
