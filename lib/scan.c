#include "scan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "hash.h"
#include "utf8.h"

/* ---- State ----------------------------------------------------------------------------------- */

/* A key that was seen, for finding it again. */
struct seen {
    uint64_t hash;
    uint32_t object; /* number of the object it is in; 0: an empty place */
    char *key;
};

struct scanner {
    struct wr_scan *scan;
    const char *at, *end;
    unsigned depth;
    uint32_t objects;
    struct seen *seen; /* open addressing */
    size_t seen_count, seen_room;
    struct wr_buffer key; /* the latest string, unescaped */
};

static bool fail_at(struct scanner *s, const char *at, const char *problem)
{
    s->scan->problem = problem;
    s->scan->offset = (size_t)(at - s->scan->text);
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

static void blank_out(struct scanner *s, const char *from, const char *to)
{
    for (char *at = s->scan->text + (from - s->scan->text); at < to; at++)
        if (*at != '\n' && *at != '\r')
            *at = ' ';
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
    blank_out(s, start, s->at);
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
    put_code_point(&s->key, value);
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
    wr_buffer_put_char(&s->key, meanings[found - letters]);
    return true;
}

/* Leaves the string's text in s->key. */
static bool scan_string(struct scanner *s)
{
    const char *start = s->at++;
    wr_buffer_clear(&s->key);
    while (!is_at_end(s) && *s->at != '"') {
        if (*s->at == '\\') {
            if (!read_escape(s))
                return false;
            continue;
        }
        if ((unsigned char)*s->at < 0x20)
            return fail(s, "control character in a string; write it as an escape (\\n, \\t, \\u001b)");
        wr_buffer_put_char(&s->key, *s->at++);
    }
    if (is_at_end(s))
        return fail_at(s, start, "this string has no end");
    s->at++;
    return true;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static struct seen *find_seen(struct seen *table, size_t room, uint64_t hash, uint32_t object, const char *key)
{
    size_t i = hash & (room - 1);
    while (table[i].object &&
           (table[i].hash != hash || table[i].object != object || strcmp(table[i].key, key) != 0))
        i = (i + 1) & (room - 1);
    return &table[i];
}

static bool grow_seen(struct scanner *s)
{
    if (s->seen_count < s->seen_room / 2)
        return true;
    size_t room = s->seen_room ? s->seen_room * 2 : 64;
    struct seen *table = calloc(room, sizeof *table);
    if (!table)
        return fail(s, NULL);
    for (size_t i = 0; i < s->seen_room; i++)
        if (s->seen[i].object)
            *find_seen(table, room, s->seen[i].hash, s->seen[i].object, s->seen[i].key) = s->seen[i];
    free(s->seen);
    s->seen = table;
    s->seen_room = room;
    return true;
}

static bool note_key(struct scanner *s, const char *start, uint32_t object)
{
    const char *key = wr_buffer_text(&s->key);
    if (!key || !grow_seen(s))
        return fail_at(s, start, NULL);
    uint64_t hash = wr_hash_bytes(object, key, s->key.length);
    struct seen *place = find_seen(s->seen, s->seen_room, hash, object, key);
    if (place->object) {
        wr_utf8_quote(s->scan->detail, sizeof s->scan->detail, key, s->key.length);
        return fail_at(s, start, "this key stands twice in its object");
    }
    char *copy = strdup(key);
    if (!copy)
        return fail_at(s, start, NULL);
    place->hash = hash;
    place->object = object;
    place->key = copy;
    s->seen_count++;
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool scan_value(struct scanner *s, const char *key_start);

static bool scan_member(struct scanner *s, uint32_t object)
{
    const char *start = s->at;
    if (is_at_end(s) || *s->at != '"')
        return fail(s, "expected a key in double quotes");
    if (!scan_string(s) || !note_key(s, start, object) || !skip_blanks(s))
        return false;
    if (is_at_end(s) || *s->at != ':')
        return fail(s, "expected ':' behind the key");
    s->at++;
    return scan_value(s, start);
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
        if (object ? !scan_member(s, object) : !scan_value(s, NULL))
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

static bool scan_nested(struct scanner *s)
{
    if (s->depth == WR_SCAN_DEEPEST)
        return fail(s, "nested too deeply; at most 32 levels are allowed");
    s->depth++;
    bool is_object = *s->at == '{';
    bool done = scan_members(s, is_object ? '}' : ']', is_object ? ++s->objects : 0);
    s->depth--;
    return done;
}

static size_t skip_digits(struct scanner *s)
{
    const char *start = s->at;
    while (!is_at_end(s) && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return (size_t)(s->at - start);
}

static bool scan_number(struct scanner *s)
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
    return true;
}

static bool scan_word(struct scanner *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < WR_COUNT_OF(words); i++) {
        if (starts_with(s, words[i])) {
            s->at += strlen(words[i]);
            return true;
        }
    }
    return fail(
        s, "expected a value: an object, an array, a string in double quotes, a number, true, false or null");
}

static bool scan_bare(struct scanner *s)
{
    switch (*s->at) {
    case '{':
    case '[': return scan_nested(s);
    case '"': return scan_string(s);
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
    case '9': return scan_number(s);
    default: return scan_word(s);
    }
}

static bool note_place(struct scanner *s, const char *key_start)
{
    struct wr_scan *scan = s->scan;
    if (scan->count == scan->room) {
        size_t room = scan->room ? scan->room * 2 : 64;
        struct wr_scan_place *places = realloc(scan->places, room * sizeof *places);
        if (!places)
            return fail(s, NULL);
        scan->places = places;
        scan->room = room;
    }
    size_t offset = (size_t)(s->at - scan->text);
    size_t key_offset = key_start ? (size_t)(key_start - scan->text) : offset;
    scan->places[scan->count++] = (struct wr_scan_place){.offset = offset, .key_offset = key_offset};
    return true;
}

static bool scan_value(struct scanner *s, const char *key_start)
{
    if (!skip_blanks(s))
        return false;
    if (is_at_end(s))
        return fail(s, "the text ends where a value is expected");
    size_t number = s->scan->count;
    const char *start = s->at;
    if (!note_place(s, key_start) || !scan_bare(s))
        return false;
    s->scan->places[number].length = (size_t)(s->at - start);
    return true;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool check_bytes(struct scanner *s)
{
    size_t where;
    if (starts_with(s, "\xef\xbb\xbf"))
        return fail(s, "the text begins with a byte order mark; save it without one");
    if (!wr_utf8_is_valid(s->at, s->scan->length, &where))
        return fail_at(s, s->at + where, "invalid UTF-8");
    const char *nul = memchr(s->at, '\0', s->scan->length);
    return nul ? fail_at(s, nul, "a NUL byte") : true;
}

static bool scan_all(struct scanner *s)
{
    if (!check_bytes(s) || !scan_value(s, NULL) || !skip_blanks(s))
        return false;
    return is_at_end(s) ? true : fail(s, "text behind the end of the configuration");
}

static void free_seen(struct scanner *s)
{
    for (size_t i = 0; i < s->seen_room; i++)
        free(s->seen[i].key);
    free(s->seen);
}

bool wr_scan_run(struct wr_scan *scan, const char *text, size_t length)
{
    *scan = (struct wr_scan){.length = length};
    if (length > WR_SCAN_LONGEST) {
        scan->problem = "too long; at most 16 MiB are allowed";
        return false;
    }
    scan->text = malloc(length + 1);
    if (!scan->text)
        return false;
    memcpy(scan->text, text, length);
    scan->text[length] = '\0';
    struct scanner s = {.scan = scan, .at = scan->text, .end = scan->text + length};
    bool done = scan_all(&s);
    free_seen(&s);
    wr_buffer_fini(&s.key);
    return done;
}

void wr_scan_fini(struct wr_scan *scan)
{
    free(scan->text);
    free(scan->places);
    scan->text = NULL;
    scan->places = NULL;
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
