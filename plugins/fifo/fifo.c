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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../lines.h"
#include "../output.h"
#include "pipe.h"
#include "repair.h"

enum {
    CHUNK_BYTES = 64 * 1024, /* bytes encoded at a time */
    CHECK_INTERVAL_MS = 500, /* how often to check that the path still names the open pipe */
    POLL_MS = 20,            /* interval of fork points in a wait; a fork waits at most 50 ms */
    STOP_WAIT_MS = 200,      /* wait for a full pipe when the handler must stop */
};

/* ---- Options --------------------------------------------------------------------------------- */

struct fifo_options {
    const char *path;
    bool create;
    const char *mode;
    int64_t max_wait_ns, wait_step_ns, pipe_size;
};

/* Where benchmarkai's daemon makes its pipe: its code since 2019-09, and its documents and older versions. */
#define DAEMON_PATH "/tmp/benchmark-ai/fifo"
#define OLD_DAEMON_PATH "/tmp/benchmark-ai-fifo"

static const weir_option fifo_option_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the named pipe; unset: " DAEMON_PATH " or " OLD_DAEMON_PATH, struct fifo_options, path),
    WEIR_OPTION_ROW("create", BOOL, 0, "false", NULL, "create the named pipe if it does not exist",
                    struct fifo_options, create),
    WEIR_OPTION_ROW("mode", STRING, 0, "0600", NULL, "the permissions of a pipe that is created, in octal",
                    struct fifo_options, mode),
    WEIR_OPTION_ROW("max_wait", DURATION, 0, "10s", "0s..1d",
                    "how long calls and flushes wait for the pipe and its reader", struct fifo_options,
                    max_wait_ns),
    WEIR_OPTION_ROW("wait_step", DURATION, 0, "500ms", "1ms..1h", "how often to check for them",
                    struct fifo_options, wait_step_ns),
    WEIR_OPTION_ROW("pipe_size", SIZE, 0, NULL, "4KiB..1GiB",
                    "the capacity of the pipe; unset: unchanged, usually 64KiB", struct fifo_options,
                    pipe_size),
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
    int64_t absent_ms;     /* since when there has been no pipe at the path; 0: there was one */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void *fifo_create(const weir_host *host, const void *given)
{
    const struct fifo_options *options = given;
    mode_t mode;
    if (!wr_output_set_mode(host, options->mode, &mode))
        return NULL;
    struct fifo *fifo = wr_system_allocate(host, sizeof *fifo);
    if (!fifo)
        return NULL;
    fifo->host = host;
    fifo->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    fifo->encoder->limit_lines(host, PIPE_BUF);
    fifo->max_wait_ms = wr_output_to_ms(options->max_wait_ns);
    fifo->wait_step_ms = wr_output_to_ms(options->wait_step_ns);
    fifo->pipe = (struct pipe){
        .host = host,
        .paths = {options->path ? options->path : DAEMON_PATH, options->path ? NULL : OLD_DAEMON_PATH},
        .create = options->create,
        .mode = mode,
        .size = (int)options->pipe_size,
        .own.fd = -1,
        .read_fd = -1,
    };
    fifo->pipe.path = fifo->pipe.paths[0];
    const weir_try_timeout *try_timeout = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    if (try_timeout)
        try_timeout->set(host, fifo->max_wait_ms);
    return fifo;
}

static void fifo_destroy(void *self)
{
    struct fifo *fifo = self;
    wr_pipe_fini(&fifo->pipe);
    free(fifo);
}

/* ---- Reporting ------------------------------------------------------------------------------- */

static bool is_absent(enum pipe_state state)
{
    return state == PIPE_MISSING || state == PIPE_WRONG_TYPE || state == PIPE_CREATE_FAILED;
}

/* Returns the error to waiting callers after max_wait, or at once if waiting cannot help. It would end a stop:
 * so then only if there has been no pipe for max_wait. */
static void fail_waiting_calls(struct fifo *fifo, enum pipe_state state, int64_t waited_ms, bool stopping,
                               weir_outcome *outcome)
{
    bool may_change = state == PIPE_MISSING || state == PIPE_NO_READER || state == PIPE_FULL || stopping;
    if (may_change && waited_ms < fifo->max_wait_ms)
        return;
    outcome->error = is_absent(state) ? WEIR_ERR_FIFO_NOT_CREATED : WEIR_ERR_TIMEOUT;
    outcome->flags = is_absent(state) ? WEIR_OUTCOME_GIVES_UP : 0;
    fifo->wait_start_ms = 0;
}

static void name_wait(int64_t waited_ms, weir_outcome *outcome)
{
    size_t length = strlen(outcome->reason), room = sizeof outcome->reason - length;
    if (waited_ms >= 1000)
        snprintf(outcome->reason + length, room, ", waited %" PRId64 ".%" PRId64 " s", waited_ms / 1000,
                 waited_ms / 100 % 10);
    else if (waited_ms)
        snprintf(outcome->reason + length, room, ", waited %" PRId64 " ms", waited_ms);
}

