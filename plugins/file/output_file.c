#include "output_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "../output.h"
#include "folder.h"
#include "template.h"

enum { LOOK_EVERY_MS = 500 };

void wr_output_file_init(struct output_file *target, const weir_host *host, const struct settings *settings)
{
    *target = (struct output_file){
        .host = host, .settings = settings, .truncate = !settings->options->append, .fd = -1, .dated_s = -1};
}

/* ---- The path at this moment ----------------------------------------------------------------- */

/* Files change at the time that the kernel stamps them with. */
static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

/* Works out where the file is by now; *changed: not where it was. 0, or errno. */
static int find_path(const struct output_file *target, time_t at_s, char *path, bool *changed)
{
    const struct settings_options *options = target->settings->options;
    if (!wr_template_expand(options->path, at_s, options->utc, path, PATH_MAX))
        return ENAMETOOLONG;
    *changed = strcmp(path, target->path) != 0;
    return 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* A file of its own making gets exactly the mode that was asked for, whatever the umask; one that exists keeps
 * its own. */
static int open_path(const struct output_file *target, const char *path)
{
    mode_t mode = target->settings->mode;
    int flags = O_WRONLY | O_APPEND | O_NOCTTY;
    int fd = system_open(path, flags | O_CREAT | O_EXCL, mode);
    if (fd >= 0) {
        fchmod(fd, mode);
        if (target->settings->options->fsync)
            wr_folder_sync(path);
    } else if (errno == EEXIST) {
        fd = system_open(path, flags | O_CREAT | (target->truncate ? O_TRUNC : 0), mode);
    }
    return fd;
}

static int open_with_folders(const struct output_file *target, char *path)
{
    int fd = open_path(target, path);
    if (fd >= 0 || errno != ENOENT ||
        !(target->settings->options->create_folders || target->settings->dated_folders))
        return fd;
    wr_folder_create(path);
    return open_path(target, path);
}

static int adopt(struct output_file *target, int fd, const char *path, time_t at_s)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        int problem = errno;
        close(fd);
        return problem;
    }
    wr_output_file_close(target);
    target->fd = fd;
    target->device = status.st_dev;
    target->inode = status.st_ino;
    target->regular = S_ISREG(status.st_mode);
    target->truncate = false;
    target->fresh = true;
    target->torn = false;
    target->end = 0;
    target->said_missed = false;
    target->opened++;
    target->looked_ms = output_now_ms();
    target->dated_s = at_s;
    memcpy(target->path, path, strlen(path) + 1);
    return 0;
}

int wr_output_file_reopen(struct output_file *target)
{
    char path[PATH_MAX];
    bool changed;
    time_t at_s = now_s();
    int problem = find_path(target, at_s, path, &changed);
    if (problem)
        return problem;
    int fd = open_with_folders(target, path);
    return fd < 0 ? errno : adopt(target, fd, path, at_s);
}

/* A named pipe in its place is not waited for. */
int wr_output_file_probe(const struct output_file *target, bool *exists)
{
    char path[PATH_MAX];
    bool changed;
    const struct settings *settings = target->settings;
    int problem = find_path(target, now_s(), path, &changed);
    if (problem)
        return problem;
    int fd = system_open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK, 0);
    *exists = fd >= 0;
    if (fd >= 0)
        close(fd);
    else if (errno != ENOENT)
        return errno;
    return *exists ? 0
                   : output_find_obstacle(path, settings->options->create_folders || settings->dated_folders);
}

void wr_output_file_close(struct output_file *target)
{
    if (target->fd < 0)
        return;
    if (target->dirty)
        wr_output_file_sync(target);
    wr_output_file_lock(target, LOCK_UN); /* a forked process may still hold the descriptor */
    close(target->fd);
    target->fd = -1;
    target->dirty = false;
}

void wr_output_file_abandon(const struct output_file *target)
{
    if (target->fd >= 0)
        close(target->fd);
}

/* ---- Still the same file? -------------------------------------------------------------------- */

static bool is_ours(const struct output_file *target)
{
    return system_is_file(target->fd, target->device, target->inode);
}

bool wr_output_file_is_in_place(const struct output_file *target)
{
    return system_leads_to_file(target->path, target->device, target->inode);
}

