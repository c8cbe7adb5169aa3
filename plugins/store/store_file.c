#include "store_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* In nanoseconds since 1970: *_ns; in microseconds: *_us. labels: JSON, sorted by key. */
static const char schema[] =
    "CREATE TABLE series (id INTEGER PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT NULL,"
    " labels TEXT NOT NULL, cumulative INTEGER NOT NULL, instrument INTEGER NOT NULL, unit TEXT, help TEXT,"
    " UNIQUE (group_name, name, labels, cumulative));"
    /* value: NULL is NaN, which SQLite cannot store */
    "CREATE TABLE tail (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, time_ns INTEGER NOT NULL, value);"
    "CREATE TABLE chunks (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, first_ns INTEGER NOT NULL,"
    " last_ns INTEGER NOT NULL, count INTEGER NOT NULL, finite INTEGER NOT NULL, sum REAL NOT NULL, min REAL,"
    " max REAL, first REAL, last REAL, rise REAL, points BLOB NOT NULL);"
    /* it has all that is known of a chunk but its points, so that totals are read without the table's pages */
    "CREATE INDEX chunks_by_time ON chunks (series, first_ns, last_ns, count, finite, sum, min, max, first,"
    " last, rise);"
    "CREATE INDEX chunks_by_age ON chunks (last_ns);"
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, time_ns INTEGER NOT NULL,"
    " text TEXT NOT NULL, value);"
    "CREATE INDEX notes_by_time ON notes (series, time_ns);"
    "CREATE INDEX notes_by_age ON notes (time_ns);"
    /* of each sender the number of the first value that was not stored yet, and when its first values were */
    "CREATE TABLE origins (origin TEXT PRIMARY KEY, next INTEGER NOT NULL, seen_s INTEGER NOT NULL,"
    " since_us INTEGER) WITHOUT ROWID;"
    /* when senders of the process joined and left, by whom it shows them */
    "CREATE TABLE marks (id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE INDEX marks_by_time ON marks (at_us);"
    /* what clients of MLBench's REST API have stored */
    "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, created_us INTEGER NOT NULL,"
    " finished_us INTEGER, state TEXT NOT NULL, job_id TEXT NOT NULL DEFAULT '',"
    " num_workers INTEGER NOT NULL DEFAULT 2, cpu_limit TEXT NOT NULL DEFAULT '12000m',"
    " image TEXT NOT NULL DEFAULT '', command TEXT NOT NULL DEFAULT '', backend TEXT NOT NULL DEFAULT 'mpi',"
    " all_nodes INTEGER NOT NULL DEFAULT 0, gpu INTEGER NOT NULL DEFAULT 0, light INTEGER NOT NULL DEFAULT 0,"
    " stdout TEXT NOT NULL DEFAULT '', stderr TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE pods (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " labels TEXT NOT NULL DEFAULT '{}', phase TEXT NOT NULL DEFAULT 'Running', ip TEXT NOT NULL DEFAULT '',"
    " node TEXT NOT NULL DEFAULT '', run_id INTEGER REFERENCES runs (id) ON DELETE SET NULL);"
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id INTEGER REFERENCES runs (id) ON DELETE CASCADE,"
    " pod_id INTEGER REFERENCES pods (id) ON DELETE CASCADE, name TEXT NOT NULL, date_us INTEGER NOT NULL,"
    " value TEXT NOT NULL, metadata TEXT NOT NULL, cumulative INTEGER NOT NULL);"
    "CREATE INDEX metrics_by_run ON metrics (run_id, name, date_us, id);"
    "CREATE INDEX metrics_by_pod ON metrics (pod_id, name, date_us, id);"
    "CREATE INDEX metrics_by_age ON metrics (date_us);";

int store_file_run(sqlite3 *db, const char *statement)
{
    return sqlite3_exec(db, statement, NULL, NULL, NULL);
}

int store_file_prepare(sqlite3 *db, const char *text, sqlite3_stmt **statement)
{
    return sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
}

struct chunk_point store_file_point(sqlite3_stmt *row, int column)
{
    struct chunk_point point = {.time_ns = sqlite3_column_int64(row, column)};
    int type = sqlite3_column_type(row, column + 1);
    point.is_int = type == SQLITE_INTEGER;
    if (point.is_int)
        point.value.i64 = sqlite3_column_int64(row, column + 1);
    else
        point.value.f64 = type == SQLITE_NULL ? NAN : sqlite3_column_double(row, column + 1);
    return point;
}

void store_file_bind(sqlite3_stmt *statement, const char *types, va_list arguments)
{
    for (int i = 0; types[i]; i++) {
        if (types[i] == 'i')
            sqlite3_bind_int64(statement, i + 1, va_arg(arguments, int64_t));
        else
            sqlite3_bind_text(statement, i + 1, va_arg(arguments, const char *), -1, SQLITE_STATIC);
    }
}

int store_file_step(sqlite3_stmt *statement)
{
    while (sqlite3_step(statement) == SQLITE_ROW)
        ;
    return sqlite3_reset(statement);
}

int store_file_ask_number(sqlite3 *db, const char *query, int64_t *number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, query, -1, &statement, NULL);
    if (code)
        return code;
    if (sqlite3_step(statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    return sqlite3_finalize(statement);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int set_version(sqlite3 *db)
{
    char *mark = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION_ID,
                                 STORE_VERSION);
    int code = mark ? store_file_run(db, mark) : SQLITE_NOMEM;
    sqlite3_free(mark);
    return code;
}

static int make_tables(sqlite3 *db)
{
    int code = store_file_run(db, schema);
    return code ? code : set_version(db);
}

/* Within a transaction, since several processes may make the file at once. */
static int check_version(sqlite3 *db, char *problem, size_t room)
{
    int64_t application = 0, version = 0, tables = 0;
    int code = store_file_ask_number(db, "PRAGMA application_id", &application);
    if (!code)
        code = store_file_ask_number(db, "PRAGMA user_version", &version);
    if (!code)
        code = store_file_ask_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
    if (code)
        return code;
    if (tables == 0 && application == 0 && version == 0)
        return make_tables(db);
    if (application == STORE_APPLICATION_ID && version == STORE_VERSION)
        return SQLITE_OK;
    if (application != STORE_APPLICATION_ID)
        snprintf(problem, room, "it is a database, but not one of the handler store");
    else
        snprintf(problem, room, "it has version %" PRId64 "; this weir knows version %d", version,
                 STORE_VERSION);
    return SQLITE_NOTADB;
}

static int prepare_file(sqlite3 *db, bool syncs, char *problem, size_t room)
{
    int code = store_file_run(db, "BEGIN IMMEDIATE");
    if (code)
        return code;
    code = check_version(db, problem, room);
    if (code) {
        store_file_run(db, "ROLLBACK");
        return code;
    }
    code = store_file_run(db, "COMMIT");
    if (!code)
        code = store_file_run(db, "PRAGMA journal_mode = wal; PRAGMA foreign_keys = on");
    return code ? code
                : store_file_run(db, syncs ? "PRAGMA synchronous = full" : "PRAGMA synchronous = normal");
}

int store_file_open(sqlite3 **db, const char *path, bool syncs, int (*busy)(void *ctx, int count), void *ctx,
                    char *problem, size_t room)
{
    *problem = '\0';
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(path, db, flags, NULL);
    if (code)
        return code;
    sqlite3_extended_result_codes(*db, 1);
    sqlite3_busy_handler(*db, busy, ctx);
    return prepare_file(*db, syncs, problem, room);
}

void store_file_keep_journal(sqlite3 *db)
{
    int keeps = 1;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
}
