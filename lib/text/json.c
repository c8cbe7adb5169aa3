#include "text/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/hash.h"
#include "text/utf8.h"

/* ---- State ----------------------------------------------------------------------------------- */

/* A key of an object. */
struct wr_json_key {
    uint64_t hash;
    uint32_t object; /* the object's number, from 1; 0: an empty slot */
    const char *text;
    size_t value; /* index of its value */
};

struct parser {
    struct wr_json *json;
    const char *text, *at, *end;
    size_t parent; /* index of the object or array being parsed */
    unsigned depth;
    uint32_t objects; /* so far */
    struct wr_json_keys *keys;
    struct wr_buffer *string; /* the latest one, unescaped */
};

static bool fail_at(struct parser *p, const char *at, const char *problem)
{
    p->json->problem = problem;
    p->json->offset = (size_t)(at - p->text);
    return false;
}

static bool fail(struct parser *p, const char *problem)
{
    return fail_at(p, p->at, problem);
}

static bool is_at_end(const struct parser *p)
{
    return p->at == p->end;
}

/* ---- Whitespace and comments ----------------------------------------------------------------- */

static bool starts_with(const struct parser *p, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(p->end - p->at) >= length && memcmp(p->at, text, length) == 0;
}

static bool skip_comment(struct parser *p)
{
    const char *start = p->at;
    bool to_line_end = p->at[1] == '/';
    p->at += 2;
    while (!is_at_end(p) && !(to_line_end ? *p->at == '\n' : starts_with(p, "*/")))
        p->at++;
    if (!to_line_end) {
        if (is_at_end(p))
            return fail_at(p, start, "unterminated comment");
        p->at += 2;
    }
    return true;
}

