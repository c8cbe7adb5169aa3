#include "server.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../listening/http_daemon.h"
#include "../system.h"
#include "page.h"
#include "panic.h"

enum { CONNECTION_BYTES = 32 * 1024 };

struct server {
    struct state *state;
    const char *path;
    struct http_daemon daemon;
    pthread_t thread;
    /* A pipe. The thread ends when it can read from it: stop has written to it, or the program has closed the
     * end to write to. So the thread does not keep the address in use with a listening socket that was closed
     * while it waited for it. */
    struct wr_own_fd stop_read, stop_write;
};

bool server_is_lost(const struct server *server)
{
    return http_daemon_has_lost(&server->daemon) || !wr_own_fd_is_open(&server->stop_read) ||
           !wr_own_fd_is_open(&server->stop_write);
}

/* Called when a request's headers are there. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **context)
{
    struct server *server = ctx;
    (void)version, (void)data, (void)size, (void)context;
    if (strcmp(url, server->path) != 0)
        return page_refuse(connection, MHD_HTTP_NOT_FOUND, "there is nothing here\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return page_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
    return page_respond(server->state, connection);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Returns whether the thread has to end. */
static bool await(struct server *server)
{
    struct pollfd waits[3] = {{.fd = server->stop_read.fd, .events = POLLIN}};
    int64_t wait_ms = http_daemon_prepare(&server->daemon, &waits[1], http_daemon_check(&server->daemon));
    return poll(waits, 3, wait_ms > INT_MAX ? -1 : (int)wait_ms) > 0 && waits[0].revents;
}

static void run_daemon(void *ctx)
{
    struct server *server = ctx;
    http_daemon_serve(&server->daemon);
}

/* A thread of the library's own would have descriptors that a forked child could not close. */
static void *serve(void *ctx)
{
    struct server *server = ctx;
    while (!server->daemon.is_lost && !await(server))
        if (server_is_lost(server) || !panic_catch(run_daemon, server))
            server->daemon.is_lost = true;
    return NULL;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static struct server *new_server(struct state *state, const struct server_settings *settings)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server || !http_daemon_init(&server->daemon, NULL, settings->connection_limit)) {
        free(server);
        return NULL;
    }
    server->state = state;
    server->path = settings->path;
    server->daemon.idle_timeout_ns = settings->timeout_ns; /* of the one phase that its connections have */
    server->stop_read.fd = server->stop_write.fd = -1;
    return server;
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
    const struct http_use use = {.connection_bytes = CONNECTION_BYTES, .on_request = on_request, .ctx = server};
    errno = 0;
    panic_init();
    if (!make_pipe(server) || !http_daemon_start(&server->daemon, &use))
        return errno ? errno : EIO;
    return pthread_create(&server->thread, NULL, serve, server);
}

static void stop_daemon(void *daemon)
{
    http_daemon_stop(daemon);
}

/* Ends everything but the thread. A call that did not return is made again for what is left to do. */
static void free_server(struct server *server)
{
    server->daemon.is_lost = server_is_lost(server);
    if (!panic_catch(stop_daemon, &server->daemon))
        http_daemon_stop(&server->daemon);
    http_daemon_fini(&server->daemon);
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
    int error = wr_own_fd_set(&server->daemon.listening, fd) ? start(server) : errno;
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
    http_daemon_abandon(&server->daemon);
    wr_own_fd_abandon(&server->stop_read);
    wr_own_fd_abandon(&server->stop_write);
}
