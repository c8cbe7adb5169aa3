/* sqlite: inserts values into an SQLite database, one transaction per batch. samples_table.c accesses the
 * database. */

#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

#include "../system.h"
#include "../database/database.h"
#include "samples_table.h"

struct sqlite_options {
    const char *path, *prefix;
    int64_t journal_mode, synchronous;
    int64_t busy_timeout_ns;
};

static const char *const journal_modes[] = {"wal", "delete", "truncate", "persist"};
static const char *const synchronous_modes[] = {"off", "normal", "full", "extra"};

static const weir_option sqlite_option_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the database file; created if it does not exist", struct sqlite_options, path),
    WEIR_OPTION_ROW("prefix", STRING, 0, NULL, NULL, "a prefix for table names: letters, digits and _",
                    struct sqlite_options, prefix),
    WEIR_OPTION_ROW("journal_mode", ENUM, 0, "wal", "wal|delete|truncate|persist",
                    "SQLite's PRAGMA journal_mode", struct sqlite_options, journal_mode),
    WEIR_OPTION_ROW("synchronous", ENUM, 0, "normal", "off|normal|full|extra", "SQLite's PRAGMA synchronous",
                    struct sqlite_options, synchronous),
    WEIR_OPTION_ROW("busy_timeout", DURATION, 0, "1s", "0s..1m",
                    "how long an attempt waits for a database locked by another connection",
                    struct sqlite_options, busy_timeout_ns),
    {0},
};

struct sqlite {
    const weir_host *host;
    const struct sqlite_options *options;
    struct samples_table table;
    struct database database;
    struct database_wait wait;
};

/* ---- Creating -------------------------------------------------------------------------------- */

/* It becomes part of table names. Statements here quote them, but users' queries should not have to. */
static bool is_valid_prefix(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return strspn(text, allowed) == strlen(text) && !(*text >= '0' && *text <= '9') && strlen(text) <= 63;
}

static void *sqlite_create(const weir_host *host, const void *given)
{
    const struct sqlite_options *options = given;
    if (options->prefix && !is_valid_prefix(options->prefix)) {
        host->refuse(
            host, "prefix",
            "\"%s\" is not a valid prefix; allowed: up to 63 letters, digits and _, not starting with a digit",
            options->prefix);
        return NULL;
    }
    struct sqlite *sqlite = wr_system_allocate(host, sizeof *sqlite);
    if (!sqlite)
        return NULL;
    sqlite->host = host;
    sqlite->options = options;
    return sqlite;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_table(struct sqlite *sqlite)
{
    const struct sqlite_options *options = sqlite->options;
    sqlite->wait = (struct database_wait){sqlite->host, options->busy_timeout_ns, 0};
    const struct samples_table_settings settings = {
        .path = options->path,
        .prefix = options->prefix ? options->prefix : "",
        .journal_mode = journal_modes[options->journal_mode],
        .synchronous = synchronous_modes[options->synchronous],
        .busy = database_wait,
        .ctx = &sqlite->wait,
    };
    return wr_samples_table_open(&sqlite->table, &settings);
}

static void set_outcome(const struct sqlite *sqlite, const char *operation, int code, weir_outcome *outcome)
{
    database_set_outcome(outcome, operation, sqlite->options->path, code,
                         database_message(sqlite->table.db, code));
}

static void sqlite_open(void *self, weir_outcome *outcome)
{
    struct sqlite *sqlite = self;
    const char *path = sqlite->options->path;
    if (!database_may_open(&sqlite->database, path, outcome))
        return;
    int code = open_table(sqlite);
    if (!code && !database_opened(&sqlite->database, path, sqlite->table.db))
        code = SQLITE_CANTOPEN;
    if (!code)
        return;
    set_outcome(sqlite, "open", code, outcome);
    wr_samples_table_close(&sqlite->table);
    database_closed(&sqlite->database);
}

static void sqlite_close(void *self)
{
    struct sqlite *sqlite = self;
    if (database_is_lost(&sqlite->database)) {
        series_rows_fini(&sqlite->table.rows);
        sqlite->table = (struct samples_table){0};
    }
    wr_samples_table_close(&sqlite->table);
    database_closed(&sqlite->database);
}

static void sqlite_abandon(void *self)
{
    const struct sqlite *sqlite = self;
    database_abandon(&sqlite->database);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static void sqlite_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct sqlite *sqlite = self;
    outcome->done = 0;
    if (!database_check(&sqlite->database, sqlite->options->path, outcome))
        return;
    int code = wr_samples_table_put(&sqlite->table, batch);
    if (!code) {
        outcome->done = batch->count;
        return;
    }
    set_outcome(sqlite, "write", code, outcome);
    wr_samples_table_roll_back(&sqlite->table);
}

static void sqlite_wake(void *self, int why, weir_outcome *outcome)
{
    const struct sqlite *sqlite = self;
    if (why == WEIR_WAKE_RELOAD)
        database_check(&sqlite->database, sqlite->options->path, outcome);
}

static const weir_handler_type sqlite_type = {
    .size = sizeof sqlite_type,
    .abi = WEIR_ABI,
    .name = "sqlite",
    .summary = "inserts values into an SQLite database",
    .options = sqlite_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct sqlite_options),
    .create = sqlite_create,
    .open = sqlite_open,
    .emit = sqlite_emit,
    .close = sqlite_close,
    .destroy = free,
    .wake = sqlite_wake,
    .abandon = sqlite_abandon,
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &sqlite_type : NULL;
}
