#include "text/scan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/keys.h"
#include "text/utf8.h"

/* ---- State ----------------------------------------------------------------------------------- */

struct scanner {
    struct wr_scan *scan;
    const char *text, *at, *end;
    size_t parent; /* the number of the value that members belong to */
    unsigned depth;
    uint32_t objects;
    struct wr_keys keys;
    struct wr_buffer string; /* the latest one, unescaped */
};

static bool fail_at(struct scanner *s, const char *at, const char *problem)
{
    s->scan->problem = problem;
    s->scan->offset = (size_t)(at - s->text);
    return false;
}

static bool fail(struct scanner *s, const char *problem)
{
    return fail_at(s, s->at, problem);
}

static bool is_at_end(const struct scanner *s)
{
    return s->at == s->end;
}

/* ---- Blanks and comments --------------------------------------------------------------------- */

static bool starts_with(const struct scanner *s, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(s->end - s->at) >= length && memcmp(s->at, text, length) == 0;
}

static bool skip_comment(struct scanner *s)
{
    const char *start = s->at;
    bool to_line_end = s->at[1] == '/';
    s->at += 2;
    while (!is_at_end(s) && !(to_line_end ? *s->at == '\n' : starts_with(s, "*/")))
        s->at++;
    if (!to_line_end) {
        if (is_at_end(s))
            return fail_at(s, start, "this comment has no end");
        s->at += 2;
    }
    return true;
}

static bool skip_blanks(struct scanner *s)
{
    while (!is_at_end(s)) {
        if (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')
            s->at++;
        else if (!starts_with(s, "//") && !starts_with(s, "/*"))
            break;
        else if (!skip_comment(s))
            return false;
    }
    return true;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct scanner *s, uint32_t *value)
{
    *value = 0;
    if (s->end - s->at < 4)
        return fail(s, "\\u must be followed by four hexadecimal digits");
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(s->at[i]);
        if (digit < 0)
            return fail(s, "\\u must be followed by four hexadecimal digits");
        *value = *value << 4 | (uint32_t)digit;
    }
    s->at += 4;
    return true;
}

