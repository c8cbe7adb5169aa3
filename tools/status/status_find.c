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

#include "common/command.h"
#include "os/clock.h"
#include "status/snapshot.h"
#include "status/status_folder.h"
#include "text/buffer.h"
#include "text/error.h"

/* The process rewrites its file in place, up to once a second: a torn page is read again. */
enum { MAX_READS = 50, PAUSE_MS = 2 };

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
    wr_error_set(error, WEIR_ERR_CONFIG, "the file cannot be read");
    for (int i = 0; i < MAX_READS && verdict == WR_STATUS_TORN && read_bytes(file, &bytes); i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        verdict = wr_status_page_read(bytes.data, bytes.length, view, error);
    }
    wr_buffer_fini(&bytes);
    return verdict == WR_STATUS_GOOD;
}

static bool is_process_of(int64_t pid, uid_t user)
{
    struct stat status;
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId64, pid);
    return stat(path, &status) == 0 && (status.st_uid == user || status.st_uid == 0);
}

/* A held lock only proves that some process has the file open, possibly a child that outlives the one that
 * wrote it. In this pid namespace it must be the very process. */
static bool is_genuine(const struct wr_status_process *process, int64_t named_pid, uid_t user, bool foreign)
{
    if (process->pid != named_pid)
        return false;
    if (foreign)
        return true;
    uint64_t ticks = wr_snapshot_start_ticks(process->pid);
    return ticks && (!process->start_ticks || ticks == process->start_ticks) &&
           is_process_of(process->pid, user);
}

/* By the wall clock, because another time namespace has another monotonic clock. */
static int64_t find_age_ns(const struct wr_status_process *process)
{
    int64_t now_ns = wr_clock_wall_ns(), age_ns;
    if (__builtin_sub_overflow(now_ns, process->taken_wall_ns, &age_ns))
        return -1;
    return age_ns < 0 ? 0 : age_ns;
}

static void report_unreadable(struct status_search *search, const char *path, const char *reason)
{
    search->unreadable++;
    command_fail("%s: %s", path, reason);
}

static void visit_file(struct status_search *search, int file, const char *path, int64_t named_pid)
{
    static struct wr_status_view view;
    struct stat status;
    struct wr_error error;
    if (fstat(file, &status) != 0 || (status.st_uid != geteuid() && geteuid() != 0) ||
        !wr_status_folder_is_held(file))
        return;
    if (!read_view(file, &view, &error)) {
        report_unreadable(search, path, error.text);
        return;
    }
    struct status_process process = {.path = path, .user = status.st_uid, .view = &view};
    process.foreign = view.process.pid_namespace != wr_snapshot_pid_namespace();
    process.age_ns = find_age_ns(&view.process);
    if (!is_genuine(&view.process, named_pid, status.st_uid, process.foreign))
        return;
    search->found++;
    search->visit(search->ctx, &process);
}

/* ---- Folders --------------------------------------------------------------------------------- */

static void visit_name(struct status_search *search, int folder, const char *path, const char *name)
{
    int64_t pid;
    if (!wr_status_folder_is_name(name, &pid) || (search->pid >= 0 && pid != search->pid))
        return;
    struct wr_buffer whole = {0};
    wr_buffer_put_format(&whole, "%s/%s", path, name);
    const char *file_path = command_text(&whole);
    int file = wr_status_folder_open_file(folder, name);
    if (file >= 0)
        visit_file(search, file, file_path, pid);
    else if (errno == EACCES && search->pid >= 0) /* the requested process belongs to another user */
        report_unreadable(search, file_path, strerror(EACCES));
    if (file >= 0)
        close(file);
    wr_buffer_fini(&whole);
}

/* A folder from the command line has to exist and may be a symbolic link. */
static void visit_folder(struct status_search *search, const char *path, bool is_argument)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_argument ? 0 : O_NOFOLLOW));
    int copy = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && is_argument)
        report_unreadable(search, path, strerror(errno));
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        visit_name(search, folder, path, entry->d_name);
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

/* The folders of other users, except those already visited. */
static void visit_all_users(struct status_search *search,
                            char visited[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM], size_t count)
{
    static const char *const patterns[] = {"/run/user/*/weir", "/tmp/weir-*"};
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        glob_t found;
        if (glob(patterns[k], GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!is_among(found.gl_pathv[i], visited, count))
                visit_folder(search, found.gl_pathv[i], false);
        globfree(&found);
    }
}

void status_find(struct status_search *search)
{
    char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM];
    search->found = search->unreadable = 0;
    if (search->folder) {
        visit_folder(search, search->folder, true);
        return;
    }
    size_t count = wr_status_folder_list(paths);
    for (size_t i = 0; i < count; i++)
        visit_folder(search, paths[i], false);
    if (geteuid() == 0)
        visit_all_users(search, paths, count);
}
