/* nats_handler: publishes each value as a message to NATS, with libnats.
 *
 * Shows a client that pipelines: the messages of a batch are sent without waiting, and one flush, a PING whose
 * PONG follows all of them, confirms that the server has received them. Only then is the batch
 * settled. Without a PONG, the whole batch is offered again on a new connection: delivery is at least once. */

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

struct options {
    const char *url, *subject;
    int64_t timeout_ns;
};

static const weir_option rows[] = {
    {"url", WEIR_OPTION_STRING, WEIR_OPTION_URL, "nats://127.0.0.1:4222", NULL, "the server",
     offsetof(struct options, url)},
    {"subject", WEIR_OPTION_STRING, 0, "weir", NULL, "the prefix of the subject; a dot and the group follow",
     offsetof(struct options, subject)},
    {"timeout", WEIR_OPTION_DURATION, 0, "2s", "1ms..1m", "how long to wait for the server",
     offsetof(struct options, timeout_ns)},
    {0},
};

struct nats_handler {
    const weir_host *host;
    const weir_encoder *encoder;
    const weir_blocking_call *blocking;
    const struct options *options;
    natsConnection *connection;
};

/* libnats has process-wide threads and locks; a forked child inherits the locks but not the threads. */
static bool forked;

static void *create(const weir_host *host, const void *options)
{
    struct nats_handler *handler = calloc(1, sizeof *handler);
    if (!handler) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    handler->host = host;
    handler->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    handler->blocking = host->service(host, WEIR_SERVICE_BLOCKING_CALL);
    handler->options = options;
    return handler;
}

static void fail(const char *operation, natsStatus status, weir_outcome *outcome)
{
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%s: %s", operation, natsStatus_GetText(status));
}

/* The option's timeout, or the time left until a stop if that is shorter; at least 1. */
static int64_t timeout_ms(const struct nats_handler *handler)
{
    int64_t timeout = handler->options->timeout_ns / 1000000;
    int64_t left = handler->blocking ? handler->blocking->remaining_ms(handler->host) : -1;
    if (left >= 0 && left < timeout)
        timeout = left;
    return timeout > 0 ? timeout : 1;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* libnats must not reconnect by itself: the core reconnects and keeps undelivered values, and must see the
 * failure. */
static natsStatus set_options(natsOptions *options, const struct nats_handler *handler)
{
    natsStatus status = natsOptions_SetURL(options, handler->options->url);
    if (status == NATS_OK)
        status = natsOptions_SetAllowReconnect(options, false);
    if (status == NATS_OK)
        status = natsOptions_SetTimeout(options, timeout_ms(handler));
    return status;
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct nats_handler *handler = self;
    natsOptions *options = NULL;
    if (forked) {
        outcome->code = WEIR_OUTCOME_FAILED;
        snprintf(outcome->reason, sizeof outcome->reason,
                 "libnats cannot be used in a child of a process that used it");
        return;
    }
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = set_options(options, handler);
    if (status == NATS_OK)
        status = natsConnection_Connect(&handler->connection, options);
    natsOptions_Destroy(options);
    if (status != NATS_OK)
        fail("connect", status, outcome);
}

static void close_it(void *self)
{
    struct nats_handler *handler = self;
    natsConnection_Destroy(handler->connection);
    handler->connection = NULL;
}

/* libnats does not expose the descriptor of the connection: it stays open until the child ends. */
static void abandon(void *self)
{
    (void)self;
    forked = true;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

/* Writes the subject of a group and replaces characters that are special in NATS. Returns false if it is too
 * long. */
static bool write_subject(char *subject, size_t size, const struct nats_handler *handler, const char *group)
{
    int length = snprintf(subject, size, "%s.%s", handler->options->subject, group);
    for (char *c = subject; *c; c++)
        if (*c == ' ' || *c == '*' || *c == '>')
            *c = '_';
    return length >= 0 && (size_t)length < size;
}

/* Publishes each line as a message. If a line is too long for the server, the event is rejected permanently. */
static natsStatus publish_lines(struct nats_handler *handler, const char *subject, const weir_encoded *encoded)
{
    const char *line = encoded->data, *end = encoded->data + encoded->length;
    natsStatus status = NATS_OK;
    while (status == NATS_OK && line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *next = newline ? newline + 1 : end;
        status =
            natsConnection_Publish(handler->connection, subject, line, (int)((newline ? newline : end) - line));
        line = next;
    }
    return status;
}

/* Sends the event that begins at a sample; sets *count to its number of samples. */
static natsStatus publish_event(struct nats_handler *handler, const weir_batch *batch, uint32_t start,
                                uint32_t *count)
{
    char subject[600];
    weir_encoded encoded;
    if (!handler->encoder->encode(handler->host, batch, start, 1, &encoded))
        return NATS_NO_MEMORY;
    *count = encoded.count;
    const weir_series *series = weir_batch_series(batch, &batch->samples[start]);
    if (!write_subject(subject, sizeof subject, handler, series->group))
        return NATS_INVALID_SUBJECT;
    return publish_lines(handler, subject, &encoded);
}

/* Sends a whole batch; adds to *rejected the number of samples that the server does not accept. */
static natsStatus publish_all(struct nats_handler *handler, const weir_batch *batch, uint32_t *rejected)
{
    for (uint32_t sent = 0, count = 0; sent < batch->count; sent += count) {
        natsStatus status = publish_event(handler, batch, sent, &count);
        if (status == NATS_MAX_PAYLOAD || status == NATS_INVALID_SUBJECT)
            *rejected += count;
        else if (status != NATS_OK)
            return status;
    }
    return NATS_OK;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct nats_handler *handler = self;
    uint32_t rejected = 0;
    outcome->done = 0;
    natsStatus status = publish_all(handler, batch, &rejected);
    if (status == NATS_OK)
        status = natsConnection_FlushTimeout(handler->connection, timeout_ms(handler));
    if (status != NATS_OK) {
        fail("publish", status, outcome);
        return;
    }
    outcome->done = batch->count;
    outcome->rejected = rejected;
    if (rejected)
        snprintf(outcome->reason, sizeof outcome->reason, "publish: larger than the server's max_payload");
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "nats_handler",
    .summary = "publishes values to NATS",
    .formats = WEIR_FORMAT_LINES,
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_it,
    .emit = emit,
    .close = close_it,
    .destroy = free,
    .abandon = abandon,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
