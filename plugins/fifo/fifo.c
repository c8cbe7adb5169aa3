/* fifo: writes values to a named pipe that another process reads and, usually, creates.
 *
 * A write consists of whole lines and at most PIPE_BUF bytes, which the kernel writes to a pipe atomically:
 * a reader never sees part of a line, and lines of several writers never mix.
 *
 * The descriptor stays open as long as the path names the same pipe: while there is nothing to write,
 * because a reader may stop when the last writer closes the pipe; and while there is no reader, because data
 * in the pipe is lost when its last descriptor is closed. The descriptor is non-blocking. Where this handler
 * waits, it can be stopped and the program can fork. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../output.h"

enum {
    CHUNK_BYTES = 64 * 1024, /* bytes encoded at a time */
    CHECK_INTERVAL_MS = 500, /* how often to check that the path still names the open pipe */
    POLL_MS = 20,            /* interval of fork points in a wait; a fork waits at most 50 ms */
    PARTIAL_WAIT_MS = 100,   /* wait for a full pipe once part of the batch has been written */
    STOP_WAIT_MS = 200,      /* wait for a full pipe when the handler must stop */
};

/* ---- The pipe -------------------------------------------------------------------------------- */

/* The state of the named pipe at `path`. */
enum pipe_state {
    PIPE_READY,
    PIPE_MISSING, /* the path does not exist */
    PIPE_NO_READER,
    PIPE_FULL,
    PIPE_WRONG_TYPE, /* the path is not a named pipe */
    PIPE_CREATE_FAILED,
    PIPE_OPEN_FAILED,
    PIPE_WRITE_FAILED,
};

struct pipe_result {
    enum pipe_state state;
    int error;   /* errno, where it adds information */
    mode_t type; /* PIPE_WRONG_TYPE: the type of the file at the path */
};

struct pipe {
    const weir_host *host;
    const char *path;
    bool create;
    mode_t mode;  /* permissions of a created pipe */
    int size;     /* 0: leave the capacity unchanged */
    int fd;       /* -1: not open */
    dev_t device; /* identify the open pipe */
    ino_t inode;
    int64_t checked_ms; /* when the path was last compared with the open pipe */
    bool logged_size;   /* a refused pipe_size has been logged */
};

static struct pipe_result result_of(enum pipe_state state, int error)
{
    return (struct pipe_result){.state = state, .error = error};
}

static const char *name_type(mode_t type)
{
    switch (type & S_IFMT) {
    case S_IFLNK: return "a symbolic link";
    case S_IFREG: return "a regular file";
    case S_IFDIR: return "a folder";
    case S_IFSOCK: return "a socket";
    default: return "a device";
    }
}

/* Writes a description of the result. Returns its length, as snprintf does. */
static int describe_result(const struct pipe *pipe, const struct pipe_result *result, char *text, size_t room)
{
    const char *path = pipe->path, *error = system_strerror(result->error);
    switch (result->state) {
    case PIPE_MISSING: return snprintf(text, room, "the named pipe %.160s does not exist", path);
    case PIPE_NO_READER: return snprintf(text, room, "the named pipe %.160s has no reader", path);
    case PIPE_FULL:
        return snprintf(text, room, "the named pipe %.160s is full: its reader reads nothing", path);
    case PIPE_WRONG_TYPE:
        return snprintf(text, room, "%.160s is %s, not a named pipe", path, name_type(result->type));
    case PIPE_CREATE_FAILED: return snprintf(text, room, "create %.160s: %s", path, error);
    case PIPE_OPEN_FAILED: return snprintf(text, room, "open %.160s: %s", path, error);
    default: return snprintf(text, room, "write %.160s: %s", path, error);
    }
}

/* ---- Identity -------------------------------------------------------------------------------- */

/* A program that closes all descriptors, as daemons do, may have reused the number of this one for another
 * file, which must not be written to or closed. */
static bool pipe_is_ours(const struct pipe *pipe)
{
    return system_is_file(pipe->fd, pipe->device, pipe->inode);
}

static bool pipe_is_in_place(struct pipe *pipe)
{
    struct stat status;
    pipe->checked_ms = output_now_ms();
    return lstat(pipe->path, &status) == 0 && status.st_dev == pipe->device && status.st_ino == pipe->inode;
}

static bool pipe_has_reader(const struct pipe *pipe)
{
    struct pollfd entry = {.fd = pipe->fd, .events = POLLOUT};
    return poll(&entry, 1, 0) < 0 || !(entry.revents & POLLERR);
}

