/* sockets: the descriptors that libcurl has, as far as they can be known.
 *
 * A program that closes all descriptors, as daemons do, may have given their numbers to somebody else: each is
 * remembered with what it was when it was opened. */
#ifndef HTTP_SOCKETS_H
#define HTTP_SOCKETS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SOCKETS_MOST = 16 };

struct sockets_held {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

struct sockets {
    struct sockets_held connections[SOCKETS_MOST];
    struct sockets_held wakeup_fds[2]; /* those by which libcurl wakes itself, where they can be found */
    struct sockets_held canary;        /* unused: when it is gone, so are those that nobody knows of */
};

/* None are held. */
void sockets_init(struct sockets *sockets);

/* For a new handle; false: no descriptors can be had. */
bool sockets_open(struct sockets *sockets, CURLM *multi);

/* After libcurl has closed its own. */
void sockets_close(struct sockets *sockets);

/* Has libcurl open and close its connections by way of these. */
void sockets_follow(struct sockets *sockets, CURL *easy);

/* Whether there is a connection. */
bool sockets_have_connection(const struct sockets *sockets);

/* Whether all that are held are still what they were. */
bool sockets_are_ours(const struct sockets *sockets);

/* [fork] Closes all, by close(2). */
void sockets_abandon(const struct sockets *sockets);

#endif
