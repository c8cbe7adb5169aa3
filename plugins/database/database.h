/* database: what handlers that keep an SQLite file open share: which file it is, waiting for locks, forks, and
 * what SQLite's codes mean for a handler. */
#ifndef WEIR_PLUGINS_DATABASE_H
#define WEIR_PLUGINS_DATABASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "open_files.h"

/* The file that is open. All zeros: none. */
struct database {
    bool is_open;
    dev_t device;
    ino_t inode;
    struct open_files files;
    struct open_files_list *before; /* while it is being opened */
};

/* Whether SQLite may open the path. Otherwise the outcome has the reason: a process must not open a file
 * that its parent had open, or of which it has closed the descriptors, or the path cannot be checked. Call
 * database_closed later in any case. */
bool database_may_open(struct database *database, const char *path, weir_outcome *outcome);

/* Remembers the file that was opened, and the descriptors. Returns false if it is not there. */
bool database_opened(struct database *database, const char *path, sqlite3 *db);

/* Whether the program has closed descriptors of the file. Then the connection must be leaked, not closed; and
 * after database_closed the process cannot open the file any more. */
bool database_is_lost(const struct database *database);

/* Forgets the file: the connection is closed or leaked, or could not be opened. */
void database_closed(struct database *database);

/* Whether the path still leads to the open file. SQLite continues to write to one that was moved or deleted,
 * where the values would be lost or not found. */
bool database_is_in_place(const struct database *database, const char *path);

/* Whether the open file can be used. Otherwise the outcome is set: the path leads elsewhere, and has to be
 * opened again; or the program has closed its descriptors. */
bool database_check(const struct database *database, const char *path, weir_outcome *outcome);

/* [fork] Closes the descriptors in the child, and remembers the file, which must not be opened there. */
void database_abandon(const struct database *database);

/* Describes the last error of a connection, which may be NULL. Valid until its next call. */
const char *database_message(sqlite3 *db, int code);

/* Sets code and reason from a code of SQLite. message: of the connection. */
void database_set_outcome(weir_outcome *outcome, const char *operation, const char *path, int code,
                          const char *message);

/* The waits for a lock that another connection holds. */
struct database_wait {
    const weir_host *host;
    int64_t timeout_ns, since_ns;
};

/* For sqlite3_busy_handler; ctx: a struct database_wait. Ends also when the handler must stop: the core knows
 * whether there is time for another attempt. */
int database_wait(void *ctx, int count);

#endif
