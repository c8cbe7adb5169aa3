/* verdict: what a reply means for the values that were sent, and how it is said. */
#ifndef HTTP_VERDICT_H
#define HTTP_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"

enum verdict_kind {
    VERDICT_DELIVERED,
    VERDICT_LATER,     /* try again after a pause */
    VERDICT_TOO_LARGE, /* try again with less */
    VERDICT_REFUSED,   /* for good */
};

/* A pause as long as the core allows: for what only a changed configuration, or its owner, can put right. */
#define VERDICT_LONGEST INT64_MAX

struct verdict {
    enum verdict_kind kind;
    int64_t retry_after_ms; /* LATER; 0: not said */
    long status;            /* 0: there was no answer */
    char words[256];
};

/* What is said along with it. */
struct verdict_site {
    const char *method, *url, *host; /* as they may be shown */
    const char *peer;                /* host:port that is connected to: the proxy's where there is one */
    int64_t timeout_ms, connect_timeout_ms;
    const char *const *secrets; /* that no reply may bring into a message; ends with NULL */
};

/* May write into the reply's text. */
void verdict_find(const struct verdict_site *site, struct client_reply *reply, struct verdict *verdict);

#endif
