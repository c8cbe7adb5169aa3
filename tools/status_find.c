#include "status_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "text/buffer.h"
#include "os/clock.h"
#include "text/error.h"
#include "status/snapshot.h"
#include "status/status_folder.h"
#include "text/utf8.h"

/* Its process rewrites a file once a second, in a moment: one that is torn is looked at again. */
enum { LOOKS_MOST = 50, PAUSE_MS = 2 };

/* ---- One file -------------------------------------------------------------------------------- */

static bool read_bytes(int file, struct wr_buffer *bytes)
{
    wr_buffer_clear(bytes);
    if (!wr_buffer_reserve(bytes, WR_STATUS_BYTES_MOST))
        return false;
    ssize_t count = pread(file, bytes->data, WR_STATUS_BYTES_MOST, 0);
    bytes->length = count > 0 ? (size_t)count : 0;
    return count >= 0;
}

static bool read_view(int file, struct wr_status_view *view, struct wr_error *error)
{
    struct wr_buffer bytes = {0};
    enum wr_status_verdict verdict = WR_STATUS_TORN;
    wr_error_set(error, WEIR_ERR_CONFIG, "it cannot be read");
    for (int i = 0; i < LOOKS_MOST && verdict == WR_STATUS_TORN && read_bytes(file, &bytes); i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        verdict = wr_status_page_read(bytes.data, bytes.length, view, error);
    }
    wr_buffer_fini(&bytes);
    return verdict == WR_STATUS_GOOD;
}

/* Whose process a number is. */
static bool is_of_user(int64_t pid, uid_t user)
{
    struct stat status;
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId64, pid);
    return stat(path, &status) == 0 && (status.st_uid == user || status.st_uid == 0);
}

/* The lock says that somebody lives who has the file open: that may be a child that outlives the process. Where
 * its number means something here, it must be that very process. */
static bool is_true(const struct wr_status_process *process, int64_t named, uid_t user, bool foreign)
{
    if (process->pid != named)
        return false;
    if (foreign)
        return true;
    uint64_t ticks = wr_snapshot_start_ticks(process->pid);
    return ticks && (!process->start_ticks || ticks == process->start_ticks) && is_of_user(process->pid, user);
}

/* By the wall clock, since a container may have a monotonic one of its own. */
static int64_t find_age_ns(const struct wr_status_process *process)
{
    int64_t now_ns = wr_clock_wall_ns(), age_ns;
    if (__builtin_sub_overflow(now_ns, process->taken_wall_ns, &age_ns))
        return -1;
    return age_ns < 0 ? 0 : age_ns;
}

static void say_unreadable(struct status_search *search, const char *path, const char *words)
{
    char shown[WR_STATUS_PATH_ROOM];
    search->unreadable++;
    wr_utf8_line(shown, sizeof shown, path);
    fprintf(stderr, "weir: %s: %s\n", shown, words);
}

static void look_at(struct status_search *search, int file, const char *path, int64_t named)
{
    static struct wr_status_view view;
    struct stat status;
    struct wr_error error;
    if (fstat(file, &status) != 0 || (status.st_uid != geteuid() && geteuid() != 0) ||
        !wr_status_folder_is_held(file))
        return;
    if (!read_view(file, &view, &error)) {
        say_unreadable(search, path, error.text);
        return;
    }
    struct status_process process = {.path = path, .user = status.st_uid, .view = &view};
    process.foreign = view.process.pid_namespace != wr_snapshot_pid_namespace();
    process.age_ns = find_age_ns(&view.process);
    if (!is_true(&view.process, named, status.st_uid, process.foreign))
        return;
    search->found++;
    search->visit(search->ctx, &process);
}

/* ---- Folders --------------------------------------------------------------------------------- */

static void look_at_name(struct status_search *search, int folder, const char *path, const char *name)
{
    int64_t pid;
    if (!wr_status_folder_is_name(name, &pid) || (search->pid >= 0 && pid != search->pid))
        return;
    struct wr_buffer whole = {0};
    wr_buffer_put_format(&whole, "%s/%s", path, name);
    int file = wr_status_folder_open_file(folder, name);
    if (file >= 0 && wr_buffer_text(&whole))
        look_at(search, file, wr_buffer_text(&whole), pid);
    else if (errno == EACCES && search->pid >= 0) /* it is there, but somebody else's */
        say_unreadable(search, wr_buffer_text(&whole) ? wr_buffer_text(&whole) : name, strerror(EACCES));
    if (file >= 0)
        close(file);
    wr_buffer_fini(&whole);
}

/* A folder that was named must be there; others need not. */
static void look_into(struct status_search *search, const char *path, bool named)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (named ? 0 : O_NOFOLLOW));
    int copy = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && named)
        say_unreadable(search, path, strerror(errno));
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        look_at_name(search, folder, path, entry->d_name);
    if (list)
        closedir(list);
    else if (copy >= 0)
        close(copy);
    if (folder >= 0)
        close(folder);
}

static bool is_among(const char *path, char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(path, paths[i]) == 0)
            return true;
    return false;
}

/* Root sees what users have, too. */
static void look_into_everybodys(struct status_search *search,
                                 char known[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM], size_t count)
{
    static const char *const patterns[] = {"/run/user/*/weir", "/tmp/weir-*"};
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        glob_t found;
        if (glob(patterns[k], GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!is_among(found.gl_pathv[i], known, count))
                look_into(search, found.gl_pathv[i], false);
        globfree(&found);
    }
}

void status_find(struct status_search *search)
{
    char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM];
    search->found = search->unreadable = 0;
    if (search->folder) {
        look_into(search, search->folder, true);
        return;
    }
    size_t count = wr_status_folder_list(paths);
    for (size_t i = 0; i < count; i++)
        look_into(search, paths[i], false);
    if (geteuid() == 0)
        look_into_everybodys(search, paths, count);
}
