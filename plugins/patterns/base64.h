/* base64: decodes RFC 4648's base 64. */
#ifndef WR_BASE64_H
#define WR_BASE64_H

#include <stddef.h>

/* Decodes text with its padding to `bytes`, which has room for length / 4 * 3, and may be `text`. Returns the
 * number of bytes; SIZE_MAX: it is not base64. */
size_t wr_base64_decode(const char *text, size_t length, char *bytes);

#endif
