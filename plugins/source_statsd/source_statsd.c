/* source_statsd: listens for lines of StatsD: UDP, Unix datagrams and TCP. */

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../listening/listener.h"
#include "../output.h"
#include "../system.h"
#include "admin.h"
#include "connections.h"
#include "datagrams.h"
#include "feed.h"

enum {
    EVENTS_AT_ONCE = 64,
    CHECK_MS = 1000,    /* how often to look for what no descriptor reports */
    DRAIN_MS = 1000,    /* for what has come before a stop */
    DRAIN_STEP_MS = 10, /* in which room is looked for */
};

struct statsd_options {
    weir_list listen;
    bool insecure;
    int64_t recv_buffer;
    int64_t datagram_bytes;
    int64_t connections;
    int64_t idle_timeout_ns;
    const char *mode;
    const char *admin;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("listen", LIST, WEIR_OPTION_DESTINATION, "udp://127.0.0.1:8125", NULL,
                    "where to listen: udp://ADDRESS:PORT, tcp://ADDRESS:PORT, unix-dgram:/PATH",
                    struct statsd_options, listen),
    WEIR_OPTION_ROW("insecure", BOOL, 0, "false", NULL,
                    "allow addresses other than loopback: anybody who reaches them can add values",
                    struct statsd_options, insecure),
    WEIR_OPTION_ROW("recv_buffer", SIZE, 0, "4MiB", "4KiB..1GiB",
                    "the kernel's buffer for datagrams; it gives at most net.core.rmem_max",
                    struct statsd_options, recv_buffer),
    WEIR_OPTION_ROW("datagram_bytes", SIZE, 0, "64KiB", "1KiB..256KiB",
                    "the longest datagram; the rest of a longer one is lost, and counted",
                    struct statsd_options, datagram_bytes),
    WEIR_OPTION_ROW("connections", INT, 0, "1000", "1..100000",
                    "how many TCP connections may be open; others wait", struct statsd_options, connections),
    WEIR_OPTION_ROW("idle_timeout", DURATION, 0, "1m", "10ms..1d",
                    "a TCP connection that sends no whole line for this long is closed", struct statsd_options,
                    idle_timeout_ns),
    WEIR_OPTION_ROW("mode", STRING, 0, "0600", NULL, "the permissions of a Unix socket, in octal",
                    struct statsd_options, mode),
    WEIR_OPTION_ROW("admin", STRING, 0, NULL, NULL,
                    "where to listen for the admin commands stats, health, help and quit: tcp://ADDRESS:PORT",
                    struct statsd_options, admin),
    {0},
};

static const weir_default defaults[] = {
    {"parse", "statsd"}, {"line_bytes", "8KiB"}, {"set_interval", "10s"}, {0}};

