/* source_forward: takes values over from handlers `forward` of other processes. */

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../forwarding/forward_default.h"
#include "../output.h"
#include "../system.h"
#include "forward_peers.h"

enum {
    EVENTS_AT_ONCE = 64,
    CHECK_MS = 1000, /* how often to look for what no descriptor reports */
    DRAIN_MS = 1000, /* for the acknowledgements of what was taken before a stop */
    DRAIN_STEP_MS = 5,
    FIRST_ASK_MS = 1, /* how often to look for what is settled; doubled while nothing is */
    LAST_ASK_MS = 64,
};

struct forward_options {
    weir_list listen, allow_uids;
    const char *token_file, *mode, *group;
    bool insecure;
    int64_t connections;
    int64_t sender_series;
    int64_t idle_timeout_ns;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW(
        "listen", LIST, WEIR_OPTION_DESTINATION, NULL, NULL,
        "where to listen: unix:/PATH, tcp://ADDRESS:PORT; default: unix:$XDG_RUNTIME_DIR/weir/forward.sock, or "
        "unix:/run/weir/forward.sock without that variable",
        struct forward_options, listen),
    WEIR_OPTION_ROW("mode", STRING, 0, "0600", NULL, "the permissions of a Unix socket, in octal",
                    struct forward_options, mode),
    WEIR_OPTION_ROW("allow_group", STRING, 0, NULL, NULL,
                    "a group, by name or number, whose members may send by a Unix socket, too: it gets the "
                    "group, and a mode "
                    "that "
                    "lets it read and write; this process must be in it",
                    struct forward_options, group),
    WEIR_OPTION_ROW(
        "allow_uids", LIST, 0, NULL, NULL,
        "the numbers of further users who may send by a Unix socket; the relay's own and root always may",
        struct forward_options, allow_uids),
    WEIR_OPTION_ROW("token_file", PATH, 0, NULL, NULL,
                    "a file with the token that senders by TCP must have; read again when it changes",
                    struct forward_options, token_file),
    WEIR_OPTION_ROW(
        "insecure", BOOL, 0, "false", NULL,
        "allow addresses other than loopback without a token: anybody who reaches them can add values",
        struct forward_options, insecure),
    WEIR_OPTION_ROW("connections", INT, 0, "1000", "1..100000", "how many connections may be open; others wait",
                    struct forward_options, connections),
    WEIR_OPTION_ROW(
        "sender_series", INT, 0, "0", "0..10000000",
        "how many series a sender may describe on a connection, within \"series_limit\": what it adds "
        "to further ones is refused, and other senders still find room; 0: no limit of its own",
        struct forward_options, sender_series),
    WEIR_OPTION_ROW("idle_timeout", DURATION, 0, "30s", "10ms..1d",
                    "a connection that sends no greeting, or a part of a frame, for this long is closed",
                    struct forward_options, idle_timeout_ns),
    {0},
};

struct source {
    const weir_host *host;
    struct listeners listeners;
    struct peers peers;
    struct tenants tenants;
    uid_t *uids;
    const char *group; /* NULL: none */
    char default_listen[FORWARD_PATH_ROOM + 5];
    bool is_default;
    int64_t checked_ms, ask_ms;
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void destroy(void *self)
{
    struct source *source = self;
    wr_peers_fini(&source->peers);
    tenants_fini(&source->tenants);
    free(source->uids);
    free(source->listeners.all);
    free(source);
}

static bool out_of_memory(const struct source *source)
{
    source->host->refuse(source->host, "", "out of memory");
    return false;
}

static bool init_listeners(struct source *source, const struct forward_options *options)
{
    const char *const fallback[] = {source->default_listen};
    const weir_list *given = &options->listen;
    const weir_list list = {given->count ? given->count : 1, given->count ? given->items : fallback};
    const struct listener_rules rules = {
        .option = "listen",
        .risk = "add values",
        .allowed = "unix:/PATH, tcp://ADDRESS:PORT",
        .kinds = WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX,
        .is_guarded = options->insecure || options->token_file,
        .advice = "a \"token_file\", or \"insecure\": true,",
    };
    source->is_default = !given->count;
    return wr_listeners_init(&source->listeners, source->host, &list, &rules);
}

static bool init_users(struct source *source, const weir_list *list)
{
    source->uids = calloc(list->count + 2, sizeof *source->uids);
    if (!source->uids)
        return out_of_memory(source);
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i];
        if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10 ||
            strtoull(text, NULL, 10) >= UINT32_MAX) {
            source->host->refuse(source->host, "allow_uids",
                                 "\"%.60s\" is not the number of a user; allowed: 0..4294967294", text);
            return false;
        }
        source->uids[i] = (uid_t)strtoull(text, NULL, 10);
    }
    source->uids[list->count] = geteuid();
    source->uids[list->count + 1] = 0;
    source->peers.uids = source->uids;
    source->peers.uid_count = list->count + 2;
    return true;
}

static bool init(struct source *source, const struct forward_options *options)
{
    static const weir_map none;
    mode_t mode;
    if (!wr_output_set_mode(source->host, options->mode, &mode) || !init_listeners(source, options) ||
        !init_users(source, &options->allow_uids) ||
        !tenants_init(&source->tenants, source->host, options->token_file, &none))
        return false;
    source->listeners.options = (struct listener_options){mode, SOCKET_GROUP_NONE, 0};
    if (options->group)
        source->listeners.options.mode |= S_IRGRP | S_IWGRP;
    source->group = options->group;
    source->peers.group = SOCKET_GROUP_NONE;
    source->peers.host = source->host;
    source->peers.tenants = &source->tenants;
    source->peers.has_token = options->token_file;
    source->peers.most_series = (size_t)options->sender_series;
    source->peers.idle_ms = wr_output_to_ms(options->idle_timeout_ns);
    return wr_peers_init(&source->peers, (size_t)options->connections) || out_of_memory(source);
}