/* They were counted as delivered, and are lost if the program ends before they are written again. */
static void name_waiting_bytes(const struct fifo *fifo, weir_outcome *outcome)
{
    size_t length = strlen(outcome->reason);
    if (fifo->pipe.waiting.length)
        snprintf(outcome->reason + length, sizeof outcome->reason - length, "; %zu bytes to be written again",
                 fifo->pipe.waiting.length);
}

static void report_failure(struct fifo *fifo, const struct pipe_result *result, weir_outcome *outcome)
{
    bool stopping = fifo->host->stopping(fifo->host);
    int64_t start_ms = stopping && fifo->absent_ms ? fifo->absent_ms : fifo->wait_start_ms;
    int64_t waited_ms = start_ms ? wr_output_now_ms() - start_ms : 0;
    wr_pipe_fail(&fifo->pipe, result, fifo->pipe.own.fd < 0 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY,
                 outcome);
    name_wait(waited_ms, outcome);
    name_waiting_bytes(fifo, outcome);
    fifo->must_check = true;
    fail_waiting_calls(fifo, result->state, waited_ms, stopping, outcome);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Waits one step. Returns false if max_wait has passed or the handler must stop. */
static bool wait_step(struct fifo *fifo)
{
    int64_t now_ms = wr_output_now_ms();
    if (!fifo->wait_start_ms)
        fifo->wait_start_ms = now_ms;
    int64_t left_ms = fifo->wait_start_ms + fifo->max_wait_ms - now_ms;
    return left_ms > 0 &&
           fifo->host->wait(fifo->host, left_ms < fifo->wait_step_ms ? left_ms : fifo->wait_step_ms);
}

static struct pipe_result reach(struct fifo *fifo)
{
    struct pipe_result result = wr_pipe_reach(&fifo->pipe);
    if (!is_absent(result.state))
        fifo->absent_ms = 0;
    else if (!fifo->absent_ms)
        fifo->absent_ms = wr_output_now_ms();
    return result;
}

/* Checks the pipe every wait_step while it is missing or has no reader. */
static struct pipe_result wait_for_pipe(struct fifo *fifo)
{
    struct pipe_result result;
    do
        result = reach(fifo);
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
    bool must_reach = fifo->must_check || !wr_own_fd_is_open(&pipe->own);
    if (!must_reach && wr_output_now_ms() - pipe->checked_ms >= CHECK_INTERVAL_MS)
        must_reach = !wr_pipe_is_in_place(pipe);
    return must_reach ? wait_for_pipe(fifo) : wr_pipe_result(PIPE_READY, 0);
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
    wr_own_fd_close(&fifo->pipe.own);
}

static void fifo_abandon(void *self)
{
    const struct fifo *fifo = self;
    wr_own_fd_abandon(&fifo->pipe.own);
    if (fifo->pipe.read_fd >= 0)
        close(fifo->pipe.read_fd);
}

/* The pipe is not opened: a reader that ends with its last writer, as benchmarkai's daemon does, would end. */
static void fifo_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct fifo *fifo = self;
    struct pipe pipe = fifo->pipe;
    (void)timeout_ms;
    struct pipe_result result = wr_pipe_find(&pipe);
    const char *what = pipe.paths[1] ? pipe.path : "it";
    if (!result.state)
        snprintf(outcome->reason, sizeof outcome->reason,
                 result.error ? "%.160s does not exist yet"
                              : "%.160s exists; not opened, since that may end its reader",
                 what);
    else
        wr_pipe_fail(&pipe, &result, WEIR_OUTCOME_RETRY, outcome);
}

/* An error is reported by the next emit. */
static void fifo_wake(void *self, int why, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD)
        wr_pipe_follow(&fifo->pipe);
}

/* How long to wait for a full pipe of which nothing is read. */
static int64_t full_wait_ms(const struct fifo *fifo, bool stopping)
{
    return stopping || fifo->max_wait_ms < STOP_WAIT_MS ? STOP_WAIT_MS : fifo->max_wait_ms;
}

