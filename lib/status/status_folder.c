#include "status/status_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/error.h"
#include "os/fd.h"

/* Bounds the time spent in a folder full of other files. */
enum { TIDY_MOST = 10000 };

/* ---- Folders --------------------------------------------------------------------------------- */

/* Whether the folder belongs to the effective user: XDG_RUNTIME_DIR may be inherited from another user. */
static bool is_own_folder(const char *path)
{
    struct stat status;
    return path && path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid();
}

size_t wr_status_folder_list(char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM])
{
    size_t count = 0;
    const char *login = secure_getenv("XDG_RUNTIME_DIR");
    if (is_own_folder(login) && strlen(login) < WR_STATUS_PATH_ROOM - 8)
        snprintf(paths[count++], WR_STATUS_PATH_ROOM, "%s/weir", login);
    snprintf(paths[count++], WR_STATUS_PATH_ROOM, "/run/weir");
    snprintf(paths[count++], WR_STATUS_PATH_ROOM, "/tmp/weir-%u", (unsigned)geteuid());
    return count;
}

static bool check(const char *path, const struct stat *status, struct wr_error *error)
{
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: refused: another user (%u) owns this folder", path,
                               (unsigned)status->st_uid);
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) && !(status->st_mode & S_ISVTX))
        return wr_error_refuse(error, WEIR_ERR_CONFIG,
                               "%s: refused: others may write this folder (mode %04o); chmod go-w or +t helps",
                               path, status->st_mode & 07777u);
    return true;
}

/* Checks and uses the folder by its descriptor, so that a path that is replaced meanwhile does no harm. */
static int open_one(const char *path, struct wr_error *error)
{
    struct stat status;
    int problem = mkdir(path, 0700) == 0 ? 0 : errno;
    int folder = wr_fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (folder < 0 || fstat(folder, &status) != 0) {
        bool is_missing = folder < 0 && errno == ENOENT && problem;
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path,
                     wr_error_system_text(is_missing ? problem : errno));
    } else if (check(path, &status, error)) {
        if (!problem && status.st_uid == geteuid())
            fchmod(folder, 0700); /* whatever the umask */
        if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0)
            return folder;
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(errno));
    }
    if (folder >= 0)
        close(folder);
    return -1;
}

int wr_status_folder_open(const char *setting, char *path, struct wr_error *error)
{
    char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM];
    if (strcmp(setting, "auto") != 0) {
        size_t length = strlen(setting);
        while (length > 1 && setting[length - 1] == '/') /* behind a slash a link would be followed */
            length--;
        snprintf(path, WR_STATUS_PATH_ROOM, "%.*s", (int)length, setting);
        return open_one(path, error);
    }
    size_t count = wr_status_folder_list(paths);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, WR_STATUS_PATH_ROOM, "%s", paths[i]);
        int folder = open_one(path, error);
        if (folder >= 0)
            return folder;
    }
    return -1;
}

/* ---- Files ----------------------------------------------------------------------------------- */

void wr_status_folder_put_name(char out[WR_STATUS_FILE_ROOM], int64_t pid, uint32_t number)
{
    snprintf(out, WR_STATUS_FILE_ROOM, "%" PRId64 ".%08" PRIx32 ".status", pid, number);
}

bool wr_status_folder_is_name(const char *name, int64_t *pid)
{
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 18 || name[digits] != '.')
        return false;
    const char *number = name + digits + 1;
    *pid = strtoll(name, NULL, 10);
    return strspn(number, "0123456789abcdef") == 8 && strcmp(number + 8, ".status") == 0;
}

int wr_status_folder_open_file(int folder, const char *name)
{
    struct stat status;
    int file = wr_fd_open_at(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0 || (fstat(file, &status) == 0 && S_ISREG(status.st_mode)))
        return file;
    close(file);
    errno = EINVAL;
    return -1;
}

bool wr_status_folder_is_held(int file)
{
    if (flock(file, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(file, LOCK_UN);
    return false;
}

/* Whether the process of the file has ended: then its lock is free. */
static bool is_left_behind(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && status.st_uid == geteuid() && flock(file, LOCK_EX | LOCK_NB) == 0;
}

static void remove_if_left_behind(int folder, const char *name)
{
    int64_t pid;
    if (!wr_status_folder_is_name(name + (name[0] == '.'), &pid))
        return;
    int file = wr_status_folder_open_file(folder, name);
    if (file < 0)
        return;
    if (is_left_behind(file))
        unlinkat(folder, name, 0);
    close(file);
}

void wr_status_folder_tidy(int folder)
{
    int copy = wr_fd_open_at(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        if (copy >= 0)
            close(copy);
        return;
    }
    const struct dirent *entry;
    for (int i = 0; i < TIDY_MOST && (entry = readdir(list)); i++)
        remove_if_left_behind(folder, entry->d_name);
    closedir(list);
}
