#include "rotation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../output.h"
#include "archive.h"
#include "file_lock.h"
#include "period.h"
#include "stamp.h"

enum { RETRY_MS = 10000, NAME_MAX_BYTES = PATH_MAX + STAMP_LENGTH + 2 };

void wr_rotation_init(struct rotation *rotation, const struct settings *settings)
{
    *rotation = (struct rotation){.settings = settings, .retry_at_ms = INT64_MIN};
}

bool wr_rotation_is_on(const struct rotation *rotation)
{
    return rotation->settings->rotates &&
           (rotation->retry_at_ms == INT64_MIN || wr_output_now_ms() >= rotation->retry_at_ms);
}

/* ---- When ------------------------------------------------------------------------------------ */

bool wr_rotation_is_empty(const struct rotation *rotation, const struct stat *status)
{
    return status->st_size <= (off_t)rotation->settings->header_length;
}

/* The period is that of the file's last write, by any process, including before a restart. Uses the clock
 * that the kernel uses for modification times: by a finer clock a new file might seem to be from before
 * midnight. */
static bool is_period_over(const struct settings_options *options, const struct stat *status)
{
    struct timespec now;
    if (!options->rotate_every_ns)
        return false;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec != status->st_mtim.tv_sec &&
           wr_period_number(options->rotate_every_ns, now.tv_sec, options->utc) !=
               wr_period_number(options->rotate_every_ns, status->st_mtim.tv_sec, options->utc);
}

size_t wr_rotation_room(const struct rotation *rotation, const struct stat *status)
{
    const struct settings_options *options = rotation->settings->options;
    bool empty = wr_rotation_is_empty(rotation, status);
    if (!empty && is_period_over(options, status))
        return 0;
    if (!options->rotate_size)
        return SIZE_MAX;
    int64_t used = empty ? (int64_t)rotation->settings->header_length : status->st_size;
    return options->rotate_size > used ? (size_t)(options->rotate_size - used) : 0;
}

/* ---- How ------------------------------------------------------------------------------------- */

static bool exists(const char *path, const char *ending)
{
    struct stat status;
    char whole[NAME_MAX_BYTES + 8];
    snprintf(whole, sizeof whole, "%s%s", path, ending);
    return lstat(whole, &status) == 0;
}

/* A name with a later stamp than all old files, even if the clock was set back. */
static void find_name(const struct output_file *output, char name[NAME_MAX_BYTES])
{
    struct archive archive;
    char stamp[STAMP_LENGTH + 1];
    int64_t at_us = wr_stamp_now_us();
    if (wr_archive_list(&archive, output->settings, output->path))
        for (size_t i = 0; i < archive.count; i++)
            if (archive.files[i].stamped && archive.files[i].age_us >= at_us)
                at_us = archive.files[i].age_us + 1;
    wr_archive_fini(&archive);
    do {
        wr_stamp_format(stamp, at_us++);
        snprintf(name, NAME_MAX_BYTES, "%s.%s", output->path, stamp);
    } while (exists(name, "") || exists(name, ".gz")); /* in case the folder could not be listed */
}

/* A symbolic link, such as /dev/stdout, is not renamed. */
static int check_path(const struct output_file *output)
{
    struct stat status;
    if (lstat(output->path, &status) != 0)
        return errno;
    return S_ISLNK(status.st_mode) ? ELOOP : 0;
}

/* No process writes between the rename and the reopen: the others wait for the lock that we hold, and then
 * check whether the path still names the file. */
static int rotate_to(struct output_file *output, const char *name)
{
    wr_output_file_end_line(output); /* or the next file would seem to continue it */
    if (output->dirty)
        wr_output_file_sync(output);
    if (rename(output->path, name) != 0)
        return errno;
    char path[PATH_MAX];
    memcpy(path, output->path, sizeof path);
    int error = wr_output_file_reopen(output);
    if (error && renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        wr_output_file_close(output);
    return error;
}

static void postpone(struct rotation *rotation, const struct output_file *output, int error)
{
    rotation->retry_at_ms = wr_output_now_ms() + RETRY_MS;
    if (rotation->logged)
        return;
    rotation->logged = true;
    if (error == ELOOP)
        output->host->log(output->host, WEIR_LOG_WARNING,
                          "%s is a symbolic link and is not rotated; set \"path\" to the file itself",
                          output->path);
    else
        output->host->log(output->host, WEIR_LOG_WARNING,
                          "%s cannot be rotated (%s); it continues to grow; next attempt in %d s", output->path,
                          wr_file_error_text(error), RETRY_MS / 1000);
}

int wr_rotation_rotate(struct rotation *rotation, struct output_file *output)
{
    char name[NAME_MAX_BYTES];
    unsigned opened = output->opened;
    int error = check_path(output);
    if (!error) {
        find_name(output, name);
        error = rotate_to(output, name);
    }
    if (!error) {
        rotation->logged = false;
        rotation->retry_at_ms = INT64_MIN;
        return 0;
    }
    if (output->own.fd >= 0 && output->opened == opened)
        wr_file_lock_release(output->own.fd);
    postpone(rotation, output, error);
    return output->own.fd >= 0 ? 0 : error;
}
