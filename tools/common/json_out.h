/* json_out: JSON for people to read: an object or array of many lines, indented, with commas where they belong.
 */
#ifndef WEIR_TOOLS_JSON_OUT_H
#define WEIR_TOOLS_JSON_OUT_H

#include <stdbool.h>

#include "text/buffer.h"

/* All zeros: nothing written yet. */
struct json_out {
    struct wr_buffer text;
    unsigned depth;
    bool empty; /* what was opened last has nothing in it so far */
};

/* Begins and ends an object ('{') or array ('['). Each is a member of what is open; key: NULL in an array, and
 * for the outermost. */
void json_out_open(struct json_out *out, const char *key, char bracket);
void json_out_close(struct json_out *out, char bracket);

/* Members and elements: a text; a text of so many bytes; a word of JSON itself, such as a number or `true`. */
void json_out_text(struct json_out *out, const char *key, const char *text);
void json_out_piece(struct json_out *out, const char *key, const char *text, size_t length);
void json_out_word(struct json_out *out, const char *key, const char *word);

#endif
