/* address: the parts of a URL, and its text for messages: without user, password and parameters, which may
 * be secret. */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

struct address {
    char host[256];
    char peer[264];    /* host:port */
    char display[100]; /* scheme://host:port/path, truncated */
    bool has_user;
    bool is_http; /* or https */
};

/* Returns false if it is not a URL with a host. */
bool wr_address_parse(struct address *address, const char *url);

/* Writes a URL's text for messages; "" if it is not a URL. */
void wr_address_format(const char *url, char *out, size_t room);

#endif