void wr_output_file_follow(struct output_file *target)
{
    char path[PATH_MAX];
    bool changed = false;
    target->looked_ms = output_now_ms();
    if (target->settings->dated && find_path(target, now_s(), path, &changed) != 0)
        return;
    if (!changed && wr_output_file_is_in_place(target))
        return;
    int problem = wr_output_file_reopen(target);
    if (!problem || target->said_missed)
        return;
    target->said_missed = true;
    if (changed)
        target->host->log(target->host, 2, "%s cannot be opened (%s); writing goes on in %s", path,
                          system_words(problem), target->path);
    else
        target->host->log(target->host, 2,
                          "%s is gone and cannot be opened anew (%s); writing goes on where it went",
                          target->path, system_words(problem));
}

/* Whether the date may be another one by now. */
static bool is_another_second(const struct output_file *target)
{
    return target->settings->dated && !target->said_missed && now_s() != target->dated_s;
}

static void follow_date(struct output_file *target)
{
    char path[PATH_MAX];
    bool changed;
    time_t at_s = now_s();
    if (find_path(target, at_s, path, &changed) == 0 && changed)
        wr_output_file_follow(target);
    else
        target->dated_s = at_s;
}

int wr_output_file_make_sure(struct output_file *target)
{
    if (target->fd >= 0 && !is_ours(target)) {
        target->fd = -1;
        target->dirty = false;
    }
    if (target->fd < 0)
        return wr_output_file_reopen(target);
    if (is_another_second(target))
        follow_date(target);
    if (output_now_ms() - target->looked_ms >= LOOK_EVERY_MS)
        wr_output_file_follow(target);
    return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Where a file system has no locks there is nothing better to do than to go on. A fork need not wait for a lock
 * that another process has. */
void wr_output_file_lock(const struct output_file *target, int how)
{
    if (!target->regular || flock(target->fd, how | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
        return;
    const weir_blocking_call *waiting = target->host->service(target->host, WEIR_SERVICE_BLOCKING_CALL);
    if (waiting)
        waiting->begin(target->host);
    while (flock(target->fd, how) != 0 && errno == EINTR)
        ;
    if (waiting)
        waiting->end(target->host);
}

int wr_output_file_end_line(struct output_file *target)
{
    size_t written;
    if (!target->torn)
        return 0;
    int problem = output_write(target->host, target->fd, "\n", 1, &written);
    target->torn = problem != 0;
    return problem;
}

int wr_output_file_write(struct output_file *target, const char *data, size_t length, size_t *written)
{
    *written = 0;
    int problem = wr_output_file_end_line(target);
    if (!problem)
        problem = output_write(target->host, target->fd, data, length, written);
    if (*written)
        target->dirty = target->settings->options->fsync != 0;
    return problem;
}

void wr_output_file_look_at_end(struct output_file *target, off_t size)
{
    char last = '\n';
    if (!target->regular || size == target->end || !size)
        return;
    int fd = system_open(target->path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (system_is_file(fd, target->device, target->inode) && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        target->torn = true;
    close(fd);
}

void wr_output_file_take_back(struct output_file *target, size_t length)
{
    struct stat status;
    wr_output_file_lock(target, LOCK_EX);
    off_t end = lseek(target->fd, 0, SEEK_CUR); /* with O_APPEND: where our last write ended */
    bool last =
        target->regular && fstat(target->fd, &status) == 0 && end >= (off_t)length && status.st_size == end;
    bool taken = last && ftruncate(target->fd, end - (off_t)length) == 0;
    wr_output_file_lock(target, LOCK_UN);
    target->torn = !taken;
}

/* A second try would say that all is well, although the kernel has given up what it could not write. */
int wr_output_file_sync(struct output_file *target)
{
    const weir_blocking_call *waiting = target->host->service(target->host, WEIR_SERVICE_BLOCKING_CALL);
    target->dirty = false;
    if (!target->regular)
        return 0;
    if (waiting)
        waiting->begin(target->host);
    int problem = fdatasync(target->fd) == 0 ? 0 : errno;
    if (waiting)
        waiting->end(target->host);
    if (!problem)
        return 0;
    target->sync_problem = problem;
    target->host->count(target->host, "fsync.failed", 1);
    target->host->log(target->host, 1, "fsync %s: %s; what was written since the last one may be lost",
                      target->path, system_words(problem));
    return problem;
}
