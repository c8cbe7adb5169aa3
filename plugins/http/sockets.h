/* sockets: tracks the descriptors that libcurl uses, as far as they can be known. */
#ifndef HTTP_SOCKETS_H
#define HTTP_SOCKETS_H

#include <curl/curl.h>
#include <stdbool.h>

#include "../system.h"

enum { SOCKETS_MAX = 16 };

struct sockets {
    struct wr_own_fd connections[SOCKETS_MAX];
    struct wr_own_fd wakeup_fds[2]; /* libcurl's wakeup descriptors, if they were found */
    struct wr_own_fd canary;        /* unused: if it was closed, so were libcurl's unknown descriptors */
};

/* No descriptors. */
void wr_sockets_init(struct sockets *sockets);

/* Records the descriptors of a new handle. Returns false if no descriptor is available. */
bool wr_sockets_open(struct sockets *sockets, CURLM *multi);

/* Call after libcurl has closed its own. */
void wr_sockets_close(struct sockets *sockets);

/* Sets callbacks so that libcurl's connections are recorded. */
void wr_sockets_attach(struct sockets *sockets, CURL *easy);

bool wr_sockets_have_connection(const struct sockets *sockets);

/* Forgets connections whose descriptors are closed, except for `active`. libcurl reports the end of a
 * connection only once it was made: one that timed out, or lost against another address, it closes by itself.
 */
void wr_sockets_forget_closed(struct sockets *sockets, int active);

/* Whether all recorded descriptors still refer to the same files. */
bool wr_sockets_are_ours(const struct sockets *sockets);

/* [fork] Closes all recorded descriptors with close(2). */
void wr_sockets_abandon(const struct sockets *sockets);

#endif
