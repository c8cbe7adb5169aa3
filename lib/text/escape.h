/* escape: escapes text for output formats. The text is valid UTF-8, as names, labels and metadata are. */
#ifndef WR_ESCAPE_H
#define WR_ESCAPE_H

#include <stddef.h>

struct wr_buffer;

/* Appends a JSON string with its quotes. Escapes only what RFC 8259 requires. */
void wr_escape_json(struct wr_buffer *out, const char *text);

/* The same as Python's json.dumps: everything except printable ASCII becomes \uXXXX. */
void wr_escape_json_ascii(struct wr_buffer *out, const char *text);

/* Appends the byte as %XX. */
void wr_escape_byte(struct wr_buffer *out, char byte);

/* Appends the value of a form field (application/x-www-form-urlencoded). */
void wr_escape_form(struct wr_buffer *out, const char *text);

#endif
