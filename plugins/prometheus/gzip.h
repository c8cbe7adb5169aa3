/* gzip: compresses a page. */
#ifndef PROMETHEUS_GZIP_H
#define PROMETHEUS_GZIP_H

#include <stdbool.h>

struct wr_buffer;

/* Replaces the page's text by its compressed form. Returns false, with the page as it was, if out of memory. */
bool gzip_page(struct wr_buffer *page);

#endif
