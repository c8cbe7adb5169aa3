/* status_collector: the state of a collector, asked by HTTP. */
#ifndef WEIR_TOOLS_STATUS_COLLECTOR_H
#define WEIR_TOOLS_STATUS_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct status_collector {
    const char *url; /* "http://127.0.0.1:8080" */
    /* NULL: the one that a collector of this user has made, if the URL is of this machine */
    const char *token_file;
    bool json;        /* prints what the collector sends */
    int64_t every_ns; /* 0: once */
};

/* Prints the state once, or until the collector cannot be asked any more. Returns the exit code. */
int status_collector_show(const struct status_collector *collector);

#endif
