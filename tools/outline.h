/* outline: JSON for people to read: an object or array of many lines, indented, with commas where they belong.
 */
#ifndef WEIR_TOOLS_OUTLINE_H
#define WEIR_TOOLS_OUTLINE_H

#include <stdbool.h>

#include "buffer.h"

/* All zeros: nothing written yet. */
struct outline {
    struct wr_buffer text;
    unsigned depth;
    bool empty; /* what was opened last has nothing in it so far */
};

/* Begins and ends an object ('{') or array ('['). Each is a member of what is open; key: NULL in an array, and
 * for the outermost. */
void outline_open(struct outline *out, const char *key, char bracket);
void outline_close(struct outline *out, char bracket);

/* Members and elements: a text; a text of so many bytes; a word of JSON itself, such as a number or `true`. */
void outline_text(struct outline *out, const char *key, const char *text);
void outline_piece(struct outline *out, const char *key, const char *text, size_t length);
void outline_word(struct outline *out, const char *key, const char *word);

#endif
