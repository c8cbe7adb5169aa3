/* serve_config: the configuration of a collector without a file: sources, a store, and the folder of both. */
#ifndef WEIR_TOOLS_SERVE_CONFIG_H
#define WEIR_TOOLS_SERVE_CONFIG_H

#include <stdbool.h>

/* Paths and addresses as options give them; NULL: the default. */
struct serve_config {
    const char *state;             /* the folder */
    const char *listen, *anywhere; /* of pages and API; one of them */
    const char *token_file;
    const char *store;
    const char *http, *forward; /* "off": not */
    const char *group;          /* may send to forward; NULL: none */
    const char *fifo;           /* NULL: not */
    bool has_statsd;
};

/* Returns the configuration as JSON, which the caller frees, and makes the folder. NULL after printing why: no
 * folder can be made, or an address is in use. */
char *serve_config_make(const struct serve_config *config);

/* The folder of the files by which commands of this machine get access, see access_files.h. state: as above.
 * Returns a text that the caller frees; NULL after printing why. */
char *serve_config_access(const char *state);

#endif
