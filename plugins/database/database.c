#include "database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../system.h"

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

void database_abandon(const struct database *database)
{
    if (!database->is_open)
        return;
    if (inherited.count < MAX_INHERITED) {
        inherited.files[inherited.count].device = database->device;
        inherited.files[inherited.count].inode = database->inode;
    }
    inherited.count++;
    open_files_close(&database->files);
}

static bool is_inherited(const struct stat *status)
{
    for (size_t i = 0; i < inherited.count && i < MAX_INHERITED; i++)
        if (inherited.files[i].device == status->st_dev && inherited.files[i].inode == status->st_ino)
            return true;
    return inherited.count > MAX_INHERITED;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* A path that cannot be checked might be an inherited database. */
static bool check_path(const char *path, weir_outcome *outcome)
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

void database_closed(struct database *database)
{
    open_files_list_free(database->before);
    *database = (struct database){0};
}

bool database_is_in_place(const struct database *database, const char *path)
{
    return system_leads_to_file(path, database->device, database->inode);
}

void database_request_reopen(const char *path, weir_outcome *outcome)
{
    outcome->code = WEIR_OUTCOME_REOPEN;
    outcome->retry_after_ms = 1;
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s was moved or deleted", path);
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

void database_set_outcome(weir_outcome *outcome, const char *operation, const char *path, int code,
                          const char *message)
{
    outcome->code = outcome_code(code);
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.150s: %s", operation, path, message);
}

/* ---- Locks ----------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int database_wait(void *ctx, int count)
{
    enum { MAX_WAIT_MS = 50 };
    struct database_wait *wait = ctx;
    if (count == 0)
        wait->since_ns = now_ns();
    if (now_ns() - wait->since_ns >= wait->timeout_ns)
        return 0;
    return wait->host->wait(wait->host, count < MAX_WAIT_MS ? count + 1 : MAX_WAIT_MS);
}
