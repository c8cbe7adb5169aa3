#include "database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../system.h"

/* ---- Files that must not be opened ----------------------------------------------------------- */

/* SQLite records in memory which locks the process holds on each database. A forked child inherits that memory
 * but not the locks, and a program that closes the descriptors ends them. So such a database must never be
 * opened again: SQLite would access it without a lock. This is the list of these databases. In a child, abandon
 * writes it before the first thread is started. */
enum { MAX_BANNED = 256 };
static struct {
    _Atomic size_t count;
    struct {
        _Atomic bool is_set; /* after the others */
        dev_t device;
        ino_t inode;
        const char *why; /* static */
    } files[MAX_BANNED];
} banned;

static void ban(const struct database *database, const char *why)
{
    size_t i = atomic_fetch_add(&banned.count, 1);
    if (i >= MAX_BANNED)
        return;
    banned.files[i].device = database->device;
    banned.files[i].inode = database->inode;
    banned.files[i].why = why;
    atomic_store(&banned.files[i].is_set, true);
}

/* Returns why the file must not be opened, or NULL. */
static const char *find_ban(const struct stat *status)
{
    size_t count = atomic_load(&banned.count);
    for (size_t i = 0; i < count && i < MAX_BANNED; i++)
        if (atomic_load(&banned.files[i].is_set) && banned.files[i].device == status->st_dev &&
            banned.files[i].inode == status->st_ino)
            return banned.files[i].why;
    return count > MAX_BANNED
               ? "too many files have been open in its parent processes, or were closed by the program"
               : NULL;
}

void database_abandon(const struct database *database)
{
    if (!database->is_open)
        return;
    ban(database, "the parent process has it open; use ${PID} in \"path\" to give each process its own file");
    open_files_close(&database->files);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* A path that cannot be checked might be such a database. */
static bool check_path(const char *path, weir_outcome *outcome)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        if (errno == ENOENT)
            return true;
        return wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "open %.150s: %s", path, wr_system_strerror(errno));
    }
    const char *why = find_ban(&status);
    if (!why)
        return true;
    return wr_system_fail(outcome, WEIR_OUTCOME_FAILED, "open %.120s: %s", path, why);
}

bool database_may_open(struct database *database, const char *path, weir_outcome *outcome)
{
    if (!check_path(path, outcome))
        return false;
    database->before = open_files_list();
    return true;
}

bool database_opened(struct database *database, const char *path, sqlite3 *db)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    database->is_open = true;
    database->device = status.st_dev;
    database->inode = status.st_ino;
    open_files_find(&database->files, database->before, db);
    database->before = NULL;
    return true;
}

static const char lost[] =
    "the program has closed all descriptors, also those of this file; it must do so before it uses weir";

bool database_is_lost(const struct database *database)
{
    return database->is_open && open_files_are_lost(&database->files);
}

void database_closed(struct database *database)
{
    if (database_is_lost(database))
        ban(database, lost);
    open_files_list_free(database->before);
    *database = (struct database){0};
}

bool database_is_in_place(const struct database *database, const char *path)
{
    return wr_system_leads_to_file(path, database->device, database->inode);
}

bool database_check(const struct database *database, const char *path, weir_outcome *outcome)
{
    if (database_is_lost(database))
        return wr_system_fail(outcome, WEIR_OUTCOME_FAILED, "%.120s: %s", path, lost);
    if (database_is_in_place(database, path))
        return true;
    outcome->retry_after_ms = 1;
    return wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%.200s was moved or deleted", path);
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

const char *database_message(sqlite3 *db, int code)
{
    return db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : sqlite3_errstr(code);
}

void database_set_outcome(weir_outcome *outcome, const char *operation, const char *path, int code,
                          const char *message)
{
    wr_system_fail(outcome, outcome_code(code), "%s %.150s: %s", operation, path, message);
}

/* ---- Locks ----------------------------------------------------------------------------------- */

int database_wait(void *ctx, int count)
{
    enum { MAX_WAIT_MS = 50 };
    struct database_wait *wait = ctx;
    if (count == 0)
        wait->since_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
    if (wr_system_clock_ns(CLOCK_MONOTONIC) - wait->since_ns >= wait->timeout_ns)
        return 0;
    return wait->host->wait(wait->host, count < MAX_WAIT_MS ? count + 1 : MAX_WAIT_MS);
}
