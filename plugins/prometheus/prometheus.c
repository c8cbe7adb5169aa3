/* prometheus: an endpoint that Prometheus scrapes.
 *
 * emit stores the last sample of each series; the server's thread makes text of them when it is asked. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

#include "../listening/listening.h"
#include "../system.h"
#include "server.h"
#include "state.h"
#include "unscraped.h"

struct prometheus_options {
    const char *listen, *path;
    int64_t connection_limit, timeout_ns, expiry_ns, units;
    bool insecure, created;
};

enum { UNITS_BASE };

static const weir_option prometheus_option_table[] = {
    WEIR_OPTION_ROW(
        "listen", STRING, WEIR_OPTION_DESTINATION, "127.0.0.1:9464", NULL,
        "the address and port to listen on: \"127.0.0.1:9464\", \"[::1]:9464\"; port 0: any, which is logged",
        struct prometheus_options, listen),
    WEIR_OPTION_ROW("path", STRING, 0, "/metrics", NULL, "the path of the endpoint", struct prometheus_options,
                    path),
    WEIR_OPTION_ROW("insecure", BOOL, 0, "false", NULL,
                    "true: other machines may be allowed to connect, without encryption or password",
                    struct prometheus_options, insecure),
    WEIR_OPTION_ROW("connection_limit", INT, 0, "32", "1..1000", "how many connections are served at once",
                    struct prometheus_options, connection_limit),
    WEIR_OPTION_ROW("timeout", DURATION, 0, "10s", "1s..1h", "how long a connection may last",
                    struct prometheus_options, timeout_ns),
    WEIR_OPTION_ROW(
        "expiry", DURATION, 0, "5m", "1s..7d",
        "for how long a series without new values is shown; running totals always are, and with \"aggregate\" "
        "gauges",
        struct prometheus_options, expiry_ns),
    WEIR_OPTION_ROW(
        "units", ENUM, 0, "base", "base|as_is",
        "base: values in ms, KiB and the like are converted to seconds and bytes, and their names say so",
        struct prometheus_options, units),
    WEIR_OPTION_ROW("created", BOOL, 0, "false", NULL,
                    "true: OpenMetrics has a further line for each counter and histogram, since when it counts",
                    struct prometheus_options, created),
    {0},
};

/* One that waits for the address of another process takes it over soon after that has ended. */
static const weir_default prometheus_defaults[] = {
    {"aggregate", "1s"}, {"percentiles", ""}, {"window", "1m"}, {"retry_max", "2s"}, {0}};