static void pipe_close(struct pipe *pipe)
{
    if (pipe->fd >= 0 && pipe_is_ours(pipe))
        close(pipe->fd);
    pipe->fd = -1;
}

/* ---- Creating and opening -------------------------------------------------------------------- */

/* mkfifo applies the umask, which belongs to the whole program and must not be changed. A pipe of another
 * user, which may have replaced the new one meanwhile, is not changed. */
static void set_mode(const struct pipe *pipe)
{
    char name[40];
    struct stat status;
    int fd = system_open(pipe->path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    bool owned = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == geteuid();
    if (owned && (status.st_mode & 07777) != pipe->mode && chmod(name, pipe->mode) != 0)
        pipe->host->log(
            pipe->host, WEIR_LOG_WARNING,
            "mode: the permissions of %s are %04o and cannot be set to %04o (%s); the pipe is used as it is",
            pipe->path, (unsigned)status.st_mode & 07777, (unsigned)pipe->mode, system_strerror(errno));
    close(fd);
}

static struct pipe_result create_pipe(const struct pipe *pipe)
{
    if (mkfifo(pipe->path, pipe->mode) == 0)
        set_mode(pipe);
    else if (errno != EEXIST)
        return result_of(PIPE_CREATE_FAILED, errno);
    return result_of(PIPE_READY, 0);
}

/* Checks the file type before opening: opening a device may have side effects. */
static struct pipe_result check_path(const struct pipe *pipe)
{
    struct stat status;
    if (lstat(pipe->path, &status) != 0) {
        if (errno != ENOENT)
            return result_of(PIPE_OPEN_FAILED, errno);
        return pipe->create ? create_pipe(pipe) : result_of(PIPE_MISSING, 0);
    }
    if (!S_ISFIFO(status.st_mode))
        return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = status.st_mode};
    return result_of(PIPE_READY, 0);
}

static struct pipe_result open_error_result(int error)
{
    switch (error) {
    case ENXIO: return result_of(PIPE_NO_READER, 0);
    case ENOENT: return result_of(PIPE_MISSING, 0);
    case ELOOP: return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = S_IFLNK};
    default: return result_of(PIPE_OPEN_FAILED, error);
    }
}

static void set_size(struct pipe *pipe)
{
    if (!pipe->size || fcntl(pipe->fd, F_SETPIPE_SZ, pipe->size) >= 0 || pipe->logged_size)
        return;
    pipe->logged_size = true;
    pipe->host->log(pipe->host, WEIR_LOG_WARNING,
                    "pipe_size: the capacity of %s cannot be set to %d bytes (%s); it stays unchanged",
                    pipe->path, pipe->size, system_strerror(errno));
}

static struct pipe_result open_pipe(struct pipe *pipe)
{
    struct stat status;
    struct pipe_result result = check_path(pipe);
    if (result.state)
        return result;
    int fd = system_open(pipe->path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
    if (fd < 0)
        return open_error_result(errno);
    /* the path may have been replaced since check_path */
    if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) {
        close(fd);
        return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = status.st_mode};
    }
    pipe->fd = fd;
    pipe->device = status.st_dev;
    pipe->inode = status.st_ino;
    pipe->checked_ms = output_now_ms();
    set_size(pipe);
    return result_of(PIPE_READY, 0);
}

/* Checks once whether the path is a pipe with a reader, and opens it if necessary. Closes the open pipe
 * first if the path no longer names it. Never waits. */
static struct pipe_result pipe_reach(struct pipe *pipe)
{
    if (pipe->fd >= 0 && !(pipe_is_ours(pipe) && pipe_is_in_place(pipe)))
        pipe_close(pipe);
    if (pipe->fd < 0)
        return open_pipe(pipe);
    return result_of(pipe_has_reader(pipe) ? PIPE_READY : PIPE_NO_READER, 0);
}

/* ---- Options --------------------------------------------------------------------------------- */

struct fifo_options {
    const char *path;
    bool create;
    const char *mode;
    int64_t max_wait_ns, wait_step_ns, pipe_size;
};