static bool skip_whitespace(struct parser *p)
{
    while (!is_at_end(p)) {
        if (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
            p->at++;
        else if (!starts_with(p, "//") && !starts_with(p, "/*"))
            break;
        else if (!skip_comment(p))
            return false;
    }
    return true;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static bool read_hex(struct parser *p, uint32_t *value)
{
    *value = 0;
    if (p->end - p->at < 4)
        return fail(p, "\\u must be followed by four hexadecimal digits");
    for (int i = 0; i < 4; i++) {
        int digit = wr_hex_digit(p->at[i], p->at[i] >= 'a' ? 'a' : 'A');
        if (digit < 0)
            return fail(p, "\\u must be followed by four hexadecimal digits");
        *value = *value << 4 | (uint32_t)digit;
    }
    p->at += 4;
    return true;
}

/* After "\u". */
static bool read_code_point(struct parser *p)
{
    const char *start = p->at - 2;
    char bytes[4];
    uint32_t value, low;
    if (!read_hex(p, &value))
        return false;
    if (value == 0)
        return fail_at(p, start, "\\u0000 is not allowed in a string");
    if (value >= 0xdc00 && value < 0xe000)
        return fail_at(p, start, "unpaired surrogate");
    if (value >= 0xd800 && value < 0xdc00) {
        if (!starts_with(p, "\\u"))
            return fail_at(p, start, "unpaired surrogate");
        p->at += 2;
        if (!read_hex(p, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail_at(p, start, "unpaired surrogate");
        value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    }
    wr_buffer_put(p->string, bytes, wr_utf8_encode(bytes, value));
    return true;
}

static bool read_escape(struct parser *p)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *start = p->at++;
    if (is_at_end(p))
        return fail_at(p, start, "the text ends inside a string");
    char letter = *p->at++;
    if (letter == 'u')
        return read_code_point(p);
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found)
        return fail_at(p, start, "unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    wr_buffer_put_char(p->string, meanings[found - letters]);
    return true;
}

/* Sets p->string. */
static bool parse_string(struct parser *p)
{
    const char *start = p->at++;
    wr_buffer_clear(p->string);
    while (!is_at_end(p) && *p->at != '"') {
        if (*p->at == '\\') {
            if (!read_escape(p))
                return false;
            continue;
        }
        if ((unsigned char)*p->at < 0x20)
            return fail(p, "control character in a string; write it as an escape (\\n, \\t, \\u001b)");
        wr_buffer_put_char(p->string, *p->at++);
    }
    if (is_at_end(p))
        return fail_at(p, start, "unterminated string");
    p->at++;
    return true;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The slot of a key, or the empty one where it belongs. */
static struct wr_json_key *find_key(struct wr_json_key *slots, size_t capacity, const struct wr_json_key *key)
{
    size_t i = key->hash & (capacity - 1);
    while (slots[i].object && (slots[i].hash != key->hash || slots[i].object != key->object ||
                               strcmp(slots[i].text, key->text) != 0))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static bool grow_keys(struct wr_json_keys *keys)
{
    if (keys->count < keys->capacity / 2)
        return true;
    size_t capacity = keys->capacity ? keys->capacity * 2 : 64;
    struct wr_json_key *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < keys->capacity; i++)
        if (keys->slots[i].object)
            *find_key(slots, capacity, &keys->slots[i]) = keys->slots[i];
    free(keys->slots);
    keys->slots = slots;
    keys->capacity = capacity;
    return true;
}

/* Keeps the string just parsed as a key of an object. NULL: failed. */
static const char *keep_key(struct parser *p, const char *start, uint32_t object)
{
    const char *text = wr_buffer_text(p->string);
    size_t length = p->string->length;
    text = text ? wr_region_text(&p->json->keep, text, length) : NULL;
    if (!text || !grow_keys(p->keys)) {
        fail_at(p, start, NULL);
        return NULL;
    }
    /* its value comes next */
    const struct wr_json_key key = {wr_hash_bytes(object, text, length), object, text, p->json->count};
    struct wr_json_key *slot = find_key(p->keys->slots, p->keys->capacity, &key);
    if (slot->object && p->json->repeats) {
        p->json->values[slot->value].is_replaced = true;
        slot->value = key.value;
        return text;
    }
    if (slot->object) {
        fail_at(p, start, "duplicate key");
        wr_utf8_quote(p->json->detail, sizeof p->json->detail, text, length);
        return NULL;
    }
    *slot = key;
    p->keys->count++;
    return text;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool parse_value(struct parser *p, const char *key_start, const char *key);

static bool parse_member(struct parser *p, uint32_t object)
{
    const char *start = p->at;
    if (is_at_end(p) || *p->at != '"')
        return fail(p, "expected a key in double quotes");
    const char *key = parse_string(p) ? keep_key(p, start, object) : NULL;
    if (!key || !skip_whitespace(p))
        return false;
    if (is_at_end(p) || *p->at != ':')
        return fail(p, "expected ':' after the key");
    p->at++;
    return parse_value(p, start, key);
}

/* At the opening bracket. object: the object's number; 0: an array. */
static bool parse_members(struct parser *p, char closing, uint32_t object)
{
    const char *opening = p->at++;
    if (!skip_whitespace(p))
        return false;
    if (!is_at_end(p) && *p->at == closing) {
        p->at++;
        return true;
    }
    const char *unclosed = closing == '}' ? "unclosed {" : "unclosed [";
    for (;;) {
        if (is_at_end(p))
            return fail_at(p, opening, unclosed);
        if (object ? !parse_member(p, object) : !parse_value(p, NULL, NULL))
            return false;
        if (!skip_whitespace(p))
            return false;
        if (is_at_end(p))
            return fail_at(p, opening, unclosed);
        if (*p->at == closing)
            break;
        if (*p->at != ',')
            return fail(p, closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        const char *comma = p->at++;
        if (!skip_whitespace(p))
            return false;
        if (!is_at_end(p) && *p->at == closing)
            return fail_at(p, comma, "trailing comma");
    }
    p->at++;
    return true;
}

static bool parse_container(struct parser *p, size_t index)
{
    if (p->depth == WR_JSON_DEPTH_MAX)
        return fail(p, "nested too deeply; at most 32 levels are allowed");
    bool is_object = *p->at == '{';
    size_t parent = p->parent;
    p->json->values[index].type = is_object ? WR_NODE_OBJECT : WR_NODE_ARRAY;
    p->parent = index;
    p->depth++;
    bool parsed = parse_members(p, is_object ? '}' : ']', is_object ? ++p->objects : 0);
    p->depth--;
    p->parent = parent;
    p->json->values[index].end = (size_t)(p->at - p->text);
    return parsed;
}

static bool set_text(struct parser *p, size_t index, enum wr_node_type type, const char *text, size_t length)
{
    struct wr_json_value *value = &p->json->values[index];
    value->type = type;
    value->text = text ? wr_region_text(&p->json->keep, text, length) : NULL;
    return value->text || fail(p, NULL);
}

static bool parse_string_value(struct parser *p, size_t index)
{
    return parse_string(p) && set_text(p, index, WR_NODE_STRING, wr_buffer_text(p->string), p->string->length);
}

static size_t skip_digits(struct parser *p)
{
    const char *start = p->at;
    while (!is_at_end(p) && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return (size_t)(p->at - start);
}

static bool parse_number(struct parser *p, size_t index)
{
    static const char problem[] = "invalid number";
    const char *start = p->at;
    p->at += *p->at == '-';
    const char *digits = p->at;
    size_t whole = skip_digits(p);
    if (whole == 0 || (whole > 1 && *digits == '0'))
        return fail_at(p, start, problem);
    if (!is_at_end(p) && *p->at == '.') {
        p->at++;
        if (!skip_digits(p))
            return fail_at(p, start, problem);
    }
    if (!is_at_end(p) && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        if (!is_at_end(p) && (*p->at == '+' || *p->at == '-'))
            p->at++;
        if (!skip_digits(p))
            return fail_at(p, start, problem);
    }
    return set_text(p, index, WR_NODE_NUMBER, start, (size_t)(p->at - start));
}

/* NaN and infinities, as numbers. */
static bool parse_special(struct parser *p, size_t index)
{
    static const char *const specials[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < WR_COUNT_OF(specials); i++) {
        if (starts_with(p, specials[i])) {
            p->at += strlen(specials[i]);
            return set_text(p, index, WR_NODE_NUMBER, specials[i], strlen(specials[i]));
        }
    }
    return false;
}

static bool parse_literal(struct parser *p, size_t index)
{
    static const struct {
        const char *text;
        enum wr_node_type type;
        bool truth;
    } literals[] = {
        {"true", WR_NODE_BOOL, true}, {"false", WR_NODE_BOOL, false}, {"null", WR_NODE_NULL, false}};
    for (size_t i = 0; i < WR_COUNT_OF(literals); i++) {
        if (starts_with(p, literals[i].text)) {
            p->at += strlen(literals[i].text);
            p->json->values[index].type = literals[i].type;
            p->json->values[index].truth = literals[i].truth;
            return true;
        }
    }
    return fail(
        p, "expected a value: an object, an array, a string in double quotes, a number, true, false or null");
}

static bool parse_by_first_byte(struct parser *p, size_t index)
{
    char first = *p->at;
    if (first == '{' || first == '[')
        return parse_container(p, index);
    if (first == '"')
        return parse_string_value(p, index);
    bool is_special = p->json->specials && (first == 'N' || first == 'I' || starts_with(p, "-I"));
    if (is_special && parse_special(p, index))
        return true;
    if (first == '-' || (first >= '0' && first <= '9'))
        return parse_number(p, index);
    return parse_literal(p, index);
}

static bool reserve_value(struct parser *p)
{
    struct wr_json *json = p->json;
    if (json->count == WR_JSON_VALUES_MAX)
        return fail(p, "too many values; at most 1,000,000 are allowed");
    return WR_ARRAY_HAS_ROOM(&json->values, &json->room, (uint32_t)json->count + 1) || fail(p, NULL);
}

static bool parse_value(struct parser *p, const char *key_start, const char *key)
{
    if (!skip_whitespace(p))
        return false;
    if (is_at_end(p))
        return fail(p, "the text ends where a value is expected");
    if (!reserve_value(p))
        return false;
    size_t index = p->json->count++;
    const char *start = p->at;
    p->json->values[index] = (struct wr_json_value){
        .parent = p->parent,
        .offset = (size_t)(start - p->text),
        .key_offset = (size_t)((key ? key_start : start) - p->text),
        .key = key,
    };
    return parse_by_first_byte(p, index);
}

/* ---- The whole text -------------------------------------------------------------------------- */

static bool check_bytes(struct parser *p)
{
    size_t invalid, length = (size_t)(p->end - p->text);
    if (length > WR_JSON_BYTES_MAX)
        return fail(p, "too long; at most 16 MiB are allowed");
    if (starts_with(p, "\xef\xbb\xbf"))
        return fail(p, "the text begins with a byte order mark; save it without one");
    if (!wr_utf8_is_valid(p->text, length, &invalid))
        return fail_at(p, p->text + invalid, "invalid UTF-8");
    const char *nul = memchr(p->text, '\0', length);
    return nul ? fail_at(p, nul, "NUL byte") : true;
}

static bool parse_all(struct parser *p)
{
    if (!check_bytes(p) || !parse_value(p, NULL, NULL) || !skip_whitespace(p))
        return false;
    return is_at_end(p) ? true : fail(p, "text after the end of the JSON value");
}

bool wr_json_read(struct wr_json *json, const char *text, size_t length)
{
    struct parser parser = {.json = json,
                            .text = text,
                            .at = text,
                            .end = text + length,
                            .keys = &json->keys,
                            .string = &json->string};
    return parse_all(&parser);
}

static void free_keys(struct wr_json_keys *keys)
{
    free(keys->slots);
    *keys = (struct wr_json_keys){0};
}

void wr_json_fini(struct wr_json *json)
{
    free(json->values);
    wr_region_fini(&json->keep);
    free_keys(&json->keys);
    wr_buffer_fini(&json->string);
    *json = (struct wr_json){0};
}

void wr_json_clear(struct wr_json *json)
{
    enum { KEPT_KEYS = 1024 }; /* more than these are freed: they would be zeroed for each text */
    struct wr_json_keys *keys = &json->keys;
    json->count = 0;
    json->problem = NULL;
    *json->detail = '\0';
    wr_region_clear(&json->keep);
    if (keys->capacity > KEPT_KEYS)
        free_keys(keys);
    else if (keys->count)
        memset(keys->slots, 0, keys->capacity * sizeof *keys->slots);
    keys->count = 0;
}

void wr_json_locate(const char *text, size_t length, size_t offset, unsigned *line, unsigned *column)
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
