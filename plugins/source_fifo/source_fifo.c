/* source_fifo: reads a named pipe: makes it if it is missing, and outlives its writers. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "../fifo/pipe.h"
#include "../output.h"
#include "../pump.h"
#include "../system.h"

#define DEFAULT_PATH "/tmp/benchmark-ai/fifo"

/* How often to look whether the path still leads to the pipe, while nothing comes. */
enum { CHECK_MS = 1000 };

struct fifo_options {
    const char *path;
    bool create;
    const char *mode;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the named pipe; without it $BENCHMARK_AI_FIFO_FILEPATH, or " DEFAULT_PATH,
                    struct fifo_options, path),
    WEIR_OPTION_ROW("create", BOOL, 0, "true", NULL, "create the named pipe if it does not exist",
                    struct fifo_options, create),
    WEIR_OPTION_ROW("mode", STRING, 0, "0600", NULL, "the permissions of a pipe that is created, in octal",
                    struct fifo_options, mode),
    {0},
};

static const weir_default defaults[] = {{"parse", "bai"}, {0}};

struct source {
    const weir_host *host;
    struct pipe pipe; /* its descriptor reads */
    struct pump pump;
    char *path;
};

/* ---- Life ------------------------------------------------------------------------------------ */

static const char *choose_path(const struct fifo_options *options)
{
    const char *variable = secure_getenv("BENCHMARK_AI_FIFO_FILEPATH");
    if (options->path)
        return options->path;
    return variable && *variable ? variable : DEFAULT_PATH;
}

static void destroy(void *self)
{
    struct source *source = self;
    free(source->path);
    free(source);
}

static void *create(const weir_host *host, const void *given)
{
    const struct fifo_options *options = given;
    mode_t mode;
    if (!wr_output_set_mode(host, options->mode, &mode))
        return NULL;
    struct source *source = calloc(1, sizeof *source);
    if (!source || !(source->path = strdup(choose_path(options)))) {
        host->refuse(host, "", "out of memory");
        free(source);
        return NULL;
    }
    source->host = host;
    source->pipe = (struct pipe){
        .host = host, .path = source->path, .create = options->create, .mode = mode, .own.fd = -1};
    return source;
}

/* Returns the descriptor; -1: *result is set. */
static int open_pipe(struct source *source, struct stat *status, struct pipe_result *result)
{
    *result = wr_pipe_check_path(&source->pipe, source->pipe.create);
    if (result->state != PIPE_READY)
        return -1;
    int fd = wr_fd_open(source->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0) {
        *result = wr_pipe_result(PIPE_OPEN_FAILED, errno);
    } else if (fstat(fd, status) != 0 || !S_ISFIFO(status->st_mode)) {
        *result = (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = status->st_mode};
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A descriptor whose writers have gone reports that for ever, so the pipe is opened anew: before the former one
 * is closed, so that a writer that comes now finds a reader. Returns false with *result set. */
static bool renew(struct source *source, struct pipe_result *result)
{
    struct stat status;
    int fd = open_pipe(source, &status, result);
    if (fd < 0)
        return false;
    wr_own_fd_close(&source->pipe.own);
    source->pipe.own = (struct wr_own_fd){fd, status.st_dev, status.st_ino};
    return true;
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    struct pipe_result result;
    if (!renew(source, &result))
        wr_pipe_fail(&source->pipe, &result, WEIR_OUTCOME_REOPEN, outcome);
    else if (!wr_pump_init(&source->pump, source->host, "")) {
        wr_own_fd_close(&source->pipe.own);
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "out of memory");
    }
}

static void close_source(void *self)
{
    struct source *source = self;
    wr_pump_fini(&source->pump);
    wr_own_fd_close(&source->pipe.own);
}

static void abandon(void *self)
{
    const struct source *source = self;
    wr_own_fd_abandon(&source->pipe.own);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A stop was requested. What is in the pipe stays there for the next reader as long as a writer has it open; of
 * others nothing is left behind, nor a record of which the first part was read. */
static void drain(struct source *source)
{
    enum { TRIES = 100, STEP_MS = 10 };
    int left = 0;
    bool has_writer = true;
    if (!wr_pump_drain(&source->pump) || ioctl(source->pipe.own.fd, FIONREAD, &left) != 0)
        return;
    for (int tries = 0; tries < TRIES && (left > 0 || wr_pump_pending(&source->pump)) && has_writer &&
                        wr_own_fd_is_open(&source->pipe.own);) {
        enum pump_result result = wr_pump_read(&source->pump, source->pipe.own.fd);
        if (result == PUMP_FULL && !wr_pump_drain(&source->pump))
            return;
        has_writer = result != PUMP_END && result != PUMP_FAILED;
        if (result == PUMP_EMPTY) {
            tries++;
            poll(NULL, 0, STEP_MS);
        }
        left -= (int)source->pump.last_length;
    }
    if (wr_pump_pending(&source->pump))
        wr_pump_finish(&source->pump, false);
    wr_pump_drain(&source->pump);
}

/* The last writer has closed the pipe. */
static bool begin_anew(struct source *source, weir_outcome *outcome)
{
    struct pipe_result result;
    wr_pump_finish(&source->pump, false);
    if (renew(source, &result))
        return true;
    wr_pipe_fail(&source->pipe, &result, WEIR_OUTCOME_REOPEN, outcome);
    return false;
}

/* Returns whether to go on. */
static bool wait_for_data(struct source *source, weir_outcome *outcome, bool at_end)
{
    struct pollfd fd = {source->pipe.own.fd, POLLIN, 0};
    bool is_full = source->pump.is_full || source->pump.is_ending;
    unsigned woke = source->pump.intake->wait(source->host, &fd, is_full ? 0 : 1, is_full ? -1 : CHECK_MS);
    if (woke & WEIR_WAIT_STOP) {
        drain(source);
        return false;
    }
    if (at_end && fd.revents & POLLHUP)
        return begin_anew(source, outcome);
    /* removed, or replaced: what writers of the former one still send is read first */
    if (!woke && !wr_pipe_is_in_place(&source->pipe))
        return begin_anew(source, outcome);
    return true;
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    for (;;) {
        if (!wr_own_fd_is_open(&source->pipe.own)) {
            wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: the program has closed its descriptor",
                           source->path);
            return;
        }
        enum pump_result result = wr_pump_read(&source->pump, source->pipe.own.fd);
        if (result == PUMP_FAILED) {
            wr_pump_fail(outcome, WEIR_OUTCOME_REOPEN, source->path);
            return;
        }
        if (result == PUMP_READ && !source->host->stopping(source->host))
            continue;
        if (!wait_for_data(source, outcome, result == PUMP_END))
            return;
    }
}

/* ---- The type -------------------------------------------------------------------------------- */

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "fifo",
    .summary = "reads lines from a named pipe",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct fifo_options),
    .defaults = defaults,
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
