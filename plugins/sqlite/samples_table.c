#include "samples_table.h"

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

static int prepare_all(struct samples_table *table, const char *prefix)
{
    const struct {
        sqlite3_stmt **statement;
        const char *text; /* may have one conversion, the prefix */
    } all[] = {
        {&table->begin, "BEGIN IMMEDIATE"},
        {&table->commit, "COMMIT"},
        {&table->rollback, "ROLLBACK"},
        {&table->put_series, "INSERT INTO \"%wseries\" (group_name, name, labels, cumulative, unit, help) "
                             "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                             "unit = ifnull(excluded.unit, unit), help = ifnull(excluded.help, help) "
                             "RETURNING id"},
        {&table->put_sample, "INSERT INTO \"%wsamples\" VALUES (?, ?, ?, ?)"},
    };
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < sizeof all / sizeof *all; i++)
        code = prepare(table->db, all[i].statement, sqlite3_mprintf(all[i].text, prefix));
    return code;
}

/* The journal mode must be set before the first transaction. Changing it requires that no other connection
 * uses the database. */
static int set_modes(sqlite3 *db, const struct samples_table_settings *settings)
{
    int code = run_text(db, sqlite3_mprintf("PRAGMA synchronous = %s", settings->synchronous));
    return code ? code : run_text(db, sqlite3_mprintf("PRAGMA journal_mode = %s", settings->journal_mode));
}

int wr_samples_table_open(struct samples_table *table, const struct samples_table_settings *settings)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(settings->path, &table->db, flags, NULL);
    if (code)
        return code;
    sqlite3_extended_result_codes(table->db, 1);
    sqlite3_busy_handler(table->db, settings->busy, settings->ctx);
    code = set_modes(table->db, settings);
    if (!code)
        code = make_tables(table->db, settings->prefix);
    return code ? code : prepare_all(table, settings->prefix);
}

void wr_samples_table_close(struct samples_table *table)
{
    sqlite3_finalize(table->begin);
    sqlite3_finalize(table->commit);
    sqlite3_finalize(table->rollback);
    sqlite3_finalize(table->put_series);
    sqlite3_finalize(table->put_sample);
    sqlite3_close(table->db);
    series_rows_fini(&table->rows);
    *table = (struct samples_table){0};
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int put_sample(struct samples_table *table, const weir_batch *batch, const weir_sample *sample)
{
    int64_t row;
    int code = series_rows_get(&table->rows, table->put_series, batch, weir_batch_series(batch, sample), &row);
    if (code)
        return code;
    sqlite3_stmt *statement = table->put_sample;
    sqlite3_bind_int64(statement, 1, row);
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

int wr_samples_table_put(struct samples_table *table, const weir_batch *batch)
{
    series_rows_begin(&table->rows, batch);
    int code = run(table->begin);
    for (uint32_t i = 0; !code && i < batch->count; i++)
        code = put_sample(table, batch, &batch->samples[i]);
    return code ? code : run(table->commit);
}

/* Some errors have already rolled back the transaction. */
void wr_samples_table_roll_back(struct samples_table *table)
{
    if (!sqlite3_get_autocommit(table->db))
        run(table->rollback);
    series_rows_clear(&table->rows);
}
