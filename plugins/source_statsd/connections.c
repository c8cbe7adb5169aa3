#include "connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../system.h"

enum { READ_BYTES = 16 * 1024, ACCEPTS_AT_ONCE = 64 };

/* ---- Life ------------------------------------------------------------------------------------ */

bool wr_connections_init(struct connections *connections, struct feed *feed, size_t most, int64_t idle_ms)
{
    *connections = (struct connections){.feed = feed, .epoll_fd = -1, .most = most, .idle_ms = idle_ms};
    connections->all = calloc(most, sizeof *connections->all);
    for (size_t i = most; connections->all && i > 0; i--) {
        struct connection *connection = &connections->all[i - 1];
        *connection = (struct connection){.kind = READY_BYTES, .own.fd = -1, .after = connections->free};
        connections->free = connection;
    }
    return connections->all;
}

void wr_connections_fini(struct connections *connections)
{
    free(connections->all);
}

static void unlink_connection(struct connections *connections, struct connection *connection)
{
    *(connection->before ? &connection->before->after : &connections->first) = connection->after;
    *(connection->after ? &connection->after->before : &connections->last) = connection->before;
}

static void append(struct connections *connections, struct connection *connection, int64_t now_ms)
{
    connection->active_ms = now_ms;
    connection->after = NULL;
    connection->before = connections->last;
    *(connections->last ? &connections->last->after : &connections->first) = connection;
    connections->last = connection;
}

/* Frees a connection whose text is finished. */
static void release(struct connections *connections, struct connection *connection)
{
    unlink_connection(connections, connection);
    feed_end(connections->feed, connection->text);
    connection->text = NULL;
    wr_listener_close_connection(connections->epoll_fd, &connection->own);
    connection->after = connections->free;
    connections->free = connection;
    connections->count--;
}

/* A last line without a newline is torn: the connection may have broken. */
static void end_connection(struct connections *connections, struct connection *connection)
{
    if (feed_finish(connections->feed, connection->text, false)) {
        release(connections, connection);
        return;
    }
    connections->ending = connection;
    if (wr_own_fd_is_open(&connection->own))
        epoll_ctl(connections->epoll_fd, EPOLL_CTL_DEL, connection->own.fd, NULL);
}

void wr_connections_go_on(struct connections *connections)
{
    if (connections->ending)
        release(connections, connections->ending);
    connections->ending = NULL;
}

/* What finds no room is counted when the text ends. */
void wr_connections_close(struct connections *connections)
{
    connections->ending = NULL;
    while (connections->first) {
        connections->feed->parser->finish(connections->first->text, false);
        release(connections, connections->first);
    }
}

uint64_t wr_connections_bad_lines(const struct connections *connections)
{
    uint64_t lines = 0;
    for (const struct connection *connection = connections->first; connection; connection = connection->after)
        lines += feed_bad_lines(connections->feed, connection->text);
    return lines;
}

void wr_connections_abandon(const struct connections *connections)
{
    for (size_t i = 0; i < connections->most; i++)
        wr_own_fd_abandon(&connections->all[i].own);
}

/* ---- Accepting ------------------------------------------------------------------------------- */

/* Takes fd over. */
static void add_connection(struct connections *connections, const struct listener *from, int fd,
                           const struct sockaddr_storage *peer, int64_t now_ms)
{
    const weir_host *host = connections->feed->host;
    struct connection *connection = connections->free;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    char where[80];
    wr_listener_format(peer, where, sizeof where);
    weir_text *text = connections->feed->parser->begin(host, where, NULL);
    bool has_socket = wr_own_fd_set(&connection->own, fd);
    if (!text || !has_socket || epoll_ctl(connections->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        connections->feed->parser->end(text);
        wr_listener_note_short(from, connections->feed->host, &connections->accepting);
        wr_own_fd_close(&connection->own);
        return;
    }
    connections->free = connection->after;
    connection->text = text;
    append(connections, connection, now_ms);
    connections->count++;
    host->count(host, "connections", 1);
}

/* Returns whether to accept another one. */
static bool accept_one(struct connections *connections, const struct listener *from, int64_t now_ms)
{
    struct sockaddr_storage peer;
    bool again;
    int fd = wr_listener_accept(from, connections->feed->host, &connections->accepting, &peer, &again);
    if (fd < 0)
        return again;
    add_connection(connections, from, fd, &peer, now_ms);
    return !connections->accepting.is_short;
}

bool wr_connections_has_room(const struct connections *connections)
{
    return connections->free && !connections->accepting.is_short;
}

void wr_connections_accept(struct connections *connections, const struct listener *from, int64_t now_ms)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE && connections->free; i++)
        if (!accept_one(connections, from, now_ms))
            return;
    if (!connections->free)
        wr_listener_note_full(from, connections->feed->host, &connections->accepting, connections->count);
}

/* ---- Reading --------------------------------------------------------------------------------- */

void wr_connections_read(struct connections *connections, struct connection *connection, int64_t now_ms)
{
    struct feed *feed = connections->feed;
    size_t room;
    char *to = feed->parser->room(connection->text, &room);
    if (!to) {
        feed->intake->refuse(feed->host, 1, "", "out of memory: a connection is closed");
        end_connection(connections, connection);
        return;
    }
    ssize_t length = !wr_own_fd_is_open(&connection->own)
                         ? 0
                         : recv(connection->own.fd, to, room < READ_BYTES ? room : READ_BYTES, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        end_connection(connections, connection);
        return;
    }
    if (memchr(to, '\n', (size_t)length)) {
        unlink_connection(connections, connection);
        append(connections, connection, now_ms);
    }
    feed_parse(feed, connection->text, (size_t)length);
}

/* What waits to be read, because there was no room for it, is not idle. */
static bool is_idle(struct connections *connections, struct connection *connection, int64_t now_ms)
{
    wr_connections_read(connections, connection, now_ms);
    return !connections->feed->held && connection->own.fd >= 0 &&
           now_ms - connection->active_ms >= connections->idle_ms;
}

int64_t wr_connections_close_idle(struct connections *connections, int64_t now_ms)
{
    const weir_host *host = connections->feed->host;
    struct connection *first;
    while (!connections->feed->held && (first = connections->first) &&
           now_ms - first->active_ms >= connections->idle_ms) {
        if (!is_idle(connections, first, now_ms))
            continue;
        host->count(host, "idle_connections", 1);
        end_connection(connections, first);
    }
    return connections->first ? connections->first->active_ms + connections->idle_ms - now_ms : -1;
}
