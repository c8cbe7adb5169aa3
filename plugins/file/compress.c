#include "compress.h"

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
#include "archive.h"
#include "folder.h"
#include "stamp.h"

/* A slice takes some milliseconds. */
enum { PIECE = 64 * 1024, PIECES = 4 };

bool wr_compress_is_built(void)
{
    return true;
}

void wr_compress_init(struct compress *compress, const weir_host *host)
{
    *compress = (struct compress){.host = host, .in = -1, .out = -1};
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

static void clean_up(struct compress *compress)
{
    if (compress->stream)
        deflateEnd(compress->stream);
    free(compress->stream);
    free(compress->room);
    compress->stream = NULL;
    compress->room = NULL;
    let_go_of(&compress->in);
    let_go_of(&compress->out);
}

/* While its lock is held: nobody else makes another one of that name. */
void wr_compress_stop(struct compress *compress)
{
    if (compress->out >= 0)
        unlink(compress->half);
    clean_up(compress);
}

void wr_compress_abandon(const struct compress *compress)
{
    if (compress->in >= 0)
        close(compress->in);
    if (compress->out >= 0)
        close(compress->out);
}

static enum compress_state fail(struct compress *compress, int problem)
{
    compress->problem = problem;
    wr_compress_stop(compress);
    return COMPRESS_FAILED;
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
static int take_half(struct compress *compress)
{
    compress->out = system_open(compress->half, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (compress->out < 0)
        return errno;
    int problem =
        flock(compress->out, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP ? 0 : errno;
    if (!problem && !is_at(compress->half, compress->out))
        problem = EWOULDBLOCK; /* another one has just finished it */
    if (!problem && !is_plain(compress->out))
        problem = EEXIST;
    if (problem) {
        close(compress->out);
        compress->out = -1;
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
static enum compress_state find_name(struct compress *compress, const struct archive_file *file,
                                     const struct stat *source)
{
    struct stat packed;
    char stamp[STAMP_LENGTH + 1] = "";
    if (!file->stamped && lstat(compress->packed, &packed) == 0) {
        if (is_same_time(&packed.st_mtim, &source->st_mtim)) {
            unlink(compress->path);
            return COMPRESS_DONE;
        }
        wr_stamp_put(stamp, wr_stamp_now_us());
    }
    snprintf(compress->packed, sizeof compress->packed, "%s%s%s.gz", file->path, *stamp ? "." : "", stamp);
    return COMPRESS_WORKING;
}

static bool start_stream(struct compress *compress)
{
    enum { GZIP = 16 }; /* zlib: added to the window's bits, for gzip's header and trailer */
    compress->room = malloc(2 * PIECE);
    compress->stream = calloc(1, sizeof *compress->stream);
    if (compress->room && compress->stream &&
        deflateInit2(compress->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return true;
    free(compress->stream); /* there is nothing to end */
    compress->stream = NULL;
    return false;
}

/* Opens what is compressed, and makes what comes of it like it. */
static enum compress_state open_source(struct compress *compress, const struct archive_file *file)
{
    struct stat status;
    compress->in = system_open(compress->path, O_RDWR | O_NOFOLLOW, 0);
    if (compress->in < 0 && errno == ENOENT) { /* compressed or deleted meanwhile */
        wr_compress_stop(compress);
        return COMPRESS_DONE;
    }
    if (compress->in < 0 || fstat(compress->in, &status) != 0)
        return fail(compress, errno);
    if (find_name(compress, file, &status) == COMPRESS_DONE) {
        wr_compress_stop(compress);
        return COMPRESS_DONE;
    }
    if (ftruncate(compress->out, 0) != 0 || fchmod(compress->out, status.st_mode & 07777) != 0)
        return fail(compress, errno);
    if (fchown(compress->out, status.st_uid, status.st_gid) != 0 && errno != EPERM)
        return fail(compress, errno);
    return start_stream(compress) ? COMPRESS_WORKING : fail(compress, ENOMEM);
}

enum compress_state wr_compress_begin(struct compress *compress, const struct archive_file *file)
{
    snprintf(compress->path, sizeof compress->path, "%s", file->path);
    snprintf(compress->half, sizeof compress->half, "%s.gz.tmp", file->path);
    snprintf(compress->packed, sizeof compress->packed, "%s.gz", file->path);
    compress->done = 0;
    int problem = take_half(compress);
    if (problem == EWOULDBLOCK)
        return COMPRESS_DONE;
    return problem ? fail(compress, problem) : open_source(compress, file);
}

/* ---- Going on -------------------------------------------------------------------------------- */

/* Writes what the compressor has to give, for the bytes that it was given. 0, or errno. */
static int put_out(struct compress *compress, int how)
{
    unsigned char *out = compress->room + PIECE;
    do {
        size_t written;
        compress->stream->next_out = out;
        compress->stream->avail_out = PIECE;
        deflate(compress->stream, how);
        int problem = output_write(compress->host, compress->out, (const char *)out,
                                   PIECE - compress->stream->avail_out, &written);
        if (problem)
            return problem;
    } while (compress->stream->avail_out == 0);
    return 0;
}

static int force_out(const struct compress *compress)
{
    const weir_blocking_call *waiting = compress->host->service(compress->host, WEIR_SERVICE_BLOCKING_CALL);
    if (waiting)
        waiting->begin(compress->host);
    int problem = fsync(compress->out) == 0 ? 0 : errno;
    if (waiting)
        waiting->end(compress->host);
    return problem;
}

/* Puts the compressed file in the place of the other one; *source: as it was when all of it was read. */
static int put_in_place(struct compress *compress, const struct stat *source)
{
    struct timespec times[2] = {source->st_atim, source->st_mtim};
    int problem = put_out(compress, Z_FINISH);
    if (!problem && futimens(compress->out, times) != 0)
        problem = errno;
    if (!problem)
        problem = force_out(compress);
    if (problem)
        return problem;
    if (!is_at(compress->path, compress->in)) /* deleted meanwhile: too old to be kept */
        return unlink(compress->half) == 0 || errno == ENOENT ? 0 : errno;
    if (rename(compress->half, compress->packed) != 0)
        return errno == ENOENT ? 0 : errno;
    wr_folder_sync(compress->packed);
    unlink(compress->path);
    return 0;
}

/* All was read, unless somebody who does not rotate has added to it: such ones are kept out from here on, and
 * find the file deleted then. */
static enum compress_state finish(struct compress *compress)
{
    struct stat status;
    while (flock(compress->in, LOCK_EX) != 0 && errno == EINTR)
        ;
    if (fstat(compress->in, &status) != 0)
        return fail(compress, errno);
    if (status.st_size > compress->done) {
        flock(compress->in, LOCK_UN);
        return COMPRESS_WORKING;
    }
    int problem = put_in_place(compress, &status);
    if (problem)
        return fail(compress, problem);
    clean_up(compress);
    return COMPRESS_DONE;
}

enum compress_state wr_compress_go_on(struct compress *compress)
{
    for (int i = 0; i < PIECES; i++) {
        ssize_t length = read(compress->in, compress->room, PIECE);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return fail(compress, errno);
        if (length == 0)
            return finish(compress);
        compress->done += length;
        compress->stream->next_in = compress->room;
        compress->stream->avail_in = (uInt)length;
        int problem = put_out(compress, Z_NO_FLUSH);
        if (problem)
            return fail(compress, problem);
    }
    return COMPRESS_WORKING;
}
