#include "listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "../system.h"

/* ---- Parsing --------------------------------------------------------------------------------- */

static bool parse_port(const char *text, in_port_t *port)
{
    size_t length = strlen(text);
    if (!length || length > 5 || strspn(text, "0123456789") != length)
        return false;
    unsigned long number = strtoul(text, NULL, 10);
    *port = htons((uint16_t)number);
    return number <= 65535;
}

bool listening_set(struct listening *listening, const char *host, in_port_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
    *listening = (struct listening){0};
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4.sin_addr) == 1) {
        memcpy(&listening->address, &v4, sizeof v4);
        listening->length = sizeof v4;
        listening->is_loopback = ntohl(v4.sin_addr.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
        return false;
    memcpy(&listening->address, &v6, sizeof v6);
    listening->length = sizeof v6;
    listening->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    return true;
}

bool listening_parse(struct listening *listening, const char *text)
{
    char host[LISTENING_TEXT];
    in_port_t port;
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host || !parse_port(colon + 1, &port))
        return false;
    size_t length = (size_t)(colon - text);
    memcpy(host, text, length);
    host[length] = '\0';
    bool is_v6 = *host == '[' && host[length - 1] == ']';
    if (is_v6)
        host[length - 1] = '\0';
    return listening_set(listening, host + is_v6, port) && (listening->address.ss_family == AF_INET6) == is_v6;
}

bool listening_parse_any(struct listening *listening, const char *text)
{
    static const char scheme[] = "unix:";
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return listening_parse(listening, text);
    const char *path = text + sizeof scheme - 1;
    *listening = (struct listening){.is_loopback = true, .path = path};
    return *path == '/' && strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path;
}

/* ---- The socket ------------------------------------------------------------------------------ */

/* 192.0.2.1 and ::192.0.2.1 may be listened at separately. Connections of an earlier process that are still
 * being closed do not matter. */
bool listening_bind_socket(const struct listening *listening, int fd, int type)
{
    int on = 1;
    return (type != SOCK_STREAM || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) &&
           (listening->address.ss_family != AF_INET6 ||
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
           bind(fd, (const struct sockaddr *)&listening->address, listening->length) == 0;
}

int listening_bind(const struct listening *listening)
{
    int fd =
        wr_fd_above_stdio(socket(listening->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0 || listening_bind_socket(listening, fd, SOCK_STREAM))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

void listening_format(const struct sockaddr_storage *address, char text[LISTENING_TEXT])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
        snprintf(text, LISTENING_TEXT, "[%s]:%d", host, ntohs(v6.sin6_port));
        return;
    }
    memcpy(&v4, address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    snprintf(text, LISTENING_TEXT, "%s:%d", host, ntohs(v4.sin_port));
}

void listening_format_bound(int fd, char text[LISTENING_TEXT])
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    *text = '\0';
    if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
        listening_format(&address, text);
}
