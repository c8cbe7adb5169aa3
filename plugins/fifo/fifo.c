/* fifo: writes values to a named pipe that somebody else reads and, usually, has created.
 *
 * A write holds whole lines and at most PIPE_BUF bytes, which the kernel puts into a pipe all together or not
 * at all: a reader never sees a part of a line, and the lines of several writers never mix.
 *
 * The descriptor is kept as long as its path names the same pipe: while there is nothing to write, because the
 * reader stops when the last writer closes; and while there is no reader, because what the pipe holds is lost
 * with the last descriptor. It never blocks; where this handler waits, a stop and a fork get through. */

#include <inttypes.h>
#include <limits.h>

#include "pipe.h"

enum {
    CHUNK = 64 * 1024,   /* encoded at once */
    LOOK_EVERY_MS = 500, /* whether the path still names the pipe */
    SLICE_MS = 20,       /* a fork waits no longer than 50 */
    SHORT_MS = 100,      /* how long a full pipe keeps back what could be reported as done */
    STOP_MS = 200,       /* how long a full pipe is waited for when a stop is asked */
};

struct fifo_options {
    const char *path;
    bool create;
    const char *mode;
    int64_t max_wait_ns, wait_step_ns, pipe_size;
};

static const weir_option fifo_rows[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_DESTINATION, "/tmp/benchmark-ai-fifo", NULL, "the named pipe",
     offsetof(struct fifo_options, path)},
    {"create", WEIR_OPTION_BOOL, 0, "false", NULL, "create the named pipe when it is missing",
     offsetof(struct fifo_options, create)},
    {"mode", WEIR_OPTION_STRING, 0, "0600", NULL, "the permissions of a pipe that is created, in octal",
     offsetof(struct fifo_options, mode)},
    {"max_wait", WEIR_OPTION_DURATION, 0, "10s", "0s..1d",
     "how long calls and flushes wait for the pipe and its reader", offsetof(struct fifo_options, max_wait_ns)},
    {"wait_step", WEIR_OPTION_DURATION, 0, "500ms", "1ms..1h", "how often to look for them meanwhile",
     offsetof(struct fifo_options, wait_step_ns)},
    {"pipe_size", WEIR_OPTION_SIZE, 0, NULL, "4KiB..1GiB",
     "how much the pipe holds; not set: what it holds already, usually 64KiB",
     offsetof(struct fifo_options, pipe_size)},
    {0},
};

/* Looking costs next to nothing, and whoever creates the pipe anew does not know that somebody waits for it. */
static const weir_default fifo_defaults[] = {{"format", "bai"}, {"retry_max", "2s"}, {NULL, NULL}};

