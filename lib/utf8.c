#include "utf8.h"

#include <string.h>

#include "buffer.h"

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The length that a first byte announces, and the bits of the code point in it. */
static unsigned read_first(unsigned char byte, uint32_t *bits)
{
    if (byte < 0x80) {
        *bits = byte;
        return 1;
    }
    if (byte >= 0xc2 && byte < 0xe0) {
        *bits = byte & 0x1f;
        return 2;
    }
    if (byte >= 0xe0 && byte < 0xf0) {
        *bits = byte & 0x0f;
        return 3;
    }
    if (byte >= 0xf0 && byte < 0xf5) {
        *bits = byte & 0x07;
        return 4;
    }
    return 0;
}

unsigned wr_utf8_decode(const char *text, size_t length, uint32_t *code_point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value;
    unsigned bytes = read_first((unsigned char)text[0], &value);
    if (bytes == 0 || bytes > length)
        return 0;
    for (unsigned i = 1; i < bytes; i++) {
        if (!is_continuation(text[i]))
            return 0;
        value = value << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (value < smallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code_point = value;
    return bytes;
}

bool wr_utf8_is_valid(const char *text, size_t length, size_t *where)
{
    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        unsigned bytes = wr_utf8_decode(text + i, length - i, &code_point);
        if (!bytes) {
            if (where)
                *where = i;
            return false;
        }
        i += bytes;
    }
    return true;
}

bool wr_utf8_is_control(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

bool wr_utf8_is_disguise(uint32_t code_point)
{
    return wr_utf8_is_control(code_point) || code_point == 0x061c || code_point == 0xfeff ||
           code_point == 0x200e || code_point == 0x200f || (code_point >= 0x2028 && code_point <= 0x202e) ||
           (code_point >= 0x2066 && code_point <= 0x2069);
}

static void show_escaped(struct wr_buffer *out, uint32_t code_point)
{
    switch (code_point) {
    case '\n': wr_buffer_put_text(out, "\\n"); break;
    case '\r': wr_buffer_put_text(out, "\\r"); break;
    case '\t': wr_buffer_put_text(out, "\\t"); break;
    default: wr_buffer_put_format(out, code_point < 0x100 ? "\\x%02x" : "\\u%04x", code_point);
    }
}

void wr_utf8_show(struct wr_buffer *out, const char *text, size_t length, char quote)
{
    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        unsigned bytes = wr_utf8_decode(text + i, length - i, &code_point);
        if (!bytes) {
            show_escaped(out, (unsigned char)text[i++]);
            continue;
        }
        if (wr_utf8_is_disguise(code_point)) {
            show_escaped(out, code_point);
        } else {
            if (code_point == '\\' || (quote && code_point == (unsigned char)quote))
                wr_buffer_put_char(out, '\\');
            wr_buffer_put(out, text + i, bytes);
        }
        i += bytes;
    }
}

const char *wr_utf8_quote(char *out, size_t room, const char *text, size_t length)
{
    enum { SHOWN = 80 };
    static const char more[] = "...";
    struct wr_buffer shown = {0};
    size_t cut = length;
    if (cut > SHOWN) {
        cut = SHOWN;
        while (cut > SHOWN - 4 && is_continuation(text[cut]))
            cut--;
    }
    wr_buffer_put_char(&shown, '"');
    wr_utf8_show(&shown, text, cut, '"');
    wr_buffer_put_text(&shown, cut < length ? more : "");
    wr_buffer_put_char(&shown, '"');
    const char *result = wr_buffer_text(&shown);
    size_t bytes = result ? shown.length : 0;
    if (bytes >= room)
        bytes = room - 1;
    if (result)
        memcpy(out, result, bytes);
    out[bytes] = '\0';
    wr_buffer_fini(&shown);
    return out;
}
