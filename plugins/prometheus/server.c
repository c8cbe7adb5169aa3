#include "server.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../system.h"
#include "page.h"
#include "panic.h"

enum { CONNECTION_BYTES = 32 * 1024, NS_PER_MS = 1000000, FULL_MS = 100 };

struct connection {
    struct wr_own_fd socket;
    int64_t since_ns;
};

struct server {
    struct state *state;
    struct server_settings settings;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    struct wr_own_fd listening, epoll; /* epoll: the library's */
    /* A pipe. The thread ends when it can read from it: stop has written to it, or the program has closed the
     * end to write to. So the thread does not keep the address in use with a listening socket that was closed
     * while it waited for it. */
    struct wr_own_fd stop_read, stop_write;
    _Atomic bool has_lost; /* the thread has found that descriptors are not its own any more, and ends */
    bool is_full;          /* no descriptor is left for another connection */
    unsigned connection_room;
    struct connection connections[];
};

/* ---- Descriptors ----------------------------------------------------------------------------- */

static bool has_connections(const struct server *server)
{
    for (unsigned i = 0; i < server->connection_room; i++)
        if (server->connections[i].socket.fd >= 0 && !wr_own_fd_is_open(&server->connections[i].socket))
            return false;
    return true;
}

static bool has_descriptors(const struct server *server)
{
    return wr_own_fd_is_open(&server->listening) && wr_own_fd_is_open(&server->epoll) &&
           wr_own_fd_is_open(&server->stop_read) && wr_own_fd_is_open(&server->stop_write);
}

bool server_is_lost(const struct server *server)
{
    return server->has_lost || !has_descriptors(server);
}

/* ---- The life of connections ----------------------------------------------------------------- */

static struct connection *find_free(struct server *server)
{
    for (unsigned i = 0; i < server->connection_room; i++)
        if (server->connections[i].socket.fd < 0)
            return &server->connections[i];
    return NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)context;
    /* The library closes the descriptor after this. */
    for (unsigned i = 0; code == MHD_CONNECTION_NOTIFY_CLOSED && info && i < server->connection_room; i++)
        if (server->connections[i].socket.fd == info->connect_fd)
            server->connections[i].socket.fd = -1;
}

/* The library takes the socket over, and closes it if it fails. */
static bool add_connection(struct server *server, struct connection *connection, int fd,
                           const struct sockaddr_storage *address, socklen_t length)
{
    if (!wr_own_fd_set(&connection->socket, wr_fd_above_stdio(fd)))
        return false;
    connection->since_ns = state_now_ns();
    if (MHD_add_connection(server->daemon, connection->socket.fd, (const struct sockaddr *)address, length) !=
        MHD_YES)
        connection->socket.fd = -1;
    return true;
}

/* Not left to the library: a program may run with standard streams closed, and would print to the scraper whose
 * connection gets such a number. */
static void accept_connections(struct server *server)
{
    struct connection *connection;
    server->is_full = false;
    while ((connection = find_free(server))) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd =
            accept4(server->listening.fd, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd >= 0 && add_connection(server, connection, fd, &address, length))
            continue;
        server->is_full = errno != EAGAIN;
        return;
    }
}

/* Ends what is too old; the library notices it as an end by the other side. Returns when to look again, in ms;
 * -1: there are no connections. */
static int64_t end_old(struct server *server)
{
    int64_t now = state_now_ns(), oldest = INT64_MAX;
    for (unsigned i = 0; i < server->connection_room; i++) {
        struct connection *connection = &server->connections[i];
        if (connection->socket.fd < 0)
            continue;
        if (now - connection->since_ns >= server->settings.timeout_ns) {
            if (wr_own_fd_is_open(&connection->socket))
                shutdown(connection->socket.fd, SHUT_RDWR);
            connection->since_ns = now;
        }
        oldest = connection->since_ns < oldest ? connection->since_ns : oldest;
    }
    return oldest == INT64_MAX ? -1 : (oldest + server->settings.timeout_ns - now) / NS_PER_MS + 1;
}

