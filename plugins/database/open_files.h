/* open_files: which descriptors an SQLite connection has opened. SQLite does not expose them; a child that is
 * forked closes them. */
#ifndef WEIR_PLUGINS_OPEN_FILES_H
#define WEIR_PLUGINS_OPEN_FILES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../system.h"

/* The database, its journal and the shared memory of that. */
enum { OPEN_FILES_MOST = 3 };

/* Of a connection. All zeros: none are known. */
struct open_files {
    size_t count;
    struct wr_own_fd own[OPEN_FILES_MOST];
};

/* Before a connection is opened: the descriptors of the process. Returns NULL if they are not known: out of
 * memory, or /proc is missing. */
struct open_files_list *open_files_list(void);
void open_files_list_free(struct open_files_list *list);

/* After it was opened, or could not be: finds those of its files that were not there before. Frees `before`,
 * NULL allowed: then none are found, as without a connection. Those that the connection shares with another one
 * of the process are that one's. */
void open_files_find(struct open_files *files, struct open_files_list *before, sqlite3 *db);

/* Whether the program has closed one of them. Then the connection must not be used, nor closed: it would write
 * to files of the program, or close them. */
bool open_files_are_lost(const struct open_files *files);

/* [fork] Closes them, in the child. POSIX locks are those of a process: the parent keeps its own. */
void open_files_close(const struct open_files *files);

#endif