/* Waits until a full pipe is writable. */
static struct pipe_result wait_for_room(struct fifo *fifo, bool partial)
{
    const int64_t full_ms = wr_output_now_ms();
    for (int64_t now_ms = full_ms;; now_ms = wr_output_now_ms()) {
        bool stopping = !fifo->host->wait(fifo->host, 0); /* a fork point */
        if (now_ms >= wr_output_wait_end_ms(full_ms + full_wait_ms(fifo, stopping), partial, fifo->emit_ms)) {
            fifo->wait_start_ms = partial ? 0 : full_ms;
            return wr_pipe_result(PIPE_FULL, 0);
        }
        struct pollfd entry = {.fd = fifo->pipe.own.fd, .events = POLLOUT};
        poll(&entry, 1, POLL_MS);
        if (entry.revents && !wr_own_fd_is_open(&fifo->pipe.own))
            return wr_pipe_result(PIPE_WRITE_FAILED, EBADF);
        if (entry.revents & POLLERR)
            return wr_repair(&fifo->pipe);
        if (entry.revents) {
            wr_repair_wait(&fifo->pipe); /* it may have made the room */
            return wr_pipe_result(PIPE_READY, 0);
        }
        struct pipe_result result = {PIPE_READY};
        if (now_ms - fifo->pipe.checked_ms >= CHECK_INTERVAL_MS)
            result = reach(fifo);
        if (result.state)
            return result;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes all of the data or nothing. `length` is at most PIPE_BUF. */
static struct pipe_result write_piece(struct fifo *fifo, const char *data, size_t length, bool partial)
{
    while (write(fifo->pipe.own.fd, data, length) < 0) {
        int error = errno;
        if (error == EPIPE)
            return wr_repair(&fifo->pipe);
        if (error != EAGAIN && error != EINTR)
            return wr_pipe_result(PIPE_WRITE_FAILED, error);
        struct pipe_result result = {PIPE_READY};
        if (error == EAGAIN)
            result = wait_for_room(fifo, partial);
        if (result.state)
            return result;
    }
    wr_repair_remember(&fifo->pipe, data, length);
    return wr_pipe_result(PIPE_READY, 0);
}

/* Writes the lines that did not fit into the pipe when it was repaired. */
static struct pipe_result write_waiting(struct fifo *fifo)
{
    struct pipe_text *waiting = &fifo->pipe.waiting;
    while (waiting->length) {
        size_t piece = wr_repair_part_length(waiting->data, waiting->length);
        struct pipe_result result = write_piece(fifo, waiting->data, piece, false);
        if (result.state)
            return result;
        waiting->length -= piece;
        memmove(waiting->data, waiting->data + piece, waiting->length);
    }
    return wr_pipe_result(PIPE_READY, 0);
}

/* What happens in one call of emit. */
struct delivery {
    struct fifo *fifo;
    const weir_outcome *outcome;
    struct pipe_result result;
};

/* The rest of an event is waited for longer than another event: what is written of it cannot be reported, and
 * would be written again. */
static enum lines_result write_lines(void *ctx, const char *lines, size_t length, bool at_event)
{
    struct delivery *delivery = ctx;
    delivery->result = write_piece(delivery->fifo, lines, length, at_event && delivery->outcome->done > 0);
    return delivery->result.state ? LINES_FAILED : LINES_WRITTEN;
}

static void fifo_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    struct delivery delivery = {.fifo = fifo, .outcome = outcome};
    const struct pipe_result *result = &delivery.result;
    const struct lines_writer writer = {fifo->host,  fifo->encoder, PIPE_BUF, "a write to a named pipe",
                                        write_lines, &delivery};
    weir_encoded encoded;
    outcome->done = 0;
    fifo->emit_ms = wr_output_now_ms();
    delivery.result = ensure_open(fifo);
    if (!result->state)
        delivery.result = write_waiting(fifo);
    while (!result->state && outcome->done < batch->count && !outcome->rejected) {
        if (!fifo->encoder->encode(fifo->host, batch, outcome->done, CHUNK_BYTES, &encoded)) {
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
            return;
        }
        wr_lines_write_events(&writer, &encoded, outcome);
    }
    if (result->state == PIPE_NO_READER && !fifo->wait_start_ms)
        fifo->wait_start_ms = wr_output_now_ms();
    if (result->state && !(result->state == PIPE_FULL && outcome->done))
        report_failure(fifo, result, outcome);
}

/* One write, if nothing waits before it; the descriptor is our own, and non-blocking. */
static bool write_now(struct fifo *fifo, const weir_encoded *encoded)
{
    struct pipe *pipe = &fifo->pipe;
    bool ready = !fifo->must_check && !pipe->waiting.length && encoded->length <= PIPE_BUF &&
                 wr_output_now_ms() - pipe->checked_ms < CHECK_INTERVAL_MS && wr_own_fd_is_open(&pipe->own);
    if (!ready || write(pipe->own.fd, encoded->data, encoded->length) != (ssize_t)encoded->length)
        return false;
    wr_repair_remember(pipe, encoded->data, encoded->length);
    return true;
}

static void fifo_emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    weir_encoded encoded;
    outcome->done = 0;
    outcome->code = WEIR_OUTCOME_NOT_NOW;
    if (!fifo->encoder->encode(fifo->host, batch, 0, PIPE_BUF, &encoded))
        return;
    if (encoded.length && !write_now(fifo, &encoded))
        return;
    outcome->done = encoded.count;
    if (outcome->done == batch->count)
        outcome->code = WEIR_OUTCOME_OK;
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
    .flags = WEIR_TYPE_SHARES_NOTHING,
    .emit_now = fifo_emit_now,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &fifo_type : NULL;
}
