/* gzip: compresses a text. */
#ifndef WEIR_PLUGINS_GZIP_H
#define WEIR_PLUGINS_GZIP_H

#include <stdbool.h>

struct wr_buffer;

/* Replaces a text by its compressed form. Returns false, with the text as it was, if out of memory. */
bool gzip_text(struct wr_buffer *text);

#endif
