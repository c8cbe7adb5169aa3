/* settings: the handler type's option table, checks of option combinations, and values derived from options. */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include <stdbool.h>

#include <weir/handler.h>

#include "address.h"
#include "client.h"
#include "protocol.h"

enum { SETTINGS_GZIP = 1 }; /* value of `compress` */

/* Filled by the core. */
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

extern const weir_option wr_settings_table[];

/* Derived from the options. */
struct settings {
    struct client_settings client; /* `headers` is owned, the rest borrowed */
    struct address address, proxy; /* proxy.host is "" without a proxy */
    char *environment_url;         /* owned; NULL: the option `url` is set */
    char **secrets;                /* masked in messages, in all forms; ends with NULL */
    size_t secret_count;
};

/* Checks the options and derives the settings. content_type: the format's. Returns false after host->refuse. */
bool wr_settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options,
                      const char *content_type, const struct protocol *protocol);
void wr_settings_fini(struct settings *settings);

#endif