struct prometheus {
    const weir_host *host;
    const struct prometheus_options *options;
    struct listening listening;
    struct state state;
    struct server *server;  /* NULL: not open, or another process listens */
    pid_t listener;         /* while open: that process; 0: this one */
    struct wr_own_fd place; /* while another process listens: as that of unscraped_enter */
    bool has_emitted;       /* since it is open */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static bool check_listen(const weir_host *host, const struct prometheus_options *options,
                         struct listening *listening)
{
    if (!listening_parse(listening, options->listen)) {
        host->refuse(host, "listen",
                     "\"%s\" is not an address and a port; allowed: like 127.0.0.1:9464 or [::1]:9464",
                     options->listen);
        return false;
    }
    if (listening->is_loopback || options->insecure)
        return true;
    host->refuse(host, "listen",
                 "\"%s\" lets other machines connect, without encryption or password; listen on 127.0.0.1 and "
                 "put a proxy in front, or set \"insecure\": true",
                 options->listen);
    return false;
}

static bool check_path(const weir_host *host, const char *path)
{
    if (*path == '/' && !strpbrk(path, "?# "))
        return true;
    host->refuse(host, "path", "\"%s\" is not a path; allowed: like /metrics", path);
    return false;
}

/* Returns false if out of memory. */
static bool init_state(struct state *state, const weir_host *host, const struct prometheus_options *options,
                       const struct listening *listening)
{
    state->family = unscraped_get(listening);
    if (!state->family)
        return false;
    state->host = host;
    state->expiry_ns = options->expiry_ns;
    state->table.rules =
        (struct wr_series_rules){.base_units = options->units == UNITS_BASE, .adds_increments = true};
    state->table.host = host;
    if (options->created)
        state->table.summaries = host->service(host, WEIR_SERVICE_SUMMARIES);
    state->table.keeper = host->service(host, WEIR_SERVICE_SERIES);
    pthread_mutex_init(&state->lock, NULL);
    return true;
}

static void *prometheus_create(const weir_host *host, const void *given)
{
    const struct prometheus_options *options = given;
    struct listening listening;
    if (!check_listen(host, options, &listening) || !check_path(host, options->path))
        return NULL;
    struct prometheus *prometheus = calloc(1, sizeof *prometheus);
    if (!prometheus || !init_state(&prometheus->state, host, options, &listening)) {
        free(prometheus);
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    prometheus->host = host;
    prometheus->options = options;
    prometheus->listening = listening;
    prometheus->place.fd = -1;
    return prometheus;
}

static void prometheus_destroy(void *self)
{
    struct prometheus *prometheus = self;
    series_table_fini(&prometheus->state.table);
    series_snapshot_fini(&prometheus->state.snapshot);
    pthread_mutex_destroy(&prometheus->state.lock);
    wr_own_fd_close(&prometheus->place);
    unscraped_put(prometheus->state.family);
    free(prometheus);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* What several processes of a program need to be on one page. */
#define RELAY "hand over to `weir relay` with forward, and scrape that"

static const char *advice(int error)
{
    return error == EADDRINUSE ? "; another process, or another handler, has it and is scraped instead; "
                                 "processes of one program "
                                 "can " RELAY
                               : "";
}

static void set_outcome(const struct prometheus *prometheus, int error, weir_outcome *outcome)
{
    wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "listen on %.80s: %s%s", prometheus->options->listen,
                   wr_system_strerror(error), advice(error));
}

/* The library's own descriptors must not get the number of a standard stream that is closed: the program would
 * print into them. */
static void fill_stdio(int filled[3])
{
    for (int i = 0; i < 3; i++) {
        filled[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (filled[i] <= STDERR_FILENO)
            continue;
        close(filled[i]);
        filled[i] = -1;
        return;
    }
}

static void start(struct prometheus *prometheus, int fd)
{
    const struct prometheus_options *options = prometheus->options;
    const struct server_settings settings = {options->path, (unsigned)options->connection_limit,
                                             options->timeout_ns};
    int filled[3] = {-1, -1, -1};
    fill_stdio(filled);
    prometheus->server = server_start(&prometheus->state, &settings, fd);
    int error = errno;
    for (int i = 0; i < 3; i++)
        if (filled[i] >= 0)
            close(filled[i]);
    errno = error;
}

/* Until it has the address, the process is counted on the page of the one that has. */
static void log_listening(struct prometheus *prometheus, const char *address)
{
    const weir_host *host = prometheus->host;
    host->log(host, WEIR_LOG_INFO, "listening on http://%s%s", address, prometheus->options->path);
    if (prometheus->place.fd >= 0)
        host->log(
            host, WEIR_LOG_WARNING,
            "another process, or another handler, listened on %s until now: running totals are those of this "
            "one from now on, and may jump",
            address);
    wr_own_fd_close(&prometheus->place);
}

static void start_listening(struct prometheus *prometheus, weir_outcome *outcome)
{
    char text[LISTENING_TEXT];
    int fd = listening_bind(&prometheus->listening);
    if (fd < 0 || listen(fd, SOMAXCONN) != 0) {
        int error = errno;
        set_outcome(prometheus, error, outcome);
        if (error == EADDRINUSE)
            unscraped_enter(prometheus->state.family, &prometheus->place);
        if (fd >= 0)
            close(fd);
        return;
    }
    listening_format_bound(fd, text);
    start(prometheus, fd);
    if (prometheus->server)
        log_listening(prometheus, text);
    else
        set_outcome(prometheus, errno, outcome);
}

static void stop_listening(struct prometheus *prometheus)
{
    struct server *server = prometheus->server;
    prometheus->server = NULL;
    if (server)
        server_stop(server);
}

static void prometheus_open(void *self, weir_outcome *outcome)
{
    struct prometheus *prometheus = self;
    struct unscraped *family = prometheus->state.family;
    prometheus->has_emitted = false;
    prometheus->listener = unscraped_listener(family);
    if (prometheus->listener)
        unscraped_enter(family, &prometheus->place);
    else
        start_listening(prometheus, outcome);
}

static void prometheus_close(void *self)
{
    struct prometheus *prometheus = self;
    if (prometheus->listener)
        wr_own_fd_close(&prometheus->place);
    else
        stop_listening(prometheus);
}

static void prometheus_abandon(void *self)
{
    const struct prometheus *prometheus = self;
    wr_own_fd_abandon(&prometheus->place);
    if (prometheus->server)
        server_abandon(prometheus->server);
}

static void prometheus_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct prometheus *prometheus = self;
    (void)timeout_ms;
    int fd = listening_bind(&prometheus->listening);
    if (fd < 0)
        set_outcome(prometheus, errno, outcome);
    else
        close(fd);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* A process that becomes a daemon forks once weir is configured, and its parent ends a moment later: until the
 * first batch this process may have to listen after all. Later it never does, since the parent's successor will
 * want the address. */
static void refuse_batch(struct prometheus *prometheus, weir_outcome *outcome)
{
    bool is_left = !prometheus->has_emitted && !unscraped_listener(prometheus->state.family);
    prometheus->has_emitted = true;
    /* the program may have closed its descriptor */
    unscraped_enter(prometheus->state.family, &prometheus->place);
    outcome->done = 0;
    if (is_left)
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "process %d, which listened on %.80s, has ended",
                       (int)prometheus->listener, prometheus->options->listen);
    else
        wr_system_fail(outcome, WEIR_OUTCOME_DROP,
                       "process %d listens on %.60s, and a forked child is not scraped: " RELAY
                       ", set another \"listen\" in each child before its first value, or push with http",
                       (int)prometheus->listener, prometheus->options->listen);
}

/* A program that has closed all descriptors, as daemons do, gets new ones. Returns false if that fails. */
static bool is_listening(struct prometheus *prometheus, weir_outcome *outcome)
{
    if (!server_is_lost(prometheus->server))
        return true;
    stop_listening(prometheus);
    start_listening(prometheus, outcome);
    if (prometheus->server)
        return true;
    outcome->done = 0;
    outcome->code = WEIR_OUTCOME_REOPEN;
    return false;
}

/* A page leaves out what has expired. Without one it would be kept for ever, with its label sets. */
static void sweep(struct state *state, int64_t now_ns)
{
    if (now_ns - state->swept_ns < state->expiry_ns / 4)
        return;
    series_table_expire(&state->table, now_ns - state->expiry_ns);
    state->swept_ns = now_ns;
}

static void prometheus_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct prometheus *prometheus = self;
    struct state *state = &prometheus->state;
    const int64_t now_ns = state_now_ns();
    if (prometheus->listener) {
        refuse_batch(prometheus, outcome);
        return;
    }
    if (!is_listening(prometheus, outcome))
        return;
    pthread_mutex_lock(&state->lock);
    outcome->done = series_table_put(&state->table, batch, now_ns);
    sweep(state, now_ns);
    pthread_mutex_unlock(&state->lock);
    if (outcome->done == batch->count)
        return;
    wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
}

static const weir_handler_type prometheus_type = {
    .size = sizeof prometheus_type,
    .abi = WEIR_ABI,
    .name = "prometheus",
    .summary = "an HTTP endpoint that Prometheus scrapes",
    .options = prometheus_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct prometheus_options),
    .defaults = prometheus_defaults,
    .create = prometheus_create,
    .open = prometheus_open,
    .emit = prometheus_emit,
    .close = prometheus_close,
    .destroy = prometheus_destroy,
    .abandon = prometheus_abandon,
    .probe = prometheus_probe,
    .flags = WEIR_TYPE_OPENS_EARLY | WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &prometheus_type : NULL;
}