static void put_code_point(struct wr_buffer *out, uint32_t c)
{
    if (c < 0x80) {
        wr_buffer_put_char(out, (char)c);
        return;
    }
    if (c < 0x800) {
        wr_buffer_put_char(out, (char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            wr_buffer_put_char(out, (char)(0xe0 | c >> 12));
        } else {
            wr_buffer_put_char(out, (char)(0xf0 | c >> 18));
            wr_buffer_put_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        wr_buffer_put_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
    }
    wr_buffer_put_char(out, (char)(0x80 | (c & 0x3f)));
}

/* Behind "\u". */
static bool read_code_point(struct scanner *s)
{
    const char *start = s->at - 2;
    uint32_t value, low;
    if (!read_hex(s, &value))
        return false;
    if (value == 0)
        return fail_at(s, start, "\\u0000 is not allowed in a string");
    if (value >= 0xdc00 && value < 0xe000)
        return fail_at(s, start, "half of a surrogate pair");
    if (value >= 0xd800 && value < 0xdc00) {
        if (!starts_with(s, "\\u"))
            return fail_at(s, start, "half of a surrogate pair");
        s->at += 2;
        if (!read_hex(s, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail_at(s, start, "half of a surrogate pair");
        value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    }
    put_code_point(&s->string, value);
    return true;
}

static bool read_escape(struct scanner *s)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *start = s->at++;
    if (is_at_end(s))
        return fail_at(s, start, "the text ends inside a string");
    char letter = *s->at++;
    if (letter == 'u')
        return read_code_point(s);
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found)
        return fail_at(s, start, "unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    wr_buffer_put_char(&s->string, meanings[found - letters]);
    return true;
}

/* Leaves the string's text in s->string. */
static bool scan_string(struct scanner *s)
{
    const char *start = s->at++;
    wr_buffer_clear(&s->string);
    while (!is_at_end(s) && *s->at != '"') {
        if (*s->at == '\\') {
            if (!read_escape(s))
                return false;
            continue;
        }
        if ((unsigned char)*s->at < 0x20)
            return fail(s, "control character in a string; write it as an escape (\\n, \\t, \\u001b)");
        wr_buffer_put_char(&s->string, *s->at++);
    }
    if (is_at_end(s))
        return fail_at(s, start, "this string has no end");
    s->at++;
    return true;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Keeps the key that was just read; NULL: it stands twice, or there is no memory. */
static const char *keep_key(struct scanner *s, const char *start, uint32_t object)
{
    const char *text = wr_buffer_text(&s->string);
    const char *key = text ? wr_region_text(&s->scan->keep, text, s->string.length) : NULL;
    enum wr_keys_answer answer = key ? wr_keys_add(&s->keys, object, key, s->string.length) : WR_KEYS_NO_MEMORY;
    if (answer == WR_KEYS_NEW)
        return key;
    fail_at(s, start, answer == WR_KEYS_TWICE ? "this key stands twice in its object" : NULL);
    if (answer == WR_KEYS_TWICE)
        wr_utf8_quote(s->scan->detail, sizeof s->scan->detail, key, s->string.length);
    return NULL;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool scan_value(struct scanner *s, const char *key_start, const char *key);

static bool scan_member(struct scanner *s, uint32_t object)
{
    const char *start = s->at;
    if (is_at_end(s) || *s->at != '"')
        return fail(s, "expected a key in double quotes");
    const char *key = scan_string(s) ? keep_key(s, start, object) : NULL;
    if (!key || !skip_blanks(s))
        return false;
    if (is_at_end(s) || *s->at != ':')
        return fail(s, "expected ':' behind the key");
    s->at++;
    return scan_value(s, start, key);
}

/* What stands between brackets: `object` 0 for an array. */
static bool scan_members(struct scanner *s, char closing, uint32_t object)
{
    const char *opening = s->at++;
    if (!skip_blanks(s))
        return false;
    if (!is_at_end(s) && *s->at == closing) {
        s->at++;
        return true;
    }
    const char *lacks = closing == '}' ? "this { has no }" : "this [ has no ]";
    for (;;) {
        if (is_at_end(s))
            return fail_at(s, opening, lacks);
        if (object ? !scan_member(s, object) : !scan_value(s, NULL, NULL))
            return false;
        if (!skip_blanks(s))
            return false;
        if (is_at_end(s))
            return fail_at(s, opening, lacks);
        if (*s->at == closing)
            break;
        if (*s->at != ',')
            return fail(s, closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        const char *comma = s->at++;
        if (!skip_blanks(s))
            return false;
        if (!is_at_end(s) && *s->at == closing)
            return fail_at(s, comma, "trailing comma");
    }
    s->at++;
    return true;
}

static bool scan_nested(struct scanner *s, size_t number)
{
    if (s->depth == WR_SCAN_DEEPEST)
        return fail(s, "nested too deeply; at most 32 levels are allowed");
    bool is_object = *s->at == '{';
    size_t parent = s->parent;
    s->scan->values[number].type = is_object ? WR_NODE_OBJECT : WR_NODE_ARRAY;
    s->parent = number;
    s->depth++;
    bool done = scan_members(s, is_object ? '}' : ']', is_object ? ++s->objects : 0);
    s->depth--;
    s->parent = parent;
    return done;
}

static bool keep_text(struct scanner *s, size_t number, enum wr_node_type type, const char *text, size_t length)
{
    struct wr_scan_value *value = &s->scan->values[number];
    value->type = type;
    value->text = text ? wr_region_text(&s->scan->keep, text, length) : NULL;
    return value->text || fail(s, NULL);
}

static bool scan_text(struct scanner *s, size_t number)
{
    return scan_string(s) && keep_text(s, number, WR_NODE_STRING, wr_buffer_text(&s->string), s->string.length);
}

static size_t skip_digits(struct scanner *s)
{
    const char *start = s->at;
    while (!is_at_end(s) && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return (size_t)(s->at - start);
}

static bool scan_number(struct scanner *s, size_t number)
{
    static const char problem[] = "not a number as JSON writes it";
    const char *start = s->at;
    s->at += *s->at == '-';
    const char *digits = s->at;
    size_t whole = skip_digits(s);
    if (whole == 0 || (whole > 1 && *digits == '0'))
        return fail_at(s, start, problem);
    if (!is_at_end(s) && *s->at == '.') {
        s->at++;
        if (!skip_digits(s))
            return fail_at(s, start, problem);
    }
    if (!is_at_end(s) && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (!is_at_end(s) && (*s->at == '+' || *s->at == '-'))
            s->at++;
        if (!skip_digits(s))
            return fail_at(s, start, problem);
    }
    return keep_text(s, number, WR_NODE_NUMBER, start, (size_t)(s->at - start));
}

static bool scan_word(struct scanner *s, size_t number)
{
    static const struct {
        const char *text;
        enum wr_node_type type;
        bool truth;
    } words[] = {{"true", WR_NODE_BOOL, true}, {"false", WR_NODE_BOOL, false}, {"null", WR_NODE_NULL, false}};
    for (size_t i = 0; i < WR_COUNT_OF(words); i++) {
        if (starts_with(s, words[i].text)) {
            s->at += strlen(words[i].text);
            s->scan->values[number].type = words[i].type;
            s->scan->values[number].truth = words[i].truth;
            return true;
        }
    }
    return fail(
        s, "expected a value: an object, an array, a string in double quotes, a number, true, false or null");
}

static bool scan_bare(struct scanner *s, size_t number)
{
    switch (*s->at) {
    case '{':
    case '[': return scan_nested(s, number);
    case '"': return scan_text(s, number);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return scan_number(s, number);
    default: return scan_word(s, number);
    }
}

static bool make_room(struct scanner *s)
{
    struct wr_scan *scan = s->scan;
    if (scan->count < scan->room)
        return true;
    if (scan->count == WR_SCAN_MOST)
        return fail(s, "too many values; at most 1,000,000 are allowed");
    size_t room = scan->room ? scan->room * 2 : 64;
    room = room < WR_SCAN_MOST ? room : WR_SCAN_MOST;
    struct wr_scan_value *values = realloc(scan->values, room * sizeof *values);
    if (!values)
        return fail(s, NULL);
    scan->values = values;
    scan->room = room;
    return true;
}

static bool scan_value(struct scanner *s, const char *key_start, const char *key)
{
    if (!skip_blanks(s))
        return false;
    if (is_at_end(s))
        return fail(s, "the text ends where a value is expected");
    if (!make_room(s))
        return false;
    size_t number = s->scan->count++;
    const char *start = s->at;
    s->scan->values[number] = (struct wr_scan_value){
        .parent = s->parent,
        .offset = (size_t)(start - s->text),
        .key_offset = (size_t)((key ? key_start : start) - s->text),
        .key = key,
    };
    return scan_bare(s, number);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool check_bytes(struct scanner *s)
{
    size_t where, length = (size_t)(s->end - s->text);
    if (length > WR_SCAN_LONGEST)
        return fail(s, "too long; at most 16 MiB are allowed");
    if (starts_with(s, "\xef\xbb\xbf"))
        return fail(s, "the text begins with a byte order mark; save it without one");
    if (!wr_utf8_is_valid(s->text, length, &where))
        return fail_at(s, s->text + where, "invalid UTF-8");
    const char *nul = memchr(s->text, '\0', length);
    return nul ? fail_at(s, nul, "a NUL byte") : true;
}

static bool scan_all(struct scanner *s)
{
    if (!check_bytes(s) || !scan_value(s, NULL, NULL) || !skip_blanks(s))
        return false;
    return is_at_end(s) ? true : fail(s, "text behind the end of the configuration");
}

bool wr_scan_run(struct wr_scan *scan, const char *text, size_t length)
{
    *scan = (struct wr_scan){0};
    struct scanner s = {.scan = scan, .text = text, .at = text, .end = text + length};
    bool done = scan_all(&s);
    wr_keys_fini(&s.keys);
    wr_buffer_fini(&s.string);
    return done;
}

void wr_scan_fini(struct wr_scan *scan)
{
    free(scan->values);
    wr_region_fini(&scan->keep);
    scan->values = NULL;
}

void wr_scan_locate(const char *text, size_t length, size_t offset, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < offset && i < length; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}
