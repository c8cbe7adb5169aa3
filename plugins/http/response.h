/* response: what a reply means for the values that were sent, and how it is said. */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"

enum response_kind {
    RESPONSE_DELIVERED,
    RESPONSE_LATER,     /* try again after a pause */
    RESPONSE_TOO_LARGE, /* try again with less */
    RESPONSE_REFUSED,   /* for good */
};

/* A pause as long as the core allows: for what only a changed configuration, or its owner, can put right. */
#define RESPONSE_LONGEST INT64_MAX

struct response {
    enum response_kind kind;
    int64_t retry_after_ms; /* LATER; 0: not said */
    long status;            /* 0: there was no answer */
    char words[256];
};

/* What is said along with it. */
struct response_site {
    const char *method, *url, *host; /* as they may be shown */
    const char *peer;                /* host:port that is connected to: the proxy's where there is one */
    int64_t timeout_ms, connect_timeout_ms;
    const char *const *secrets; /* that no reply may bring into a message; ends with NULL */
};

/* May write into the reply's text. */
void response_find(const struct response_site *site, struct client_reply *reply, struct response *response);

#endif