static void *create(const weir_host *host, const void *given)
{
    struct source *source = wr_system_allocate(host, sizeof *source);
    if (!source)
        return NULL;
    source->host = host;
    wr_forward_default(source->default_listen);
    if (init(source, given))
        return source;
    destroy(source);
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The folder of the default path; whether it can be used shows when the socket is bound. */
static void make_folder(const struct source *source)
{
    char folder[FORWARD_PATH_ROOM];
    if (!source->is_default)
        return;
    snprintf(folder, sizeof folder, "%s", source->listeners.all[0].at.path);
    *strrchr(folder, '/') = '\0';
    mkdir(folder, 0755);
}

/* Here and not when it is created: looking for it may read files or ask other machines. */
static void find_group(struct source *source, weir_outcome *outcome)
{
    char what[160];
    snprintf(what, sizeof what, "allow_group \"%.100s\"", source->group ? source->group : "");
    int error = source->group ? socket_group_find(source->group, &source->peers.group) : 0;
    source->listeners.options.group = source->peers.group;
    if (error == ENOENT)
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s is not known", what);
    else if (error)
        wr_system_fail_by(outcome, what, error);
}

static void close_source(void *self)
{
    struct source *source = self;
    wr_peers_close(&source->peers);
    wr_listeners_close(&source->listeners);
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    source->ask_ms = FIRST_ASK_MS;
    wr_listeners_begin(&source->listeners, outcome);
    make_folder(source);
    find_group(source, outcome);
    wr_peers_open(&source->peers, source->listeners.epoll.fd);
    wr_peers_report_upstream(&source->peers);
    if (outcome->code == WEIR_OUTCOME_OK && wr_listeners_open(&source->listeners, outcome))
        wr_listeners_log(&source->listeners);
    else
        close_source(source);
}

static void abandon(void *self)
{
    const struct source *source = self;
    wr_peers_abandon(&source->peers);
    wr_listeners_abandon(&source->listeners);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Returns false with the outcome set. */
static bool serve_all(struct source *source, weir_outcome *outcome)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(source->listeners.epoll.fd, events, EVENTS_AT_ONCE, 0);
    int64_t now_ms = wr_output_now_ms();
    if (count < 0 && errno != EINTR)
        return wr_system_fail_by(outcome, "epoll_wait", errno);
    /* connections last: a slot that is closed in this round is not reused in it */
    for (int i = 0; i < count; i++)
        if (*(const enum ready_kind *)events[i].data.ptr == READY_BYTES)
            wr_peers_serve(&source->peers, events[i].data.ptr, events[i].events, now_ms);
    for (int i = 0; i < count; i++)
        if (*(const enum ready_kind *)events[i].data.ptr == READY_CONNECTIONS)
            wr_peers_accept(&source->peers, events[i].data.ptr, now_ms);
    return true;
}

/* Looks for what no descriptor reports. Returns false with the outcome set. */
static bool check(struct source *source, weir_outcome *outcome)
{
    int64_t now_ms = wr_output_now_ms();
    if (now_ms - source->checked_ms < CHECK_MS)
        return true;
    source->checked_ms = now_ms;
    source->peers.accepting.is_short = false;
    wr_peers_close_idle(&source->peers, now_ms);
    wr_peers_log_refusals(&source->peers, now_ms);
    wr_peers_show(&source->peers);
    wr_peers_report_upstream(&source->peers);
    return wr_listeners_check_places(&source->listeners, outcome);
}

static void acknowledge(struct source *source)
{
    if (wr_peers_acknowledge(&source->peers))
        source->ask_ms = FIRST_ASK_MS;
    else if (source->ask_ms < LAST_ASK_MS)
        source->ask_ms *= 2;
}

/* A stop was requested: what was taken is acknowledged, if it is settled within a second. */
static void drain(struct source *source)
{
    const int64_t end_ms = wr_output_now_ms() + DRAIN_MS;
    while (source->peers.pending_count && wr_output_now_ms() < end_ms)
        if (!wr_peers_acknowledge(&source->peers))
            poll(NULL, 0, DRAIN_STEP_MS);
    wr_peers_show(&source->peers);
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    unsigned woke = 0;
    while (!(woke & WEIR_WAIT_STOP)) {
        struct pollfd fd = {source->listeners.epoll.fd, POLLIN, 0};
        wr_listeners_accept(&source->listeners, wr_peers_has_room(&source->peers));
        woke = source->peers.intake->wait(source->host, &fd, 1,
                                          source->peers.pending_count ? source->ask_ms : CHECK_MS);
        if (wr_listeners_find_loss(&source->listeners, outcome))
            return;
        if (woke & WEIR_WAIT_ROOM)
            wr_peers_resume(&source->peers);
        if (woke & WEIR_WAIT_READY) {
            source->ask_ms = FIRST_ASK_MS;
            if (!serve_all(source, outcome))
                return;
        }
        wr_peers_publish(&source->peers);
        acknowledge(source);
        if (!check(source, outcome))
            return;
    }
    drain(source);
}

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .name = "forward",
    .summary = "takes values over from other processes with weir",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct forward_options),
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
