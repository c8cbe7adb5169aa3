/* sqlite: puts values into an SQLite database, a batch at a time, each in a transaction of its own.
 *
 * What is in the database and how is in store.c; here is what each of SQLite's answers means for the core, and
 * what becomes of a connection when its process forks. */

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

static const weir_option sqlite_rows[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the database's file",
     offsetof(struct sqlite_options, path)},
    {"prefix", WEIR_OPTION_STRING, 0, NULL, NULL, "what the names of the tables begin with",
     offsetof(struct sqlite_options, prefix)},
    {"journal_mode", WEIR_OPTION_ENUM, 0, "wal", "wal|delete|truncate|persist", "SQLite's PRAGMA journal_mode",
     offsetof(struct sqlite_options, journal_mode)},
    {"synchronous", WEIR_OPTION_ENUM, 0, "normal", "off|normal|full|extra", "SQLite's PRAGMA synchronous",
     offsetof(struct sqlite_options, synchronous)},
    {"busy_timeout", WEIR_OPTION_DURATION, 0, "1s", "0s..1m",
     "how long a try waits for a database that is locked", offsetof(struct sqlite_options, busy_timeout_ns)},
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

/* It becomes part of names in SQL; they are quoted, but nobody should have to quote them in queries. */
static bool is_prefix(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return strspn(text, allowed) == strlen(text) && !(*text >= '0' && *text <= '9') && strlen(text) <= 63;
}

static void *sqlite_create(const weir_host *host, const void *given)
{
    const struct sqlite_options *options = given;
    if (options->prefix && !is_prefix(options->prefix)) {
        host->refuse(host, "prefix",
                     "\"%s\" is not a prefix of names; allowed: a-z, A-Z, _, then 0-9 too, at most 63",
                     options->prefix);
        return NULL;
    }
    struct sqlite *sqlite = calloc(1, sizeof *sqlite);
    if (!sqlite) {
        host->refuse(host, "", "no memory");
        return NULL;
    }
    sqlite->host = host;
    sqlite->options = options;
    return sqlite;
}

/* ---- Forks ----------------------------------------------------------------------------------- */

/* SQLite keeps, for each database of a process, which locks the process has. A forked child inherits that
 * memory but not the locks, so it must never open a database again that was open at the fork: others would
 * change it below its hands. These are they; in the child nobody but abandon has written here before the first
 * thread is started. */
enum { MOST_INHERITED = 256 };
static struct {
    size_t count;
    struct {
        dev_t device;
        ino_t inode;
    } of[MOST_INHERITED];
} inherited;

/* Which descriptors are SQLite's it tells nobody; they stay open until the child ends or executes another
 * program. */
static void sqlite_abandon(void *self)
{
    const struct sqlite *sqlite = self;
    if (!sqlite->store.db)
        return;
    if (inherited.count < MOST_INHERITED) {
        inherited.of[inherited.count].device = sqlite->device;
        inherited.of[inherited.count].inode = sqlite->inode;
    }
    inherited.count++;
}

static bool is_inherited(const struct stat *status)
{
    for (size_t i = 0; i < inherited.count && i < MOST_INHERITED; i++)
        if (inherited.of[i].device == status->st_dev && inherited.of[i].inode == status->st_ino)
            return true;
    return inherited.count > MOST_INHERITED;
}

/* ---- What an answer means -------------------------------------------------------------------- */

static int code_for(int code)
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

static void say(const struct sqlite *sqlite, const char *doing, int code, weir_outcome *outcome)
{
    outcome->code = code_for(code);
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.150s: %s", doing, sqlite->options->path,
             store_words(&sqlite->store, code));
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Called by SQLite as often as it finds the database locked; 0 ends the try. When a stop is asked the try ends
 * too: the core knows how long there is for another. */
static int wait_for_lock(void *ctx, int count)
{
    enum { LONGEST_MS = 50 };
    struct sqlite *sqlite = ctx;
    if (count == 0)
        sqlite->busy_since_ns = now_ns();
    if (now_ns() - sqlite->busy_since_ns >= sqlite->options->busy_timeout_ns)
        return 0;
    return sqlite->host->wait(sqlite->host, count < LONGEST_MS ? count + 1 : LONGEST_MS);
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
    return store_open(&sqlite->store, &settings);
}

/* Whether SQLite may be given the path at all. One that cannot be looked at may be an inherited one. */
static bool may_open(const char *path, weir_outcome *outcome)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        if (errno == ENOENT)
            return true;
        outcome->code = WEIR_OUTCOME_REOPEN;
        snprintf(outcome->reason, sizeof outcome->reason, "open %.150s: %s", path, system_words(errno));
        return false;
    }
    if (!is_inherited(&status))
        return true;
    outcome->code = WEIR_OUTCOME_FAILED;
    snprintf(outcome->reason, sizeof outcome->reason,
             "open %.120s: the process that forked this one has it open; give each its own, by ${PID} in "
             "the path",
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
        say(sqlite, "open", code, outcome);
        store_close(&sqlite->store);
        return;
    }
    sqlite->device = status.st_dev;
    sqlite->inode = status.st_ino;
}

static void sqlite_close(void *self)
{
    struct sqlite *sqlite = self;
    store_close(&sqlite->store);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* A database that was moved or deleted goes on taking values that nobody would find. */
static bool is_in_place(const struct sqlite *sqlite)
{
    return system_leads_to_file(sqlite->options->path, sqlite->device, sqlite->inode);
}

static void reopen_elsewhere(const struct sqlite *sqlite, weir_outcome *outcome)
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
        reopen_elsewhere(sqlite, outcome);
        return;
    }
    int code = store_put(&sqlite->store, batch);
    if (!code) {
        outcome->done = batch->count;
        return;
    }
    say(sqlite, "write", code, outcome);
    store_undo(&sqlite->store);
}

static void sqlite_wake(void *self, int why, weir_outcome *outcome)
{
    const struct sqlite *sqlite = self;
    if (why == WEIR_WAKE_RELOAD && !is_in_place(sqlite))
        reopen_elsewhere(sqlite, outcome);
}

static const weir_handler_type sqlite_type = {
    .size = sizeof sqlite_type,
    .abi = WEIR_ABI,
    .name = "sqlite",
    .summary = "puts values into an SQLite database",
    .options = sqlite_rows,
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
