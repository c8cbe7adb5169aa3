#include "text/destination.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const struct scheme {
    const char *text, *form;
    unsigned kind;
} schemes[] = {
    {"udp://", "udp://HOST:PORT", WEIR_CONNECT_UDP},
    {"tcp://", "tcp://HOST:PORT", WEIR_CONNECT_TCP},
    {"unix:", "unix:/PATH", WEIR_CONNECT_UNIX},
    {"unix-dgram:", "unix-dgram:/PATH", WEIR_CONNECT_UNIX_DGRAM},
};

enum { SCHEMES = sizeof schemes / sizeof *schemes };

static const struct scheme *find_scheme(const char *text, unsigned kinds)
{
    for (size_t i = 0; i < SCHEMES; i++)
        if (kinds & schemes[i].kind && strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

static const char *set_path(struct wr_destination *to, const char *path)
{
    enum { ROOM = sizeof((struct sockaddr_un *)0)->sun_path };
    _Static_assert(ROOM == 108, "the message names it");
    to->path = path;
    if (*path != '/')
        return "has no absolute path";
    return strlen(path) < ROOM ? NULL : "has a path of more than 107 bytes";
}

static const char *set_port(struct wr_destination *to, const char *port, int first)
{
    size_t digits = strspn(port, "0123456789");
    if (!*port)
        return "has no port";
    if (port[digits] || digits >= sizeof to->port || atoi(port) < first || atoi(port) > 65535)
        return first ? "has something other than a port, 1..65535, at its end"
                     : "has something other than a port, 0..65535, at its end";
    memcpy(to->port, port, digits + 1);
    return NULL;
}

/* A name or an IPv4 address; in brackets an IPv6 address, with a zone if it needs one. */
static const char *set_host(struct wr_destination *to, const char *text, size_t length)
{
    if (*text == '[') {
        if (length < 3 || text[length - 1] != ']')
            return "has a bracket that is not closed before the port";
        text++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return "has an IPv6 address without brackets, which look like [::1]";
    }
    if (!length)
        return "has no host";
    if (length >= sizeof to->host)
        return "has a host of more than 255 bytes";
    memcpy(to->host, text, length);
    return to->host[strcspn(to->host, " \t\r\n[]?#/@")] ? "has a character in its host that no host has" : NULL;
}

static const char *set_address(struct wr_destination *to, const char *text, int first_port)
{
    if (strchr(text, '/'))
        return "has a path, which udp and tcp do not have";
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    if (!colon || (bracket && colon < bracket))
        return "has no port";
    const char *problem = set_host(to, text, (size_t)(colon - text));
    return problem ? problem : set_port(to, colon + 1, first_port);
}

static const char *set_all(struct wr_destination *to, const struct wr_destination_rules *rules,
                           const char *text)
{
    const struct scheme *scheme = find_scheme(text, rules->kinds);
    *to = (struct wr_destination){0};
    if (!scheme)
        return "has no scheme that is known";
    to->kind = scheme->kind;
    to->peer = text + strlen(scheme->text);
    if (to->kind & (WEIR_CONNECT_UNIX | WEIR_CONNECT_UNIX_DGRAM))
        return set_path(to, to->peer);
    return set_address(to, to->peer, rules->first_port);
}

static void list_forms(char *out, size_t room, unsigned kinds)
{
    size_t length = 0;
    *out = '\0';
    for (size_t i = 0; i < SCHEMES && length < room; i++)
        if (kinds & schemes[i].kind)
            length +=
                (size_t)snprintf(out + length, room - length, "%s%s", length ? ", " : "", schemes[i].form);
}

bool wr_destination_read(struct wr_destination *to, const struct wr_destination_rules *rules, const char *text,
                         char *problem, size_t room)
{
    char forms[80];
    const char *what = set_all(to, rules, text);
    if (!what)
        return true;
    list_forms(forms, sizeof forms, rules->kinds);
    const char *allowed = rules->forms ? rules->forms : forms;
    if (!to->path && strchr(text, '@')) /* what is before it may be a password */
        snprintf(problem, room, "the value names a user; allowed: %s", allowed);
    else
        snprintf(problem, room, "\"%.200s\" %s; allowed: %s", text, what, allowed);
    return false;
}

unsigned wr_destination_describe(const struct wr_destination *to)
{
    struct in_addr v4;
    if (to->path)
        return to->kind | WEIR_CONNECT_LOCAL;
    if (strchr(to->host, ':'))
        return strcmp(to->host, "::1") == 0 ? to->kind | WEIR_CONNECT_LOCAL : to->kind;
    if (inet_aton(to->host, &v4)) /* also 127.1: what needs no name service */
        return ntohl(v4.s_addr) >> 24 == 127 ? to->kind | WEIR_CONNECT_LOCAL : to->kind;
    return to->kind | WEIR_CONNECT_NAME | (strcmp(to->host, "localhost") == 0 ? WEIR_CONNECT_LOCAL : 0u);
}
