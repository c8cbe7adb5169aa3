/* store: keeps values in an SQLite file, from which they are read by series and time.
 *
 * Each batch is a transaction. When the tail has many rows, they are packed: see store_file.h. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/handler.h>

#include "../system.h"
#include "../database/database.h"
#include "store_file.h"
#include "store_fold.h"
#include "store_writer.h"

enum { TEND_MS = 60000 };

struct store_options {
    const char *path;
    int64_t tail, keep_ns, size_limit;
    int64_t synchronous;
    int64_t busy_timeout_ns;
};

static const weir_option store_options_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the database file; created if it does not exist", struct store_options, path),
    WEIR_OPTION_ROW("tail", INT, 0, "500000", "1..100000000",
                    "how many values are kept as they came before they are packed", struct store_options, tail),
    WEIR_OPTION_ROW("keep", DURATION, 0, "30d", "0s..10000d", "how long to keep packed values; 0s: for ever",
                    struct store_options, keep_ns),
    WEIR_OPTION_ROW("size_limit", SIZE, 0, "10GiB", "1MiB..64TiB",
                    "how large the file may become; then the oldest packed values are deleted",
                    struct store_options, size_limit),
    WEIR_OPTION_ROW("synchronous", ENUM, 0, "normal", "normal|full",
                    "SQLite's PRAGMA synchronous; full: what is delivered survives a crash of the machine, too",
                    struct store_options, synchronous),
    WEIR_OPTION_ROW("busy_timeout", DURATION, 0, "1s", "0s..1m",
                    "how long an attempt waits for a database locked by another connection",
                    struct store_options, busy_timeout_ns),
    {0},
};

struct store {
    const weir_host *host;
    const struct store_options *options;
    sqlite3 *db; /* NULL: not open */
    struct database database;
    struct database_wait wait;
    struct store_writer writer;
    bool tending_failed;   /* the last time */
    const char *too_large; /* the table of the last warning; NULL: none */
};

static void *create(const weir_host *host, const void *options)
{
    struct store *store = wr_system_allocate(host, sizeof *store);
    if (!store)
        return NULL;
    store->host = host;
    store->options = options;
    return store;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void set_outcome(const struct store *store, const char *operation, int code, weir_outcome *outcome)
{
    database_set_outcome(outcome, operation, store->options->path, code, database_message(store->db, code));
}

static void close_store(void *self)
{
    struct store *store = self;
    if (database_is_lost(&store->database)) {
        store->writer = (struct store_writer){0};
        store->db = NULL;
    }
    store_writer_fini(&store->writer);
    if (store->db && store->database.is_open && !database_is_in_place(&store->database, store->options->path))
        store_file_keep_journal(store->db);
    sqlite3_close(store->db);
    store->db = NULL;
    database_closed(&store->database);
}

static void open_store(void *self, weir_outcome *outcome)
{
    struct store *store = self;
    const struct store_options *options = store->options;
    char problem[128];
    if (!database_may_open(&store->database, options->path, outcome))
        return;
    store->wait = (struct database_wait){store->host, options->busy_timeout_ns, 0};
    int code = store_file_open(&store->db, options->path, options->synchronous, database_wait, &store->wait,
                               problem, sizeof problem);
    if (!code)
        code = store_writer_init(&store->writer, store->db);
    if (!code && !database_opened(&store->database, options->path, store->db))
        code = SQLITE_CANTOPEN;
    if (!code) {
        store->host->wake_in(store->host, TEND_MS);
        return;
    }
    database_set_outcome(outcome, "open", options->path, code,
                         *problem ? problem : database_message(store->db, code));
    close_store(store);
}

static void abandon(void *self)
{
    const struct store *store = self;
    database_abandon(&store->database);
}

/* ---- Tending --------------------------------------------------------------------------------- */

static int pack_tail(struct store *store)
{
    int64_t stays = 0;
    int code = store_fold(store->db, &stays);
    if (code)
        return code;
    if (store->writer.tail_count > (uint64_t)stays)
        store->host->count(store->host, "packed", store->writer.tail_count - (uint64_t)stays);
    store->writer.tail_count = (uint64_t)stays;
    return SQLITE_OK;
}

static int forget_old(struct store *store)
{
    const struct store_options *options = store->options;
    int64_t deleted = 0;
    const char *table = NULL;
    int code = options->keep_ns
                   ? store_fold_forget(store->db, wr_system_clock_ns(CLOCK_REALTIME) - options->keep_ns)
                   : SQLITE_OK;
    if (!code)
        code = store_fold_shrink(store->db, options->size_limit, &deleted, &table);
    if (deleted)
        store->host->log(store->host, WEIR_LOG_WARNING,
                         "size_limit is reached: the oldest %" PRId64 " values were deleted", deleted);
    if (table && table != store->too_large)
        store->host->log(store->host, WEIR_LOG_WARNING,
                         "size_limit is reached: the table \"%s\" is too large, and its rows are not deleted",
                         table);
    store->too_large = table;
    return code;
}

/* A failure is tried again after TEND_MS; meanwhile the tail grows, and nothing is lost. */
static void tend(struct store *store)
{
    int code = store->writer.tail_count >= (uint64_t)store->options->tail ? pack_tail(store) : SQLITE_OK;
    if (!code)
        code = forget_old(store);
    store->tending_failed = code != SQLITE_OK;
    if (code)
        store->host->log(store->host, WEIR_LOG_WARNING, "%s: %s; tried again in a minute", store->options->path,
                         database_message(store->db, code));
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    struct store *store = self;
    if (!database_check(&store->database, store->options->path, outcome))
        return;
    if (why != WEIR_WAKE_TIMER)
        return;
    tend(store);
    store->host->wake_in(store->host, TEND_MS);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct store *store = self;
    outcome->done = 0;
    if (!database_check(&store->database, store->options->path, outcome))
        return;
    int code = store_writer_put(&store->writer, batch);
    if (code) {
        set_outcome(store, "write", code, outcome);
        store_writer_roll_back(&store->writer);
        return;
    }
    outcome->done = batch->count;
    if (store->writer.repeats)
        store->host->count(store->host, "repeats", store->writer.repeats);
    if (store->writer.tail_count >= (uint64_t)store->options->tail && !store->tending_failed)
        tend(store);
}

static const weir_default defaults[] = {{"batch", "50000"}, {"batch_bytes", "4MiB"}, {"queue", "8MiB"}, {0}};

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "store",
    .summary = "keeps values in a file, packed, for reading by series and time",
    .options = store_options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct store_options),
    .defaults = defaults,
    .create = create,
    .open = open_store,
    .emit = emit,
    .close = close_store,
    .destroy = free,
    .wake = wake,
    .abandon = abandon,
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
