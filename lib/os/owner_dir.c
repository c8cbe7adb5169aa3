#include "os/owner_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "text/crc.h"
#include "text/error.h"
#include "os/dir_list.h"
#include "os/file_perms.h"
#include "os/fd.h"

enum { TRIES = 1000, BAD_MOST = 8, SHOWN_LENGTH = 40 };

/* ---- Paths and names ------------------------------------------------------------------------- */

/* Returns "PARENT/NAME"; the caller frees it. NULL: out of memory. */
static char *join(const char *parent, const char *name)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s", parent, name);
    return wr_buffer_take(&path);
}

/* The prefix of the names of all directories of a handler: its name, shortened and in plain characters, and a
 * checksum of the whole name. */
static void put_prefix(struct wr_buffer *out, const char *handler)
{
    size_t length = strlen(handler);
    for (size_t i = 0; i < length && i < SHOWN_LENGTH; i++) {
        char c = handler[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        wr_buffer_put_char(out, plain ? c : '_');
    }
    wr_buffer_put_format(out, ".%08x.", wr_crc_add(0, handler, length));
}

static size_t span_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Whether the text is "PID.N". */
static bool is_suffix(const char *text)
{
    size_t pid = span_digits(text);
    size_t number = pid && text[pid] == '.' ? span_digits(text + pid + 1) : 0;
    return number && text[pid + 1 + number] == '\0';
}

bool wr_owner_dir_is_name(const char *name, const char *handler)
{
    if (!handler) {
        const char *dot = strchr(name, '.');
        return dot && dot != name && strspn(dot + 1, "0123456789abcdef") == 8 && dot[9] == '.' &&
               is_suffix(dot + 10);
    }
    struct wr_buffer prefix = {0};
    put_prefix(&prefix, handler);
    bool is =
        !prefix.failed && strncmp(name, prefix.data, prefix.length) == 0 && is_suffix(name + prefix.length);
    wr_buffer_fini(&prefix);
    return is;
}

char *wr_owner_dir_file(const struct wr_owner_dir *dir, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, WR_OWNER_DIR_FILE_FORMAT, number);
    return join(dir->path, name);
}

/* ---- The place ------------------------------------------------------------------------------- */

static bool fail(struct wr_error *error, const char *path, int problem)
{
    return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(problem));
}

/* Makes a directory with mode 0700, whatever the umask. Returns 0 or errno. */
static int make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 && chmod(path, 0700) == 0 ? 0 : errno;
}

bool wr_owner_dir_check_place(const char *place, bool create, struct wr_error *error)
{
    struct stat status;
    if (create && !wr_file_perms_check_above(place, WEIR_ERR_CONFIG, error))
        return false;
    int problem = create ? make_folder(place) : 0;
    if (problem && problem != EEXIST)
        return fail(error, place, problem);
    if (stat(place, &status) != 0) {
        fail(error, place, errno);
        if (errno == ENOENT)
            error->code = WEIR_OK;
        return false;
    }
    if (!S_ISDIR(status.st_mode))
        return fail(error, place, ENOTDIR);
    char *resolved;
    bool good = wr_file_perms_check_path(place, &resolved, WEIR_ERR_CONFIG, error);
    free(resolved);
    return good;
}

/* ---- Locks ----------------------------------------------------------------------------------- */

/* Locks `path`/lock. Returns 0; EWOULDBLOCK if another process holds the lock; or errno. */
static int lock(struct wr_owner_dir *dir, int flags)
{
    char *path = join(dir->path, "lock");
    int fd = path ? wr_fd_open(path, O_RDWR | O_NOFOLLOW | flags, 0600) : -1;
    int problem = !path ? ENOMEM : wr_own_fd_set(&dir->lock, fd) ? 0 : errno;
    if (!problem && flock(fd, LOCK_EX | LOCK_NB) != 0)
        problem = errno;
    /* the previous owner may have deleted the file after it was opened */
    if (!problem && !wr_fd_path_is_file(path, dir->lock.device, dir->lock.inode))
        problem = EWOULDBLOCK;
    free(path);
    if (problem)
        wr_own_fd_close(&dir->lock);
    return problem;
}

/* Unlocks before closing: a child that was forked while the lock was being made holds a copy of the descriptor
 * that nothing closes. */
static void release(struct wr_owner_dir *dir)
{
    if (wr_own_fd_is_open(&dir->lock))
        flock(dir->lock.fd, LOCK_UN);
    wr_own_fd_close(&dir->lock);
}

static void forget(struct wr_owner_dir *dir)
{
    release(dir);
    free(dir->path);
    *dir = (struct wr_owner_dir){0};
}

bool wr_owner_dir_hold(struct wr_owner_dir *dir)
{
    char *path = join(dir->path, "lock");
    bool is_held =
        path && wr_own_fd_is_open(&dir->lock) && wr_fd_path_is_file(path, dir->lock.device, dir->lock.inode);
    free(path);
    if (is_held)
        return true;
    release(dir);
    return lock(dir, 0) == 0;
}

