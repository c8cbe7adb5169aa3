/* collector: an HTTP server over the file of the handler store: the state of the process, and MLBench's REST
 * API.
 *
 * Requests are handled by the source's thread, one after the other. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <weir/source.h>

#include "../database/open_files.h"
#include "../listening/framing.h"
#include "../listening/http_daemon.h"
#include "../listening/listening.h"
#include "../output.h"
#include "../system.h"
#include "../store/store_file.h"
#include "access.h"
#include "api.h"
#include "mlbench.h"
#include "web_pages.h"
#include "request.h"
#include "status.h"
#include "visits.h"

enum { CONNECTION_BYTES = 64 * 1024, CHECK_MS = 1000, BUSY_MS = 5000 };

struct collector_options {
    const char *listen, *path;
    struct access_options access;
    bool create_runs;
    int64_t body_limit, connections;
    int64_t idle_timeout_ns, request_timeout_ns, query_timeout_ns;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("listen", STRING, WEIR_OPTION_DESTINATION, "127.0.0.1:8080", NULL,
                    "where to listen: ADDRESS:PORT; addresses other than loopback need a token_file",
                    struct collector_options, listen),
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the database file of the handler store",
                    struct collector_options, path),
    WEIR_OPTION_ROW("token_file", PATH, 0, NULL, NULL,
                    "a file with a token that gives access; read again when it changes",
                    struct collector_options, access.token_file),
    WEIR_OPTION_ROW("hosts", LIST, 0, NULL, NULL,
                    "further names by which this machine is asked, such as that of a proxy in front",
                    struct collector_options, access.hosts),
    WEIR_OPTION_ROW(
        "access", PATH, 0, NULL, NULL,
        "the folder of the files by which commands of this machine get access; without it \"collector\" in "
        "$STATE_DIRECTORY, $XDG_STATE_HOME/weir or ~/.local/state/weir",
        struct collector_options, access.folder),
    WEIR_OPTION_ROW("create_runs", BOOL, 0, "false", NULL, "a metric of an unknown run creates the run",
                    struct collector_options, create_runs),
    WEIR_OPTION_ROW("body_limit", SIZE, 0, "8MiB", "1KiB..1GiB", "the longest body", struct collector_options,
                    body_limit),
    WEIR_OPTION_ROW("connections", INT, 0, "100", "1..10000", "how many connections may be open; others wait",
                    struct collector_options, connections),
    WEIR_OPTION_ROW("idle_timeout", DURATION, 0, "30s", "10ms..1d",
                    "a connection whose next request's headers do not arrive within this, or which takes "
                    "nothing of a reply "
                    "for "
                    "so long, is closed",
                    struct collector_options, idle_timeout_ns),
    WEIR_OPTION_ROW("request_timeout", DURATION, 0, "1m", "10ms..1d",
                    "a connection whose body does not arrive within this is closed", struct collector_options,
                    request_timeout_ns),
    WEIR_OPTION_ROW("query_timeout", DURATION, 0, "2s", "1ms..1m",
                    "how long a request that reads may take, while others wait", struct collector_options,
                    query_timeout_ns),
    {0},
};

struct collector {
    const weir_host *host;
    const weir_intake *intake;
    const struct collector_options *options;
    struct listening listening;
    struct http_daemon daemon;
    struct access access;
    struct status status;
    struct visits visits;
    struct mlbench mlbench;
    struct open_files files; /* of mlbench.db */
    dev_t device;            /* of it */
    ino_t inode;
    char problem[256]; /* why mlbench.db is NULL */
    struct api api;
    int64_t checked_ms;
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void destroy(void *self)
{
    struct collector *collector = self;
    http_daemon_fini(&collector->daemon);
    access_fini(&collector->access);
    visits_fini(&collector->visits);
    free(collector);
}

static bool check_listen(struct collector *collector)
{
    const weir_host *host = collector->host;
    const char *text = collector->options->listen;
    if (!listening_parse(&collector->listening, text))
        host->refuse(host, "listen", "\"%s\" is not an address with a port; allowed: like 127.0.0.1:8080",
                     text);
    else if (!collector->listening.is_loopback && !collector->options->access.token_file)
        host->refuse(host, "listen",
                     "\"%s\" lets other machines connect; set a \"token_file\", or listen at 127.0.0.1", text);
    else
        return true;
    return false;
}

