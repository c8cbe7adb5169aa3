#include "handler/connecting.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/clock.h"
#include "os/fd.h"
#include "text/common.h"
#include "text/destination.h"
#include "text/error.h"

enum {
    BACKLOG_MS = 10, /* interval of attempts while the queue of a listening Unix socket is full */
    ALL_KINDS = WEIR_CONNECT_TCP | WEIR_CONNECT_UDP | WEIR_CONNECT_UNIX | WEIR_CONNECT_UNIX_DGRAM,
};

/* One call. */
struct call {
    const weir_host *host;
    wr_connecting_wait *wait;
    struct wr_own_fd *socket;
    struct wr_destination to;
    unsigned first;
    int error; /* of the last attempt; 0: there was none. ECANCELED: a stop */
};

static struct wr_destination_rules rules_of(uint32_t kinds)
{
    kinds &= ALL_KINDS;
    return (struct wr_destination_rules){.kinds = kinds ? kinds : ALL_KINDS, .first_port = 1};
}

uint32_t wr_connecting_check(const weir_host *host, const char *option, const char *to, uint32_t kinds)
{
    struct wr_destination_rules rules = rules_of(kinds);
    struct wr_destination destination;
    char problem[WR_ERROR_ROOM];
    if (wr_destination_read(&destination, &rules, to, problem, sizeof problem))
        return wr_destination_describe(&destination);
    host->refuse(host, option, "%s", problem);
    return 0;
}

/* ---- One address ----------------------------------------------------------------------------- */

static int take_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/* Waits until a descriptor, or none, has an event. Returns 0 or errno. The program may have closed the socket
 * meanwhile, and reused its number. */
static int await(const struct call *call, struct pollfd *entry, int64_t until_ns)
{
    for (;;) {
        int64_t left_ns = until_ns - wr_clock_monotonic_ns();
        int64_t left_ms = left_ns > 0 ? (left_ns - 1) / WR_NS_PER_MS + 1 : 0;
        unsigned woke = call->wait(call->host, entry, entry ? 1 : 0, left_ms);
        if (!wr_own_fd_is_open(call->socket))
            return EBADF;
        if (woke & WEIR_WAIT_READY)
            return 0;
        if (woke & WEIR_WAIT_STOP)
            return ECANCELED;
        if (left_ns <= 0)
            return ETIMEDOUT;
    }
}

/* The queue of a listening Unix socket is full: no descriptor reports when it is not. Returns 0: try again. */
static int await_backlog(const struct call *call, int64_t until_ns)
{
    int64_t now_ns = wr_clock_monotonic_ns(), again_ns = now_ns + BACKLOG_MS * WR_NS_PER_MS;
    if (now_ns >= until_ns)
        return ETIMEDOUT;
    int error = await(call, NULL, again_ns < until_ns ? again_ns : until_ns);
    return error == ETIMEDOUT ? 0 : error;
}

static int connect_socket(const struct call *call, const struct sockaddr *address, socklen_t length,
                          int64_t until_ns)
{
    const int fd = call->socket->fd;
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    while (connect(fd, address, length) != 0) {
        int error = errno == EAGAIN ? await_backlog(call, until_ns) : errno;
        if (error == EINPROGRESS) {
            error = await(call, &entry, until_ns);
            return error ? error : take_error(fd);
        }
        if (error && error != EINTR)
            return error;
    }
    return 0;
}

