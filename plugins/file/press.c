#include "press.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../output.h"
#include "attic.h"
#include "folder.h"
#include "stamp.h"

/* A slice takes some milliseconds. */
enum { PIECE = 64 * 1024, PIECES = 4 };

bool wr_press_is_built(void)
{
    return true;
}

void wr_press_init(struct press *press, const weir_host *host)
{
    *press = (struct press){.host = host, .in = -1, .out = -1};
}

/* ---- Beginning and ending -------------------------------------------------------------------- */

static void let_go_of(int *fd)
{
    if (*fd < 0)
        return;
    flock(*fd, LOCK_UN); /* a forked process may still hold the descriptor for a moment */
    close(*fd);
    *fd = -1;
}

static void clean_up(struct press *press)
{
    if (press->stream)
        deflateEnd(press->stream);
    free(press->stream);
    free(press->room);
    press->stream = NULL;
    press->room = NULL;
    let_go_of(&press->in);
    let_go_of(&press->out);
}

/* While its lock is held: nobody else makes another one of that name. */
void wr_press_stop(struct press *press)
{
    if (press->out >= 0)
        unlink(press->half);
    clean_up(press);
}

void wr_press_abandon(const struct press *press)
{
    if (press->in >= 0)
        close(press->in);
    if (press->out >= 0)
        close(press->out);
}

static enum press_state fail(struct press *press, int problem)
{
    press->problem = problem;
    wr_press_stop(press);
    return PRESS_FAILED;
}

static bool is_at(const char *path, int fd)
{
    struct stat there, here;
    return lstat(path, &there) == 0 && fstat(fd, &here) == 0 && there.st_dev == here.st_dev &&
           there.st_ino == here.st_ino;
}

