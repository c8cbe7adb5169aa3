/* source_http: an HTTP server that takes values by POST.
 *
 * libmicrohttpd runs on the source's own thread, without threads of its own. A body is collected whole, within
 * limits; then its connection is suspended, and the bodies are parsed one after the other. While there is no
 * room, the body waits, and its sender with it. The library's panic function is left as it is: it is one for
 * the whole process, and the handler type prometheus may have set it. */

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../output.h"
#include "../listening/http_daemon.h"
#include "../listening/listening.h"
#include "../system.h"
#include "post.h"

enum {
    CONNECTION_BYTES = 32 * 1024, /* for headers, and what is read at once */
    CHECK_MS = 1000,              /* how often to look for what no descriptor reports */
    SLICE = 256 * 1024,           /* bytes that are parsed before other connections are served */
    DRAIN_MS = 1000,              /* for what has come before a stop, and for the responses */
    DRAIN_STEP_MS = 10,
    ACK_STEP_MS = 10,   /* how often to ask whether values are settled, while a sender waits for that */
    DISCARD_FACTOR = 4, /* of body_limit: a refused body is read up to there, so that its sender reads why */
};

enum { ACK_TAKEN, ACK_STORED, ACK_DELIVERED };

struct http_options {
    const char *listen, *mode, *token_file;
    weir_map tenants;
    weir_list formats;
    int64_t body_limit, body_memory, connections, remember;
    int64_t idle_timeout_ns, request_timeout_ns, full_timeout_ns;
    int64_t ack, ack_timeout_ns;
    bool insecure;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("listen", STRING, WEIR_OPTION_DESTINATION, "127.0.0.1:9465", NULL,
                    "the address and port to listen on: \"127.0.0.1:9465\", \"[::1]:9465\"; port 0: any, which "
                    "is logged; or "
                    "\"unix:/PATH\"",
                    struct http_options, listen),
    WEIR_OPTION_ROW("mode", STRING, 0, "0600", NULL, "the permissions of a Unix socket, in octal",
                    struct http_options, mode),
    WEIR_OPTION_ROW("token_file", PATH, 0, NULL, NULL,
                    "a file with the token that senders must have; read again when it changes",
                    struct http_options, token_file),
    WEIR_OPTION_ROW(
        "tenants", MAP, 0, NULL, NULL,
        "further senders by their names, each as \"token_file=/PATH group_prefix=NAME label.KEY=VALUE "
        "max_series=N rate=N\"",
        struct http_options, tenants),
    WEIR_OPTION_ROW(
        "insecure", BOOL, 0, "false", NULL,
        "allow addresses other than loopback without a token: anybody who reaches them can add values",
        struct http_options, insecure),
    WEIR_OPTION_ROW("formats", LIST, 0, "json,influx,prometheus,openmetrics,csv,text", NULL,
                    "what senders may choose by path, Content-Type or ?parse=", struct http_options, formats),
    WEIR_OPTION_ROW("body_limit", SIZE, 0, "8MiB", "1KiB..1GiB", "the longest body, decompressed",
                    struct http_options, body_limit),
    WEIR_OPTION_ROW("body_memory", SIZE, 0, "64MiB", "1MiB..64GiB",
                    "the memory of all bodies together; at least body_limit", struct http_options, body_memory),
    WEIR_OPTION_ROW("connections", INT, 0, "1000", "1..100000", "how many connections may be open; others wait",
                    struct http_options, connections),
    WEIR_OPTION_ROW("idle_timeout", DURATION, 0, "30s", "10ms..1d",
                    "a connection whose next request's headers do not arrive within this is closed",
                    struct http_options, idle_timeout_ns),
    WEIR_OPTION_ROW("request_timeout", DURATION, 0, "1m", "10ms..1d",
                    "a connection whose body does not arrive within this is closed", struct http_options,
                    request_timeout_ns),
    WEIR_OPTION_ROW("full_timeout", DURATION, 0, "5s", "0s..1h",
                    "how long a body waits for room before it is refused with the status 429",
                    struct http_options, full_timeout_ns),
    WEIR_OPTION_ROW(
        "ack", ENUM, 0, "taken", "taken|stored|delivered",
        "when a request is answered: once its values are queued, on disk or delivered, or delivered by all "
        "handlers",
        struct http_options, ack),
    WEIR_OPTION_ROW("ack_timeout", DURATION, 0, "10s", "1ms..1h",
                    "with another \"ack\" than taken: how long to wait before the status 504 is returned",
                    struct http_options, ack_timeout_ns),
    WEIR_OPTION_ROW("remember", INT, 0, "10000", "0..1000000",
                    "how many ids of requests are remembered, so that a repeated one is added once",
                    struct http_options, remember),
    {0},
};