/* What is sent goes out as soon as it is there, and a peer that has vanished is noticed. */
static void set_tcp_options(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static bool try_address(struct call *call, int family, const struct sockaddr *address, socklen_t length,
                        int64_t until_ns)
{
    int type = wr_destination_has_datagrams(&call->to) ? SOCK_DGRAM : SOCK_STREAM;
    int fd = wr_fd_above_stdio(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!wr_own_fd_set(call->socket, fd)) {
        call->error = errno;
        return false;
    }
    call->error = connect_socket(call, address, length, until_ns);
    if (call->error && wr_own_fd_is_open(call->socket))
        close(fd); /* and a child that is forked before that finds it */
    else if (!call->error && call->to.kind == WEIR_CONNECT_TCP)
        set_tcp_options(fd);
    return !call->error;
}

static bool connect_to_path(struct call *call, int64_t until_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, call->to.path, sizeof address.sun_path - 1);
    return try_address(call, AF_UNIX, (struct sockaddr *)&address, sizeof address, until_ns);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Not gai_strerror: it takes a lock of the C library for translations. */
static const char *describe_resolver_error(int code)
{
    switch (code) {
    case EAI_NONAME: return "no such host";
    case EAI_AGAIN: return "the name service is not available";
    case EAI_MEMORY: return "out of memory";
    case EAI_SYSTEM: return wr_error_system_text(errno);
    default: return "the name service has failed";
    }
}

/* An address needs no name service, and does not wait. */
static int resolve(const struct wr_destination *to, struct addrinfo **list)
{
    bool is_name = wr_destination_describe(to) & WEIR_CONNECT_NAME;
    const struct addrinfo hints = {
        .ai_flags = is_name ? AI_NUMERICSERV : AI_NUMERICSERV | AI_NUMERICHOST,
        .ai_socktype = wr_destination_has_datagrams(to) ? SOCK_DGRAM : SOCK_STREAM,
    };
    return getaddrinfo(to->host, to->port, &hints, list);
}

/* Tries each address once. Each gets its part of the time. */
static bool connect_to_any(struct call *call, const struct addrinfo *list, int64_t until_ns)
{
    unsigned count = 0;
    for (const struct addrinfo *at = list; at; at = at->ai_next)
        count++;
    for (unsigned i = 0; i < count; i++) {
        const struct addrinfo *at = list;
        for (unsigned skip = (call->first % count + i) % count; skip; skip--)
            at = at->ai_next;
        int64_t now_ns = wr_clock_monotonic_ns(), part_ns = (until_ns - now_ns) / (count - i);
        if (try_address(call, at->ai_family, at->ai_addr, at->ai_addrlen, now_ns + part_ns))
            return true;
        if (call->error == ECANCELED)
            return false;
    }
    return false;
}

static bool connect_to_host(struct call *call, int64_t until_ns, char *reason, size_t room)
{
    struct addrinfo *list = NULL;
    int code = resolve(&call->to, &list);
    if (code) {
        snprintf(reason, room, "resolve %s: %s", call->to.peer, describe_resolver_error(code));
        return false;
    }
    bool connected = connect_to_any(call, list, until_ns);
    freeaddrinfo(list);
    return connected;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void describe_failure(const struct call *call, int64_t timeout_ms, char *reason, size_t room)
{
    const char *peer = call->to.peer;
    if (call->error == ECANCELED)
        snprintf(reason, room, "connect %s: stopped", peer);
    else if (call->error == ETIMEDOUT)
        snprintf(reason, room, "connect %s: no connection within %lld ms", peer, (long long)timeout_ms);
    else if (call->error)
        snprintf(reason, room, "connect %s: %s", peer, wr_error_system_text(call->error));
}

int wr_connecting_connect(struct wr_connecting *connecting, const weir_host *host, wr_connecting_wait *wait,
                          const weir_connect *what, char *reason, size_t room)
{
    weir_connect whole = {0};
    char problem[WR_ERROR_ROOM];
    memcpy(&whole, what, what->size < sizeof whole ? what->size : sizeof whole);
    struct call call = {.host = host, .wait = wait, .socket = &connecting->last, .first = whole.first};
    struct wr_destination_rules rules = rules_of(whole.kinds);
    if (!wr_destination_read(&call.to, &rules, whole.to, problem, sizeof problem)) {
        snprintf(reason, room, "connect: %s", problem);
        return -1;
    }
    if (!wait) {
        snprintf(reason, room, "connect %s: this callback must not wait", call.to.peer);
        return -1;
    }
    int64_t until_ns = wr_clock_deadline_ns(whole.timeout_ms > 0 ? whole.timeout_ms : 0);
    if (call.to.path ? connect_to_path(&call, until_ns) : connect_to_host(&call, until_ns, reason, room))
        return connecting->last.fd;
    describe_failure(&call, whole.timeout_ms, reason, room);
    return -1;
}

void wr_connecting_abandon(const struct wr_connecting *connecting)
{
    if (wr_own_fd_is_open(&connecting->last))
        close(connecting->last.fd);
}
