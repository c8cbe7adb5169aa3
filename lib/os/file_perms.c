#include "os/file_perms.h"

#include <errno.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "text/error.h"

/* ---- Trusted folders ------------------------------------------------------------------------- */

/* Read once: getenv races with the program's setenv, and spools are checked by their handlers' threads. Never
 * freed. */
static _Atomic(const char *) trusted_folders;

void wr_file_perms_read_environment(void)
{
    const char *unread = NULL;
    if (atomic_load_explicit(&trusted_folders, memory_order_acquire))
        return;
    const char *list = secure_getenv("WEIR_TRUST");
    char *copy = list && *list ? strdup(list) : NULL;
    if (!atomic_compare_exchange_strong(&trusted_folders, &unread, copy ? copy : ""))
        free(copy);
}

static bool is_in(const char *resolved, const char *folder)
{
    char *place = realpath(folder, NULL);
    size_t length = place ? strlen(place) : 0;
    bool is = place && strncmp(resolved, place, length) == 0 &&
              (resolved[length] == '/' || resolved[length] == '\0' || length == 1);
    free(place);
    return is;
}

static bool is_trusted(const char *resolved)
{
    wr_file_perms_read_environment();
    const char *list = atomic_load_explicit(&trusted_folders, memory_order_acquire);
    bool is = false;
    while (*list && !is) {
        size_t length = strcspn(list, ":");
        char *folder = strndup(list, length);
        is = folder && *folder == '/' && is_in(resolved, folder);
        free(folder);
        list += length + (list[length] == ':');
    }
    return is;
}

/* ---- One file -------------------------------------------------------------------------------- */

static bool is_own_group(gid_t group)
{
    return group == 0 || (group == getegid() && group == geteuid());
}

/* What the object is in messages: "this file", or "the folder /x" that is above it. */
struct wording {
    const char *path, *what, *above;
    const char *or_sticky;
};

static bool check(const struct wording *wording, const struct stat *status, int code, struct wr_error *error)
{
    unsigned mode = status->st_mode & 07777u;
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return wr_error_refuse(error, code,
                               "%s: refused: another user (%u) owns %s%s; chown or WEIR_TRUST helps",
                               wording->path, (unsigned)status->st_uid, wording->what, wording->above);
    bool is_sticky = *wording->or_sticky && (status->st_mode & S_ISVTX);
    if ((status->st_mode & S_IWOTH) && !is_sticky)
        return wr_error_refuse(error, code, "%s: refused: others may write %s%s (mode %04o); chmod o-w%s helps",
                               wording->path, wording->what, wording->above, mode, wording->or_sticky);
    if ((status->st_mode & S_IWGRP) && !is_own_group(status->st_gid) && !is_sticky)
        return wr_error_refuse(
            error, code, "%s: refused: a foreign group may write %s%s (mode %04o, group %u); chmod g-w%s helps",
            wording->path, wording->what, wording->above, mode, (unsigned)status->st_gid, wording->or_sticky);
    return true;
}

bool wr_file_perms_check_status(const char *path, const struct stat *status, int code, struct wr_error *error)
{
    const struct wording wording = {path, S_ISDIR(status->st_mode) ? "this folder" : "this file", "", ""};
    return check(&wording, status, code, error);
}

/* ---- A path ---------------------------------------------------------------------------------- */

static bool fail_system(const char *path, int code, struct wr_error *error)
{
    return wr_error_refuse(error, code, "%s: %s", path, wr_error_system_text(errno));
}

/* above: the resolved path; it is cut to each of the folders above. */
static bool check_above(const char *path, char *above, int code, struct wr_error *error)
{
    struct stat status;
    if (!above)
        return wr_error_no_memory(error, path);
    for (char *slash; (slash = strrchr(above, '/')) && above[1];) {
        slash[slash == above] = '\0';
        if (stat(above, &status) != 0)
            return fail_system(above, code, error);
        const struct wording wording = {path, "the folder ", above, " or +t"};
        if (!check(&wording, &status, code, error))
            return false;
    }
    return true;
}

static bool check_resolved(const char *path, const char *resolved, int code, struct wr_error *error)
{
    struct stat status;
    if (is_trusted(resolved))
        return true;
    if (stat(resolved, &status) != 0)
        return fail_system(path, code, error);
    char *above = strdup(resolved);
    bool good = wr_file_perms_check_status(path, &status, code, error) && check_above(path, above, code, error);
    free(above);
    return good;
}

/* A link is named by what it leads to: that is what has to be changed. */
static const char *choose_shown(const char *path, const char *resolved)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode) ? resolved : path;
}

bool wr_file_perms_check_path(const char *path, char **resolved, int code, struct wr_error *error)
{
    *resolved = realpath(path, NULL);
    if (!*resolved)
        return fail_system(path, code, error);
    if (check_resolved(choose_shown(path, *resolved), *resolved, code, error))
        return true;
    free(*resolved);
    *resolved = NULL;
    return false;
}

bool wr_file_perms_check_above(const char *path, int code, struct wr_error *error)
{
    char *copy = strdup(path);
    char *folder = copy ? realpath(dirname(copy), NULL) : NULL;
    free(copy);
    if (!folder)
        return copy ? fail_system(path, code, error) : wr_error_no_memory(error, path);
    struct wr_buffer inside = {0};
    wr_buffer_put_format(&inside, "%s/", folder);
    char *above = wr_buffer_take(&inside);
    bool good = is_trusted(folder) || check_above(path, above, code, error);
    free(above);
    free(folder);
    return good;
}
