#include "json_scan.h"

#include <string.h>

/* https://www.rfc-editor.org/rfc/rfc8259. Lenient where leniency cannot mislead: numbers and words are not
 * checked, nor are control characters in strings. */

static bool report(struct json_scan *scan, enum json_scan_kind kind, const char *text)
{
    return scan->found(scan->ctx, kind, scan->depth, text);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_char(struct json_scan *scan, char c)
{
    if (scan->length < JSON_SCAN_TEXT)
        scan->text[scan->length++] = c;
}

/* A code that is one of a pair, or NUL, becomes '?'. */
static void put_code(struct json_scan *scan, uint32_t code)
{
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        put_char(scan, '?');
    } else if (code < 0x80) {
        put_char(scan, (char)code);
    } else if (code < 0x800) {
        put_char(scan, (char)(0xc0 | code >> 6));
        put_char(scan, (char)(0x80 | (code & 0x3f)));
    } else {
        put_char(scan, (char)(0xe0 | code >> 12));
        put_char(scan, (char)(0x80 | (code >> 6 & 0x3f)));
        put_char(scan, (char)(0x80 | (code & 0x3f)));
    }
}

/* Takes plain characters of a string at once. Returns how many. */
static size_t take_plain(struct json_scan *scan, const char *data, size_t length)
{
    size_t count = 0;
    while (count < length && data[count] != '"' && data[count] != '\\')
        count++;
    size_t room = JSON_SCAN_TEXT - scan->length, kept = count < room ? count : room;
    memcpy(scan->text + scan->length, data, kept);
    scan->length += (unsigned)kept;
    return count;
}

static bool end_text(struct json_scan *scan)
{
    scan->text[scan->length] = '\0';
    scan->state = scan->is_key ? JSON_SCAN_COLON : scan->depth ? JSON_SCAN_NEXT : JSON_SCAN_END;
    return report(scan, scan->is_key ? JSON_SCAN_KEY : JSON_SCAN_STRING, scan->text);
}

static bool take_text(struct json_scan *scan, char c)
{
    if (c == '"')
        return end_text(scan);
    if (c == '\\')
        scan->state = JSON_SCAN_IN_ESCAPE;
    else
        put_char(scan, c);
    return true;
}

static bool take_escape(struct json_scan *scan, char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = c ? strchr(from, c) : NULL;
    scan->state = c == 'u' ? JSON_SCAN_IN_CODE : JSON_SCAN_IN_TEXT;
    scan->code = scan->digits = 0;
    if (at)
        put_char(scan, to[at - from]);
    return at || c == 'u';
}

static bool take_code(struct json_scan *scan, char c)
{
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
    if (digit == 16)
        return false;
    scan->code = scan->code << 4 | digit;
    if (++scan->digits == 4) {
        put_code(scan, scan->code);
        scan->state = JSON_SCAN_IN_TEXT;
    }
    return true;
}

/* ---- Structure ------------------------------------------------------------------------------- */

static bool is_array(const struct json_scan *scan)
{
    return scan->arrays >> (scan->depth - 1) & 1;
}

static bool open(struct json_scan *scan, bool array)
{
    if (scan->depth == JSON_SCAN_DEPTH || !report(scan, JSON_SCAN_OPEN, ""))
        return false;
    scan->arrays = (scan->arrays & ~(UINT64_C(1) << scan->depth)) | (uint64_t)array << scan->depth;
    scan->depth++;
    scan->state = array ? JSON_SCAN_FIRST : JSON_SCAN_MEMBER;
    return true;
}

static bool close(struct json_scan *scan, char c)
{
    if (is_array(scan) != (c == ']'))
        return false;
    scan->depth--;
    scan->state = scan->depth ? JSON_SCAN_NEXT : JSON_SCAN_END;
    return report(scan, JSON_SCAN_CLOSE, "");
}

static bool begin_text(struct json_scan *scan, bool is_key)
{
    scan->state = JSON_SCAN_IN_TEXT;
    scan->is_key = is_key;
    scan->length = 0;
    return true;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

static bool begin_value(struct json_scan *scan, char c)
{
    if (c == '"')
        return begin_text(scan, false);
    if (c == '{' || c == '[')
        return open(scan, c == '[');
    if (!is_word(c))
        return false;
    scan->length = 0;
    put_char(scan, c);
    scan->state = JSON_SCAN_IN_WORD;
    return true;
}

static bool take_next(struct json_scan *scan, char c)
{
    if (c != ',')
        return (c == ']' || c == '}') && close(scan, c);
    scan->state = is_array(scan) ? JSON_SCAN_VALUE : JSON_SCAN_NAME;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Between the tokens. */
static bool take_mark(struct json_scan *scan, char c)
{
    if (is_blank(c))
        return true;
    switch (scan->state) {
    case JSON_SCAN_FIRST: return c == ']' ? close(scan, c) : begin_value(scan, c);
    case JSON_SCAN_VALUE: return begin_value(scan, c);
    case JSON_SCAN_MEMBER: return c == '}' ? close(scan, c) : c == '"' && begin_text(scan, true);
    case JSON_SCAN_NAME: return c == '"' && begin_text(scan, true);
    case JSON_SCAN_COLON: scan->state = JSON_SCAN_VALUE; return c == ':';
    case JSON_SCAN_NEXT: return take_next(scan, c);
    default: return false; /* the end, or a failure */
    }
}

static bool end_word(struct json_scan *scan)
{
    scan->text[scan->length] = '\0';
    scan->state = scan->depth ? JSON_SCAN_NEXT : JSON_SCAN_END;
    return report(scan, JSON_SCAN_WORD, scan->text);
}

static bool take_word(struct json_scan *scan, char c)
{
    if (is_word(c)) {
        put_char(scan, c);
        return true;
    }
    return end_word(scan) && take_mark(scan, c);
}

static bool take(struct json_scan *scan, char c)
{
    switch (scan->state) {
    case JSON_SCAN_IN_TEXT: return take_text(scan, c);
    case JSON_SCAN_IN_ESCAPE: return take_escape(scan, c);
    case JSON_SCAN_IN_CODE: return take_code(scan, c);
    case JSON_SCAN_IN_WORD: return take_word(scan, c);
    default: return take_mark(scan, c);
    }
}

bool wr_json_scan_read(struct json_scan *scan, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (scan->state == JSON_SCAN_IN_TEXT)
            i += take_plain(scan, data + i, length - i);
        if (i < length && !take(scan, data[i])) {
            scan->state = JSON_SCAN_FAILED;
            return false;
        }
    }
    return scan->state != JSON_SCAN_FAILED;
}

bool wr_json_scan_is_complete(const struct json_scan *scan)
{
    return scan->state == JSON_SCAN_END || (scan->state == JSON_SCAN_IN_WORD && !scan->depth);
}
