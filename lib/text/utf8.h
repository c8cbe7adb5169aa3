/* utf8: which bytes are text, and how text is shown. */
#ifndef WR_UTF8_H
#define WR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_buffer;

/* The code point at text[0 .. length), and how many bytes it takes (1 to 4); 0 bytes: not valid UTF-8 (RFC
 * 3629: no surrogates, nothing above U+10FFFF, no longer form than needed). length is at least 1. */
unsigned wr_utf8_decode(const char *text, size_t length, uint32_t *code_point);

/* Whether all of it is valid; where: the offset of the first byte that is not, may be NULL. */
bool wr_utf8_is_valid(const char *text, size_t length, size_t *where);

/* Control characters: C0, DEL and C1. */
bool wr_utf8_is_control(uint32_t code_point);

/* Characters that show nothing but change how a terminal shows others: control characters, bidirectional
 * controls, line and paragraph separators, the byte order mark. */
bool wr_utf8_is_disguise(uint32_t code_point);

/* Appends text as it may be shown on a terminal: disguises and bytes that are not UTF-8 as \n, \t, \r, \x1b or
 * \u202e, a backslash and the character `quote` (0: none) with a backslash before it. */
void wr_utf8_show(struct wr_buffer *out, const char *text, size_t length, char quote);

/* The same for messages: writes "text" in quotes into out, cut with "..." when it is long or out is full (room:
 * at least 8). Answers out. */
const char *wr_utf8_quote(char *out, size_t room, const char *text, size_t length);

/* Copies a message as one line that may be shown on a terminal, cut where out is full (room: at least 1):
 * disguises and bytes that are not UTF-8 as above, and backslashes as they are, since parts of it may have been
 * escaped before. */
void wr_utf8_line(char *out, size_t room, const char *text);

#endif