struct fifo {
    const weir_host *host;
    const weir_encoder *encoder;
    int64_t max_wait_ms, wait_step_ms;
    struct pipe pipe;
    bool doubtful;    /* the last try went wrong: look before the next one */
    int64_t began_ms; /* when emit was called */
    int64_t since_ms; /* since when it waits for somebody; 0: it does not */
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
        host->refuse(host, "", "no memory");
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

/* ---- Answering ------------------------------------------------------------------------------- */

/* Those who wait are told when it has been long enough; or at once, where waiting is of no use. */
static void tell(struct fifo *fifo, enum obstacle what, int64_t waited_ms, weir_outcome *outcome)
{
    bool may_change = what == ABSENT || what == UNREAD || what == FULL;
    bool is_missing = what == ABSENT || what == WRONG || what == NOT_MADE;
    if (may_change && waited_ms < fifo->max_wait_ms)
        return;
    weir_outcome_set_error(outcome, is_missing ? WEIR_ERR_FIFO_NOT_CREATED : WEIR_ERR_TIMEOUT);
    fifo->since_ms = 0;
}

static void report(struct fifo *fifo, const struct trouble *trouble, weir_outcome *outcome)
{
    int64_t waited_ms = fifo->since_ms ? output_now_ms() - fifo->since_ms : 0;
    int length = put_trouble(&fifo->pipe, trouble, outcome->reason, sizeof outcome->reason);
    char *end = outcome->reason + length;
    size_t room = sizeof outcome->reason - (size_t)length;
    if (waited_ms >= 1000)
        snprintf(end, room, ", waited %" PRId64 ".%" PRId64 " s", waited_ms / 1000, waited_ms / 100 % 10);
    else if (waited_ms)
        snprintf(end, room, ", waited %" PRId64 " ms", waited_ms);
    outcome->code = fifo->pipe.fd < 0 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY;
    fifo->doubtful = true;
    tell(fifo, trouble->what, waited_ms, outcome);
}

/* ---- Waiting for somebody -------------------------------------------------------------------- */

/* Waits a step; false: there is no time left, or a stop is asked. */
static bool wait_step(struct fifo *fifo)
{
    int64_t now_ms = output_now_ms();
    if (!fifo->since_ms)
        fifo->since_ms = now_ms;
    int64_t left_ms = fifo->since_ms + fifo->max_wait_ms - now_ms;
    return left_ms > 0 &&
           fifo->host->wait(fifo->host, left_ms < fifo->wait_step_ms ? left_ms : fifo->wait_step_ms);
}

/* Looks again and again, as long as it may help. */
static struct trouble wait_for_pipe(struct fifo *fifo)
{
    struct trouble trouble;
    do
        trouble = pipe_reach(&fifo->pipe);
    while ((trouble.what == ABSENT || trouble.what == UNREAD) && wait_step(fifo));
    if (!trouble.what) {
        fifo->since_ms = 0;
        fifo->doubtful = false;
    }
    return trouble;
}

static struct trouble make_sure(struct fifo *fifo)
{
    struct pipe *pipe = &fifo->pipe;
    bool must_look = fifo->doubtful || pipe->fd < 0 || !pipe_is_ours(pipe);
    if (!must_look && output_now_ms() - pipe->looked_ms >= LOOK_EVERY_MS)
        must_look = !pipe_is_in_place(pipe);
    return must_look ? wait_for_pipe(fifo) : trouble_of(NOTHING, 0);
}

static void fifo_open(void *self, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    struct trouble trouble = wait_for_pipe(fifo);
    if (trouble.what)
        report(fifo, &trouble, outcome);
}

static void fifo_close(void *self)
{
    struct fifo *fifo = self;
    pipe_let_go(&fifo->pipe);
}

static void fifo_abandon(void *self)
{
    const struct fifo *fifo = self;
    if (fifo->pipe.fd >= 0)
        close(fifo->pipe.fd);
}

/* Its reader sees a writer come and go, as it does with every program: there is no other way to know of one. */
static void fifo_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct fifo *fifo = self;
    struct pipe pipe = fifo->pipe;
    (void)timeout_ms;
    pipe.create = false;
    pipe.size = 0;
    struct trouble trouble = pipe_reach(&pipe);
    pipe_let_go(&pipe);
    if (trouble.what == ABSENT && fifo->pipe.create) {
        int problem = output_find_obstacle(pipe.path, false);
        trouble = trouble_of(problem ? NOT_MADE : NOTHING, problem);
        snprintf(outcome->reason, sizeof outcome->reason, "it does not exist yet");
    }
    if (!trouble.what)
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    put_trouble(&pipe, &trouble, outcome->reason, sizeof outcome->reason);
}

/* What is in the way now is told by the next emit. */
static void fifo_wake(void *self, int why, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD)
        pipe_reach(&fifo->pipe);
}

/* Until when a full pipe is waited for. What has been done is reported in time, because that is the progress
 * that callers wait for. */
static int64_t find_end_ms(const struct fifo *fifo, int64_t full_ms, bool done_some, bool stopping)
{
    if (done_some)
        return fifo->began_ms + SHORT_MS;
    return full_ms + (stopping || fifo->max_wait_ms < STOP_MS ? STOP_MS : fifo->max_wait_ms);
}

