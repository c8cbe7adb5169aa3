#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse/parser.h"
#include "registry/name.h"
#include "text/error.h"

#include "compiled_patterns.h"

enum { MOST_PATTERN_BYTES = 64 * 1024 };

/* ---- Compiling ------------------------------------------------------------------------------- */

/* An offset in characters. */
static size_t count_characters(const char *text, size_t offset)
{
    size_t count = 0;
    for (size_t i = 0; i < offset; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* Callouts at each item are where the parser checks how long a line takes. \C would match parts of characters.
 * An expression that the just-in-time compiler cannot compile, or not here, is interpreted. */
static pcre2_code *compile(const char *text, size_t length, uint32_t more, struct wr_error *error)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT | more;
    PCRE2_UCHAR message[256];
    int problem;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, length, options, &problem, &offset, NULL);
    if (code) {
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        return code;
    }
    pcre2_get_error_message(problem, message, sizeof message);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s (at offset %zu of the expression)", (const char *)message,
                 count_characters(text, offset < length ? offset : length));
    return NULL;
}

/* ---- Python's syntax ------------------------------------------------------------------------- */

static bool is_hexadecimal(const char *at, const char *end, size_t digits)
{
    if ((size_t)(end - at) < digits)
        return false;
    for (size_t i = 0; i < digits; i++)
        if (!isxdigit((unsigned char)at[i]))
            return false;
    return true;
}

/* What PCRE2 has otherwise: \Z is the very end, and a character is \uXXXX or \UXXXXXXXX. Returns the end of the
 * escape; NULL: the error is set. */
static const char *put_escape(const char *at, const char *end, bool in_class, char **out,
                              struct wr_error *error)
{
    char letter = at[1];
    int digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (letter == 'N') {
        wr_error_set(error, WEIR_ERR_CONFIG,
                     "\\N{...} is not known; write the character, or its number as \\uXXXX");
        return NULL;
    }
    if (digits && !is_hexadecimal(at + 2, end, (size_t)digits)) {
        wr_error_set(error, WEIR_ERR_CONFIG, "\\%c: %d hexadecimal digits must follow", letter, digits);
        return NULL;
    }
    *out += digits ? sprintf(*out, "\\x{%.*s}", digits, at + 2)
                   : sprintf(*out, "\\%c", letter == 'Z' && !in_class ? 'z' : letter);
    return at + 2 + digits;
}

/* {,3} is {0,3}. Returns the position behind the comma; NULL: it is no such repetition. */
static const char *find_maximum(const char *at, const char *end)
{
    const char *digit = at + 2;
    if (end - at < 3 || at[1] != ',')
        return NULL;
    while (digit < end && isdigit((unsigned char)*digit))
        digit++;
    return digit < end && *digit == '}' ? at + 2 : NULL;
}

/* Writes the expression in PCRE2's syntax to out, which has room for three times its length. Returns the new
 * length, or SIZE_MAX with the error set. */
static size_t translate(const char *at, const char *end, char *out, struct wr_error *error)
{
    char *start = out;
    const char *class = NULL, *maximum;
    while (at < end) {
        if (*at == '\\' && at + 1 < end) {
            at = put_escape(at, end, class, &out, error);
            if (!at)
                return SIZE_MAX;
        } else if (!class && *at == '{' && (maximum = find_maximum(at, end))) {
            out = stpcpy(out, "{0,");
            at = maximum;
        } else {
            if (!class && *at == '[')
                class = at + 1 < end && at[1] == '^' ? at + 2 : at + 1;
            else if (class && *at == ']' && at != class) /* the first one is a character of the class */
                class = NULL;
            *out++ = *at++;
        }
    }
    return (size_t)(out - start);
}

/* Python's expression as PCRE2's, in the memory of the patterns. */
static bool translate_all(struct wr_patterns *patterns, const char **text, size_t *length,
                          struct wr_error *error)
{
    char *out = wr_region_alloc(&patterns->keep, 3 * *length + 1);
    if (!out)
        return wr_error_no_memory(error, NULL);
    size_t translated = translate(*text, *text + *length, out, error);
    *text = out;
    *length = translated;
    return translated != SIZE_MAX;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* The names of an expression's groups, as PCRE2 keeps them. */
struct names {
    PCRE2_SPTR table;
    uint32_t count, entry_size;
};

static struct names find_names(const pcre2_code *code)
{
    struct names names = {0};
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &names.table);
    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &names.count);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &names.entry_size);
    return names;
}

