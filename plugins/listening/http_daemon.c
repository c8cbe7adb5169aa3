#include "http_daemon.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../output.h"
#include "../system.h"
#include "framing.h"
#include "socket_group.h"

enum { ACCEPT_AT_ONCE = 64, SHORT_MS = 100 /* until accepting is tried again */ };

bool http_daemon_init(struct http_daemon *daemon, const weir_host *host, size_t slot_count)
{
    *daemon = (struct http_daemon){.host = host, .listening.fd = -1, .epoll.fd = -1};
    daemon->slots = calloc(slot_count, sizeof *daemon->slots);
    if (!daemon->slots)
        return false;
    daemon->slot_count = slot_count;
    for (size_t i = 0; i < slot_count; i++)
        daemon->slots[i].own.fd = -1;
    return true;
}

void http_daemon_fini(struct http_daemon *daemon)
{
    free(daemon->slots);
    daemon->slots = NULL;
    daemon->slot_count = 0;
}

/* ---- Connections ----------------------------------------------------------------------------- */

void http_daemon_set_phase(struct MHD_Connection *connection, enum http_phase phase)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_slot *slot = info ? info->socket_context : NULL;
    if (!slot)
        return;
    slot->phase = phase;
    slot->since_ms = wr_output_now_ms();
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **slot_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_daemon *daemon = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http_slot *slot = *slot_context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (slot) {
            slot->own.fd = -1; /* the library closes it after this */
            daemon->open_count--;
        }
        return;
    }
    for (size_t i = 0; info && i < daemon->slot_count; i++)
        if (daemon->slots[i].own.fd == info->connect_fd)
            *slot_context = &daemon->slots[i];
}

static void count(const struct http_daemon *daemon, const char *name)
{
    if (daemon->host)
        daemon->host->count(daemon->host, name, 1);
}

static struct http_slot *find_free(struct http_daemon *daemon)
{
    for (size_t i = 0; daemon->open_count < daemon->slot_count && i < daemon->slot_count; i++)
        if (daemon->slots[i].own.fd < 0)
            return &daemon->slots[i];
    return NULL;
}

/* Of accept. A shortage is logged once, until no connection waits any more. */
static void note_failure(struct http_daemon *daemon, int problem)
{
    if (problem == ECONNABORTED || problem == EINTR)
        return;
    daemon->is_short = problem != EAGAIN;
    daemon->short_ms = wr_output_now_ms();
    if (daemon->host && daemon->is_short && !daemon->logged_short)
        daemon->host->log(daemon->host, WEIR_LOG_WARNING, "connections cannot be accepted yet: %s",
                          wr_system_strerror(problem));
    if (daemon->is_short)
        count(daemon, "accept_failed");
    daemon->logged_short = daemon->is_short;
}

