/* base64: base 64 of RFC 4648, section 4, with or without padding. */
#ifndef WR_BASE64_H
#define WR_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the text of so many, with padding and NUL. */
#define WR_BASE64_ROOM(length) (((length) + 2) / 3 * 4 + 1)

/* Writes the text and a NUL. Returns its length. */
size_t wr_base64_encode(const void *bytes, size_t length, bool is_padded, char *text);

/* Decodes text, which must have its padding, or none. bytes: up to `room`; may be `text`. Returns their number;
 * SIZE_MAX: it is not base64, or there are more. */
size_t wr_base64_decode(const char *text, size_t length, bool is_padded, void *bytes, size_t room);

#endif