static const weir_option fifo_option_table[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_DESTINATION, "/tmp/benchmark-ai-fifo", NULL, "the named pipe",
     offsetof(struct fifo_options, path)},
    {"create", WEIR_OPTION_BOOL, 0, "false", NULL, "create the named pipe if it does not exist",
     offsetof(struct fifo_options, create)},
    {"mode", WEIR_OPTION_STRING, 0, "0600", NULL, "the permissions of a pipe that is created, in octal",
     offsetof(struct fifo_options, mode)},
    {"max_wait", WEIR_OPTION_DURATION, 0, "10s", "0s..1d",
     "how long calls and flushes wait for the pipe and its reader", offsetof(struct fifo_options, max_wait_ns)},
    {"wait_step", WEIR_OPTION_DURATION, 0, "500ms", "1ms..1h", "how often to check for them",
     offsetof(struct fifo_options, wait_step_ns)},
    {"pipe_size", WEIR_OPTION_SIZE, 0, NULL, "4KiB..1GiB",
     "the capacity of the pipe; unset: unchanged, usually 64KiB", offsetof(struct fifo_options, pipe_size)},
    {0},
};

/* A short retry_max: checking the path is cheap, and the process that creates the pipe cannot notify this
 * one. */
static const weir_default fifo_defaults[] = {{"format", "bai"}, {"retry_max", "2s"}, {NULL, NULL}};

struct fifo {
    const weir_host *host;
    const weir_encoder *encoder;
    int64_t max_wait_ms, wait_step_ms;
    struct pipe pipe;
    bool must_check;       /* the last attempt failed: check the pipe before the next write */
    int64_t emit_ms;       /* when the current emit was called */
    int64_t wait_start_ms; /* start of the current wait for the pipe or its reader; 0: none */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static int64_t to_ms(int64_t ns)
{
    return (ns + 999999) / 1000000;
}

static void *fifo_create(const weir_host *host, const void *given)
{
    const struct fifo_options *options = given;
    mode_t mode;
    if (!output_set_mode(host, options->mode, &mode))
        return NULL;
    struct fifo *fifo = calloc(1, sizeof *fifo);
    if (!fifo) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    fifo->host = host;
    fifo->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    fifo->max_wait_ms = to_ms(options->max_wait_ns);
    fifo->wait_step_ms = to_ms(options->wait_step_ns);
    fifo->pipe = (struct pipe){
        .host = host,
        .path = options->path,
        .create = options->create,
        .mode = mode,
        .size = (int)options->pipe_size,
        .fd = -1,
    };
    const weir_try_timeout *patience = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    if (patience)
        patience->set(host, fifo->max_wait_ms);
    return fifo;
}

static void fifo_destroy(void *self)
{
    free(self);
}

/* ---- Reporting ------------------------------------------------------------------------------- */

/* Returns the error to waiting callers after max_wait, or at once if waiting cannot help. */
static void fail_waiting_calls(struct fifo *fifo, enum pipe_state state, int64_t waited_ms,
                               weir_outcome *outcome)
{
    bool may_change = state == PIPE_MISSING || state == PIPE_NO_READER || state == PIPE_FULL;
    bool is_missing = state == PIPE_MISSING || state == PIPE_WRONG_TYPE || state == PIPE_CREATE_FAILED;
    if (may_change && waited_ms < fifo->max_wait_ms)
        return;
    weir_outcome_set_error(outcome, is_missing ? WEIR_ERR_FIFO_NOT_CREATED : WEIR_ERR_TIMEOUT);
    fifo->wait_start_ms = 0;
}

static void report_failure(struct fifo *fifo, const struct pipe_result *result, weir_outcome *outcome)
{
    int64_t waited_ms = fifo->wait_start_ms ? output_now_ms() - fifo->wait_start_ms : 0;
    int length = describe_result(&fifo->pipe, result, outcome->reason, sizeof outcome->reason);
    char *end = outcome->reason + length;
    size_t room = sizeof outcome->reason - (size_t)length;
    if (waited_ms >= 1000)
        snprintf(end, room, ", waited %" PRId64 ".%" PRId64 " s", waited_ms / 1000, waited_ms / 100 % 10);
    else if (waited_ms)
        snprintf(end, room, ", waited %" PRId64 " ms", waited_ms);
    outcome->code = fifo->pipe.fd < 0 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY;
    fifo->must_check = true;
    fail_waiting_calls(fifo, result->state, waited_ms, outcome);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Waits one step. Returns false if max_wait has passed or the handler must stop. */
static bool wait_step(struct fifo *fifo)
{
    int64_t now_ms = output_now_ms();
    if (!fifo->wait_start_ms)
        fifo->wait_start_ms = now_ms;
    int64_t left_ms = fifo->wait_start_ms + fifo->max_wait_ms - now_ms;
    return left_ms > 0 &&
           fifo->host->wait(fifo->host, left_ms < fifo->wait_step_ms ? left_ms : fifo->wait_step_ms);
}

/* Checks the pipe every wait_step while it is missing or has no reader. */
static struct pipe_result wait_for_pipe(struct fifo *fifo)
{
    struct pipe_result result;
    do
        result = pipe_reach(&fifo->pipe);
    while ((result.state == PIPE_MISSING || result.state == PIPE_NO_READER) && wait_step(fifo));
    if (!result.state) {
        fifo->wait_start_ms = 0;
        fifo->must_check = false;
    }
    return result;
}

static struct pipe_result ensure_open(struct fifo *fifo)
{
    struct pipe *pipe = &fifo->pipe;
    bool must_reach = fifo->must_check || pipe->fd < 0 || !pipe_is_ours(pipe);
    if (!must_reach && output_now_ms() - pipe->checked_ms >= CHECK_INTERVAL_MS)
        must_reach = !pipe_is_in_place(pipe);
    return must_reach ? wait_for_pipe(fifo) : result_of(PIPE_READY, 0);
}

static void fifo_open(void *self, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    struct pipe_result result = wait_for_pipe(fifo);
    if (result.state)
        report_failure(fifo, &result, outcome);
}

static void fifo_close(void *self)
{
    struct fifo *fifo = self;
    pipe_close(&fifo->pipe);
}

static void fifo_abandon(void *self)
{
    const struct fifo *fifo = self;
    if (fifo->pipe.fd >= 0)
        close(fifo->pipe.fd);
}

/* The reader sees a writer open and close the pipe: there is no other way to detect a reader. */
static void fifo_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct fifo *fifo = self;
    struct pipe pipe = fifo->pipe;
    (void)timeout_ms;
    pipe.create = false;
    pipe.size = 0;
    struct pipe_result result = pipe_reach(&pipe);
    pipe_close(&pipe);
    if (result.state == PIPE_MISSING && fifo->pipe.create) {
        int error = output_check_create(pipe.path, false);
        result = result_of(error ? PIPE_CREATE_FAILED : PIPE_READY, error);
        snprintf(outcome->reason, sizeof outcome->reason, "it does not exist yet");
    }
    if (!result.state)
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    describe_result(&pipe, &result, outcome->reason, sizeof outcome->reason);
}

/* An error is reported by the next emit. */
static void fifo_wake(void *self, int why, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD)
        pipe_reach(&fifo->pipe);
}

