/* web_pages: what a browser shows: the files of the folder pages, and Chart.js, which are compiled in. */
#ifndef WEIR_PLUGINS_COLLECTOR_WEB_PAGES_H
#define WEIR_PLUGINS_COLLECTOR_WEB_PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct request;

/* A file as it is sent, compressed with gzip. The table is made by embed.sh. */
struct pages_file {
    const char *path;  /* NULL: the end of the table */
    const char *check; /* changes with its content */
    size_t length;     /* when it is not compressed */
    const unsigned char *data;
    size_t size;
};

extern const struct pages_file pages_files[];

/* Handles a request for "/" or for what is in "/pages/". They hold no data: nobody needs to be known to read
 * them. Returns false if it is none. */
bool web_pages_handle(struct request *request);

#endif
