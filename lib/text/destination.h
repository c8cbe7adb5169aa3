/* destination: a text that names what a socket is connected to or listens at, like udp://127.0.0.1:8125 or
 * unix:/run/metrics.sock. */
#ifndef WR_DESTINATION_H
#define WR_DESTINATION_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/host.h>

struct wr_destination {
    unsigned kind;    /* WEIR_CONNECT_TCP and so on: one of them */
    const char *peer; /* for messages: what follows the scheme; a part of the text */
    const char *path; /* of a Unix socket; a part of the text */
    char host[256];   /* of UDP and TCP: a name or an address, without brackets */
    char port[6];
};

/* What is allowed. */
struct wr_destination_rules {
    const char *forms; /* for messages; NULL: those of the kinds */
    unsigned kinds;    /* WEIR_CONNECT_TCP and so on */
    int first_port;    /* 0: also port 0, for a port that the system chooses */
};

/* `text` must be valid as long as the destination. Returns false with the problem written, for people, without
 * a user or a password. */
bool wr_destination_read(struct wr_destination *to, const struct wr_destination_rules *rules, const char *text,
                         char *problem, size_t room);

/* Whether it takes datagrams; otherwise it takes a stream of bytes. */
static inline bool wr_destination_has_datagrams(const struct wr_destination *to)
{
    return to->kind & (WEIR_CONNECT_UDP | WEIR_CONNECT_UNIX_DGRAM);
}

/* Returns its kind, with WEIR_CONNECT_NAME and WEIR_CONNECT_LOCAL if they apply. */
unsigned wr_destination_describe(const struct wr_destination *to);

#endif
