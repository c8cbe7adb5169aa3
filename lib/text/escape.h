/* escape: text inside the quotes of formats. The text is valid UTF-8, as names, labels and metadata are. */
#ifndef WR_ESCAPE_H
#define WR_ESCAPE_H

#include <stddef.h>

struct wr_buffer;

/* As a JSON string, with its quotes; only what must be is escaped (RFC 8259). */
void wr_escape_json(struct wr_buffer *out, const char *text);

/* The same as Python's json.dumps does it: everything but printable ASCII as \uXXXX. */
void wr_escape_json_ascii(struct wr_buffer *out, const char *text);

/* As a value of a form (application/x-www-form-urlencoded). */
void wr_escape_form(struct wr_buffer *out, const char *text);

#endif
