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
#include "file_lock.h"
#include "folder.h"
#include "stamp.h"

/* A step takes some milliseconds. */
enum { CHUNK_BYTES = 64 * 1024, CHUNKS_PER_STEP = 4 };

bool wr_compress_is_available(void)
{
    return true;
}

void wr_compress_init(struct compression *compression, const weir_host *host)
{
    *compression = (struct compression){.host = host, .in.fd = -1, .out.fd = -1};
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static void release(struct wr_own_fd *own)
{
    if (wr_own_fd_is_open(own))
        flock(own->fd, LOCK_UN); /* a forked process may still have the descriptor, and with it the lock */
    wr_own_fd_close(own);
}

static void clean_up(struct compression *compression)
{
    if (compression->stream)
        deflateEnd(compression->stream);
    free(compression->stream);
    free(compression->buffer);
    compression->stream = NULL;
    compression->buffer = NULL;
    release(&compression->in);
    release(&compression->out);
}

/* Deletes the file before releasing its lock, so that it is not one that another process has created. */
void wr_compress_stop(struct compression *compression)
{
    if (wr_own_fd_is_open(&compression->out))
        unlink(compression->partial_path);
    clean_up(compression);
}

void wr_compress_abandon(const struct compression *compression)
{
    wr_own_fd_abandon(&compression->in);
    wr_own_fd_abandon(&compression->out);
}

static enum compress_state stop(struct compression *compression)
{
    wr_compress_stop(compression);
    return COMPRESS_DONE;
}

static enum compress_state fail(struct compression *compression, int error)
{
    compression->error = error;
    wr_compress_stop(compression);
    return COMPRESS_FAILED;
}

static bool is_file_at(const char *path, int fd)
{
    struct stat there, here;
    return lstat(path, &there) == 0 && fstat(fd, &here) == 0 && there.st_dev == here.st_dev &&
           there.st_ino == here.st_ino;
}

/* A regular file without other links: not one that another user has prepared to be overwritten. */
static bool is_safe(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

/* Opens and locks the partial file. Returns 0, EWOULDBLOCK if another process has the lock, or errno. */
static int lock_partial(struct compression *compression)
{
    if (!wr_own_fd_set(&compression->out,
                       wr_fd_open(compression->partial_path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600)))
        return errno;
    const int fd = compression->out.fd;
    int error = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == EOPNOTSUPP ? 0 : errno;
    if (!error && !is_file_at(compression->partial_path, fd))
        error = EWOULDBLOCK; /* another process has just finished it */
    if (!error && !is_safe(fd))
        error = EEXIST;
    if (error)
        wr_own_fd_close(&compression->out);
    return error;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A file of an earlier date may be used again after it was compressed, as at the end of daylight saving
 * time: then a stamp is added to the name of its compressed version. But if the existing compressed file has
 * the same modification time, it was made from this file, and only the deletion is missing. A name with a
 * stamp is unique. */
static enum compress_state find_name(struct compression *compression, const struct archive_file *file,
                                     const struct stat *source)
{
    struct stat gz;
    char stamp[STAMP_LENGTH + 1] = "";
    if (!file->stamped && lstat(compression->gz_path, &gz) == 0) {
        if (is_same_time(&gz.st_mtim, &source->st_mtim)) {
            unlink(compression->path);
            return COMPRESS_DONE;
        }
        wr_stamp_format(stamp, wr_stamp_now_us());
    }
    snprintf(compression->gz_path, sizeof compression->gz_path, "%s%s%s.gz", file->path, *stamp ? "." : "",
             stamp);
    return COMPRESS_WORKING;
}

static bool start_stream(struct compression *compression)
{
    enum { GZIP = 16 }; /* added to the window bits, selects zlib's gzip format */
    compression->buffer = malloc(2 * CHUNK_BYTES);
    compression->stream = calloc(1, sizeof *compression->stream);
    if (compression->buffer && compression->stream &&
        deflateInit2(compression->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return true;
    free(compression->stream); /* deflateEnd not needed */
    compression->stream = NULL;
    return false;
}

/* Opens the original, and gives the compressed file its permissions and owner. */
static enum compress_state open_source(struct compression *compression, const struct archive_file *file)
{
    struct stat status;
    if (!wr_own_fd_set(&compression->in, wr_fd_open(compression->path, O_RDWR | O_NOFOLLOW, 0)) &&
        errno == ENOENT) /* compressed or deleted by another process */
        return stop(compression);
    if (compression->in.fd < 0 || fstat(compression->in.fd, &status) != 0)
        return fail(compression, errno);
    if (find_name(compression, file, &status) == COMPRESS_DONE)
        return stop(compression);
    if (ftruncate(compression->out.fd, 0) != 0 || fchmod(compression->out.fd, status.st_mode & 07777) != 0)
        return fail(compression, errno);
    if (fchown(compression->out.fd, status.st_uid, status.st_gid) != 0 && errno != EPERM)
        return fail(compression, errno);
    return start_stream(compression) ? COMPRESS_WORKING : fail(compression, ENOMEM);
}

enum compress_state wr_compress_begin(struct compression *compression, const struct archive_file *file)
{
    snprintf(compression->path, sizeof compression->path, "%s", file->path);
    snprintf(compression->partial_path, sizeof compression->partial_path, "%s.gz.tmp", file->path);
    snprintf(compression->gz_path, sizeof compression->gz_path, "%s.gz", file->path);
    compression->done = 0;
    int error = lock_partial(compression);
    if (error == EWOULDBLOCK)
        return COMPRESS_DONE;
    return error ? fail(compression, error) : open_source(compression, file);
}

/* ---- Compressing ----------------------------------------------------------------------------- */

/* Compresses the stream's input and writes the output. Returns 0 or errno. */
static int write_compressed(struct compression *compression, int flush)
{
    unsigned char *out = compression->buffer + CHUNK_BYTES;
    do {
        size_t written;
        compression->stream->next_out = out;
        compression->stream->avail_out = CHUNK_BYTES;
        deflate(compression->stream, flush);
        int error = wr_output_write(compression->host, compression->out.fd, (const char *)out,
                                    CHUNK_BYTES - compression->stream->avail_out, &written);
        if (error)
            return error;
    } while (compression->stream->avail_out == 0);
    return 0;
}

static int sync_output(const struct compression *compression)
{
    const weir_blocking_call *waiting =
        compression->host->service(compression->host, WEIR_SERVICE_BLOCKING_CALL);
    if (waiting)
        waiting->begin(compression->host);
    int error = fsync(compression->out.fd) == 0 ? 0 : errno;
    if (waiting)
        waiting->end(compression->host);
    return error;
}

/* Replaces the original by the compressed file. *source: the original's status when it had been read
 * completely. */
static int replace_original(struct compression *compression, const struct stat *source)
{
    struct timespec times[2] = {source->st_atim, source->st_mtim};
    int error = write_compressed(compression, Z_FINISH);
    if (!error && futimens(compression->out.fd, times) != 0)
        error = errno;
    if (!error)
        error = sync_output(compression);
    if (error)
        return error;
    if (!is_file_at(compression->path, compression->in.fd)) /* deleted by another process: too old to keep */
        return unlink(compression->partial_path) == 0 || errno == ENOENT ? 0 : errno;
    if (rename(compression->partial_path, compression->gz_path) != 0)
        return errno == ENOENT ? 0 : errno;
    wr_folder_sync(compression->gz_path);
    unlink(compression->path);
    return 0;
}

/* Whether the program has closed none of the descriptors. */
static bool are_open(const struct compression *compression)
{
    return wr_own_fd_is_open(&compression->in) && wr_own_fd_is_open(&compression->out);
}

/* At the end of the original. A process that does not rotate may still append to it: the lock excludes that,
 * and afterwards the process finds that the file is deleted. */
static enum compress_state finish(struct compression *compression)
{
    struct stat status;
    int locked = wr_file_lock_take(compression->host, compression->in.fd, LOCK_EX);
    if (locked)
        return fail(compression, locked);
    if (!are_open(compression))
        return stop(compression);
    if (fstat(compression->in.fd, &status) != 0)
        return fail(compression, errno);
    if (status.st_size > compression->done) {
        flock(compression->in.fd, LOCK_UN);
        return COMPRESS_WORKING;
    }
    int error = replace_original(compression, &status);
    if (error)
        return fail(compression, error);
    clean_up(compression);
    return COMPRESS_DONE;
}

enum compress_state wr_compress_step(struct compression *compression)
{
    for (int i = 0; i < CHUNKS_PER_STEP; i++) {
        if (!are_open(compression)) /* the next program, or pass, begins again */
            return stop(compression);
        ssize_t length = read(compression->in.fd, compression->buffer, CHUNK_BYTES);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return fail(compression, errno);
        if (length == 0)
            return finish(compression);
        compression->done += length;
        compression->stream->next_in = compression->buffer;
        compression->stream->avail_in = (uInt)length;
        int error = write_compressed(compression, Z_NO_FLUSH);
        if (error)
            return fail(compression, error);
    }
    return COMPRESS_WORKING;
}
