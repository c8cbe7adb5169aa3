/* settings: the options of the handler type, what in them does not go together, and what they come to. */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include <stdbool.h>

#include <weir/handler.h>

#include "address.h"
#include "client.h"

enum { SETTINGS_GZIP = 1 }; /* of compress */

/* As the core fills it. */
struct settings_options {
    const char *url;
    int64_t method;
    weir_map headers;
    const char *username, *password, *bearer_token;
    const char *ca_file, *cert_file, *key_file;
    bool verify;
    int64_t compress;
    int64_t timeout_ns, connect_timeout_ns;
    const char *proxy;
};

extern const weir_option settings_rows[];

/* What requests need. */
struct settings {
    struct client_settings client; /* its headers are the settings' own */
    struct address address, proxy; /* proxy.host "": none */
    const char **secrets;          /* that no message may hold; ends with NULL */
    char *url_password;            /* one of them; NULL: none */
};

/* Checks the options and works them out; content_type and encoding are what a body is. false: refused, by
 * host->refuse. */
bool settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options,
                   const char *content_type);
void settings_fini(struct settings *settings);

#endif
