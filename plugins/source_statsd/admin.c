#include "admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../output.h"
#include "../system.h"

/* https://github.com/statsd/statsd, docs/admin_interface.md and stats.js */

/* ---- Life ------------------------------------------------------------------------------------ */

bool wr_admin_init(struct admin *admin, const weir_host *host, const char *address, bool is_guarded)
{
    const weir_list list = {1, &address};
    const struct listener_rules rules = {
        .option = "admin",
        .allowed = "tcp://ADDRESS:PORT",
        .kinds = WEIR_CONNECT_TCP,
        .is_guarded = is_guarded,
        .risk = "read the source's counts and set its health",
        .advice = "\"insecure\": true",
    };
    admin->host = host;
    admin->started_ms = wr_output_now_ms();
    for (size_t i = 0; i < ADMIN_CLIENTS; i++)
        admin->clients[i] = (struct admin_client){.kind = READY_BYTES, .own.fd = -1};
    return !address || wr_listeners_init(&admin->listeners, host, &list, &rules);
}

void wr_admin_fini(struct admin *admin)
{
    free(admin->listeners.all);
}

bool wr_admin_open(struct admin *admin, weir_outcome *outcome)
{
    if (!wr_admin_is_on(admin))
        return true;
    admin->accepting.is_short = false;
    if (!wr_listeners_begin(&admin->listeners, outcome) || !wr_listeners_open(&admin->listeners, outcome))
        return false;
    admin->host->log(admin->host, WEIR_LOG_INFO, "takes admin commands at %s", admin->listeners.all[0].name);
    return true;
}

static void end_client(struct admin *admin, struct admin_client *client)
{
    wr_listener_close_connection(admin->listeners.epoll.fd, &client->own);
}

void wr_admin_close(struct admin *admin)
{
    for (size_t i = 0; i < ADMIN_CLIENTS; i++)
        end_client(admin, &admin->clients[i]);
    if (wr_admin_is_on(admin))
        wr_listeners_close(&admin->listeners);
}

void wr_admin_abandon(const struct admin *admin)
{
    for (size_t i = 0; i < ADMIN_CLIENTS; i++)
        wr_own_fd_abandon(&admin->clients[i].own);
    if (wr_admin_is_on(admin))
        wr_listeners_abandon(&admin->listeners);
}

bool wr_admin_find_loss(struct admin *admin, weir_outcome *outcome)
{
    return wr_admin_is_on(admin) && wr_listeners_find_loss(&admin->listeners, outcome);
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* A client that does not read is closed: the source does not wait for it. */
static void respond(struct admin *admin, struct admin_client *client, const char *text)
{
    size_t length = strlen(text);
    if (send(client->own.fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length)
        end_client(admin, client);
}

static long long to_seconds(int64_t ms)
{
    return (long long)(ms + 500) / 1000;
}

/* Until a value has come, the last one is as old as the source, as in the server. */
static void respond_stats(struct admin *admin, struct admin_client *client, const struct admin_stats *stats)
{
    char text[160];
    int64_t now_ms = wr_output_now_ms();
    int64_t seen_ms = stats->seen_ms ? stats->seen_ms : admin->started_ms;
    snprintf(text, sizeof text,
             "uptime: %lld\nmessages.last_msg_seen: %lld\nmessages.bad_lines_seen: %llu\nEND\n\n",
             to_seconds(now_ms - admin->started_ms), to_seconds(now_ms - seen_ms),
             (unsigned long long)stats->bad_lines);
    respond(admin, client, text);
}

static void respond_health(struct admin *admin, struct admin_client *client, const char *wanted)
{
    if (wanted && (strcasecmp(wanted, "up") == 0 || strcasecmp(wanted, "down") == 0))
        admin->is_down = strcasecmp(wanted, "down") == 0;
    respond(admin, client, admin->is_down ? "health: down\n" : "health: up\n");
}

/* The source keeps no values: those that it reads are summed up by others. */
static bool is_unsupported(const char *command)
{
    static const char *const names[] = {"counters",  "gauges",    "timers", "delcounters",
                                        "delgauges", "deltimers", "config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(command, names[i]) == 0)
            return true;
    return false;
}

static void run_command(struct admin *admin, struct admin_client *client, const struct admin_stats *stats,
                        char *line)
{
    char *rest, *command = strtok_r(line, " \t\r", &rest);
    if (!command)
        return;
    if (strcmp(command, "stats") == 0)
        respond_stats(admin, client, stats);
    else if (strcmp(command, "health") == 0)
        respond_health(admin, client, strtok_r(NULL, " \t\r", &rest));
    else if (strcmp(command, "help") == 0)
        respond(admin, client, "Commands: stats, health, help, quit\n\n");
    else if (strcmp(command, "quit") == 0)
        end_client(admin, client);
    else if (is_unsupported(command))
        respond(admin, client, "ERROR: not supported: see `weir status`, or a handler prometheus\nEND\n\n");
    else
        respond(admin, client, "ERROR\n");
}

/* As in the server, whose clients send no newline now and then, what comes at once is taken for whole lines. */
static void read_client(struct admin *admin, struct admin_client *client, const struct admin_stats *stats)
{
    char text[512], *rest;
    ssize_t length = wr_own_fd_is_open(&client->own) /* else the program has closed it */
                         ? recv(client->own.fd, text, sizeof text - 1, MSG_DONTWAIT)
                         : 0;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        end_client(admin, client);
        return;
    }
    text[length] = '\0';
    client->active = ++admin->turn;
    char *line = strtok_r(text, "\n", &rest);
    for (; line && client->own.fd >= 0; line = strtok_r(NULL, "\n", &rest))
        run_command(admin, client, stats, line);
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* A client that stays connected does not keep others out: the one that has been silent longest makes room. */
static struct admin_client *find_room(struct admin *admin)
{
    struct admin_client *found = &admin->clients[0];
    for (size_t i = 0; i < ADMIN_CLIENTS; i++) {
        struct admin_client *client = &admin->clients[i];
        if (client->own.fd < 0)
            return client;
        if (client->active < found->active)
            found = client;
    }
    end_client(admin, found);
    return found;
}

static void accept_client(struct admin *admin, const struct listener *from)
{
    struct sockaddr_storage unused;
    bool again;
    int fd = wr_listener_accept(from, admin->host, &admin->accepting, &unused, &again);
    if (admin->accepting.is_short)
        wr_listeners_accept(&admin->listeners, false);
    if (fd < 0)
        return;
    struct admin_client *client = find_room(admin);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    client->active = ++admin->turn;
    if (!wr_own_fd_set(&client->own, fd) ||
        epoll_ctl(admin->listeners.epoll.fd, EPOLL_CTL_ADD, fd, &event) != 0)
        wr_own_fd_close(&client->own);
}

void wr_admin_try_again(struct admin *admin)
{
    admin->accepting.is_short = false;
    if (wr_admin_is_on(admin))
        wr_listeners_accept(&admin->listeners, true);
}

/* One at a time: what a command or a new client has closed is reported no more. */
void wr_admin_serve(struct admin *admin, const struct admin_stats *stats)
{
    struct epoll_event event;
    for (int i = 0; i < ADMIN_CLIENTS; i++) {
        if (epoll_wait(admin->listeners.epoll.fd, &event, 1, 0) != 1)
            return;
        if (*(const enum ready_kind *)event.data.ptr == READY_CONNECTIONS)
            accept_client(admin, event.data.ptr);
        else
            read_client(admin, event.data.ptr, stats);
    }
}
