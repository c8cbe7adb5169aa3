/* utf8: validates UTF-8, and makes text safe to show on a terminal. */
#ifndef WR_UTF8_H
#define WR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_buffer;

/* Decodes the code point at the start of text. Returns its number of bytes, 1 to 4; 0 if it is not valid UTF-8
 * by RFC 3629: no surrogates, nothing above U+10FFFF, no overlong form. length: at least 1. */
unsigned wr_utf8_decode(const char *text, size_t length, uint32_t *code_point);

/* Encodes a code point. Returns its number of bytes. */
unsigned wr_utf8_encode(char out[4], uint32_t code_point);

/* Whether the whole text is valid. *where: set to the offset of the first invalid byte; may be NULL. */
bool wr_utf8_is_valid(const char *text, size_t length, size_t *where);

/* Whether it is a control character: C0, DEL and C1. */
bool wr_utf8_is_control(uint32_t code_point);

/* Whether it is invisible and changes how a terminal shows other characters: control characters, bidirectional
 * controls, line and paragraph separators, the byte order mark. */
bool wr_utf8_is_disguise(uint32_t code_point);

/* Appends text escaped for a terminal: disguises and invalid bytes become \n, \t, \r, \x1b or \u202e; a
 * backslash and the character `quote` (0: none) get a backslash before them. */
void wr_utf8_show(struct wr_buffer *out, const char *text, size_t length, char quote);

/* The same without a quote, in `room` bytes with the NUL: as many whole characters as fit. */
void wr_utf8_show_part(char *out, size_t room, const char *text);

/* Room for any output of wr_utf8_quote without a further cut. */
enum { WR_UTF8_QUOTE_ROOM = 336 };

/* Writes the text in quotes for a message, escaped as above. It is cut with "..." after 80 bytes of text, or
 * where out is full. room: at least 8. Returns out. */
const char *wr_utf8_quote(char *out, size_t room, const char *text, size_t length);

/* Copies a message as one line for a terminal, cut where out is full. room: at least 1. Disguises and invalid
 * bytes are escaped as above; backslashes are not, since parts of the message may have been escaped before. */
void wr_utf8_line(char *out, size_t room, const char *text);

#endif
