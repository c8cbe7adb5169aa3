/* listening: the address to listen on, and its socket. */
#ifndef WEIR_PLUGINS_LISTENING_H
#define WEIR_PLUGINS_LISTENING_H

#include <netinet/in.h>
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

/* Sets the address: of an IP address, without brackets, or of localhost. Other names are not looked up: that
 * could wait, and a name may lead to any address. Returns false if it is none. */
bool listening_set(struct listening *listening, const char *host, in_port_t port);

/* Parses "127.0.0.1:9464", "[::1]:9464" or "localhost:9464". Returns false if it is none of these. */
bool listening_parse(struct listening *listening, const char *text);

/* The same, and "unix:/PATH". */
bool listening_parse_any(struct listening *listening, const char *text);

/* Not for a Unix socket. Returns a bound socket that does not yet listen, or -1 with errno set. */
int listening_bind(const struct listening *listening);

/* The same for a socket of this type. Returns false with errno set. */
bool listening_bind_socket(const struct listening *listening, int fd, int type);

/* Writes an address of IP, as listening_parse reads it. */
void listening_format(const struct sockaddr_storage *address, char text[LISTENING_TEXT]);

/* Writes the address of a bound socket, with its port even if any was asked for; "" if it has none. */
void listening_format_bound(int fd, char text[LISTENING_TEXT]);

#endif