struct source {
    const weir_host *host;
    struct listeners listeners;
    size_t datagram_bytes;
    struct feed feed;
    struct datagrams datagrams;
    struct connections connections;
    struct admin admin;
    int64_t seen_ms;    /* when something was parsed last; only with admin commands */
    int64_t checked_ms; /* when `check` was called last */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void destroy(void *self)
{
    struct source *source = self;
    wr_connections_fini(&source->connections);
    wr_admin_fini(&source->admin);
    free(source->listeners.all);
    free(source);
}

static bool init_listeners(struct source *source, const struct statsd_options *options)
{
    const struct listener_rules rules = {
        .option = "listen",
        .risk = "add values",
        .allowed = "udp://ADDRESS:PORT, tcp://ADDRESS:PORT, unix-dgram:/PATH",
        .kinds = WEIR_CONNECT_UDP | WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX_DGRAM,
        .is_guarded = options->insecure,
        .advice = "\"insecure\": true",
    };
    if (options->listen.count)
        return wr_listeners_init(&source->listeners, source->host, &options->listen, &rules);
    source->host->refuse(source->host, "listen", "is empty; it must have at least one address");
    return false;
}

static void *create(const weir_host *host, const void *given)
{
    const struct statsd_options *options = given;
    mode_t mode;
    if (!wr_output_set_mode(host, options->mode, &mode))
        return NULL;
    struct source *source = wr_system_allocate(host, sizeof *source);
    if (!source)
        return NULL;
    source->host = host;
    source->listeners.options = (struct listener_options){mode, SOCKET_GROUP_NONE, (int)options->recv_buffer};
    source->datagram_bytes = (size_t)options->datagram_bytes;
    if (!init_listeners(source, options) ||
        !wr_admin_init(&source->admin, host, options->admin, options->insecure)) {
        destroy(source);
        return NULL;
    }
    if (!wr_connections_init(&source->connections, &source->feed, (size_t)options->connections,
                             wr_output_to_ms(options->idle_timeout_ns))) {
        host->refuse(host, "", "out of memory");
        destroy(source);
        return NULL;
    }
    return source;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool set_up(struct source *source, weir_outcome *outcome)
{
    feed_init(&source->feed, source->host);
    if (!wr_listeners_begin(&source->listeners, outcome))
        return false;
    source->connections.epoll_fd = source->listeners.epoll.fd;
    source->connections.accepting.is_short = false;
    return wr_datagrams_open(&source->datagrams, &source->feed, source->datagram_bytes) ||
           wr_system_fail_by(outcome, "buffers for datagrams", ENOMEM);
}

static bool begin_texts(struct source *source, weir_outcome *outcome)
{
    for (size_t i = 0; i < source->listeners.count; i++) {
        struct listener *listener = &source->listeners.all[i];
        if (listener->kind == READY_DATAGRAMS &&
            !(listener->parsed = source->feed.parser->begin(source->host, listener->name, NULL)))
            return wr_system_fail_by(outcome, listener->name, ENOMEM);
    }
    return true;
}

static void close_source(void *self)
{
    struct source *source = self;
    wr_connections_close(&source->connections);
    for (size_t i = 0; i < source->listeners.count; i++) {
        feed_end(&source->feed, source->listeners.all[i].parsed);
        source->listeners.all[i].parsed = NULL;
    }
    wr_datagrams_close(&source->datagrams);
    wr_listeners_close(&source->listeners);
    wr_admin_close(&source->admin);
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    if (set_up(source, outcome) && wr_listeners_open(&source->listeners, outcome) &&
        begin_texts(source, outcome) && wr_admin_open(&source->admin, outcome))
        wr_listeners_log(&source->listeners);
    else
        close_source(source);
}

static void abandon(void *self)
{
    const struct source *source = self;
    wr_connections_abandon(&source->connections);
    wr_listeners_abandon(&source->listeners);
    wr_admin_abandon(&source->admin);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Adds what was read. Returns false if there is no room yet. */
static bool go_on(struct source *source)
{
    do {
        if (!feed_resume(&source->feed))
            return false;
        wr_connections_go_on(&source->connections);
    } while (!wr_datagrams_parse(&source->datagrams));
    return true;
}

/* Returns false with the outcome set. */
static bool read_ready(struct source *source, void *ready, weir_outcome *outcome)
{
    int error = 0;
    uint64_t before = source->feed.parts;
    switch (*(const enum ready_kind *)ready) {
    case READY_DATAGRAMS: error = wr_datagrams_receive(&source->datagrams, ready); break;
    case READY_CONNECTIONS: wr_connections_accept(&source->connections, ready, wr_output_now_ms()); break;
    default: wr_connections_read(&source->connections, ready, wr_output_now_ms()); break;
    }
    if (wr_admin_is_on(&source->admin) && source->feed.parts != before)
        source->seen_ms = wr_output_now_ms();
    if (error)
        wr_system_fail_by(outcome, ((const struct listener *)ready)->name, error);
    return !error;
}

/* Reads once from each descriptor that has something, until a text is held. Returns how many there were; -1:
 * the outcome is set. */
static int read_all(struct source *source, weir_outcome *outcome)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(source->listeners.epoll.fd, events, EVENTS_AT_ONCE, 0);
    if (count < 0) {
        if (errno == EINTR)
            return 0;
        wr_system_fail_by(outcome, "epoll_wait", errno);
    }
    for (int i = 0; i < count && !source->feed.held; i++)
        if (!read_ready(source, events[i].data.ptr, outcome))
            return -1;
    return count;
}

/* Looks for what no descriptor reports. Returns false with the outcome set. */
static bool check(struct source *source, weir_outcome *outcome)
{
    int64_t now_ms = wr_output_now_ms();
    if (now_ms - source->checked_ms < CHECK_MS)
        return true;
    source->checked_ms = now_ms;
    source->connections.accepting.is_short = false;
    wr_admin_try_again(&source->admin);
    return wr_listeners_check_places(&source->listeners, outcome);
}

/* How long to wait for a descriptor. */
static int64_t find_timeout(struct source *source)
{
    int64_t idle_ms = wr_connections_close_idle(&source->connections, wr_output_now_ms());
    bool checks = source->listeners.has_paths || source->connections.accepting.is_short ||
                  source->admin.accepting.is_short;
    return checks && (idle_ms < 0 || idle_ms > CHECK_MS) ? CHECK_MS : idle_ms;
}

/* Waits for something to read, or for room, and for admin commands. Returns WEIR_WAIT_*. */
static unsigned wait_for_work(struct source *source)
{
    struct pollfd fds[] = {{source->admin.listeners.epoll.fd, POLLIN, 0},
                           {source->listeners.epoll.fd, POLLIN, 0}};
    size_t first = !wr_admin_is_on(&source->admin);
    int64_t timeout_ms = source->feed.held ? -1 : find_timeout(source);
    bool is_held = source->feed.held; /* closing what is idle may have read something */
    wr_listeners_accept(&source->listeners, wr_connections_has_room(&source->connections));
    unsigned woke = source->feed.intake->wait(source->host, fds + first, (is_held ? 1 : 2) - first,
                                              is_held ? -1 : timeout_ms);
    source->admin.is_ready = fds[0].revents;
    return woke;
}

static void serve_admin(struct source *source)
{
    struct admin_stats stats = {source->seen_ms, source->feed.bad_lines};
    if (!source->admin.is_ready)
        return;
    for (size_t i = 0; i < source->listeners.count; i++)
        if (source->listeners.all[i].parsed)
            stats.bad_lines += feed_bad_lines(&source->feed, source->listeners.all[i].parsed);
    stats.bad_lines += wr_connections_bad_lines(&source->connections);
    wr_admin_serve(&source->admin, &stats);
}

/* A stop was requested: what has come until now is added, if there is room within a second. */
static void drain(struct source *source)
{
    weir_outcome unused = {.size = sizeof unused};
    const int64_t end_ms = wr_output_now_ms() + DRAIN_MS;
    do {
        if (!go_on(source))
            poll(NULL, 0, DRAIN_STEP_MS);
        else if (read_all(source, &unused) <= 0)
            break;
    } while (wr_output_now_ms() < end_ms);
    go_on(source);
}

static void report(struct source *source)
{
    for (size_t i = 0; i < source->listeners.count; i++) {
        struct listener *listener = &source->listeners.all[i];
        if (listener->kind != READY_DATAGRAMS)
            continue;
        wr_datagrams_count_left(&source->datagrams, listener);
        wr_listener_count_drops(listener, source->host);
        if (listener->kernel_drops)
            source->host->log(source->host, WEIR_LOG_WARNING,
                              "%s: the kernel has dropped %llu datagrams in all", listener->name,
                              (unsigned long long)listener->kernel_drops);
    }
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    unsigned woke = 0;
    while (!(woke & WEIR_WAIT_STOP)) {
        woke = wait_for_work(source);
        if (wr_listeners_find_loss(&source->listeners, outcome) || wr_admin_find_loss(&source->admin, outcome))
            return;
        serve_admin(source);
        if (!go_on(source))
            continue;
        if (woke & WEIR_WAIT_READY && read_all(source, outcome) < 0)
            return;
        if (!check(source, outcome))
            return;
    }
    drain(source);
    report(source);
}

/* ---- The type -------------------------------------------------------------------------------- */

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "statsd",
    .summary = "listens for StatsD lines: UDP, Unix datagrams, TCP",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct statsd_options),
    .defaults = defaults,
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
