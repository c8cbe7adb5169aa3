#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include <weir/weir.h>

#include "../output.h"
#include "file_lock.h"
#include "folder.h"
#include "template.h"

enum { CHECK_INTERVAL_MS = 500 };

void wr_output_file_init(struct output_file *output, const weir_host *host, const struct settings *settings)
{
    *output = (struct output_file){.host = host,
                                   .settings = settings,
                                   .truncate = !settings->options->append,
                                   .own.fd = -1,
                                   .dated_s = -1};
}

/* ---- The path -------------------------------------------------------------------------------- */

/* The coarse clock, which the kernel uses for the modification times of files. */
static time_t now_s(void)
{
    return wr_system_clock_ns(CLOCK_REALTIME_COARSE) / 1000000000;
}

/* Expands the path for a time; *changed: it is not the path of the open file. Returns 0 or errno. */
static int expand_path(const struct output_file *output, time_t time_s, char *path, bool *changed)
{
    const struct settings_options *options = output->settings->options;
    if (!wr_template_expand(options->path, time_s, options->utc, path, PATH_MAX))
        return ENAMETOOLONG;
    *changed = strcmp(path, output->path) != 0;
    return 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Only regular files: another file might block, or be locked and truncated to no effect. Returns 0 or an enum
 * file_error; a folder is left to open(2). */
static int check_type(const struct stat *status)
{
    switch (status->st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR: return 0;
    case S_IFIFO: return FILE_ERROR_FIFO;
    case S_IFSOCK: return FILE_ERROR_SOCKET;
    default: return FILE_ERROR_DEVICE;
    }
}

/* Before opening, which may have side effects: a pipe's reader would see a writer. */
static int check_path(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? check_type(&status) : 0;
}

/* A created file gets exactly the configured mode, regardless of the umask; an existing file keeps its mode. */
static int open_path(const struct output_file *output, const char *path)
{
    mode_t mode = output->settings->mode;
    /* O_NONBLOCK: the path may become a named pipe after check_path */
    int flags = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK;
    int fd = wr_fd_open(path, flags | O_CREAT | O_EXCL, mode);
    if (fd >= 0) {
        fchmod(fd, mode);
        if (output->settings->options->fsync)
            wr_folder_sync(path);
    } else if (errno == EEXIST) {
        fd = wr_fd_open(path, flags | O_CREAT | (output->truncate ? O_TRUNC : 0), mode);
    }
    return fd;
}

static int open_with_folders(const struct output_file *output, char *path)
{
    int fd = open_path(output, path);
    if (fd >= 0 || errno != ENOENT ||
        !(output->settings->options->create_folders || output->settings->dated_folders))
        return fd;
    wr_folder_create(path);
    return open_path(output, path);
}

static int use_file(struct output_file *output, int fd, const char *path, time_t time_s)
{
    struct stat status;
    int error = fstat(fd, &status) == 0 ? check_type(&status) : errno;
    if (error) {
        close(fd);
        return error;
    }
    wr_output_file_close(output);
    output->own = (struct wr_own_fd){fd, status.st_dev, status.st_ino};
    output->local = wr_system_is_local(fd);
    output->truncate = false;
    output->fresh = true;
    output->torn = false;
    output->end = 0;
    output->logged_missing = false;
    output->opened++;
    output->checked_ms = wr_output_now_ms();
    output->dated_s = time_s;
    memcpy(output->path, path, strlen(path) + 1);
    return 0;
}

int wr_output_file_reopen(struct output_file *output)
{
    char path[PATH_MAX];
    bool changed;
    time_t time_s = now_s();
    int error = expand_path(output, time_s, path, &changed);
    if (!error)
        error = check_path(path);
    if (error)
        return error;
    int fd = open_with_folders(output, path);
    return fd < 0 ? errno : use_file(output, fd, path, time_s);
}

/* O_NONBLOCK: do not wait if the path is a named pipe. */
int wr_output_file_probe(const struct output_file *output, bool *exists)
{
    char path[PATH_MAX];
    bool changed;
    const struct settings *settings = output->settings;
    int error = expand_path(output, now_s(), path, &changed);
    if (!error)
        error = check_path(path);
    if (error)
        return error;
    int fd = wr_fd_open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK, 0);
    *exists = fd >= 0;
    if (fd >= 0)
        close(fd);
    else if (errno != ENOENT)
        return errno;
    return *exists ? 0
                   : wr_output_check_create(path, settings->options->create_folders || settings->dated_folders);
}

void wr_output_file_close(struct output_file *output)
{
    if (output->dirty)
        wr_output_file_sync(output);
    /* a forked process may still have the descriptor, and with it the lock */
    if (wr_own_fd_is_open(&output->own))
        wr_file_lock_release(output->own.fd);
    wr_own_fd_close(&output->own);
    output->dirty = false;
}

void wr_output_file_abandon(const struct output_file *output)
{
    wr_own_fd_abandon(&output->own);
}

/* ---- Identity -------------------------------------------------------------------------------- */

bool wr_output_file_is_in_place(const struct output_file *output)
{
    return wr_system_leads_to_file(output->path, output->own.device, output->own.inode);
}

