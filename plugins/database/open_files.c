#include "open_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor, and the file that it is open on. */
struct entry {
    int fd;
    dev_t device;
    ino_t inode;
};

struct open_files_list {
    size_t count, room;
    struct entry *entries;
};

/* ---- Listing --------------------------------------------------------------------------------- */

void open_files_list_free(struct open_files_list *list)
{
    if (list)
        free(list->entries);
    free(list);
}

/* By its name in /proc/self/fd: ThreadSanitizer takes fstat for a use of a descriptor that another thread has
 * just opened. */
static bool put_entry(struct open_files_list *list, int folder, const char *name)
{
    struct stat status;
    int fd = atoi(name);
    if (fstatat(folder, name, &status, 0) != 0)
        return true; /* closed meanwhile */
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct entry *grown = realloc(list->entries, room * sizeof *grown);
        if (!grown)
            return false;
        list->entries = grown;
        list->room = room;
    }
    list->entries[list->count++] = (struct entry){fd, status.st_dev, status.st_ino};
    return true;
}

struct open_files_list *open_files_list(void)
{
    struct open_files_list *list = calloc(1, sizeof *list);
    DIR *folder = list ? opendir("/proc/self/fd") : NULL;
    bool is_whole = folder;
    const struct dirent *entry;
    while (is_whole && (entry = readdir(folder)))
        if (*entry->d_name != '.' && atoi(entry->d_name) != dirfd(folder))
            is_whole = put_entry(list, dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
    if (is_whole)
        return list;
    open_files_list_free(list);
    return NULL;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static bool has_entry(const struct open_files_list *list, const struct entry *entry)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].fd == entry->fd && list->entries[i].device == entry->device &&
            list->entries[i].inode == entry->inode)
            return true;
    return false;
}

/* Another thread of the program might open the same file between the two lists: then it is not known which one
 * is whose, and none is taken. */
static void find_new(struct open_files *files, const struct open_files_list *before,
                     const struct open_files_list *now, const char *path)
{
    struct stat status;
    const struct entry *found = NULL;
    size_t count = 0;
    if (!path || stat(path, &status) != 0)
        return;
    for (size_t i = 0; i < now->count; i++) {
        const struct entry *entry = &now->entries[i];
        if (entry->device != status.st_dev || entry->inode != status.st_ino || has_entry(before, entry))
            continue;
        found = entry;
        count++;
    }
    if (count == 1)
        files->own[files->count++] = (struct wr_own_fd){found->fd, found->device, found->inode};
}

/* SQLite opens the journal when it is needed first. */
static void open_journal(sqlite3 *db)
{
    sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
}

void open_files_find(struct open_files *files, struct open_files_list *before, sqlite3 *db)
{
    *files = (struct open_files){0};
    const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
    if (path)
        open_journal(db);
    struct open_files_list *now = path && before ? open_files_list() : NULL;
    char *shared = now ? sqlite3_mprintf("%s-shm", path) : NULL;
    if (shared) {
        find_new(files, before, now, path);
        find_new(files, before, now, sqlite3_filename_wal(path));
        find_new(files, before, now, shared);
    }
    sqlite3_free(shared);
    open_files_list_free(now);
    open_files_list_free(before);
}

bool open_files_are_lost(const struct open_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (!wr_own_fd_is_open(&files->own[i]))
            return true;
    return false;
}

void open_files_close(const struct open_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        wr_own_fd_abandon(&files->own[i]);
}