static uint32_t name_group(const struct names *names, uint32_t i)
{
    PCRE2_SPTR entry = names->table + (size_t)i * names->entry_size;
    return (uint32_t)entry[0] << 8 | entry[1];
}

static const char *name_text(const struct names *names, uint32_t i)
{
    return (const char *)names->table + (size_t)i * names->entry_size + 2;
}

static bool has_name(const struct names *names, uint32_t group)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (name_group(names, i) == group)
            return true;
    return false;
}

/* The first group without a name; 0: none. */
static uint32_t find_unnamed(const struct names *names, uint32_t groups)
{
    for (uint32_t group = 1; group <= groups; group++)
        if (!has_name(names, group))
            return group;
    return 0;
}

/* The table is sorted by name. (?J) lets groups share one. */
static bool check_name(const struct names *names, uint32_t i, struct wr_error *error)
{
    if (i && strcmp(name_text(names, i - 1), name_text(names, i)) == 0)
        return wr_error_set(error, WEIR_ERR_CONFIG, "two groups have the name \"%s\"", name_text(names, i)),
               false;
    return wr_name_check(name_text(names, i), "group", error);
}

static bool read_names(struct wr_pattern *pattern, const struct names *names, struct wr_error *error)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const char *name = name_text(names, i);
        if (!check_name(names, i, error))
            return false;
        if (strcmp(name, "value") == 0) {
            pattern->value_group = name_group(names, i);
            pattern->has_value_group = true;
        } else if (strcmp(name, "time") == 0) {
            pattern->time_group = name_group(names, i);
        } else if (pattern->label_count == WR_PARSER_LABELS) {
            return wr_error_refuse(error, WEIR_ERR_CONFIG, "at most %d labels are allowed", WR_PARSER_LABELS);
        } else {
            pattern->labels[pattern->label_count++] = (struct wr_pattern_label){name_group(names, i), name};
        }
    }
    return true;
}

bool wr_pattern_compile(struct wr_patterns *patterns, struct wr_pattern *pattern, const char *text,
                        size_t length, struct wr_error *error)
{
    /* ".*" at the beginning of an expression may also match behind bytes that are not UTF-8 */
    const uint32_t invalid = PCRE2_MATCH_INVALID_UTF | PCRE2_NO_DOTSTAR_ANCHOR;
    uint32_t groups;
    if (length > MOST_PATTERN_BYTES)
        return wr_error_set(error, WEIR_ERR_CONFIG, "longer than 64 KiB"), false;
    if (pattern->is_python && !translate_all(patterns, &text, &length, error))
        return false;
    const uint32_t more = pattern->is_python ? PCRE2_UCP : 0; /* \d, \w and \s are those of Unicode */
    pattern->valid = compile(text, length, more, error);
    pattern->invalid = pattern->valid ? compile(text, length, invalid | more, error) : NULL;
    if (!pattern->invalid)
        return false;
    pcre2_pattern_info(pattern->valid, PCRE2_INFO_CAPTURECOUNT, &groups);
    const struct names names = find_names(pattern->valid);
    pattern->labels = wr_region_alloc(&patterns->keep, (names.count + 1) * sizeof *pattern->labels);
    if (!pattern->labels)
        return wr_error_no_memory(error, NULL);
    if (!pattern->is_python && !read_names(pattern, &names, error))
        return false;
    if (pattern->is_python)
        pattern->value_group = groups ? 1 : 0; /* its extractor knows groups by their number */
    else if (!pattern->has_value_group)
        pattern->value_group = find_unnamed(&names, groups);
    if (groups > patterns->most_groups)
        patterns->most_groups = groups;
    return true;
}

void wr_patterns_free(struct wr_patterns *patterns)
{
    if (!patterns)
        return;
    for (uint32_t i = 0; i < patterns->count; i++) {
        pcre2_code_free(patterns->items[i].valid);
        pcre2_code_free(patterns->items[i].invalid);
    }
    free(patterns->items);
    wr_region_fini(&patterns->keep);
    free(patterns);
}