/* When to stop waiting for a full pipe. Values that have been written are reported soon, because they are
 * the progress that callers wait for. */
static int64_t wait_end_ms(const struct fifo *fifo, int64_t full_ms, bool partial, bool stopping)
{
    if (partial)
        return fifo->emit_ms + PARTIAL_WAIT_MS;
    return full_ms + (stopping || fifo->max_wait_ms < STOP_WAIT_MS ? STOP_WAIT_MS : fifo->max_wait_ms);
}

/* Waits until a full pipe is writable. */
static struct pipe_result wait_for_room(struct fifo *fifo, bool partial)
{
    const int64_t full_ms = output_now_ms();
    for (int64_t now_ms = full_ms;; now_ms = output_now_ms()) {
        bool stopping = !fifo->host->wait(fifo->host, 0); /* a fork point */
        if (now_ms >= wait_end_ms(fifo, full_ms, partial, stopping)) {
            fifo->wait_start_ms = partial ? 0 : full_ms;
            return result_of(PIPE_FULL, 0);
        }
        struct pollfd entry = {.fd = fifo->pipe.fd, .events = POLLOUT};
        poll(&entry, 1, POLL_MS);
        if (entry.revents & POLLERR)
            return result_of(PIPE_NO_READER, 0);
        if (entry.revents)
            return result_of(pipe_is_ours(&fifo->pipe) ? PIPE_READY : PIPE_WRITE_FAILED, EBADF);
        struct pipe_result result = {PIPE_READY};
        if (now_ms - fifo->pipe.checked_ms >= CHECK_INTERVAL_MS)
            result = pipe_reach(&fifo->pipe);
        if (result.state)
            return result;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes all of the data or nothing. `length` is at most PIPE_BUF. */
static struct pipe_result write_piece(struct fifo *fifo, const char *data, size_t length, bool partial)
{
    while (write(fifo->pipe.fd, data, length) < 0) {
        int error = errno;
        if (error == EPIPE)
            return result_of(PIPE_NO_READER, 0);
        if (error != EAGAIN && error != EINTR)
            return result_of(PIPE_WRITE_FAILED, error);
        struct pipe_result result = {PIPE_READY};
        if (error == EAGAIN)
            result = wait_for_room(fifo, partial);
        if (result.state)
            return result;
    }
    return result_of(PIPE_READY, 0);
}

/* The length of the whole lines that fit into one write; 0: the first line is too long. */
static size_t piece_length(const char *lines, size_t length)
{
    if (length <= PIPE_BUF)
        return length;
    const char *last = memrchr(lines, '\n', PIPE_BUF);
    return last ? (size_t)(last - lines) + 1 : 0;
}

static bool lines_fit(const char *lines, size_t length)
{
    size_t piece;
    for (size_t pos = 0; pos < length; pos += piece)
        if (!(piece = piece_length(lines + pos, length - pos)))
            return false;
    return true;
}

static struct pipe_result write_lines(struct fifo *fifo, const char *lines, size_t length, bool partial)
{
    size_t piece;
    struct pipe_result result = result_of(PIPE_READY, 0);
    for (size_t pos = 0; pos < length && !result.state; pos += piece) {
        piece = piece_length(lines + pos, length - pos);
        result = write_piece(fifo, lines + pos, piece, partial);
    }
    return result;
}

/* The end, in (low, high], of the event that follows the first `settled` samples. */
static size_t find_end(const struct fifo *fifo, uint32_t settled, size_t low, size_t high)
{
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (fifo->encoder->settled(fifo->host, middle, NULL) > settled)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Retrying cannot deliver it. */
static void refuse_event(weir_outcome *outcome, uint32_t samples, size_t length)
{
    outcome->rejected += samples;
    snprintf(outcome->reason, sizeof outcome->reason,
             "an event of %zu bytes has a line longer than the %d bytes that a named pipe accepts in one write",
             length, PIPE_BUF);
    weir_outcome_set_error(outcome, WEIR_ERR_TOO_LARGE);
}

/* Writes as many events per write as fit, and a larger event line by line. Returns early after refused
 * events, so that `rejected` and the reason apply to them alone. */
static struct pipe_result write_encoded(struct fifo *fifo, const weir_encoded *encoded, weir_outcome *outcome)
{
    const uint32_t done_before = outcome->done;
    size_t pos = 0, end;
    for (uint32_t settled = 0, next; settled < encoded->count; settled = next, pos = end) {
        next = fifo->encoder->settled(fifo->host, pos + PIPE_BUF, &end);
        if (next == settled) {
            end = find_end(fifo, settled, pos + PIPE_BUF, encoded->length);
            next = fifo->encoder->settled(fifo->host, end, NULL);
        }
        if (!lines_fit(encoded->data + pos, end - pos)) {
            refuse_event(outcome, next - settled, end - pos);
        } else if (outcome->rejected) {
            break;
        } else {
            struct pipe_result result = write_lines(fifo, encoded->data + pos, end - pos, outcome->done > 0);
            if (result.state)
                return result;
        }
        outcome->done = done_before + next;
    }
    return result_of(PIPE_READY, 0);
}

static void fifo_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    weir_encoded encoded;
    outcome->done = 0;
    fifo->emit_ms = output_now_ms();
    struct pipe_result result = ensure_open(fifo);
    while (!result.state && outcome->done < batch->count && !outcome->rejected) {
        if (!fifo->encoder->encode(fifo->host, batch, outcome->done, CHUNK_BYTES, &encoded)) {
            outcome->code = WEIR_OUTCOME_RETRY;
            snprintf(outcome->reason, sizeof outcome->reason, "out of memory");
            return;
        }
        result = write_encoded(fifo, &encoded, outcome);
    }
    if (result.state == PIPE_NO_READER && !fifo->wait_start_ms)
        fifo->wait_start_ms = output_now_ms();
    if (result.state && !(result.state == PIPE_FULL && outcome->done))
        report_failure(fifo, &result, outcome);
}

static const weir_handler_type fifo_type = {
    .size = sizeof fifo_type,
    .abi = WEIR_ABI,
    .name = "fifo",
    .summary = "writes values to a named pipe that another process reads",
    .formats = WEIR_FORMAT_LINES,
    .options = fifo_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct fifo_options),
    .defaults = fifo_defaults,
    .create = fifo_create,
    .open = fifo_open,
    .emit = fifo_emit,
    .close = fifo_close,
    .destroy = fifo_destroy,
    .wake = fifo_wake,
    .abandon = fifo_abandon,
    .probe = fifo_probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &fifo_type : NULL;
}
