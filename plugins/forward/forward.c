/* forward: hands values over to another process with weir, whose source `forward` takes them. */

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../forwarding/forward_default.h"
#include "../output.h"
#include "forward_link.h"

struct forward_options {
    const char *to, *token_file;
    int64_t ack;
    bool insecure;
    int64_t connect_timeout_ns, ack_timeout_ns;
};

static const weir_option forward_option_table[] = {
    WEIR_OPTION_ROW(
        "to", STRING, WEIR_OPTION_DESTINATION, NULL, NULL,
        "where the source forward listens: unix:/PATH or tcp://HOST:PORT; default: "
        "unix:$XDG_RUNTIME_DIR/weir/forward.sock, or unix:/run/weir/forward.sock without that variable",
        struct forward_options, to),
    WEIR_OPTION_ROW(
        "ack", ENUM, 0, "stored", "stored|taken",
        "when values count as delivered: the receiver has stored or delivered them, or has them in memory",
        struct forward_options, ack),
    WEIR_OPTION_ROW("token_file", PATH, 0, NULL, NULL,
                    "tcp: a file with the receiver's token; read again for each connection",
                    struct forward_options, token_file),
    WEIR_OPTION_ROW("insecure", BOOL, 0, "false", NULL, "tcp: allow other machines without a token",
                    struct forward_options, insecure),
    WEIR_OPTION_ROW("connect_timeout", DURATION, 0, "10s", "10ms..1h",
                    "time limit for connecting, the receiver's welcome included", struct forward_options,
                    connect_timeout_ns),
    WEIR_OPTION_ROW("ack_timeout", DURATION, 0, "10s", "10ms..1h",
                    "how long to wait for an acknowledgement before the handler reports a failure; it goes on "
                    "waiting when it "
                    "tries again",
                    struct forward_options, ack_timeout_ns),
    {0},
};

/* A batch waits for its acknowledgement, which takes some milliseconds: large batches make up for that. */
static const weir_default forward_defaults[] = {
    {"queue", "8MiB"}, {"batch", "50000"}, {"batch_bytes", "4MiB"}, {"retry_max", "2s"}, {NULL, NULL},
};

struct forward {
    const weir_host *host;
    struct forward_link link;
    char default_to[FORWARD_PATH_ROOM + 5];
    int64_t connect_timeout_ms, ack_timeout_ms;
};

/* ---- Creating -------------------------------------------------------------------------------- */

static bool check_destination(struct forward *forward, const struct forward_options *options)
{
    const weir_host *host = forward->host;
    struct connection *connection = &forward->link.connection;
    wr_forward_default(forward->default_to);
    if (!wr_connection_set(connection, options->to ? options->to : forward->default_to,
                           WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX))
        return false;
    if (options->token_file || options->insecure || connection->kind & WEIR_CONNECT_LOCAL)
        return true;
    host->refuse(host, "to",
                 "\"%.200s\" is another machine: set the receiver's \"token_file\", or \"insecure\": true",
                 options->to);
    return false;
}

static void set_up(struct forward *forward, const struct forward_options *options)
{
    const weir_host *host = forward->host;
    const weir_try_timeout *timeout = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    struct forward_link *link = &forward->link;
    forward->connect_timeout_ms = wr_output_to_ms(options->connect_timeout_ns);
    forward->ack_timeout_ms = wr_output_to_ms(options->ack_timeout_ns);
    link->connection.connect_timeout_ms = forward->connect_timeout_ms;
    link->token_file = link->connection.kind & WEIR_CONNECT_TCP ? options->token_file : NULL;
    link->ack = options->ack == 0 ? WIRE_ACK_STORED : WIRE_ACK_TAKEN;
    if (timeout)
        timeout->set(host, forward->connect_timeout_ms > forward->ack_timeout_ms ? forward->connect_timeout_ms
                                                                                 : forward->ack_timeout_ms);
}

static void *forward_create(const weir_host *host, const void *given)
{
    struct forward *forward = wr_system_allocate(host, sizeof *forward);
    if (!forward)
        return NULL;
    forward->host = host;
    wr_forward_link_init(&forward->link, host);
    if (!check_destination(forward, given)) {
        free(forward);
        return NULL;
    }
    set_up(forward, given);
    return forward;
}

static void forward_destroy(void *self)
{
    struct forward *forward = self;
    wr_forward_link_fini(&forward->link);
    free(forward);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* A refusal is no reason to give up: the receiver may be configured anew, and the values wait. */
static void forward_open(void *self, weir_outcome *outcome)
{
    struct forward *forward = self;
    wr_forward_link_open(&forward->link, forward->connect_timeout_ms, outcome);
}

static void forward_close(void *self)
{
    struct forward *forward = self;
    wr_forward_link_close(&forward->link);
}

static void forward_abandon(void *self)
{
    const struct forward *forward = self;
    wr_own_fd_abandon(&forward->link.connection.own);
}

static void forward_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct forward *forward = self;
    if (timeout_ms > forward->connect_timeout_ms)
        timeout_ms = forward->connect_timeout_ms;
    if (!wr_forward_link_open(&forward->link, timeout_ms, outcome))
        return;
    wr_forward_link_close(&forward->link);
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s takes values", forward->link.connection.peer);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static void forward_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct forward *forward = self;
    struct forward_link *link = &forward->link;
    outcome->done = 0;
    if (!wr_own_fd_is_open(&link->connection.own)) {
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "the connection was closed by the program");
        return;
    }
    enum connection_state state = wr_forward_link_deliver(link, batch, forward->ack_timeout_ms);
    outcome->done = wr_forward_link_settled(link, batch, &outcome->rejected);
    if (state != CONNECTION_READY && !(state == CONNECTION_BUSY && outcome->done))
        wr_forward_link_fail(link, state, state == CONNECTION_LOST ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY,
                             outcome);
}

static const weir_handler_type forward_type = {
    .size = sizeof forward_type,
    .abi = WEIR_ABI,
    .name = "forward",
    .summary = "hands values over to another process with weir",
    .options = forward_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct forward_options),
    .defaults = forward_defaults,
    .create = forward_create,
    .open = forward_open,
    .emit = forward_emit,
    .close = forward_close,
    .destroy = forward_destroy,
    .abandon = forward_abandon,
    .probe = forward_probe,
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &forward_type : NULL;
}
