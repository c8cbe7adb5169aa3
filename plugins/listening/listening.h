/* listening: the address to listen on, and its socket. */
#ifndef WEIR_PLUGINS_LISTENING_H
#define WEIR_PLUGINS_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct listening {
    struct sockaddr_storage address;
    socklen_t length;
    bool is_loopback;
    const char *path; /* of a Unix socket, which has no address here; NULL: it is none. Borrowed */
};

enum { LISTENING_TEXT = 64 };

/* Parses "127.0.0.1:9464", "[::1]:9464" or "localhost:9464". Returns false if it is none of these. */
bool listening_parse(struct listening *listening, const char *text);

/* The same, and "unix:/PATH". */
bool listening_parse_any(struct listening *listening, const char *text);

/* Not for a Unix socket. Returns a bound socket that does not yet listen, or -1 with errno set. */
int listening_bind(const struct listening *listening);

/* Writes the address, as listening_parse reads it. Not for a Unix socket. */
void listening_format(const struct listening *listening, char text[LISTENING_TEXT]);

/* Writes the address of a bound socket, with its port even if any was asked for; "" if it has none. */
void listening_format_bound(int fd, char text[LISTENING_TEXT]);

#endif
