/* address: what a URL says, and how it is shown: without user, password and parameters, which may be secret. */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

struct address {
    char host[256];
    char peer[264];  /* host:port */
    char shown[100]; /* scheme://host:port/path, cut where it is long */
    bool has_user;
    bool is_http; /* or https */
};

/* false: it is no URL with a host. */
bool address_parse(struct address *address, const char *url);

/* Writes any URL as it may be shown: "" if it is none. */
void address_show(const char *url, char *out, size_t room);

#endif