static void accept_connections(struct http_daemon *daemon)
{
    struct http_slot *slot;
    daemon->is_short = false;
    for (int i = 0; i < ACCEPT_AT_ONCE && (slot = find_free(daemon)); i++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd = wr_fd_above_stdio(
            accept4(daemon->listening.fd, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0) {
            note_failure(daemon, errno);
            return;
        }
        *slot = (struct http_slot){.own.fd = -1, .since_ms = wr_output_now_ms()};
        if (!wr_own_fd_set(&slot->own, fd)) {
            note_failure(daemon, errno);
            return;
        }
        daemon->open_count++;
        count(daemon, "connections");
        if (MHD_add_connection(daemon->library, fd, (const struct sockaddr *)&address, length) != MHD_YES &&
            slot->own.fd >= 0) {
            slot->own.fd = -1; /* the library has closed it */
            daemon->open_count--;
        }
    }
}

/* What is unsent alone may be the same again when the library has filled the buffer anew. */
static bool has_progress(struct http_slot *slot)
{
    struct http_progress now = {0};
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(slot->own.fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
        now.acked = info.tcpi_bytes_acked;
    ioctl(slot->own.fd, SIOCOUTQ, &now.unsent);
    bool is_changed = now.acked != slot->progress.acked || now.unsent != slot->progress.unsent;
    slot->progress = now;
    return is_changed;
}

/* The library notices it as an end by the other side. */
int64_t http_daemon_check(struct http_daemon *daemon)
{
    int64_t now_ms = wr_output_now_ms(), next_ms = INT64_MAX;
    const int64_t limits_ms[] = {[HTTP_PHASE_HEADERS] = wr_output_to_ms(daemon->idle_timeout_ns),
                                 [HTTP_PHASE_BODY] = wr_output_to_ms(daemon->request_timeout_ns),
                                 [HTTP_PHASE_REPLY] = wr_output_to_ms(daemon->idle_timeout_ns),
                                 [HTTP_PHASE_WAITS] = INT64_MAX};
    for (size_t i = 0; i < daemon->slot_count; i++) {
        struct http_slot *slot = &daemon->slots[i];
        if (slot->own.fd < 0)
            continue;
        if (slot->phase == HTTP_PHASE_REPLY && has_progress(slot))
            slot->since_ms = now_ms;
        if (now_ms - slot->since_ms >= limits_ms[slot->phase]) {
            count(daemon, "timed_out");
            if (wr_own_fd_is_open(&slot->own))
                shutdown(slot->own.fd, SHUT_RDWR);
            slot->since_ms = now_ms;
        }
        next_ms = wr_output_least(next_ms, limits_ms[slot->phase] - (now_ms - slot->since_ms));
    }
    return next_ms;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

bool http_daemon_has_lost(const struct http_daemon *daemon)
{
    return daemon->is_lost || !wr_own_fd_is_open(&daemon->listening) || !wr_own_fd_is_open(&daemon->epoll);
}

static bool find_loss(const struct http_daemon *daemon)
{
    if (http_daemon_has_lost(daemon))
        return true;
    for (size_t i = 0, found = 0; found < daemon->open_count && i < daemon->slot_count; i++) {
        const struct wr_own_fd *own = &daemon->slots[i].own;
        if (own->fd >= 0 && !wr_own_fd_is_open(own))
            return true;
        found += own->fd >= 0;
    }
    return false;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static bool bind_path(struct http_daemon *daemon, mode_t mode)
{
    int fd = wr_fd_above_stdio(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!wr_own_fd_set(&daemon->listening, fd))
        return false;
    errno = wr_unix_path_bind(&daemon->place, fd, SOCK_STREAM, mode, SOCKET_GROUP_NONE);
    return errno == 0;
}

bool http_daemon_listen(struct http_daemon *daemon, const struct listening *listening, mode_t mode)
{
    daemon->place = (struct unix_path){.path = listening->path};
    if (listening->path && !bind_path(daemon, mode))
        return false;
    if (!listening->path && !wr_own_fd_set(&daemon->listening, listening_bind(listening)))
        return false;
    return listen(daemon->listening.fd, SOMAXCONN) == 0;
}

bool http_daemon_is_in_place(const struct http_daemon *daemon)
{
    return !daemon->place.path || wr_unix_path_is_in_place(&daemon->place);
}

bool http_daemon_start(struct http_daemon *daemon, const struct http_use *use)
{
    errno = 0;
    daemon->library = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | use->flags, 0, NULL, NULL, use->on_request, use->ctx,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)daemon->slot_count, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        use->connection_bytes, MHD_OPTION_NOTIFY_CONNECTION, on_connection, daemon, MHD_OPTION_NOTIFY_COMPLETED,
        use->on_completed, use->ctx, MHD_OPTION_UNESCAPE_CALLBACK, framing_decode, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, use->strictness, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        daemon->library ? MHD_get_daemon_info(daemon->library, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    return info && wr_own_fd_set(&daemon->epoll, info->epoll_fd);
}

static void close_connections(struct http_daemon *daemon)
{
    for (size_t i = 0; i < daemon->slot_count; i++)
        wr_own_fd_close(&daemon->slots[i].own);
    daemon->open_count = 0;
}

/* The library cannot learn that its descriptors are gone: it would close those of the program, so it is leaked
 * with them. */
void http_daemon_stop(struct http_daemon *daemon)
{
    struct MHD_Daemon *library = daemon->library;
    daemon->library = NULL;
    if (library && !find_loss(daemon))
        MHD_stop_daemon(library);
    close_connections(daemon);
    daemon->is_lost = false;
    daemon->epoll.fd = -1;
    if (daemon->listening.fd >= 0 && daemon->place.path)
        wr_unix_path_remove(&daemon->place);
    wr_own_fd_close(&daemon->listening);
}

void http_daemon_abandon(const struct http_daemon *daemon)
{
    wr_own_fd_abandon(&daemon->listening);
    wr_own_fd_abandon(&daemon->epoll);
    for (size_t i = 0; i < daemon->slot_count; i++)
        wr_own_fd_abandon(&daemon->slots[i].own);
}

/* ---- Running --------------------------------------------------------------------------------- */

void http_daemon_run(struct http_daemon *daemon)
{
    if (!daemon->is_lost)
        MHD_run(daemon->library);
}

int64_t http_daemon_prepare(struct http_daemon *daemon, struct pollfd fds[2], int64_t timeout_ms)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    if (MHD_get_timeout(daemon->library, &library_ms) == MHD_YES && library_ms < (unsigned long long)timeout_ms)
        timeout_ms = (int64_t)library_ms;
    bool accepts = !daemon->is_short && daemon->open_count < daemon->slot_count;
    fds[0] = (struct pollfd){daemon->epoll.fd, POLLIN, 0};
    fds[1] = (struct pollfd){accepts ? daemon->listening.fd : -1, POLLIN, 0};
    return daemon->is_short ? wr_output_least(timeout_ms, SHORT_MS) : timeout_ms;
}

void http_daemon_serve(struct http_daemon *daemon)
{
    daemon->is_lost = find_loss(daemon);
    if (daemon->is_lost)
        return;
    if (!daemon->is_short || wr_output_now_ms() - daemon->short_ms >= SHORT_MS)
        accept_connections(daemon);
    MHD_run(daemon->library);
}

unsigned http_daemon_wait(struct http_daemon *daemon, const weir_intake *intake, int64_t timeout_ms)
{
    struct pollfd fds[2];
    timeout_ms = http_daemon_prepare(daemon, fds, timeout_ms);
    unsigned woke = intake->wait(daemon->host, fds, 2, timeout_ms);
    http_daemon_serve(daemon);
    return woke;
}
