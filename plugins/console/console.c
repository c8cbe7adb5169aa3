/* console: writes values to standard output or standard error, by default as text for people. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/handler.h>

#include "../output.h"

enum { TO_STDOUT, TO_STDERR };
enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum { CHUNK = 64 * 1024 };

struct console_options {
    int64_t to, color;
};

static const weir_option console_option_table[] = {
    WEIR_OPTION_ROW("to", ENUM, WEIR_OPTION_DESTINATION, "stdout", "stdout|stderr", "where to write",
                    struct console_options, to),
    WEIR_OPTION_ROW("color", ENUM, 0, "auto", "auto|always|never",
                    "auto: on a terminal, unless NO_COLOR is set and not empty, or TERM is unset or dumb",
                    struct console_options, color),
    {0},
};

static const weir_default console_defaults[] = {{"format", "text"}, {NULL, NULL}};

struct console {
    const weir_host *host;
    const weir_encoder *encoder;
    int fd;
    bool local;   /* of the file last written to by emit_now: its file system is on this machine, */
    dev_t device; /* and this is the file system; 0: none so far */
};

/* https://no-color.org: set and not empty means no colour. */
static bool wants_color(int64_t option, int fd)
{
    if (option != COLOR_AUTO)
        return option == COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

static void *console_create(const weir_host *host, const void *given)
{
    const struct console_options *options = given;
    struct console *console = wr_system_allocate(host, sizeof *console);
    if (!console)
        return NULL;
    console->host = host;
    console->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    console->fd = options->to == TO_STDERR ? STDERR_FILENO : STDOUT_FILENO;
    const weir_color *color = host->service(host, WEIR_SERVICE_COLOR);
    if (color)
        color->set(host, wants_color(options->color, console->fd));
    return console;
}

/* Whether no later write can succeed: the reader has gone, the stream is closed or cannot be written to, the
 * terminal has hung up. Only on a disk may there be room again. */
static bool is_final(int fd, int error)
{
    struct stat status;
    switch (error) {
    case EPIPE:
    case EBADF:
    case EINVAL: return true;
    case EIO:
    case ENOSPC: return fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
    default: return false;
    }
}

static void console_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct console *console = self;
    weir_encoded encoded;
    size_t written;
    for (outcome->done = 0; outcome->done < batch->count;) {
        if (!console->encoder->encode(console->host, batch, outcome->done, CHUNK, &encoded)) {
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
            return;
        }
        int error = wr_output_write(console->host, console->fd, encoded.data, encoded.length, &written);
        outcome->done += console->encoder->settled(console->host, written, NULL);
        if (error) {
            wr_system_fail(outcome, is_final(console->fd, error) ? WEIR_OUTCOME_FAILED : WEIR_OUTCOME_RETRY,
                           "write to %s: %s",
                           console->fd == STDERR_FILENO ? "standard error" : "standard output",
                           wr_system_strerror(error));
            return;
        }
    }
}

/* What the program has made of the stream may change at any time. */
static ssize_t write_now(struct console *console, const char *data, size_t length)
{
    struct stat status;
    if (fstat(console->fd, &status) != 0)
        return -1;
    if (S_ISFIFO(status.st_mode) && length <= PIPE_BUF)
        return wr_output_write_pipe_now(console->fd, data, length);
    if (!S_ISREG(status.st_mode))
        return -1;
    if (console->device != status.st_dev)
        console->local = wr_system_is_local(console->fd);
    console->device = status.st_dev;
    return console->local ? write(console->fd, data, length) : -1;
}

static void console_emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct console *console = self;
    weir_encoded encoded;
    outcome->done = 0;
    outcome->code = WEIR_OUTCOME_NOT_NOW;
    if (!console->encoder->encode(console->host, batch, 0, CHUNK, &encoded))
        return;
    ssize_t written = encoded.length ? write_now(console, encoded.data, encoded.length) : 0;
    if (written >= 0)
        outcome->done = console->encoder->settled(console->host, (size_t)written, NULL);
    if (outcome->done == batch->count)
        outcome->code = WEIR_OUTCOME_OK;
}

static void console_destroy(void *self)
{
    free(self);
}

static const weir_handler_type console_type = {
    .size = sizeof console_type,
    .abi = WEIR_ABI,
    .name = "console",
    .summary = "writes values to standard output or standard error",
    .formats = WEIR_FORMAT_LINES,
    .options = console_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct console_options),
    .defaults = console_defaults,
    .create = console_create,
    .emit = console_emit,
    .destroy = console_destroy,
    .flags = WEIR_TYPE_SHARES_NOTHING,
    .emit_now = console_emit_now,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &console_type : NULL;
}
