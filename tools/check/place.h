/* place: where a handler's values go, or where a source's come from, as its table of options names it. */
#ifndef WEIR_TOOLS_PLACE_H
#define WEIR_TOOLS_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/options.h"

enum place_kind {
    PLACE_FILE,    /* a file, a pipe or a Unix socket: its path */
    PLACE_ADDRESS, /* a host and a port */
    PLACE_DEFAULT, /* of the type: no value is given */
};

struct place {
    const char *option; /* its name */
    enum place_kind kind;
    bool listens;      /* the option is "listen" */
    const char *whole; /* as it was given; NULL: PLACE_DEFAULT */
    char *text;        /* the path, the type's name, or the host without brackets */
    char *port;        /* of an address: with "udp" before it, or "tcp" */
};

struct places {
    struct place *items;
    size_t count;
};

/* The values of the options with WEIR_OPTION_DESTINATION that are texts or paths. type: of the handler or
 * source. Exits if out of memory. */
void places_init(struct places *places, const char *type, const struct wr_options_table *table,
                 const void *options);
void places_fini(struct places *places);

/* Whether both are the same file, or an address that one of them listens at reaches the other one. */
bool place_meets(const struct place *a, const struct place *b);

/* Whether what two handlers write goes to the same places. */
bool places_equal(const struct places *a, const struct places *b);

#endif
