/* server: the HTTP server. It has a thread of its own, and each connection serves one request and lives as
 * long as `timeout` at most, so that scrapers that read slowly or send nothing do not keep others out. */
#ifndef PROMETHEUS_SERVER_H
#define PROMETHEUS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "state.h"

struct server;

struct server_settings {
    const char *path;
    unsigned connection_limit;
    int64_t timeout_ns;
};

/* [worker] Starts to serve what a listening socket gets, and takes the socket over. Its thread has the caller's
 * signal mask. Returns NULL with errno set, and the socket closed. */
struct server *server_start(struct state *state, const struct server_settings *settings, int fd);

/* [worker] Whether the program has closed descriptors of the server, and may use their numbers: it serves no
 * one then, and has to be stopped. */
bool server_is_lost(const struct server *server);

/* [worker] Leaves descriptors alone that the program has closed. */
void server_stop(struct server *server);

/* [fork] Closes the child's copies of all descriptors, and does nothing else. */
void server_abandon(const struct server *server);

#endif
