/* destination: an address of a socket in an option, like udp://127.0.0.1:8125 or unix:/run/metrics.sock. */
#ifndef SOCKET_DESTINATION_H
#define SOCKET_DESTINATION_H

#include <stdbool.h>

#include <weir/host.h>

enum destination_kind {
    DESTINATION_UDP,
    DESTINATION_TCP,
    DESTINATION_UNIX,
    DESTINATION_UNIX_DGRAM,
};

struct destination {
    enum destination_kind kind;
    const char *peer; /* for messages: what follows the scheme; a part of the option's text */
    const char *path; /* of a Unix socket; a part of the option's text */
    char host[256];   /* of UDP and TCP: a name or an address, without brackets */
    char port[6];
};

/* What an option allows. */
struct destination_rules {
    const char *option;  /* its name */
    const char *allowed; /* the forms, for messages */
    unsigned kinds;      /* a bit for each enum destination_kind: 1u << DESTINATION_UDP and so on */
    int first_port;      /* 0: also port 0, for a port that the system chooses */
};

/* Parses the option. `text` must be valid as long as the destination. Returns false after host->refuse. */
bool wr_destination_parse(struct destination *to, const weir_host *host, const struct destination_rules *rules,
                          const char *text);

/* Whether it takes datagrams; otherwise it takes a stream of bytes. */
static inline bool wr_destination_has_datagrams(const struct destination *to)
{
    return to->kind == DESTINATION_UDP || to->kind == DESTINATION_UNIX_DGRAM;
}

#endif