struct source {
    const weir_host *host;
    const weir_intake *intake;
    const weir_parser *parser;
    const struct http_options *options;
    struct listening listening;
    mode_t mode;
    struct tenants tenants;
    struct post_rules rules;
    struct body_limits limits;
    struct post_ids ids;
    struct http_daemon daemon;
    struct post *first, **last;         /* bodies that wait to be parsed */
    struct post *first_ack, **last_ack; /* requests whose values are added and not settled; marks ascend */
    int64_t checked_ms;
    bool has_resumed; /* a connection, which the next call of MHD_run handles */
    bool has_stopped; /* requests are refused */
    bool token_fault; /* is logged */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void destroy(void *self)
{
    struct source *source = self;
    tenants_fini(&source->tenants);
    post_ids_fini(&source->ids);
    http_daemon_fini(&source->daemon);
    free(source);
}

static bool check_listen(struct source *source, const struct http_options *options)
{
    const weir_host *host = source->host;
    if (!listening_parse_any(&source->listening, options->listen)) {
        host->refuse(host, "listen",
                     "\"%s\" is not an address with a port; allowed: like 127.0.0.1:9465, [::1]:9465, "
                     "localhost:9465, or unix:/PATH with an absolute path of at most 107 bytes",
                     options->listen);
        return false;
    }
    if (source->listening.is_loopback || options->insecure || options->token_file || options->tenants.count)
        return true;
    host->refuse(
        host, "listen",
        "\"%s\" lets other machines connect; set a \"token_file\", or \"insecure\": true, or listen on "
        "127.0.0.1",
        options->listen);
    return false;
}

static bool check_formats(const weir_host *host, const weir_list *formats)
{
    static const char allowed[] = " auto text json bai influx statsd graphite prometheus openmetrics csv ";
    for (size_t i = 0; i < formats->count; i++) {
        char word[32];
        snprintf(word, sizeof word, " %.20s ", formats->items[i]);
        if (strstr(allowed, word))
            continue;
        host->refuse(host, "formats", "\"%s\" is not a format; allowed:%s", formats->items[i], allowed);
        return false;
    }
    return true;
}

/* Else a body that body_limit allows would have to be sent again for ever. */
static bool check_sizes(const weir_host *host, const struct http_options *options)
{
    if (options->body_memory >= options->body_limit)
        return true;
    host->refuse(host, "body_memory", "%lld bytes; must be at least body_limit (%lld bytes)",
                 (long long)options->body_memory, (long long)options->body_limit);
    return false;
}

static bool init(struct source *source, const struct http_options *options)
{
    if (!http_daemon_init(&source->daemon, source->host, (size_t)options->connections) ||
        !post_ids_init(&source->ids, (size_t)options->remember)) {
        source->host->refuse(source->host, "", "out of memory");
        return false;
    }
    source->daemon.idle_timeout_ns = options->idle_timeout_ns;
    source->daemon.request_timeout_ns = options->request_timeout_ns;
    source->rules = (struct post_rules){&source->tenants, &options->formats, (uint64_t)options->body_limit};
    source->limits = (struct body_limits){(size_t)options->body_limit, (size_t)options->body_memory, 0};
    return check_listen(source, options) && wr_output_set_mode(source->host, options->mode, &source->mode) &&
           check_formats(source->host, &options->formats) && check_sizes(source->host, options) &&
           tenants_init(&source->tenants, source->host, options->token_file, &options->tenants);
}

static void *create(const weir_host *host, const void *given)
{
    struct source *source = wr_system_allocate(host, sizeof *source);
    if (!source)
        return NULL;
    source->host = host;
    source->options = given;
    source->last = &source->first;
    source->last_ack = &source->first_ack;
    if (init(source, given))
        return source;
    destroy(source);
    return NULL;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void count_status(const struct source *source, unsigned status)
{
    char name[32];
    snprintf(name, sizeof name, "status.%u", status);
    source->host->count(source->host, name, 1);
}

static enum MHD_Result respond(const struct source *source, struct post *post, bool is_early)
{
    count_status(source, post->status);
    http_daemon_set_phase(post->connection, HTTP_PHASE_HEADERS);
    return post_respond(post, is_early);
}

/* Before the body: whether it is worth reading. */
static void check_load(struct source *source, struct post *post)
{
    if (source->has_stopped) {
        post->retry_seconds = 1;
        post_refuse(post, MHD_HTTP_SERVICE_UNAVAILABLE, "the source stops; nothing was added");
    } else if (!post->status && post->tenant &&
               !tenant_may_add(post->tenant, wr_output_now_ms(), &post->retry_seconds)) {
        source->host->count(source->host, "rate_limited", 1);
        post_refuse(post, MHD_HTTP_TOO_MANY_REQUESTS,
                    "more values than rate (%.0f a second) allows this sender; nothing was added",
                    post->tenant->rate);
    }
}

static enum MHD_Result begin(struct source *source, struct MHD_Connection *connection, const char *path,
                             const char *method, void **context)
{
    bool is_gzip;
    struct post *post = calloc(1, sizeof *post);
    if (!post)
        return MHD_NO;
    *context = post;
    post->connection = connection;
    post->body.limits = &source->limits;
    source->host->count(source->host, "requests", 1);
    http_daemon_set_phase(connection, HTTP_PHASE_BODY);
    post_check(post, &source->rules, path, method, &is_gzip);
    check_load(source, post);
    if (post->status)
        return respond(source, post, true);
    return post_body_init(&post->body, &source->limits, is_gzip) ? MHD_YES : MHD_NO;
}

static void refuse_body(const struct source *source, struct post *post)
{
    switch (post->body.fault) {
    case BODY_OK: return;
    case BODY_TOO_LONG:
        post_refuse(
            post, MHD_HTTP_CONTENT_TOO_LARGE,
            "the body is longer than body_limit (%lld bytes, decompressed), or compressed more than 200 "
            "times; send it in parts",
            (long long)source->options->body_limit);
        return;
    case BODY_BROKEN:
        post_refuse(post, MHD_HTTP_BAD_REQUEST,
                    "the body is not gzip, or its end is missing; nothing was added");
        return;
    case BODY_NO_ROOM:
        post->retry_seconds = 1;
        post_refuse(post, MHD_HTTP_TOO_MANY_REQUESTS,
                    "the bodies that are being received fill body_memory; nothing was added");
        return;
    }
}

static bool is_endless(const struct source *source, const struct post *post)
{
    return post->body.fault && post->body.received / DISCARD_FACTOR > (uint64_t)source->options->body_limit;
}

/* Puts the body into the queue; its connection sleeps until finish_post. */
static void enqueue(struct source *source, struct post *post)
{
    post->since_ms = wr_output_now_ms();
    *source->last = post;
    source->last = &post->next;
    http_daemon_set_phase(post->connection, HTTP_PHASE_WAITS);
    MHD_suspend_connection(post->connection);
}

/* Called when the headers are there, for each part of the body, at its end, and when the connection goes on. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **context)
{
    struct source *source = ctx;
    struct post *post = *context;
    (void)version;
    if (!post)
        return begin(source, connection, path, method, context);
    if (*size) {
        source->host->count(source->host, "body_bytes", *size);
        post_body_put(&post->body, data, *size);
        *size = 0;
        return is_endless(source, post) ? MHD_NO : MHD_YES;
    }
    post_body_end(&post->body);
    refuse_body(source, post);
    if (post->status)
        return respond(source, post, false);
    enqueue(source, post);
    return MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct source *source = ctx;
    struct post *post = *context;
    *context = NULL;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http_daemon_set_phase(connection, HTTP_PHASE_HEADERS);
    else
        source->host->count(source->host, "broken_off", 1);
    if (!post)
        return;
    post_body_fini(&post->body);
    free(post);
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static void read_totals(const struct source *source, struct post *post)
{
    weir_text_totals totals = {.size = sizeof totals};
    source->parser->read_totals(post->text, &totals);
    if (post->tenant)
        post->tenant->ready -= (double)(totals.added - post->added);
    if (totals.added + totals.refused + totals.bad_lines != post->added + post->refused)
        post->since_ms = wr_output_now_ms();
    post->lines = totals.lines;
    post->added = totals.added;
    post->refused = totals.refused + totals.bad_lines;
    if (!post->status)
        snprintf(post->reason, sizeof post->reason, "%s", totals.fault);
}

static void resume(struct source *source, const struct post *post)
{
    if (source->daemon.is_lost)
        return; /* the library does nothing any more */
    MHD_resume_connection(post->connection);
    source->has_resumed = true;
}

/* Whether its sender is told more than that its values were added. What was refused is told at once. */
static bool needs_ack(const struct source *source, const struct post *post)
{
    return source->options->ack != ACK_TAKEN &&
           (post->status == MHD_HTTP_OK || post->status == MHD_HTTP_NO_CONTENT);
}

/* The first of the queue has its status: lets its connection go on, unless its values have to be settled. */
static void finish_post(struct source *source)
{
    struct post *post = source->first;
    source->first = post->next;
    if (!source->first)
        source->last = &source->first;
    source->parser->cancel(post->text); /* it is empty, or its sender is told */
    post->text = NULL;
    post_body_fini(&post->body);
    if (!needs_ack(source, post)) {
        resume(source, post);
        return;
    }
    post->mark = source->intake->mark(source->host); /* of a repeated request, too: it covers the first one */
    post->since_ms = wr_output_now_ms();
    post->next = NULL;
    *source->last_ack = post;
    source->last_ack = &post->next;
}

static void finish_ack(struct source *source)
{
    struct post *post = source->first_ack;
    source->first_ack = post->next;
    if (!source->first_ack)
        source->last_ack = &source->first_ack;
    resume(source, post);
}

/* Replaces the status: the values were added, but that is not what the sender waits for. */
static void fail_ack(struct source *source, unsigned status, const char *why)
{
    struct post *post = source->first_ack;
    post->status = 0;
    post_refuse(post, status, "%s", why);
    finish_ack(source);
}

/* Responds to those whose values are settled. Those behind one that is not were added later. */
static void settle_acks(struct source *source)
{
    while (source->first_ack) {
        const struct post *post = source->first_ack;
        int state = source->intake->settled(source->host, post->mark);
        if (state == WEIR_MARK_DROPPED)
            fail_ack(source, MHD_HTTP_INTERNAL_SERVER_ERROR,
                     "the values were added, and a handler has dropped values since; do not send them again");
        else if (state == WEIR_MARK_DELIVERED ||
                 (state == WEIR_MARK_STORED && source->options->ack == ACK_STORED))
            finish_ack(source);
        else if (wr_output_now_ms() - post->since_ms >= wr_output_to_ms(source->options->ack_timeout_ns))
            fail_ack(source, MHD_HTTP_GATEWAY_TIMEOUT,
                     source->options->ack == ACK_STORED
                         ? "the values were added, and are not on disk or delivered within ack_timeout"
                         : "the values were added, and are not delivered within ack_timeout");
        else
            return;
    }
}

static void set_result(struct source *source, struct post *post)
{
    if (post->refused) {
        post->status = MHD_HTTP_BAD_REQUEST;
        return;
    }
    post->reason[0] = '\0';
    post->status = post->is_influx ? MHD_HTTP_NO_CONTENT : MHD_HTTP_OK;
    if (*post->id)
        post_ids_add(&source->ids, post->tenant, post->id);
}

/* Returns false if the status is set. */
static bool begin_text(struct source *source, struct post *post)
{
    const struct tenant none = {0};
    struct tenant *tenant = post->tenant;
    const struct tenant *of = tenant ? tenant : &none;
    const weir_text_options options = {
        .size = sizeof options,
        .parse = post->parse,
        .time_unit_ns = post->time_unit_ns,
        .group_prefix = of->group_prefix,
        .labels = of->labels,
        .label_count = of->label_count,
        .series_left = tenant && tenant->has_max_series ? &tenant->series_left : NULL,
    };
    if (*post->id && post_ids_has(&source->ids, tenant, post->id)) {
        source->host->count(source->host, "repeated", 1);
        post->is_repeated = true;
        post->status = post->is_influx ? MHD_HTTP_NO_CONTENT : MHD_HTTP_OK;
        return false;
    }
    post->text = source->parser->begin(source->host, of->name ? of->name : "", &options);
    if (post->text)
        return true;
    post->retry_seconds = 1;
    post_refuse(post, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory; nothing was added");
    return false;
}

/* Parses a part. Returns false if there was no room for a record. */
static bool parse_part(struct source *source, struct post *post)
{
    size_t room, left = post->body.length - post->parsed;
    if (post->is_held && !post->is_finishing)
        return source->parser->resume(post->text);
    if (!left) {
        post->is_finishing = true;
        return source->parser->finish(post->text, true);
    }
    char *to = source->parser->room(post->text, &room);
    if (!to) {
        post->retry_seconds = 1;
        post_refuse(post, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory; \"added\" values were added");
        return true;
    }
    room = room < left ? room : left;
    memcpy(to, post->body.data + post->parsed, room);
    post->parsed += room;
    return source->parser->parse(post->text, room);
}

/* Parses what is in the queue, up to a slice. Returns whether there is more to do at once. */
static bool parse_queue(struct source *source)
{
    for (size_t done = 0; source->first && done < SLICE;) {
        struct post *post = source->first;
        size_t before = post->parsed;
        if (post->text || (!post->status && begin_text(source, post))) {
            post->is_held = !parse_part(source, post);
            read_totals(source, post);
            if (post->is_held)
                return false;
            if (post->is_finishing && !post->status)
                set_result(source, post);
        }
        done += post->parsed - before + 64;
        if (post->status)
            finish_post(source);
    }
    return source->first;
}

/* There was no room for too long, or the source stops. */
static void give_up(struct source *source, unsigned status, const char *why)
{
    struct post *post = source->first;
    post->retry_seconds = 1;
    post->reason[0] = '\0';
    post_refuse(post, status, "%s; %s", why,
                post->added ? "of the body the first \"added\" values were added; send the rest again"
                            : "nothing was added");
    finish_post(source);
}

/* The source stops. */
static void answer_all(struct source *source)
{
    while (source->first)
        give_up(source, MHD_HTTP_SERVICE_UNAVAILABLE, "the source stops");
    while (source->first_ack)
        fail_ack(source, MHD_HTTP_SERVICE_UNAVAILABLE,
                 "the values were added; the source stops before they are known to be on disk or delivered");
}

static bool is_full_for_long(const struct source *source)
{
    return source->first && source->first->is_held &&
           wr_output_now_ms() - source->first->since_ms >= wr_output_to_ms(source->options->full_timeout_ns);
}

/* ---- Checking --------------------------------------------------------------------------------- */

static void fail(weir_outcome *outcome, const char *what, const char *where, const char *why)
{
    wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s%.120s%s%s", what, where, *what ? ": " : "", why);
}

/* Returns false with the outcome set if it has to listen anew. */
static bool check(struct source *source, weir_outcome *outcome)
{
    char text[256];
    int64_t now_ms = wr_output_now_ms();
    if (now_ms - source->checked_ms < CHECK_MS)
        return true;
    source->checked_ms = now_ms;
    http_daemon_check(&source->daemon);
    bool is_good = tenants_read(&source->tenants, text, sizeof text);
    if (!is_good && !source->token_fault)
        source->host->log(source->host, WEIR_LOG_ERROR, "%s; the previous token stays in force", text);
    source->token_fault = !is_good;
    if (http_daemon_is_in_place(&source->daemon))
        return true;
    fail(outcome, "", source->options->listen, ": the path was removed or replaced");
    return false;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void close_source(void *self)
{
    struct source *source = self;
    answer_all(source);
    http_daemon_stop(&source->daemon);
}

static void open_source(void *self, weir_outcome *outcome)
{
    char text[200], address[LISTENING_TEXT];
    struct source *source = self;
    const struct http_use use = {
        MHD_ALLOW_SUSPEND_RESUME, 1, CONNECTION_BYTES, on_request, on_completed, source};
    source->intake = source->host->service(source->host, WEIR_SERVICE_INTAKE);
    source->parser = source->host->service(source->host, WEIR_SERVICE_PARSER);
    source->has_stopped = false;
    if (!tenants_read(&source->tenants, text, sizeof text)) {
        fail(outcome, "", "", text);
        return;
    }
    if (!http_daemon_listen(&source->daemon, &source->listening, source->mode))
        fail(outcome, "listen at ", source->options->listen, wr_system_strerror(errno));
    else if (!http_daemon_start(&source->daemon, &use))
        fail(outcome, "libmicrohttpd cannot start", "", errno ? wr_system_strerror(errno) : "unknown error");
    if (outcome->code != WEIR_OUTCOME_OK) {
        close_source(source);
        return;
    }
    if (source->listening.path) {
        source->host->log(source->host, WEIR_LOG_INFO, "listens at %s", source->options->listen);
        return;
    }
    listening_format_bound(source->daemon.listening.fd, address);
    source->host->log(source->host, WEIR_LOG_INFO, "listens at http://%s", address);
    if (!source->listening.is_loopback && !source->tenants.count)
        source->host->log(source->host, WEIR_LOG_WARNING, "anybody who reaches %s can add values", address);
}

static void abandon(void *self)
{
    const struct source *source = self;
    http_daemon_abandon(&source->daemon);
}

/* ---- Running --------------------------------------------------------------------------------- */

static int64_t find_timeout(struct source *source, bool is_busy)
{
    int64_t timeout_ms = is_busy || source->has_resumed ? 0 : source->first_ack ? ACK_STEP_MS : CHECK_MS;
    if (source->first && source->first->is_held)
        timeout_ms = wr_output_least(timeout_ms, source->first->since_ms +
                                                     wr_output_to_ms(source->options->full_timeout_ns) -
                                                     wr_output_now_ms());
    return timeout_ms < 0 ? 0 : timeout_ms;
}

/* It ends, or listens anew: what has come is added, if there is room within a second, and all are answered. */
static void drain(struct source *source)
{
    const int64_t end_ms = wr_output_now_ms() + DRAIN_MS;
    source->has_stopped = true;
    while ((source->first || source->first_ack) && wr_output_now_ms() < end_ms) {
        bool is_busy = parse_queue(source);
        settle_acks(source);
        if (!is_busy && (source->first || source->first_ack))
            poll(NULL, 0, DRAIN_STEP_MS);
        http_daemon_run(&source->daemon);
    }
    answer_all(source);
    http_daemon_run(&source->daemon);
    http_daemon_run(&source->daemon);
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    unsigned woke = 0;
    bool is_busy = false, is_good = true;
    while (is_good && !(woke & WEIR_WAIT_STOP)) {
        int64_t timeout_ms = find_timeout(source, is_busy);
        source->has_resumed = false;
        woke = http_daemon_wait(&source->daemon, source->intake, timeout_ms);
        if (source->daemon.is_lost) {
            fail(outcome, "", source->options->listen, ": the program has closed its descriptors");
            return;
        }
        is_busy = parse_queue(source);
        if (is_full_for_long(source))
            give_up(source, MHD_HTTP_TOO_MANY_REQUESTS, "there is no room");
        settle_acks(source);
        is_good = check(source, outcome);
    }
    drain(source);
}

/* ---- The type -------------------------------------------------------------------------------- */

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES,
    .name = "http",
    .summary = "an HTTP server: POST of json lines, InfluxDB lines, Prometheus text",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct http_options),
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