/* ---- Directories ------------------------------------------------------------------------------- */

/* Tries one name. Returns 0; EEXIST if it is taken; or errno. */
static int make(struct wr_owner_dir *dir)
{
    if (mkdir(dir->path, 0700) != 0)
        return errno;
    int problem = chmod(dir->path, 0700) == 0 ? lock(dir, O_CREAT) : errno;
    /* another process took the new folder for an orphaned one, and locks or deletes it */
    if (problem == EWOULDBLOCK || problem == ENOENT)
        return EEXIST;
    if (problem)
        rmdir(dir->path);
    return problem;
}

bool wr_owner_dir_make(struct wr_owner_dir *dir, const char *place, const char *handler, struct wr_error *error)
{
    int problem = EEXIST;
    for (int i = 0; i < TRIES && problem == EEXIST; i++) {
        struct wr_buffer path = {0};
        wr_buffer_put_format(&path, "%s/", place);
        put_prefix(&path, handler);
        wr_buffer_put_format(&path, "%ld.%d", (long)getpid(), i);
        *dir = (struct wr_owner_dir){.path = wr_buffer_take(&path), .lock.fd = -1};
        problem = dir->path ? make(dir) : ENOMEM;
        if (problem)
            forget(dir);
    }
    return !problem || fail(error, place, problem);
}

/* A directory without a lock file: its process died before it made one, or is about to delete it. */
static bool lock_found(struct wr_owner_dir *dir)
{
    int problem = lock(dir, 0);
    if (problem == ENOENT)
        rmdir(dir->path);
    return !problem;
}

bool wr_owner_dir_adopt(struct wr_owner_dir *dir, const char *place, const char *name)
{
    struct stat status;
    *dir = (struct wr_owner_dir){.path = join(place, name), .lock.fd = -1};
    if (dir->path && lstat(dir->path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        lock_found(dir))
        return true;
    forget(dir);
    return false;
}

static bool has_only_its_lock(const struct wr_owner_dir *dir)
{
    const struct dirent *entry;
    DIR *folder = opendir(dir->path);
    bool only = folder;
    int problem = 0;
    while (only && (entry = wr_dir_list_next(folder, &problem)))
        only = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
               strcmp(entry->d_name, "lock") == 0;
    if (folder)
        closedir(folder);
    return only && !problem;
}

void wr_owner_dir_remove(struct wr_owner_dir *dir)
{
    char *path = join(dir->path, "lock");
    /* the lock file is deleted first; another process that comes in between finds a directory without one */
    if (path && wr_owner_dir_hold(dir) && has_only_its_lock(dir) && unlink(path) == 0)
        rmdir(dir->path);
    free(path);
    forget(dir);
}

void wr_owner_dir_leave(struct wr_owner_dir *dir)
{
    release(dir);
}

void wr_owner_dir_abandon(const struct wr_owner_dir *dir)
{
    wr_own_fd_abandon(&dir->lock);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool read_number(const char *name, const char *kind, uint64_t *number)
{
    (void)kind;
    if (span_digits(name) != 20 || strcmp(name + 20, ".seg") != 0)
        return false;
    errno = 0;
    *number = strtoull(name, NULL, 10);
    return errno == 0;
}

uint64_t *wr_owner_dir_list(const struct wr_owner_dir *dir, size_t *count)
{
    return wr_dir_list_numbers(dir->path, read_number, NULL, count);
}

/* Returns how many damaged files of the same handler are there already. */
static size_t count_bad(const char *place, const char *name)
{
    const char *dot = strchr(name, '.');
    size_t prefix = dot ? (size_t)(dot - name) + 10 : strlen(name), count = 0;
    const struct dirent *entry;
    DIR *folder = opendir(place);
    while (folder && (entry = readdir(folder))) {
        const char *end = strstr(entry->d_name, ".seg.bad");
        count += end && strncmp(entry->d_name, name, prefix) == 0;
    }
    if (folder)
        closedir(folder);
    return count;
}

static bool move_aside(const char *from, const char *place, const char *name, uint64_t number)
{
    struct wr_buffer to = {0};
    wr_buffer_put_format(&to, "%s/%s-" WR_OWNER_DIR_FILE_FORMAT ".bad", place, name, number);
    const char *path = wr_buffer_text(&to);
    bool kept = path && count_bad(place, name) < BAD_MOST && rename(from, path) == 0;
    wr_buffer_fini(&to);
    return kept;
}

bool wr_owner_dir_keep_bad(const struct wr_owner_dir *dir, uint64_t number)
{
    char *file = wr_owner_dir_file(dir, number), *place = strdup(dir->path);
    char *slash = place ? strrchr(place, '/') : NULL;
    bool kept = false;
    if (file && slash) {
        *slash = '\0';
        kept = move_aside(file, place, slash + 1, number);
    }
    if (file && !kept)
        unlink(file);
    free(file);
    free(place);
    return kept;
}
