/* postgres_handler: stores each value in PostgreSQL exactly once, with libpq.
 *
 * Shows a transaction per batch, whose rows carry the identity of their samples: if the reply to a commit is
 * lost, the batch comes again, and the rows that are there already are left alone. Waits are those of the core,
 * so a stop and a fork need not wait for the database. */

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>

#include "copy_rows.h"

struct options {
    const char *host, *database, *user, *password, *table;
    int64_t port, timeout_ns;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("host", STRING, WEIR_OPTION_DESTINATION, "/var/run/postgresql", NULL,
                    "the server: a name, an address, or the folder of its Unix socket", struct options, host),
    WEIR_OPTION_ROW("port", INT, 0, "5432", "1..65535", "its port", struct options, port),
    WEIR_OPTION_ROW("database", STRING, WEIR_OPTION_REQUIRED, NULL, NULL, "the database", struct options,
                    database),
    WEIR_OPTION_ROW("user", STRING, 0, NULL, NULL, "the user; default: that of the process", struct options,
                    user),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "the user's password", struct options,
                    password),
    WEIR_OPTION_ROW("table", STRING, 0, "weir_samples", NULL, "the table; it is created if it does not exist",
                    struct options, table),
    WEIR_OPTION_ROW("timeout", DURATION, 0, "10s", "100ms..1h", "how long to wait for a reply of the server",
                    struct options, timeout_ns),
    {0},
};

/* A commit takes some milliseconds: large batches make up for that. */
static const weir_default defaults[] = {
    {"queue", "8MiB"}, {"batch", "20000"}, {"batch_bytes", "2MiB"}, {NULL, NULL}};

struct postgres {
    const weir_host *host;
    const weir_waiting *waiting;
    const struct options *options;
    PGconn *connection;
    int fd; /* the connection's socket, for abandon; -1: none */
    struct rows rows;
    char refusal[200]; /* why the last values were refused; libpq's own text ends with the next command */
};

/* What became of a command. */
enum end { DONE, REFUSED /* because of its data */, BROKEN, STOPPED };

/* ---- Creating -------------------------------------------------------------------------------- */

/* Names go into SQL as they are. */
static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789.");
    return *text && length < 64 && !text[length] && strchr(letters, *text) && text[length - 1] != '.';
}

static void *create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    const weir_waiting *waiting = host->service(host, WEIR_SERVICE_WAITING);
    struct postgres *postgres = NULL;
    if (!is_name(options->table))
        host->refuse(host, "table",
                     "\"%s\" is not a table; allowed: letters a to z, digits, _, and a dot behind a schema",
                     options->table);
    else if (!waiting)
        host->refuse(host, "", "it needs a newer version of weir: the service " WEIR_SERVICE_WAITING);
    else if (!(postgres = calloc(1, sizeof *postgres)))
        host->refuse(host, "", "out of memory");
    else
        *postgres = (struct postgres){.host = host, .waiting = waiting, .options = options, .fd = -1};
    return postgres;
}

static void destroy(void *self)
{
    struct postgres *postgres = self;
    free(postgres->rows.bytes);
    free(postgres);
}

