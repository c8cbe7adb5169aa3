/* @NAME@: a handler type for weir. It appends lines to a file: put your destination in its place. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>

/* The options; weir fills the struct as the table describes. */
struct options {
    const char *path;
    int64_t chunk;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the file", struct options, path),
    WEIR_OPTION_ROW("chunk", SIZE, 0, "64KiB", "1KiB..1MiB", "the largest size of one write",
                    struct options, chunk),
    {0},
};

struct handler {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct options *options;
    int fd; /* -1: not open */
};

static void *create(const weir_host *host, const void *options)
{
    struct handler *handler = calloc(1, sizeof *handler);
    if (!handler) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    *handler = (struct handler){host, host->service(host, WEIR_SERVICE_ENCODER), options, -1};
    return handler;
}

static void fail(weir_outcome *outcome, int code, const char *operation, const char *path, int error)
{
    outcome->code = code;
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.150s: %s", operation, path, strerror(error));
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct handler *handler = self;
    handler->fd = open(handler->options->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (handler->fd < 0)
        fail(outcome, WEIR_OUTCOME_RETRY, "open", handler->options->path, errno);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct handler *handler = self;
    const weir_encoder *encoder = handler->encoder;
    weir_encoded text;
    outcome->done = 0;
    while (outcome->done < batch->count) {
        if (!encoder->encode(handler->host, batch, outcome->done, (size_t)handler->options->chunk, &text)) {
            fail(outcome, WEIR_OUTCOME_RETRY, "write", handler->options->path, ENOMEM);
            return;
        }
        size_t end;
        ssize_t written = text.length ? write(handler->fd, text.data, text.length) : 0;
        int error = written < 0 ? errno : ENOSPC;
        outcome->done += encoder->settled(handler->host, written < 0 ? 0 : (size_t)written, &end);
        if (written < 0 || (size_t)written < text.length) {
            fail(outcome, WEIR_OUTCOME_REOPEN, "write", handler->options->path, error);
            return;
        }
    }
}

static void close_it(void *self)
{
    struct handler *handler = self;
    if (handler->fd >= 0)
        close(handler->fd);
    handler->fd = -1;
}

static const weir_handler_type type = {
    .size = sizeof type, .abi = WEIR_ABI, .name = "@NAME@", .summary = "appends lines to a file",
    .formats = WEIR_FORMAT_LINES,
    .options = rows, .option_row_size = sizeof(weir_option), .options_size = sizeof(struct options),
    .create = create, .open = open_it, .emit = emit, .close = close_it, .destroy = free, .abandon = close_it,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
