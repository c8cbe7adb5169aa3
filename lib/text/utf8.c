#include "text/utf8.h"

#include <stdio.h>
#include <string.h>

#include "text/buffer.h"

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Returns the length that the first byte announces, and its bits of the code point. */
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

unsigned wr_utf8_encode(char out[4], uint32_t code_point)
{
    unsigned bytes = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (unsigned i = bytes - 1; i; i--, code_point >>= 6)
        out[i] = (char)(0x80 | (code_point & 0x3f));
    *out = (char)(bytes == 1 ? code_point : 0xf00 >> bytes | code_point);
    return bytes;
}

/* How many bytes from here on are ASCII, in steps of eight. */
static size_t skip_ascii(const char *text, size_t length)
{
    uint64_t bytes;
    size_t i = 0;
    for (; length - i >= sizeof bytes; i += sizeof bytes) {
        memcpy(&bytes, text + i, sizeof bytes);
        if (bytes & UINT64_C(0x8080808080808080))
            break;
    }
    return i;
}

bool wr_utf8_is_valid(const char *text, size_t length, size_t *where)
{
    for (size_t i = skip_ascii(text, length); i < length;) {
        uint32_t code_point;
        if ((unsigned char)text[i] < 0x80) {
            i++;
            continue;
        }
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

/* ---- Escaping -------------------------------------------------------------------------------- */

/* One character, escaped. */
struct piece {
    char text[8];
    size_t length;
};

static void escape(struct piece *piece, uint32_t code_point)
{
    int length;
    switch (code_point) {
    case '\n': length = snprintf(piece->text, sizeof piece->text, "\\n"); break;
    case '\r': length = snprintf(piece->text, sizeof piece->text, "\\r"); break;
    case '\t': length = snprintf(piece->text, sizeof piece->text, "\\t"); break;
    default:
        length = snprintf(piece->text, sizeof piece->text, code_point < 0x100 ? "\\x%02x" : "\\u%04x",
                          (unsigned)code_point & 0xffff); /* all disguises are below 0x10000 */
    }
    piece->length = (size_t)length;
}

/* Escapes the first character of the text; characters in `marked` get a backslash. Returns its bytes. */
static size_t escape_one(struct piece *piece, const char *text, size_t length, const char *marked)
{
    uint32_t code_point;
    unsigned bytes = wr_utf8_decode(text, length, &code_point);
    if (!bytes || wr_utf8_is_disguise(code_point)) {
        escape(piece, bytes ? code_point : (unsigned char)text[0]);
        return bytes ? bytes : 1;
    }
    piece->length = 0;
    if (strchr(marked, text[0]))
        piece->text[piece->length++] = '\\';
    memcpy(piece->text + piece->length, text, bytes);
    piece->length += bytes;
    return bytes;
}

void wr_utf8_show(struct wr_buffer *out, const char *text, size_t length, char quote)
{
    const char marked[] = {'\\', quote, '\0'};
    struct piece piece;
    for (size_t i = 0; i < length;) {
        i += escape_one(&piece, text + i, length - i, marked);
        wr_buffer_put(out, piece.text, piece.length);
    }
}

const char *wr_utf8_quote(char *out, size_t room, const char *text, size_t length)
{
    enum { SHOWN = 80 };
    static const char end[] = "\"", cut_end[] = "...\"";
    struct piece piece;
    size_t used = 0, cut = 1; /* after the last character that leaves room for cut_end */
    out[used++] = '"';
    for (size_t i = 0; i < length;) {
        i += escape_one(&piece, text + i, length - i, "\\\"");
        if ((length > SHOWN && i > SHOWN) || used + piece.length + sizeof end > room) {
            memcpy(out + cut, cut_end, sizeof cut_end);
            return out;
        }
        memcpy(out + used, piece.text, piece.length);
        used += piece.length;
        if (used + sizeof cut_end <= room)
            cut = used;
    }
    memcpy(out + used, end, sizeof end);
    return out;
}

/* As much as fits. */
static void put_escaped(char *out, size_t room, const char *text, const char *marked)
{
    struct piece piece;
    size_t length = strlen(text), used = 0;
    for (size_t i = 0; i < length;) {
        i += escape_one(&piece, text + i, length - i, marked);
        if (used + piece.length + 1 > room)
            break;
        memcpy(out + used, piece.text, piece.length);
        used += piece.length;
    }
    out[used] = '\0';
}

void wr_utf8_line(char *out, size_t room, const char *text)
{
    put_escaped(out, room, text, "");
}

void wr_utf8_show_part(char *out, size_t room, const char *text)
{
    put_escaped(out, room, text, "\\");
}
