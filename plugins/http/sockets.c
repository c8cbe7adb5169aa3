#include "sockets.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wakeup_fds.h"

void wr_sockets_init(struct sockets *sockets)
{
    sockets->canary.fd = sockets->wakeup_fds[0].fd = sockets->wakeup_fds[1].fd = -1;
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        sockets->connections[i].fd = -1;
}

bool wr_sockets_open(struct sockets *sockets, CURLM *multi)
{
    int fds[2];
    wr_wakeup_fds_find(multi, fds);
    for (int i = 0; i < 2; i++)
        wr_own_fd_set(&sockets->wakeup_fds[i], fds[i]);
    return wr_own_fd_set(&sockets->canary, wr_fd_above_stdio(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
}

void wr_sockets_close(struct sockets *sockets)
{
    wr_own_fd_close(&sockets->canary);
    wr_sockets_init(sockets);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static curl_socket_t open_connection(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct sockets *sockets = ctx;
    (void)purpose;
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (sockets->connections[i].fd >= 0)
            continue;
        int fd =
            wr_fd_above_stdio(socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
        return wr_own_fd_set(&sockets->connections[i], fd) ? fd : CURL_SOCKET_BAD;
    }
    errno = EMFILE;
    return CURL_SOCKET_BAD;
}

static int close_connection(void *ctx, curl_socket_t fd)
{
    struct sockets *sockets = ctx;
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        if (sockets->connections[i].fd == fd)
            sockets->connections[i].fd = -1;
    return close(fd);
}

void wr_sockets_attach(struct sockets *sockets, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_connection);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, sockets);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_connection);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, sockets);
}

bool wr_sockets_have_connection(const struct sockets *sockets)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        if (sockets->connections[i].fd >= 0)
            return true;
    return false;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static bool is_ours(const struct wr_own_fd *own)
{
    return own->fd < 0 || wr_own_fd_is_open(own);
}

void wr_sockets_forget_closed(struct sockets *sockets, int active)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        if (sockets->connections[i].fd != active && !is_ours(&sockets->connections[i]))
            sockets->connections[i].fd = -1;
}

bool wr_sockets_are_ours(const struct sockets *sockets)
{
    if (!is_ours(&sockets->canary) || !is_ours(&sockets->wakeup_fds[0]) || !is_ours(&sockets->wakeup_fds[1]))
        return false;
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        if (!is_ours(&sockets->connections[i]))
            return false;
    return true;
}

void wr_sockets_abandon(const struct sockets *sockets)
{
    wr_own_fd_abandon(&sockets->canary);
    wr_own_fd_abandon(&sockets->wakeup_fds[0]);
    wr_own_fd_abandon(&sockets->wakeup_fds[1]);
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        wr_own_fd_abandon(&sockets->connections[i]);
}
