#include "rotation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "../output.h"
#include "archive.h"
#include "period.h"
#include "stamp.h"

enum { PAUSE_MS = 10000, NAME_ROOM = PATH_MAX + STAMP_LENGTH + 2 };

void wr_rotation_init(struct rotation *rotation, const struct settings *settings)
{
    *rotation = (struct rotation){.settings = settings, .off_until_ms = INT64_MIN};
}

bool wr_rotation_is_on(const struct rotation *rotation, const struct output_file *target)
{
    return rotation->settings->rotates && target->regular &&
           (rotation->off_until_ms == INT64_MIN || output_now_ms() >= rotation->off_until_ms);
}

/* ---- When ------------------------------------------------------------------------------------ */

bool wr_rotation_is_empty(const struct rotation *rotation, const struct stat *status)
{
    return status->st_size <= (off_t)rotation->settings->header_length;
}

/* The file itself knows when it was written last, whoever did it, also before a restart. By the clock that the
 * kernel stamps files with, or a new file might seem to be of before midnight. */
static bool is_over(const struct settings_options *options, const struct stat *status)
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
    if (!empty && is_over(options, status))
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
    char whole[NAME_ROOM + 8];
    snprintf(whole, sizeof whole, "%s%s", path, ending);
    return lstat(whole, &status) == 0;
}

/* A name that is younger than all old ones, also where the clock was set back. */
static void find_name(const struct output_file *target, char name[NAME_ROOM])
{
    struct archive archive;
    char stamp[STAMP_LENGTH + 1];
    int64_t at_us = wr_stamp_now_us();
    if (wr_archive_list(&archive, target->settings, target->path))
        for (size_t i = 0; i < archive.count; i++)
            if (archive.files[i].stamped && archive.files[i].age_us >= at_us)
                at_us = archive.files[i].age_us + 1;
    wr_archive_fini(&archive);
    do {
        wr_stamp_put(stamp, at_us++);
        snprintf(name, NAME_ROOM, "%s.%s", target->path, stamp);
    } while (exists(name, "") || exists(name, ".gz")); /* a folder that could not be read */
}

/* What is at the path may be a link to the file, as /dev/stdout is: that must stay. */
static int find_obstacle(const struct output_file *target)
{
    struct stat status;
    if (lstat(target->path, &status) != 0)
        return errno;
    return S_ISLNK(status.st_mode) ? ELOOP : 0;
}

/* Between the two names nobody writes: whoever wants to waits for the lock of the file that we hold, and then
 * looks whether it is in place still. */
static int put_aside(struct output_file *target, const char *name)
{
    wr_output_file_end_line(target); /* what follows it in the next file would seem to be of the same line */
    if (target->dirty)
        wr_output_file_sync(target);
    if (rename(target->path, name) != 0)
        return errno;
    char path[PATH_MAX];
    memcpy(path, target->path, sizeof path);
    int problem = wr_output_file_reopen(target);
    if (problem && renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        wr_output_file_close(target);
    return problem;
}

static void pause_rotation(struct rotation *rotation, const struct output_file *target, int problem)
{
    rotation->off_until_ms = output_now_ms() + PAUSE_MS;
    if (rotation->said)
        return;
    rotation->said = true;
    if (problem == ELOOP)
        target->host->log(target->host, 2,
                          "%s is a symbolic link and is not rotated; give the path of the file itself",
                          target->path);
    else
        target->host->log(target->host, 2,
                          "%s cannot be rotated (%s); it goes on growing, and is tried again every %d s",
                          target->path, system_strerror(problem), PAUSE_MS / 1000);
}

int wr_rotation_turn(struct rotation *rotation, struct output_file *target)
{
    char name[NAME_ROOM];
    unsigned opened = target->opened;
    int problem = find_obstacle(target);
    if (!problem) {
        find_name(target, name);
        problem = put_aside(target, name);
    }
    if (!problem) {
        rotation->said = false;
        rotation->off_until_ms = INT64_MIN;
        return 0;
    }
    if (target->fd >= 0 && target->opened == opened)
        wr_output_file_lock(target, LOCK_UN);
    pause_rotation(rotation, target, problem);
    return target->fd >= 0 ? 0 : problem;
}