/* Waits until a full pipe takes something. */
static struct trouble wait_for_room(struct fifo *fifo, bool done_some)
{
    const int64_t full_ms = output_now_ms();
    for (int64_t now_ms = full_ms;; now_ms = output_now_ms()) {
        bool stopping = !fifo->host->wait(fifo->host, 0); /* here a fork gets through */
        if (now_ms >= find_end_ms(fifo, full_ms, done_some, stopping)) {
            fifo->since_ms = done_some ? 0 : full_ms;
            return trouble_of(FULL, 0);
        }
        struct pollfd wanted = {.fd = fifo->pipe.fd, .events = POLLOUT};
        poll(&wanted, 1, SLICE_MS);
        if (wanted.revents & POLLERR)
            return trouble_of(UNREAD, 0);
        if (wanted.revents)
            return trouble_of(pipe_is_ours(&fifo->pipe) ? NOTHING : BROKEN, EBADF);
        struct trouble trouble = {NOTHING};
        if (now_ms - fifo->pipe.looked_ms >= LOOK_EVERY_MS)
            trouble = pipe_reach(&fifo->pipe);
        if (trouble.what)
            return trouble;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes at most PIPE_BUF bytes: all of them, or none. */
static struct trouble write_piece(struct fifo *fifo, const char *data, size_t length, bool done_some)
{
    while (write(fifo->pipe.fd, data, length) < 0) {
        int problem = errno;
        if (problem == EPIPE)
            return trouble_of(UNREAD, 0);
        if (problem != EAGAIN && problem != EINTR)
            return trouble_of(BROKEN, problem);
        struct trouble trouble = {NOTHING};
        if (problem == EAGAIN)
            trouble = wait_for_room(fifo, done_some);
        if (trouble.what)
            return trouble;
    }
    return trouble_of(NOTHING, 0);
}

/* How much of the lines goes out in one write; 0: the first line is too long. */
static size_t cut_piece(const char *lines, size_t length)
{
    if (length <= PIPE_BUF)
        return length;
    const char *last = memrchr(lines, '\n', PIPE_BUF);
    return last ? (size_t)(last - lines) + 1 : 0;
}

static bool has_short_lines(const char *lines, size_t length)
{
    size_t piece;
    for (size_t at = 0; at < length; at += piece)
        if (!(piece = cut_piece(lines + at, length - at)))
            return false;
    return true;
}

static struct trouble write_lines(struct fifo *fifo, const char *lines, size_t length, bool done_some)
{
    size_t piece;
    struct trouble trouble = trouble_of(NOTHING, 0);
    for (size_t at = 0; at < length && !trouble.what; at += piece) {
        piece = cut_piece(lines + at, length - at);
        trouble = write_piece(fifo, lines + at, piece, done_some);
    }
    return trouble;
}

/* Where the event ends that begins behind the first `settled` samples; it ends in (low, high]. */
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

/* No later try could deliver it. */
static void refuse_event(weir_outcome *outcome, uint32_t samples, size_t length)
{
    outcome->rejected += samples;
    snprintf(outcome->reason, sizeof outcome->reason,
             "an event of %zu bytes: a line of it is longer than the %d bytes that a named pipe takes at once",
             length, PIPE_BUF);
    weir_outcome_set_error(outcome, WEIR_ERR_TOO_LARGE);
}

/* Writes as many events at once as fit a write, and a larger one line by line. Comes back after refused events,
 * with what was done up to there. */
static struct trouble write_encoded(struct fifo *fifo, const weir_encoded *encoded, weir_outcome *outcome)
{
    const uint32_t before = outcome->done;
    size_t at = 0, end;
    for (uint32_t settled = 0, next; settled < encoded->count; settled = next, at = end) {
        next = fifo->encoder->settled(fifo->host, at + PIPE_BUF, &end);
        if (next == settled) {
            end = find_end(fifo, settled, at + PIPE_BUF, encoded->length);
            next = fifo->encoder->settled(fifo->host, end, NULL);
        }
        if (!has_short_lines(encoded->data + at, end - at)) {
            refuse_event(outcome, next - settled, end - at);
        } else if (outcome->rejected) {
            break;
        } else {
            struct trouble trouble = write_lines(fifo, encoded->data + at, end - at, outcome->done > 0);
            if (trouble.what)
                return trouble;
        }
        outcome->done = before + next;
    }
    return trouble_of(NOTHING, 0);
}

static void fifo_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct fifo *fifo = self;
    weir_encoded encoded;
    outcome->done = 0;
    fifo->began_ms = output_now_ms();
    struct trouble trouble = make_sure(fifo);
    while (!trouble.what && outcome->done < batch->count && !outcome->rejected) {
        if (!fifo->encoder->encode(fifo->host, batch, outcome->done, CHUNK, &encoded)) {
            outcome->code = WEIR_OUTCOME_RETRY;
            snprintf(outcome->reason, sizeof outcome->reason, "no memory");
            return;
        }
        trouble = write_encoded(fifo, &encoded, outcome);
    }
    if (trouble.what == UNREAD && !fifo->since_ms)
        fifo->since_ms = output_now_ms();
    if (trouble.what && !(trouble.what == FULL && outcome->done))
        report(fifo, &trouble, outcome);
}

static const weir_handler_type fifo_type = {
    .size = sizeof fifo_type,
    .abi = WEIR_ABI,
    .name = "fifo",
    .summary = "writes values to a named pipe that somebody reads",
    .formats = WEIR_FORMAT_LINES,
    .options = fifo_rows,
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