/* Called when a request's headers are there. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **context)
{
    struct server *server = ctx;
    (void)version, (void)data, (void)size, (void)context;
    if (strcmp(url, server->settings.path) != 0)
        return page_refuse(connection, MHD_HTTP_NOT_FOUND, "there is nothing here\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return page_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
    return page_respond(server->state, connection);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static int earlier(int64_t a_ms, int64_t b_ms)
{
    int64_t least = a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
    return least > INT_MAX ? INT_MAX : (int)least;
}

static int find_wait_ms(struct server *server)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    int wait_ms = earlier(end_old(server), server->is_full ? FULL_MS : -1);
    if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES)
        wait_ms = earlier(wait_ms, library_ms > INT_MAX ? INT_MAX : (int64_t)library_ms);
    return wait_ms;
}

/* Further connections wait in the socket's queue. Returns whether the thread has to end. */
static bool await(struct server *server)
{
    bool may_accept = !server->is_full && find_free(server);
    struct pollfd waits[] = {{.fd = server->stop_read.fd, .events = POLLIN},
                             {.fd = server->epoll.fd, .events = POLLIN},
                             {.fd = may_accept ? server->listening.fd : -1, .events = POLLIN}};
    return poll(waits, 3, find_wait_ms(server)) > 0 && waits[0].revents;
}

static void run_library(void *ctx)
{
    struct server *server = ctx;
    MHD_run(server->daemon);
    accept_connections(server);
}

/* A thread of the library's own would have descriptors that a forked child could not close. */
static void *serve(void *ctx)
{
    struct server *server = ctx;
    while (!server->has_lost && !await(server))
        server->has_lost =
            !has_descriptors(server) || !has_connections(server) || !panic_catch(run_library, server);
    return NULL;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static struct server *new_server(struct state *state, const struct server_settings *settings)
{
    unsigned room = settings->connection_limit;
    struct server *server = calloc(1, sizeof *server + room * sizeof *server->connections);
    if (!server)
        return NULL;
    server->state = state;
    server->settings = *settings;
    server->connection_room = room;
    server->listening.fd = server->epoll.fd = server->stop_read.fd = server->stop_write.fd = -1;
    for (unsigned i = 0; i < room; i++)
        server->connections[i].socket.fd = -1;
    return server;
}

static bool start_daemon(struct server *server)
{
    panic_init();
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request,
                                      server, MHD_OPTION_CONNECTION_LIMIT, server->connection_room,
                                      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                                      MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    return info && wr_own_fd_set(&server->epoll, info->epoll_fd);
}

static bool make_pipe(struct server *server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    bool has_read = wr_own_fd_set(&server->stop_read, wr_fd_above_stdio(ends[0]));
    return wr_own_fd_set(&server->stop_write, wr_fd_above_stdio(ends[1])) && has_read;
}

/* Returns 0 or errno. */
static int start(struct server *server)
{
    errno = 0;
    if (!make_pipe(server) || !start_daemon(server))
        return errno ? errno : EIO;
    return pthread_create(&server->thread, NULL, serve, server);
}

static void stop_daemon(void *daemon)
{
    MHD_stop_daemon(daemon);
}

/* Ends everything but the thread. The library cannot learn that its descriptors are gone: it would close those
 * of the program, so it is leaked with them. */
static void free_server(struct server *server)
{
    if (server->daemon && !server->has_lost && has_descriptors(server) && has_connections(server))
        panic_catch(stop_daemon, server->daemon);
    for (unsigned i = 0; i < server->connection_room; i++)
        wr_own_fd_close(&server->connections[i].socket);
    wr_own_fd_close(&server->listening);
    wr_own_fd_close(&server->stop_read);
    wr_own_fd_close(&server->stop_write);
    free(server);
}

struct server *server_start(struct state *state, const struct server_settings *settings, int fd)
{
    struct server *server = new_server(state, settings);
    if (!server) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    int error = wr_own_fd_set(&server->listening, fd) ? start(server) : errno;
    if (!error)
        return server;
    free_server(server);
    errno = error;
    return NULL;
}

void server_stop(struct server *server)
{
    while (wr_own_fd_is_open(&server->stop_write) && write(server->stop_write.fd, "", 1) < 0 &&
           errno == EINTR) {
    }
    pthread_join(server->thread, NULL);
    free_server(server);
}

void server_abandon(const struct server *server)
{
    const struct wr_own_fd *const own[] = {&server->listening, &server->epoll, &server->stop_read,
                                           &server->stop_write};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        wr_own_fd_abandon(own[i]);
    for (unsigned i = 0; i < server->connection_room; i++)
        wr_own_fd_abandon(&server->connections[i].socket);
}
