#include "listener.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../system.h"

enum { BACKLOG = 1024 };

/* ---- Addresses ------------------------------------------------------------------------------- */

/* Returns false if the host is not an address. */
static bool set_listening(struct listener *listener)
{
    const struct wr_destination *at = &listener->at;
    if (!at->path)
        return listening_set(&listener->listening, at->host, htons((in_port_t)atoi(at->port)));
    listener->listening = (struct listening){.path = at->path, .is_loopback = true};
    return true;
}

static bool init(struct listener *listener, const weir_host *host, const char *text,
                 const struct listener_rules *given)
{
    const struct wr_destination_rules rules = {.forms = given->allowed, .kinds = given->kinds, .first_port = 0};
    char problem[512];
    *listener = (struct listener){.text = text, .own.fd = -1};
    if (!wr_destination_read(&listener->at, &rules, text, problem, sizeof problem)) {
        host->refuse(host, given->option, "%s", problem);
        return false;
    }
    listener->place.path = listener->at.path;
    listener->type = wr_destination_has_datagrams(&listener->at) ? SOCK_DGRAM : SOCK_STREAM;
    listener->kind = listener->type == SOCK_STREAM ? READY_CONNECTIONS : READY_DATAGRAMS;
    if (!set_listening(listener))
        host->refuse(host, given->option, "\"%.200s\" has a host that is not an IP address; allowed: %s", text,
                     given->allowed);
    else if (!given->is_guarded && !listener->listening.is_loopback)
        host->refuse(host, given->option,
                     "\"%.200s\" is not a loopback address: anybody who reaches it can %s; %s allows it", text,
                     given->risk, given->advice);
    else
        return true;
    return false;
}

bool wr_listeners_init(struct listeners *listeners, const weir_host *host, const weir_list *list,
                       const struct listener_rules *rules)
{
    listeners->host = host;
    listeners->epoll.fd = -1;
    listeners->all = calloc(list->count, sizeof *listeners->all);
    if (!listeners->all) {
        host->refuse(host, "", "out of memory");
        return false;
    }
    for (; listeners->count < list->count; listeners->count++) {
        struct listener *listener = &listeners->all[listeners->count];
        if (!init(listener, host, list->items[listeners->count], rules))
            return false;
        listeners->has_paths |= listener->at.path != NULL;
    }
    return true;
}

bool wr_listeners_check_places(const struct listeners *listeners, weir_outcome *outcome)
{
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->all[i].at.path && !wr_unix_path_is_in_place(&listeners->all[i].place))
            return wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: the path was removed or replaced",
                                  listeners->all[i].name);
    return true;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void set_name(struct listener *listener)
{
    char bound[LISTENING_TEXT] = "";
    const char *text = listener->text, *port;
    snprintf(listener->name, sizeof listener->name, "%s", text);
    if (!listener->at.path)
        listening_format_bound(listener->own.fd, bound);
    if ((port = strrchr(bound, ':')))
        snprintf(listener->name, sizeof listener->name, "%.*s%s", (int)(strrchr(text, ':') - text), text, port);
}

/* Returns what failed, with *error set; NULL: it is open. */
static const char *open_socket(struct listener *listener, const struct listener_options *options, int *error)
{
    const struct listening *listening = &listener->listening;
    const int type = listener->type, family = listening->path ? AF_UNIX : listening->address.ss_family;
    int fd = wr_fd_above_stdio(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    bool has_socket = wr_own_fd_set(&listener->own, fd);
    *error = errno;
    if (!has_socket)
        return "socket";
    if (listening->path)
        *error = wr_unix_path_bind(&listener->place, listener->own.fd, type, options->mode, options->group);
    else
        *error = listening_bind_socket(listening, listener->own.fd, type) ? 0 : errno;
    if (*error)
        return "bind";
    /* the kernel gives at most net.core.rmem_max */
    if (type == SOCK_DGRAM &&
        setsockopt(listener->own.fd, SOL_SOCKET, SO_RCVBUF, &options->recv_buffer, sizeof(int)) != 0) {
        *error = errno;
        return "SO_RCVBUF";
    }
    if (type == SOCK_STREAM && listen(listener->own.fd, BACKLOG) != 0) {
        *error = errno;
        return "listen";
    }
    return NULL;
}

static void close_listener(struct listener *listener)
{
    if (listener->own.fd >= 0 && listener->at.path)
        wr_unix_path_remove(&listener->place);
    wr_own_fd_close(&listener->own);
}

static bool open_listener(struct listener *listener, const struct listener_options *options,
                          weir_outcome *outcome)
{
    int error;
    listener->seen_drops = 0;
    const char *failed = open_socket(listener, options, &error);
    if (failed) {
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: %s: %s", listener->text, failed,
                       wr_system_strerror(error));
        close_listener(listener);
        return false;
    }
    set_name(listener);
    return true;
}

/* ---- The epoll set --------------------------------------------------------------------------- */

static bool control(const struct listeners *listeners, const struct listener *listener, int operation)
{
    bool reports = listeners->is_accepting || listener->kind != READY_CONNECTIONS;
    struct epoll_event event = {.events = reports ? EPOLLIN : 0, .data.ptr = (void *)listener};
    return epoll_ctl(listeners->epoll.fd, operation, listener->own.fd, &event) == 0;
}

