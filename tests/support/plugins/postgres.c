/* postgres: a handler type for tests that inserts each value into a table of PostgreSQL. libpq, and by it
 * OpenSSL, is used for the first time in `open`, as in handlers that do not know of `prepare`. */

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/handler.h>

struct options {
    const char *to;
};

static const weir_option rows[] = {
    {"to", WEIR_OPTION_STRING, WEIR_OPTION_REQUIRED, NULL, NULL, "the database, in libpq's notation",
     offsetof(struct options, to)},
    {0},
};

struct postgres {
    const struct options *options;
    PGconn *connection;
};

static void *create(const weir_host *host, const void *options)
{
    struct postgres *postgres = calloc(1, sizeof *postgres);
    (void)host;
    if (postgres)
        postgres->options = options;
    return postgres;
}

static void close_it(void *self)
{
    struct postgres *postgres = self;
    PQfinish(postgres->connection);
    postgres->connection = NULL;
}

static void fail(const struct postgres *postgres, int code, weir_outcome *outcome)
{
    outcome->code = code;
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s", PQerrorMessage(postgres->connection));
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct postgres *postgres = self;
    postgres->connection = PQconnectdb(postgres->options->to);
    if (PQstatus(postgres->connection) == CONNECTION_OK)
        return;
    fail(postgres, WEIR_OUTCOME_RETRY, outcome);
    close_it(postgres);
}

static bool insert(struct postgres *postgres, const weir_batch *batch, const weir_sample *sample)
{
    char value[32];
    snprintf(value, sizeof value, "%.17g",
             sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64);
    const char *parameters[] = {weir_batch_series(batch, sample)->name, value};
    PGresult *result = PQexecParams(postgres->connection, "INSERT INTO metrics VALUES ($1, $2)", 2, NULL,
                                    parameters, NULL, NULL, 0);
    bool inserted = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return inserted;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct postgres *postgres = self;
    for (outcome->done = 0; outcome->done < batch->count; outcome->done++)
        if (!insert(postgres, batch, &batch->samples[outcome->done])) {
            fail(postgres, WEIR_OUTCOME_REOPEN, outcome);
            return;
        }
}

static void abandon(void *self)
{
    const struct postgres *postgres = self;
    if (PQsocket(postgres->connection) >= 0)
        close(PQsocket(postgres->connection));
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "postgres",
    .summary = "inserts values into PostgreSQL, for tests",
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
