#include "text/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text/buffer.h"
#include "text/utf8.h"

/* The letter of JSON's two-character escape; 0: there is none. */
static char short_escape(uint32_t c)
{
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

static void put_unit(struct wr_buffer *out, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {
        '\\', 'u', digits[unit >> 12 & 15], digits[unit >> 8 & 15], digits[unit >> 4 & 15], digits[unit & 15]};
    wr_buffer_put(out, text, sizeof text);
}

static void put_escaped(struct wr_buffer *out, uint32_t c)
{
    char letter = short_escape(c);
    if (letter) {
        char text[2] = {'\\', letter};
        wr_buffer_put(out, text, sizeof text);
    } else if (c >= 0x10000) {
        put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
        put_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
    } else {
        put_unit(out, c);
    }
}

/* Control characters that JSON allows, but that a terminal obeys: U+009B is another escape character. */
static bool is_c1(uint32_t c)
{
    return c >= 0x80 && c < 0xa0;
}

static void put_string(struct wr_buffer *out, const char *text, uint32_t last_plain)
{
    size_t length = strlen(text);
    wr_buffer_put_char(out, '"');
    for (size_t i = 0; i < length;) {
        uint32_t c;
        unsigned bytes = wr_utf8_decode(text + i, length - i, &c);
        if (!bytes) { /* not UTF-8, which callers exclude: U+FFFD */
            bytes = 1;
            c = 0xfffd;
            put_unit(out, c);
        } else if (c < 0x20 || c > last_plain || short_escape(c) || is_c1(c)) {
            put_escaped(out, c);
        } else {
            wr_buffer_put(out, text + i, bytes);
        }
        i += bytes;
    }
    wr_buffer_put_char(out, '"');
}

void wr_escape_json(struct wr_buffer *out, const char *text)
{
    put_string(out, text, 0x10ffff);
}

void wr_escape_json_ascii(struct wr_buffer *out, const char *text)
{
    put_string(out, text, '~');
}

void wr_escape_byte(struct wr_buffer *out, char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    const char escaped[] = {'%', digits[(unsigned char)byte >> 4], digits[byte & 15]};
    wr_buffer_put(out, escaped, sizeof escaped);
}

static bool is_unescaped_in_form(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '*' || c == '-' ||
           c == '.' || c == '_';
}

void wr_escape_form(struct wr_buffer *out, const char *text)
{
    for (; *text; text++) {
        if (is_unescaped_in_form(*text))
            wr_buffer_put_char(out, *text);
        else if (*text == ' ')
            wr_buffer_put_char(out, '+');
        else
            wr_escape_byte(out, *text);
    }
}
