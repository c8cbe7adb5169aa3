#include "destination.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const struct scheme {
    const char *text;
    enum destination_kind kind;
} schemes[] = {
    {"udp://", DESTINATION_UDP},
    {"tcp://", DESTINATION_TCP},
    {"unix:", DESTINATION_UNIX},
    {"unix-dgram:", DESTINATION_UNIX_DGRAM},
};

static const struct scheme *find_scheme(const char *text, unsigned kinds)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (kinds & 1u << schemes[i].kind && strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

static const char *set_path(struct destination *to, const char *path)
{
    enum { ROOM = sizeof((struct sockaddr_un *)0)->sun_path };
    _Static_assert(ROOM == 108, "the message names it");
    to->path = path;
    if (*path != '/')
        return "has no absolute path";
    return strlen(path) < ROOM ? NULL : "has a path of more than 107 bytes";
}

static const char *set_port(struct destination *to, const char *port, int first)
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
static const char *set_host(struct destination *to, const char *text, size_t length)
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
    return to->host[strcspn(to->host, " \t\r\n[]?#/")] ? "has a character in its host that no host has" : NULL;
}

static const char *set_address(struct destination *to, const char *text, int first_port)
{
    if (strchr(text, '/'))
        return "has a path, which udp and tcp do not have";
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    if (!colon || (bracket && colon < bracket))
        return "has no port";
    const char *problem = set_host(to, text, (size_t)(colon - text));
    return problem ? problem : set_port(to, colon + 1, first_port);
}

/* A user or password is not repeated in the message. */
bool wr_destination_parse(struct destination *to, const weir_host *host, const struct destination_rules *rules,
                          const char *text)
{
    const struct scheme *scheme = find_scheme(text, rules->kinds);
    const char *problem = "has no scheme that is known";
    *to = (struct destination){0};
    if (scheme) {
        to->kind = scheme->kind;
        to->peer = text + strlen(scheme->text);
        bool has_path = to->kind == DESTINATION_UNIX || to->kind == DESTINATION_UNIX_DGRAM;
        if (!has_path && strchr(to->peer, '@')) {
            host->refuse(host, rules->option, "the value names a user; allowed: %s", rules->allowed);
            return false;
        }
        problem = has_path ? set_path(to, to->peer) : set_address(to, to->peer, rules->first_port);
    }
    if (problem)
        host->refuse(host, rules->option, "\"%.200s\" %s; allowed: %s", text, problem, rules->allowed);
    return !problem;
}
