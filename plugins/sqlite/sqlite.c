/* sqlite: inserts values into an SQLite database, one transaction per batch.
 *
 * store.c accesses the database. This file maps SQLite's codes to outcomes and handles forks. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <weir/handler.h>

#include "../system.h"
#include "store.h"

struct sqlite_options {
    const char *path, *prefix;
    int64_t journal_mode, synchronous;
    int64_t busy_timeout_ns;
};

static const char *const journal_modes[] = {"wal", "delete", "truncate", "persist"};
static const char *const synchronous_modes[] = {"off", "normal", "full", "extra"};

static const weir_option sqlite_option_table[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, NULL, NULL,
     "the database file; created if it does not exist", offsetof(struct sqlite_options, path)},
    {"prefix", WEIR_OPTION_STRING, 0, NULL, NULL, "a prefix for table names: letters, digits and _",
     offsetof(struct sqlite_options, prefix)},
    {"journal_mode", WEIR_OPTION_ENUM, 0, "wal", "wal|delete|truncate|persist", "SQLite's PRAGMA journal_mode",
     offsetof(struct sqlite_options, journal_mode)},
    {"synchronous", WEIR_OPTION_ENUM, 0, "normal", "off|normal|full|extra", "SQLite's PRAGMA synchronous",
     offsetof(struct sqlite_options, synchronous)},
    {"busy_timeout", WEIR_OPTION_DURATION, 0, "1s", "0s..1m",
     "how long an attempt waits for a database locked by another connection",
     offsetof(struct sqlite_options, busy_timeout_ns)},
    {0},
};

struct sqlite {
    const weir_host *host;
    const struct sqlite_options *options;
    struct store store;
    dev_t device; /* of the open database */
    ino_t inode;
    int64_t busy_since_ns;
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
    struct sqlite *sqlite = calloc(1, sizeof *sqlite);
    if (!sqlite) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    sqlite->host = host;
    sqlite->options = options;
    return sqlite;
}

/* ---- Forks ----------------------------------------------------------------------------------- */

/* SQLite records in memory which locks the process holds on each database. A forked child inherits that
 * memory but not the locks. So it must never open a database that was open at the fork: SQLite would access
 * it without a lock. This is the list of these databases. In the child, abandon writes it before the first
 * thread is started; nothing writes it later. */
enum { MAX_INHERITED = 256 };
static struct {
    size_t count;
    struct {
        dev_t device;
        ino_t inode;
    } files[MAX_INHERITED];
} inherited;

/* SQLite does not expose its descriptors: they stay open until the child exits or calls exec. */
static void sqlite_abandon(void *self)
{
    const struct sqlite *sqlite = self;
    if (!sqlite->store.db)
        return;
    if (inherited.count < MAX_INHERITED) {
        inherited.files[inherited.count].device = sqlite->device;
        inherited.files[inherited.count].inode = sqlite->inode;
    }
    inherited.count++;
}

static bool is_inherited(const struct stat *status)
{
    for (size_t i = 0; i < inherited.count && i < MAX_INHERITED; i++)
        if (inherited.files[i].device == status->st_dev && inherited.files[i].inode == status->st_ino)
            return true;
    return inherited.count > MAX_INHERITED;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

static int outcome_code(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM: return WEIR_OUTCOME_RETRY;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* tables of that name with other columns */ return WEIR_OUTCOME_FAILED;
    default: return WEIR_OUTCOME_REOPEN;
    }
}

static void set_outcome(const struct sqlite *sqlite, const char *operation, int code, weir_outcome *outcome)
{
    outcome->code = outcome_code(code);
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.150s: %s", operation, sqlite->options->path,
             wr_store_message(&sqlite->store, code));
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* SQLite calls this while the database is locked; returning 0 ends the attempt. The attempt also ends when
 * the handler must stop: the core knows whether there is time for another one. */
static int wait_for_lock(void *ctx, int count)
{
    enum { MAX_WAIT_MS = 50 };
    struct sqlite *sqlite = ctx;
    if (count == 0)
        sqlite->busy_since_ns = now_ns();
    if (now_ns() - sqlite->busy_since_ns >= sqlite->options->busy_timeout_ns)
        return 0;
    return sqlite->host->wait(sqlite->host, count < MAX_WAIT_MS ? count + 1 : MAX_WAIT_MS);
}

static int open_store(struct sqlite *sqlite)
{
    const struct sqlite_options *options = sqlite->options;
    const struct store_settings settings = {
        .path = options->path,
        .prefix = options->prefix ? options->prefix : "",
        .journal_mode = journal_modes[options->journal_mode],
        .synchronous = synchronous_modes[options->synchronous],
        .busy = wait_for_lock,
        .ctx = sqlite,
    };
    return wr_store_open(&sqlite->store, &settings);
}

/* Whether SQLite may open the path. A path that cannot be checked might be an inherited database. */
static bool may_open(const char *path, weir_outcome *outcome)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        if (errno == ENOENT)
            return true;
        outcome->code = WEIR_OUTCOME_REOPEN;
        snprintf(outcome->reason, sizeof outcome->reason, "open %.150s: %s", path, system_strerror(errno));
        return false;
    }
    if (!is_inherited(&status))
        return true;
    outcome->code = WEIR_OUTCOME_FAILED;
    snprintf(outcome->reason, sizeof outcome->reason,
             "open %.120s: the parent process has it open; use ${PID} in \"path\" to give each "
             "process its own file",
             path);
    return false;
}

static void sqlite_open(void *self, weir_outcome *outcome)
{
    struct sqlite *sqlite = self;
    struct stat status;
    const char *path = sqlite->options->path;
    if (!may_open(path, outcome))
        return;
    int code = open_store(sqlite);
    if (!code && stat(path, &status) != 0)
        code = SQLITE_CANTOPEN;
    if (code) {
        set_outcome(sqlite, "open", code, outcome);
        wr_store_close(&sqlite->store);
        return;
    }
    sqlite->device = status.st_dev;
    sqlite->inode = status.st_ino;
}

static void sqlite_close(void *self)
{
    struct sqlite *sqlite = self;
    wr_store_close(&sqlite->store);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* SQLite continues to write to a database that was moved or deleted, where the values would be lost or not
 * found. */
static bool is_in_place(const struct sqlite *sqlite)
{
    return system_leads_to_file(sqlite->options->path, sqlite->device, sqlite->inode);
}

static void request_reopen(const struct sqlite *sqlite, weir_outcome *outcome)
{
    outcome->code = WEIR_OUTCOME_REOPEN;
    outcome->retry_after_ms = 1;
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s was moved or deleted", sqlite->options->path);
}

static void sqlite_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct sqlite *sqlite = self;
    outcome->done = 0;
    if (!is_in_place(sqlite)) {
        request_reopen(sqlite, outcome);
        return;
    }
    int code = wr_store_put(&sqlite->store, batch);
    if (!code) {
        outcome->done = batch->count;
        return;
    }
    set_outcome(sqlite, "write", code, outcome);
    wr_store_roll_back(&sqlite->store);
}

static void sqlite_wake(void *self, int why, weir_outcome *outcome)
{
    const struct sqlite *sqlite = self;
    if (why == WEIR_WAKE_RELOAD && !is_in_place(sqlite))
        request_reopen(sqlite, outcome);
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
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &sqlite_type : NULL;
}