static void *create(const weir_host *host, const void *given)
{
    struct collector *collector = wr_system_allocate(host, sizeof *collector);
    if (!collector)
        return NULL;
    collector->host = host;
    collector->options = given;
    bool is_made = http_daemon_init(&collector->daemon, host, (size_t)collector->options->connections);
    if (!is_made)
        host->refuse(host, "", "out of memory");
    if (is_made && check_listen(collector) &&
        access_init(&collector->access, host, &collector->options->access, collector->listening.is_loopback)) {
        collector->daemon.idle_timeout_ns = collector->options->idle_timeout_ns;
        collector->daemon.request_timeout_ns = collector->options->request_timeout_ns;
        return collector;
    }
    destroy(collector);
    return NULL;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* A lock is held for as long as another connection makes the file's tables. */
static int wait_for_lock(void *ctx, int count)
{
    enum { STEP_MS = 20 };
    const struct collector *collector = ctx;
    return count < BUSY_MS / STEP_MS && collector->host->wait(collector->host, STEP_MS);
}

static void close_database(struct collector *collector, bool is_in_place)
{
    reader_close(&collector->api.reader);
    live_forget(&collector->api.live);
    if (collector->mlbench.db && !is_in_place)
        store_file_keep_journal(collector->mlbench.db);
    sqlite3_close(collector->mlbench.db);
    collector->mlbench.db = collector->status.db = NULL;
    collector->files = (struct open_files){0};
}

/* Returns false after it has set the problem. */
static bool open_database(struct collector *collector)
{
    struct stat status;
    char problem[128];
    struct open_files_list *before = open_files_list();
    int code = store_file_open(&collector->mlbench.db, collector->options->path, true, wait_for_lock, collector,
                               problem, sizeof problem);
    if (!code)
        code = reader_open(&collector->api.reader, collector->mlbench.db);
    if (!code && stat(collector->options->path, &status) != 0)
        code = SQLITE_CANTOPEN;
    /* finding the files resets the connection's message */
    if (code)
        snprintf(collector->problem, sizeof collector->problem, "%s",
                 *problem ? problem : sqlite3_errmsg(collector->mlbench.db));
    open_files_find(&collector->files, before, collector->mlbench.db);
    if (code) {
        close_database(collector, true);
        return false;
    }
    sqlite3_busy_timeout(collector->mlbench.db, BUSY_MS);
    collector->device = status.st_dev;
    collector->inode = status.st_ino;
    collector->status.db = collector->mlbench.db;
    collector->status.figures = (struct store_figures){0};
    return true;
}

/* Opens the file again if it was moved or deleted, as the handler store does. Returns false, with the problem
 * set, if it cannot. */
static bool refresh_database(struct collector *collector)
{
    const char *path = collector->options->path;
    bool is_open = collector->mlbench.db;
    if (is_open && wr_system_leads_to_file(path, collector->device, collector->inode))
        return true;
    if (is_open)
        collector->host->log(collector->host, WEIR_LOG_WARNING, "%s was moved or deleted", path);
    close_database(collector, false);
    return open_database(collector);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool handle_status(struct collector *collector, struct request *request)
{
    refresh_database(collector);
    return status_handle(&collector->status, request);
}

static bool handle_api(struct collector *collector, struct request *request)
{
    refresh_database(collector);
    return api_handle(&collector->api, request);
}

static bool handle_mlbench(struct collector *collector, struct request *request)
{
    if (!mlbench_knows(request))
        return false;
    if (refresh_database(collector)) {
        bool is_limited = request_is(request, MHD_HTTP_METHOD_GET);
        reader_limit(&collector->api.reader, is_limited ? collector->mlbench.limit_ns : 0);
        mlbench_handle(&collector->mlbench, request);
        reader_limit(&collector->api.reader, 0);
    } else
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the database: %s", collector->problem);
    return true;
}

static void handle(struct collector *collector, struct request *request)
{
    if (!access_check(&collector->access, request))
        return;
    if (request->is_too_long)
        request_fail(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body has more than body_limit (%lld) bytes",
                     (long long)collector->options->body_limit);
    /* the first that knows the path replies */
    bool is_known = request->is_replied || session_handle(&collector->access, request) ||
                    handle_status(collector, request) || handle_api(collector, request) ||
                    handle_mlbench(collector, request) || web_pages_handle(request);
    if (!is_known)
        request_fail(request, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

/* A request whose end or path is in doubt: nothing more of the connection is read. */
static void refuse_doubtful(const struct collector *collector, struct request *request, bool has_path)
{
    struct framing framing;
    bool needs_body = strcmp(request->method, MHD_HTTP_METHOD_POST) == 0;
    framing_check(&framing, request->connection, needs_body, (uint64_t)collector->options->body_limit);
    if (framing.status)
        request_fail(request, framing.status, "%s", framing.reason);
    else if (!has_path)
        request_fail(
            request, MHD_HTTP_BAD_REQUEST,
            "the path is longer than %zu bytes, does not begin with a slash, or has control characters",
            sizeof request->path - 1);
}

static enum MHD_Result begin(struct collector *collector, struct MHD_Connection *connection, const char *path,
                             const char *method, void **context)
{
    struct request *request = calloc(1, sizeof *request);
    *context = request;
    collector->host->count(collector->host, "requests", 1);
    if (!request)
        return MHD_NO;
    request->connection = connection;
    request->method = method;
    request->result = MHD_YES;
    http_daemon_set_phase(connection, HTTP_PHASE_BODY);
    refuse_doubtful(collector, request, request_set_path(request, path));
    return request->result;
}

/* Called when the headers are there, for each part of the body, and at its end. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **context)
{
    struct collector *collector = ctx;
    struct request *request = *context;
    (void)version;
    if (!request)
        return begin(collector, connection, path, method, context);
    request->method = method;
    if (*size) {
        bool is_kept = request_put_body(request, data, *size, (size_t)collector->options->body_limit);
        *size = 0;
        return is_kept ? MHD_YES : MHD_NO;
    }
    handle(collector, request);
    http_daemon_set_phase(connection, request->is_endless ? HTTP_PHASE_WAITS : HTTP_PHASE_REPLY);
    return request->result;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct request *request = *context;
    (void)ctx, (void)connection, (void)code;
    *context = NULL;
    if (!request)
        return;
    wr_buffer_fini(&request->body);
    free(request);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The program has closed the descriptors: SQLite and the library must not use them, not even to end. */
static void leak(struct collector *collector)
{
    memset(&collector->api, 0, sizeof collector->api);
    collector->mlbench.db = collector->status.db = NULL;
    collector->files = (struct open_files){0};
}

static void close_collector(void *self)
{
    struct collector *collector = self;
    access_close(&collector->access);
    if (collector->daemon.is_lost) {
        http_daemon_stop(&collector->daemon);
        leak(collector);
        return;
    }
    live_stop(&collector->api.live);
    http_daemon_stop(&collector->daemon);
    live_fini(&collector->api.live);
    close_database(collector,
                   wr_system_leads_to_file(collector->options->path, collector->device, collector->inode));
}

static void fail(weir_outcome *outcome, const char *what, const char *where, const char *why)
{
    wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s %.110s: %.130s", what, where, why);
}

static void open_collector(void *self, weir_outcome *outcome)
{
    struct collector *collector = self;
    const struct collector_options *options = collector->options;
    char reason[256], address[LISTENING_TEXT];
    const struct http_use use = {
        MHD_ALLOW_SUSPEND_RESUME, 1, CONNECTION_BYTES, on_request, on_completed, collector};
    collector->intake = collector->host->service(collector->host, WEIR_SERVICE_INTAKE);
    collector->mlbench.creates_runs = options->create_runs;
    collector->mlbench.limit_ns = options->query_timeout_ns;
    collector->api.path = options->path;
    collector->api.problem = collector->problem;
    collector->api.limit_ns = options->query_timeout_ns;
    collector->status = (struct status){
        .host = collector->host,
        .service = collector->host->service(collector->host, WEIR_SERVICE_STATUS),
        .path = options->path,
        .busy_ms = BUSY_MS,
        .problem = collector->problem,
    };
    if (!access_open(&collector->access, reason, sizeof reason))
        fail(outcome, "use", "token", reason);
    else if (!open_database(collector))
        fail(outcome, "open", options->path, collector->problem);
    else if (!http_daemon_listen(&collector->daemon, &collector->listening, 0))
        fail(outcome, "listen at", options->listen, wr_system_strerror(errno));
    else if (!http_daemon_start(&collector->daemon, &use))
        fail(outcome, "start", "libmicrohttpd", errno ? wr_system_strerror(errno) : "unknown error");
    if (outcome->code != WEIR_OUTCOME_OK) {
        close_collector(collector);
        return;
    }
    listening_format_bound(collector->daemon.listening.fd, address);
    collector->host->log(collector->host, WEIR_LOG_INFO, "listens at http://%s", address);
    access_publish(&collector->access, address);
}

static void abandon(void *self)
{
    const struct collector *collector = self;
    http_daemon_abandon(&collector->daemon);
    open_files_close(&collector->files);
}

/* To pages that are open, which show them first. */
static void tell_problems(struct collector *collector)
{
    char *problems = collector->api.live.count ? status_problems(&collector->status) : NULL;
    if (problems)
        live_tell_problems(&collector->api.live, problems);
    free(problems);
}

static void run(void *self, weir_outcome *outcome)
{
    struct collector *collector = self;
    unsigned woke = 0;
    while (!(woke & WEIR_WAIT_STOP)) {
        woke = http_daemon_wait(&collector->daemon, collector->intake,
                                live_wait_ms(&collector->api.live, CHECK_MS));
        if (collector->daemon.is_lost) {
            fail(outcome, "serve", collector->options->listen, "the program has closed its descriptors");
            outcome->code = WEIR_OUTCOME_FAILED; /* SQLite cannot open the file again */
            return;
        }
        live_run(&collector->api.live, &collector->api.reader, collector->api.limit_ns);
        if (wr_output_now_ms() - collector->checked_ms < CHECK_MS)
            continue;
        collector->checked_ms = wr_output_now_ms();
        http_daemon_check(&collector->daemon);
        access_refresh(&collector->access);
        bool is_open = refresh_database(collector);
        tell_problems(collector);
        if (is_open)
            visits_update(&collector->visits, &collector->status);
    }
    http_daemon_run(&collector->daemon);
}

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .name = "collector",
    .summary = "an HTTP server over the file of a store: the state of the process, MLBench's REST API",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct collector_options),
    .create = create,
    .open = open_collector,
    .run = run,
    .close = close_collector,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