/* libpq's initialisation of OpenSSL, before weir's exit handler is registered: see "Create" in the guide. */
static bool prepare(const weir_host *host)
{
    (void)host;
    PQinitOpenSSL(1, 1);
    return true;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static int64_t now_ms(const struct postgres *postgres)
{
    return postgres->waiting->now_ms(postgres->host);
}

static int64_t end_ms(const struct postgres *postgres)
{
    return now_ms(postgres) + postgres->options->timeout_ns / 1000000;
}

static enum end wait_for(struct postgres *postgres, int events, int64_t until_ms)
{
    postgres->fd = PQsocket(postgres->connection); /* a fork may happen in the wait, and libpq may replace it */
    struct pollfd entry = {.fd = postgres->fd, .events = (short)events};
    int64_t left_ms = until_ms - now_ms(postgres);
    unsigned woke = postgres->waiting->wait(postgres->host, &entry, 1, left_ms > 0 ? left_ms : 0);
    if (woke & WEIR_WAIT_READY)
        return DONE;
    return woke & WEIR_WAIT_STOP ? STOPPED : BROKEN;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void fail(const struct postgres *postgres, enum end end, weir_outcome *outcome)
{
    const char *text =
        end == STOPPED ? "stopped while waiting for the server" : PQerrorMessage(postgres->connection);
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s", *text ? text : "no reply of the server");
    outcome->reason[strcspn(outcome->reason, "\n")] = '\0';
}

static void close_it(void *self)
{
    struct postgres *postgres = self;
    PQfinish(postgres->connection);
    postgres->connection = NULL;
    postgres->fd = -1;
}

/* Runs in a forked child. PQfinish would tell the server that the parent's session is over. */
static void abandon(void *self)
{
    const struct postgres *postgres = self;
    if (postgres->fd >= 0)
        close(postgres->fd);
}

static enum end start_connecting(struct postgres *postgres)
{
    const struct options *options = postgres->options;
    char port[8];
    snprintf(port, sizeof port, "%d", (int)options->port);
    const char *keys[] = {"host", "port",     "dbname", "client_encoding", "application_name",
                          "user", "password", NULL};
    const char *values[] = {options->host, port,          options->database, "UTF8",
                            "weir",        options->user, options->password, NULL};
    postgres->connection = PQconnectStartParams(keys, values, 0);
    return PQstatus(postgres->connection) == CONNECTION_BAD ? BROKEN : DONE;
}

static enum end finish_connecting(struct postgres *postgres)
{
    int64_t until_ms = end_ms(postgres);
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    enum end end = DONE;
    while (end == DONE && next != PGRES_POLLING_OK) {
        end = wait_for(postgres, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms);
        if (end == DONE)
            next = PQconnectPoll(postgres->connection);
        if (next == PGRES_POLLING_FAILED)
            return BROKEN;
    }
    return end;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

/* SQLSTATE classes 22 and 23: a value that the table cannot hold. */
static enum end judge(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN)
        return DONE;
    return state && (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0) ? REFUSED : BROKEN;
}

/* Sends what libpq still has to send. */
static enum end push(struct postgres *postgres, int64_t until_ms)
{
    enum end end = DONE;
    int left;
    while (end == DONE && (left = PQflush(postgres->connection)) != 0) {
        if (left < 0)
            return BROKEN;
        end = wait_for(postgres, POLLIN | POLLOUT, until_ms);
        if (end == DONE && !PQconsumeInput(postgres->connection))
            return BROKEN;
    }
    return end;
}

/* Takes the results of a command; the last one that is not good counts. A COPY goes on after its first one. */
static enum end take_results(struct postgres *postgres)
{
    int64_t until_ms = end_ms(postgres);
    enum end end = push(postgres, until_ms), worst = DONE;
    while (end == DONE) {
        if (PQisBusy(postgres->connection)) {
            end = wait_for(postgres, POLLIN, until_ms);
            if (end == DONE && !PQconsumeInput(postgres->connection))
                return BROKEN;
            continue;
        }
        PGresult *result = PQgetResult(postgres->connection);
        if (!result)
            return worst;
        bool copies = PQresultStatus(result) == PGRES_COPY_IN;
        if (judge(result) != DONE)
            worst = judge(result);
        if (judge(result) == REFUSED)
            snprintf(postgres->refusal, sizeof postgres->refusal, "%s", PQresultErrorMessage(result));
        PQclear(result);
        if (copies)
            return worst;
    }
    return end;
}

static enum end run(struct postgres *postgres, const char *sql)
{
    return PQsendQuery(postgres->connection, sql) ? take_results(postgres) : BROKEN;
}

/* ---- Storing --------------------------------------------------------------------------------- */

/* The rows of a batch come to a temporary table first: COPY itself cannot leave out rows that are there. */
static enum end make_tables(struct postgres *postgres)
{
    char sql[700];
    const char *table = postgres->options->table;
    snprintf(sql, sizeof sql,
             "CREATE TABLE IF NOT EXISTS %s (origin uuid, sequence bigint, time timestamptz NOT NULL, "
             "group_name text NOT "
             "NULL, name text NOT NULL, labels jsonb NOT NULL, value double precision NOT NULL, PRIMARY KEY "
             "(origin, "
             "sequence))",
             table);
    enum end end = run(postgres, sql);
    snprintf(sql, sizeof sql, "CREATE TEMPORARY TABLE weir_batch (LIKE %s) ON COMMIT DELETE ROWS", table);
    return end == DONE ? run(postgres, sql) : end;
}

static enum end copy(struct postgres *postgres)
{
    enum end end = run(postgres, "COPY weir_batch (" ROWS_COLUMNS ") FROM STDIN (FORMAT binary)");
    if (end != DONE)
        return end;
    int64_t until_ms = end_ms(postgres);
    if (PQputCopyData(postgres->connection, postgres->rows.bytes, (int)postgres->rows.length) <= 0 ||
        PQputCopyEnd(postgres->connection, NULL) <= 0)
        return BROKEN;
    end = push(postgres, until_ms);
    return end == DONE ? take_results(postgres) : end;
}

/* All of it or nothing. */
static enum end store(struct postgres *postgres)
{
    char insert[300];
    snprintf(insert, sizeof insert,
             "INSERT INTO %s (" ROWS_COLUMNS ") SELECT " ROWS_COLUMNS " FROM weir_batch ON CONFLICT DO NOTHING",
             postgres->options->table);
    enum end end = run(postgres, "BEGIN");
    if (end == DONE)
        end = copy(postgres);
    if (end == DONE)
        end = run(postgres, insert);
    if (end == DONE)
        return run(postgres, "COMMIT");
    return end == REFUSED && run(postgres, "ROLLBACK") != DONE ? BROKEN : end;
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct postgres *postgres = self;
    enum end end = start_connecting(postgres);
    if (end == DONE)
        end = finish_connecting(postgres);
    if (end == DONE) {
        PQsetNoticeReceiver(postgres->connection, ignore_notice, NULL);
        PQsetnonblocking(postgres->connection, 1);
        end = make_tables(postgres);
    }
    postgres->fd = PQsocket(postgres->connection);
    if (end == DONE)
        return;
    fail(postgres, end, outcome);
    outcome->code = WEIR_OUTCOME_RETRY;
    close_it(postgres);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static uint32_t event_end(const weir_batch *batch, uint32_t start)
{
    while (batch->samples[start].flags & WEIR_SAMPLE_MORE)
        start++;
    return start + 1;
}

static enum end store_samples(struct postgres *postgres, const weir_batch *batch, uint32_t start, uint32_t end)
{
    rows_begin(&postgres->rows);
    for (uint32_t i = start; i < end; i++)
        rows_add(&postgres->rows, batch, i);
    rows_end(&postgres->rows);
    return postgres->rows.failed ? BROKEN : store(postgres);
}

/* A value that the table cannot hold makes the database refuse the whole batch: then its events are stored one
 * by one, and only the one that is at fault is refused. Refused samples are the last ones of those that are
 * settled: an event stored behind one is offered again, and is there already. */
static void store_events(struct postgres *postgres, const weir_batch *batch, weir_outcome *outcome)
{
    outcome->done = 0;
    while (outcome->done < batch->count) {
        uint32_t next = event_end(batch, outcome->done);
        enum end end = store_samples(postgres, batch, outcome->done, next);
        if (end == REFUSED) {
            snprintf(outcome->reason, sizeof outcome->reason, "%s", postgres->refusal);
            outcome->reason[strcspn(outcome->reason, "\n")] = '\0';
            outcome->rejected += next - outcome->done;
        } else if (end != DONE) {
            fail(postgres, end, outcome);
            return;
        } else if (outcome->rejected) {
            return;
        }
        outcome->done = next;
    }
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct postgres *postgres = self;
    enum end end = store_samples(postgres, batch, 0, batch->count);
    if (end == REFUSED) {
        store_events(postgres, batch, outcome);
    } else if (end != DONE) {
        outcome->done = 0;
        fail(postgres, end, outcome);
    }
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "postgres_handler",
    .summary = "stores values in PostgreSQL, each exactly once",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .defaults = defaults,
    .prepare = prepare,
    .create = create,
    .open = open_it,
    .emit = emit,
    .close = close_it,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