/* Not something that somebody has put there for us to overwrite. */
static bool is_plain(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

/* Takes the lock that makes the file ours. 0; EWOULDBLOCK: another process has it; or errno. */
static int take_half(struct press *press)
{
    press->out = open(press->half, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (press->out < 0)
        return errno;
    int problem =
        flock(press->out, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP ? 0 : errno;
    if (!problem && !is_at(press->half, press->out))
        problem = EWOULDBLOCK; /* another one has just finished it */
    if (!problem && !is_plain(press->out))
        problem = EEXIST;
    if (problem) {
        close(press->out);
        press->out = -1;
    }
    return problem;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* What a file of an earlier date becomes when there is a compressed one of that name already: the file came
 * back, as at the end of summer time. But if that has the file's own time it was made from it, and there was no
 * time left to delete the file. A file with a stamp has its name to itself. */
static enum press_state find_name(struct press *press, const struct attic_file *file, const struct stat *source)
{
    struct stat packed;
    char stamp[STAMP_LENGTH + 1] = "";
    if (!file->stamped && lstat(press->packed, &packed) == 0) {
        if (is_same_time(&packed.st_mtim, &source->st_mtim)) {
            unlink(press->path);
            return PRESS_DONE;
        }
        wr_stamp_put(stamp, wr_stamp_now_us());
    }
    snprintf(press->packed, sizeof press->packed, "%s%s%s.gz", file->path, *stamp ? "." : "", stamp);
    return PRESS_WORKING;
}

static bool start_stream(struct press *press)
{
    enum { GZIP = 16 }; /* zlib: added to the window's bits, for gzip's header and trailer */
    press->room = malloc(2 * PIECE);
    press->stream = calloc(1, sizeof *press->stream);
    if (press->room && press->stream &&
        deflateInit2(press->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return true;
    free(press->stream); /* there is nothing to end */
    press->stream = NULL;
    return false;
}

/* Opens what is compressed, and makes what comes of it like it. */
static enum press_state open_source(struct press *press, const struct attic_file *file)
{
    struct stat status;
    press->in = open(press->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (press->in < 0 && errno == ENOENT) { /* compressed or deleted meanwhile */
        wr_press_stop(press);
        return PRESS_DONE;
    }
    if (press->in < 0 || fstat(press->in, &status) != 0)
        return fail(press, errno);
    if (find_name(press, file, &status) == PRESS_DONE) {
        wr_press_stop(press);
        return PRESS_DONE;
    }
    if (ftruncate(press->out, 0) != 0 || fchmod(press->out, status.st_mode & 07777) != 0)
        return fail(press, errno);
    if (fchown(press->out, status.st_uid, status.st_gid) != 0 && errno != EPERM)
        return fail(press, errno);
    return start_stream(press) ? PRESS_WORKING : fail(press, ENOMEM);
}

enum press_state wr_press_begin(struct press *press, const struct attic_file *file)
{
    snprintf(press->path, sizeof press->path, "%s", file->path);
    snprintf(press->half, sizeof press->half, "%s.gz.tmp", file->path);
    snprintf(press->packed, sizeof press->packed, "%s.gz", file->path);
    press->done = 0;
    int problem = take_half(press);
    if (problem == EWOULDBLOCK)
        return PRESS_DONE;
    return problem ? fail(press, problem) : open_source(press, file);
}

/* ---- Going on -------------------------------------------------------------------------------- */

/* Writes what the compressor has to give, for the bytes that it was given. 0, or errno. */
static int put_out(struct press *press, int how)
{
    unsigned char *out = press->room + PIECE;
    do {
        size_t written;
        press->stream->next_out = out;
        press->stream->avail_out = PIECE;
        deflate(press->stream, how);
        int problem = output_write(press->host, press->out, (const char *)out, PIECE - press->stream->avail_out,
                                   &written);
        if (problem)
            return problem;
    } while (press->stream->avail_out == 0);
    return 0;
}

static int force_out(const struct press *press)
{
    const weir_waiting *waiting = press->host->service(press->host, WEIR_WAITING);
    if (waiting)
        waiting->begin(press->host);
    int problem = fsync(press->out) == 0 ? 0 : errno;
    if (waiting)
        waiting->end(press->host);
    return problem;
}

/* Puts the compressed file in the place of the other one; *source: as it was when all of it was read. */
static int put_in_place(struct press *press, const struct stat *source)
{
    struct timespec times[2] = {source->st_atim, source->st_mtim};
    int problem = put_out(press, Z_FINISH);
    if (!problem && futimens(press->out, times) != 0)
        problem = errno;
    if (!problem)
        problem = force_out(press);
    if (problem)
        return problem;
    if (!is_at(press->path, press->in)) /* deleted meanwhile: too old to be kept */
        return unlink(press->half) == 0 || errno == ENOENT ? 0 : errno;
    if (rename(press->half, press->packed) != 0)
        return errno == ENOENT ? 0 : errno;
    wr_folder_sync(press->packed);
    unlink(press->path);
    return 0;
}

/* All was read, unless somebody who does not rotate has added to it: such ones are kept out from here on, and
 * find the file deleted then. */
static enum press_state finish(struct press *press)
{
    struct stat status;
    while (flock(press->in, LOCK_EX) != 0 && errno == EINTR)
        ;
    if (fstat(press->in, &status) != 0)
        return fail(press, errno);
    if (status.st_size > press->done) {
        flock(press->in, LOCK_UN);
        return PRESS_WORKING;
    }
    int problem = put_in_place(press, &status);
    if (problem)
        return fail(press, problem);
    clean_up(press);
    return PRESS_DONE;
}

enum press_state wr_press_go_on(struct press *press)
{
    for (int i = 0; i < PIECES; i++) {
        ssize_t length = read(press->in, press->room, PIECE);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return fail(press, errno);
        if (length == 0)
            return finish(press);
        press->done += length;
        press->stream->next_in = press->room;
        press->stream->avail_in = (uInt)length;
        int problem = put_out(press, Z_NO_FLUSH);
        if (problem)
            return fail(press, problem);
    }
    return PRESS_WORKING;
}