bool wr_listeners_begin(struct listeners *listeners, weir_outcome *outcome)
{
    bool has_epoll = wr_own_fd_set(&listeners->epoll, wr_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC)));
    listeners->is_accepting = true;
    listeners->has_lost = false;
    return has_epoll || wr_system_fail_by(outcome, "epoll_create1", errno);
}

bool wr_listeners_open(struct listeners *listeners, weir_outcome *outcome)
{
    for (size_t i = 0; i < listeners->count; i++) {
        if (!open_listener(&listeners->all[i], &listeners->options, outcome))
            return false;
        if (!control(listeners, &listeners->all[i], EPOLL_CTL_ADD))
            return wr_system_fail_by(outcome, "epoll_ctl", errno);
    }
    return true;
}

void wr_listeners_log(const struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        listeners->host->log(listeners->host, WEIR_LOG_INFO, "listens at %s", listeners->all[i].name);
}

void wr_listeners_close(struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        close_listener(&listeners->all[i]);
    if (!listeners->has_lost)
        wr_own_fd_close(&listeners->epoll);
    listeners->epoll.fd = -1;
}

void wr_listeners_abandon(const struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        wr_own_fd_abandon(&listeners->all[i].own);
    wr_own_fd_abandon(&listeners->epoll);
}

void wr_listeners_accept(struct listeners *listeners, bool accepts)
{
    if (accepts == listeners->is_accepting)
        return;
    listeners->is_accepting = accepts;
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->all[i].kind == READY_CONNECTIONS)
            control(listeners, &listeners->all[i], EPOLL_CTL_MOD);
}

/* An epoll set is known by what is registered in it. */
bool wr_listeners_find_loss(struct listeners *listeners, weir_outcome *outcome)
{
    for (size_t i = 0; i < listeners->count; i++) {
        const struct listener *listener = &listeners->all[i];
        if (wr_own_fd_is_open(&listener->own) && control(listeners, listener, EPOLL_CTL_MOD))
            continue;
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: the program has closed its descriptors",
                       listener->name);
        listeners->has_lost = true;
        return true;
    }
    return false;
}

/* One that the program has closed may have the number of a socket of its own by now. */
void wr_listener_close_connection(int epoll_fd, struct wr_own_fd *connection)
{
    if (wr_own_fd_is_open(connection))
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    wr_own_fd_close(connection);
}

/* ---- Connections ----------------------------------------------------------------------------- */

void wr_listener_format(const struct sockaddr_storage *address, char *out, size_t room)
{
    char text[LISTENING_TEXT];
    listening_format(address, text);
    snprintf(out, room, "tcp://%s", text);
}

void wr_listener_note_short(const struct listener *listener, const weir_host *host, struct accepting *accepting)
{
    if (!accepting->logged_short)
        host->log(host, WEIR_LOG_WARNING, "%s: a connection cannot be accepted yet: %s", listener->name,
                  wr_system_strerror(errno));
    accepting->is_short = accepting->logged_short = true;
}

void wr_listener_note_full(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                           size_t count)
{
    if (!accepting->logged_full)
        host->log(host, WEIR_LOG_WARNING,
                  "%s: %zu connections are open, as many as the option connections allows; others wait",
                  listener->name, count);
    accepting->logged_full = true;
}

int wr_listener_accept(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                       struct sockaddr_storage *from, bool *again)
{
    socklen_t length = sizeof *from;
    memset(from, 0, sizeof *from);
    int fd = wr_fd_above_stdio(
        accept4(listener->own.fd, (struct sockaddr *)from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        wr_listener_note_short(listener, host, accepting);
    *again = fd < 0 && (errno == ECONNABORTED || errno == EINTR);
    return fd;
}

/* ---- What the kernel has dropped ------------------------------------------------------------- */

static void log_drops(const struct listener *listener, const weir_host *host, uint32_t drops)
{
    int buffer = 0;
    socklen_t length = sizeof buffer;
    getsockopt(listener->own.fd, SOL_SOCKET, SO_RCVBUF, &buffer, &length);
    host->log(
        host, WEIR_LOG_WARNING,
        "%s: the kernel has dropped %u datagrams, which no ledger counts: they came faster than they could "
        "be added, and the receive buffer of %d bytes was full (see recv_buffer and net.core.rmem_max); "
        "further ones are only counted",
        listener->name, drops, buffer);
}

/* The same number as SO_RXQ_OVFL's, which comes with the next datagram only: so drops after the last one would
 * not be counted. */
void wr_listener_count_drops(struct listener *listener, const weir_host *host)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof info;
    if (getsockopt(listener->own.fd, SOL_SOCKET, SO_MEMINFO, info, &length) != 0)
        return;
    uint32_t drops = info[SK_MEMINFO_DROPS] - listener->seen_drops;
    if (!drops)
        return;
    host->count(host, "lost_in_kernel", drops);
    if (!listener->kernel_drops)
        log_drops(listener, host, drops);
    listener->kernel_drops += drops;
    listener->seen_drops = info[SK_MEMINFO_DROPS];
}
