/* posting: POST requests with libcurl, over one connection, for peers that send to a server. */
#ifndef BENCH_POSTING_H
#define BENCH_POSTING_H

#include <stddef.h>

enum { POSTING_BATCH = 5000 }; /* values in a request */

void posting_open(const char *url, const char *content_type);

/* Sends a body. The program fails unless the server has taken it. */
void posting_send(const void *body, size_t length);
void posting_close(void);

#endif