void wr_output_file_follow(struct output_file *output)
{
    char path[PATH_MAX];
    bool changed = false;
    output->checked_ms = wr_output_now_ms();
    if (output->settings->dated && expand_path(output, now_s(), path, &changed) != 0)
        return;
    if (!changed && wr_output_file_is_in_place(output))
        return;
    int error = wr_output_file_reopen(output);
    if (!error || output->logged_missing)
        return;
    output->logged_missing = true;
    if (changed)
        output->host->log(output->host, WEIR_LOG_WARNING,
                          "%s cannot be opened (%s); values are still written to %s", path,
                          wr_file_error_text(error), output->path);
    else
        output->host->log(
            output->host, WEIR_LOG_WARNING,
            "%s was moved or deleted and cannot be reopened (%s); values are still written to the old file",
            output->path, wr_file_error_text(error));
}

/* Whether the date may have changed. */
static bool may_have_changed(const struct output_file *output)
{
    return output->settings->dated && !output->logged_missing && now_s() != output->dated_s;
}

static void follow_date(struct output_file *output)
{
    char path[PATH_MAX];
    bool changed;
    time_t time_s = now_s();
    if (expand_path(output, time_s, path, &changed) == 0 && changed)
        wr_output_file_follow(output);
    else
        output->dated_s = time_s;
}

int wr_output_file_ensure(struct output_file *output)
{
    if (!wr_own_fd_is_open(&output->own)) {
        output->own.fd = -1;
        output->dirty = false;
        return wr_output_file_reopen(output);
    }
    if (may_have_changed(output))
        follow_date(output);
    if (wr_output_now_ms() - output->checked_ms >= CHECK_INTERVAL_MS)
        wr_output_file_follow(output);
    return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

int wr_output_file_end_line(struct output_file *output)
{
    size_t written;
    if (!output->torn)
        return 0;
    int error = wr_output_write(output->host, output->own.fd, "\n", 1, &written);
    output->torn = error != 0;
    return error;
}

int wr_output_file_write(struct output_file *output, const char *data, size_t length, size_t *written)
{
    *written = 0;
    int error = wr_output_file_end_line(output);
    if (!error)
        error = wr_output_write(output->host, output->own.fd, data, length, written);
    if (*written)
        output->dirty = output->settings->options->fsync != 0;
    return error;
}

void wr_output_file_check_end(struct output_file *output, off_t size)
{
    char last = '\n';
    if (size == output->end || !size)
        return;
    int fd = wr_fd_open(output->path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (wr_fd_is_file(fd, output->own.device, output->own.inode) && pread(fd, &last, 1, size - 1) == 1 &&
        last != '\n')
        output->torn = true;
    close(fd);
}

static void remove_tail(struct output_file *output, size_t length, bool locked)
{
    struct stat status;
    off_t end = lseek(output->own.fd, 0, SEEK_CUR); /* with O_APPEND: the end of our last write */
    bool last = locked && fstat(output->own.fd, &status) == 0 && end >= (off_t)length && status.st_size == end;
    bool removed = last && ftruncate(output->own.fd, end - (off_t)length) == 0;
    wr_file_lock_release(output->own.fd);
    output->torn = !removed;
}

void wr_output_file_remove_tail(struct output_file *output, size_t length)
{
    remove_tail(output, length, wr_file_lock_take(output->host, output->own.fd, LOCK_EX) == 0);
}

/* Whether a write is only that: nothing may have to be opened, checked, rotated, repaired or synchronised. */
static bool is_plain(const struct output_file *output)
{
    const struct settings *settings = output->settings;
    return output->own.fd >= 0 && output->local && !output->fresh && !output->torn && !settings->rotates &&
           !settings->dated && !settings->header_length && !settings->options->fsync &&
           wr_output_now_ms() - output->checked_ms < CHECK_INTERVAL_MS;
}

/* The shared lock as for every write: another process may be removing a partial line. */
bool wr_output_file_write_now(struct output_file *output, const char *data, size_t length)
{
    struct stat status;
    if (!is_plain(output) || !wr_own_fd_is_open(&output->own) || !wr_file_lock_try(output->own.fd, LOCK_SH))
        return false;
    ssize_t written = -1;
    if (fstat(output->own.fd, &status) == 0 && status.st_nlink > 0)
        written = write(output->own.fd, data, length);
    if (written > 0 && (size_t)written < length)
        remove_tail(output, (size_t)written, wr_file_lock_try(output->own.fd, LOCK_EX));
    else
        wr_file_lock_release(output->own.fd);
    return written == (ssize_t)length;
}

/* Never retried: a second fsync could succeed although the kernel has discarded the data that it could not
 * write. */
int wr_output_file_sync(struct output_file *output)
{
    const weir_blocking_call *waiting = output->host->service(output->host, WEIR_SERVICE_BLOCKING_CALL);
    output->dirty = false;
    if (waiting)
        waiting->begin(output->host);
    int error = !wr_own_fd_is_open(&output->own) ? EBADF : fdatasync(output->own.fd) == 0 ? 0 : errno;
    if (waiting)
        waiting->end(output->host);
    if (!error)
        return 0;
    output->sync_error = error;
    output->host->count(output->host, "fsync.failed", 1);
    output->host->log(output->host, WEIR_LOG_ERROR,
                      "fsync %s: %s; values written since the last fsync may be lost if the machine crashes",
                      output->path, wr_system_strerror(error));
    return error;
}
