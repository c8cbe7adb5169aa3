#include "os/file_perms.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/error.h"

bool wr_file_perms_check_status(const char *path, const struct stat *status, int code, struct wr_error *error)
{
    const char *what = S_ISDIR(status->st_mode) ? "folder" : "file";
    if (status->st_mode & S_IWOTH) {
        wr_error_set(error, code, "%s: refused: others may write this %s (mode %04o); chmod o-w helps", path,
                     what, status->st_mode & 07777u);
        return false;
    }
    if ((status->st_mode & S_IWGRP) && status->st_gid != 0 && status->st_gid != getegid()) {
        wr_error_set(error, code,
                     "%s: refused: a foreign group may write this %s (mode %04o, group %u); chmod g-w helps",
                     path, what, status->st_mode & 07777u, (unsigned)status->st_gid);
        return false;
    }
    if (status->st_uid != 0 && status->st_uid != geteuid() && geteuid() != 0) {
        wr_error_set(error, code, "%s: refused: another user (%u) owns this %s", path, (unsigned)status->st_uid,
                     what);
        return false;
    }
    return true;
}

static bool check_one(const char *path, int code, struct wr_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        wr_error_set(error, code, "%s: %s", path, wr_error_system_text(errno));
        return false;
    }
    return wr_file_perms_check_status(path, &status, code, error);
}

bool wr_file_perms_check_path(const char *path, char **resolved, int code, struct wr_error *error)
{
    *resolved = realpath(path, NULL);
    if (!*resolved) {
        wr_error_set(error, code, "%s: %s", path, wr_error_system_text(errno));
        return false;
    }
    char *copy = strdup(*resolved);
    bool trusted = copy && check_one(*resolved, code, error) && check_one(dirname(copy), code, error);
    if (!copy)
        wr_error_no_memory(error, path);
    free(copy);
    if (!trusted) {
        free(*resolved);
        *resolved = NULL;
    }
    return trusted;
}
