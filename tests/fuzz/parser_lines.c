/* The parser "auto": each line is read as by other readers (json-c, a regular expression and strtod), or
 * refused. What other readers certainly take is not refused, and what is left out is no value for them either.
 */

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>

#include "fuzz.h"
#include "parse/parser.h"
#include "registry/name.h"
#include "text/common.h"
#include "text/utf8.h"

/* What came out of the current line. */
static const char *line;
static unsigned records, refused, left_out;

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool matches(const char *text, const char *pattern, regex_t *compiled)
{
    if (!compiled->re_nsub && !compiled->buffer)
        FUZZ_CHECK(regcomp(compiled, pattern, REG_EXTENDED) == 0);
    return regexec(compiled, text, 0, NULL, 0) == 0;
}

static bool is_decimal(const char *text)
{
    static regex_t compiled;
    return matches(text, "^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$", &compiled);
}

static bool is_integer(const char *text)
{
    static regex_t compiled;
    return matches(text, "^[+-]?[0-9]+$", &compiled);
}

static bool is_special(const char *text)
{
    static regex_t compiled;
    return matches(text, "^([nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?)$", &compiled);
}

/* Integers of 64 bits but -0 have the kind INT; all other numbers are doubles. */
static bool find_number(const char *text, weir_typed_value *value)
{
    if (!is_decimal(text) && !is_special(text))
        return false;
    *value = (weir_typed_value){NULL, WEIR_DOUBLE(strtod(text, NULL))};
    errno = 0;
    long long integer = strtoll(text, NULL, 10);
    if (is_integer(text) && errno == 0 && (integer || *text != '-'))
        *value = (weir_typed_value){NULL, WEIR_INT(integer)};
    return is_special(text) || isfinite(strtod(text, NULL));
}

static bool is_same(const weir_typed_value *a, const weir_typed_value *b)
{
    if (a->number.kind != b->number.kind)
        return false;
    if (a->number.kind == WEIR_KIND_INT)
        return a->number.is.i64 == b->number.is.i64;
    return memcmp(&a->number.is.f64, &b->number.is.f64, sizeof a->number.is.f64) == 0 ||
           (isnan(a->number.is.f64) && isnan(b->number.is.f64));
}

/* ---- name=value ------------------------------------------------------------------------------ */

/* Whether the word is NAME=VALUE; splits it. */
static bool find_word(char *word, weir_typed_value *value)
{
    char *equals = strrchr(word, '=');
    if (!equals || equals == word || equals[1] == '+')
        return false;
    *equals = '\0';
    return find_number(equals + 1, value);
}

static void check_words(const struct wr_parse_record *record)
{
    weir_typed_value value;
    char *copy = strdup(line), *rest;
    size_t count = 0;
    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        FUZZ_CHECK(find_word(word, &value) && count < record->count);
        FUZZ_CHECK(strcmp(record->values[count].name, word) == 0 && is_same(&record->values[count], &value));
        count++;
    }
    free(copy);
    FUZZ_CHECK(count == record->count && !record->group && !record->label_count && !record->has_time &&
               !record->metadata && !record->cumulative);
}

/* Whether all words are values with names that are certainly allowed. */
static bool are_plain_words(void)
{
    static regex_t compiled;
    weir_typed_value value;
    bool plain = matches(line, "^[a-z]{1,200}=[^ =]+( [a-z]{1,200}=[^ =]+)*$", &compiled) && *line != '#';
    char *copy = strdup(line), *rest;
    size_t count = 0;
    for (char *word = strtok_r(copy, " \t", &rest); word && plain; word = strtok_r(NULL, " \t", &rest))
        plain = find_word(word, &value) && ++count <= WR_PARSER_VALUES;
    free(copy);
    return plain;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns NULL if the line is not JSON. */
static struct json_object *parse_json(void)
{
    struct json_tokener *tokener = json_tokener_new();
    FUZZ_CHECK(tokener);
    struct json_object *object = json_tokener_parse_ex(tokener, line, (int)strlen(line) + 1);
    if (json_tokener_get_error(tokener) != json_tokener_success) {
        json_object_put(object);
        object = NULL;
    }
    json_tokener_free(tokener);
    return object;
}

static bool is_text(struct json_object *object, const char *text)
{
    return json_object_is_type(object, json_type_string) &&
           (size_t)json_object_get_string_len(object) == strlen(text) &&
           strcmp(json_object_get_string(object), text) == 0;
}

/* A text may have blanks around its number. */
static bool find_value(struct json_object *object, weir_typed_value *value)
{
    if (json_object_is_type(object, json_type_boolean)) {
        *value = (weir_typed_value){NULL, WEIR_INT(json_object_get_boolean(object))};
        return true;
    }
    if (!json_object_is_type(object, json_type_string) && !json_object_is_type(object, json_type_int) &&
        !json_object_is_type(object, json_type_double))
        return false;
    char *text = strdup(json_object_get_string(object)), *start = text + strspn(text, " \t");
    for (size_t length = strlen(start); length && strchr(" \t", start[length - 1]); length--)
        start[length - 1] = '\0';
    bool found = find_number(start, value);
    free(text);
    return found;
}

/* json-c keeps the text of a double but not of an integer: beyond 64 bits it is truncated, and 0 loses its
 * sign. */
static void check_value(struct json_object *object, const weir_typed_value *value)
{
    weir_typed_value found;
    bool is_cut = json_object_is_type(object, json_type_int) &&
                  (!json_object_get_int64(object) || json_object_get_int64(object) == INT64_MIN ||
                   json_object_get_int64(object) == INT64_MAX);
    FUZZ_CHECK(find_value(object, &found));
    if (is_cut)
        FUZZ_CHECK(value->number.kind == WEIR_KIND_INT
                       ? value->number.is.i64 == json_object_get_int64(object)
                       : value->number.is.f64 == 0 || fabs(value->number.is.f64) >= 0x1p63);
    else
        FUZZ_CHECK(is_same(value, &found));
}

static void check_time(struct json_object *object, int64_t time_ns)
{
    const char *text = json_object_get_string(object), *dot = strchr(text, '.');
    char decimals[] = "000000000";
    wr_int128 time = strtoll(text, NULL, 10);
    for (size_t i = 0; dot && i + 1 < sizeof decimals && dot[1 + i]; i++)
        decimals[i] = dot[1 + i];
    int64_t rest_ns = strtol(decimals, NULL, 10);
    time = time * 1000000000 + (*text == '-' ? -rest_ns : rest_ns);
    FUZZ_CHECK(json_object_get_type(object) == json_type_double || json_object_is_type(object, json_type_int));
    FUZZ_CHECK(time_ns == time);
}

static void check_labels(struct json_object *object, const struct wr_parse_record *record)
{
    size_t count = 0;
    json_object_object_foreach(object, key, value)
    {
        FUZZ_CHECK(count < record->label_count && strcmp(record->labels[count].key, key) == 0);
        FUZZ_CHECK(is_text(value, record->labels[count].value));
        count++;
    }
    FUZZ_CHECK(count == record->label_count);
}

static void check_text(struct json_object *object, const char *key, const char *text)
{
    struct json_object *member;
    bool found = json_object_object_get_ex(object, key, &member);
    FUZZ_CHECK(found ? text && is_text(member, text) : !text);
}

/* One value with its attributes. */
static void check_attributes(struct json_object *object, const struct wr_parse_record *record)
{
    struct json_object *member;
    FUZZ_CHECK(record->count == 1 && !left_out);
    check_text(object, "name", record->values->name);
    check_text(object, "group", record->group);
    check_text(object, "metadata", record->metadata);
    check_text(object, "unit", record->unit);
    check_text(object, "help", record->help);
    FUZZ_CHECK(json_object_object_get_ex(object, "value", &member));
    check_value(member, record->values);
    bool found = json_object_object_get_ex(object, "cumulative", &member);
    FUZZ_CHECK(record->cumulative == (found && json_object_get_boolean(member)));
    FUZZ_CHECK(record->has_time == json_object_object_get_ex(object, "timestamp", &member));
    if (record->has_time)
        check_time(member, record->time_ns);
    if (json_object_object_get_ex(object, "labels", &member))
        check_labels(member, record);
    else
        FUZZ_CHECK(!record->label_count);
}

/* Members that are values, in their order; the others were left out. */
static void check_event(struct json_object *object, const struct wr_parse_record *record)
{
    weir_typed_value ignored;
    size_t count = 0;
    json_object_object_foreach(object, key, value)
    {
        if (!find_value(value, &ignored) || !wr_name_check(key, "name", NULL))
            continue;
        FUZZ_CHECK(count < record->count && strcmp(record->values[count].name, key) == 0);
        check_value(value, &record->values[count++]);
    }
    FUZZ_CHECK(count == record->count && count + left_out == (size_t)json_object_object_length(object));
    FUZZ_CHECK(!record->group && !record->label_count && !record->has_time && !record->metadata &&
               !record->cumulative);
}

static void check_json(const struct wr_parse_record *record)
{
    struct json_object *name, *object = parse_json();
    FUZZ_CHECK(json_object_is_type(object, json_type_object));
    if (json_object_object_get_ex(object, "name", &name) && json_object_is_type(name, json_type_string))
        check_attributes(object, record);
    else
        check_event(object, record);
    json_object_put(object);
}

/* RFC 8259: an object of numbers whose names have no escapes, and are different. */
static bool is_plain_object(void)
{
#define PAIR "[ \t]*\"[a-z]{1,200}\"[ \t]*:[ \t]*-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?[ \t]*"
    static regex_t compiled;
    size_t quotes = 0;
    if (!matches(line, "^[ \t]*[{]" PAIR "(," PAIR ")*[}][ \t]*$", &compiled))
        return false;
    for (const char *at = line; *at; at++)
        quotes += *at == '"';
    struct json_object *object = parse_json();
    FUZZ_CHECK(json_object_is_type(object, json_type_object));
    size_t keys = (size_t)json_object_object_length(object);
    json_object_put(object);
    return keys <= WR_PARSER_VALUES && quotes == 2 * keys;
#undef PAIR
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool begins_json(void)
{
    const char *first = line + strspn(line, " \t");
    return *first == '{' || *first == '[';
}

/* Lines of the format text are read back by another fuzzer, and json-c does not see that a comment ends after
 * two stars. */
static bool is_skipped(void)
{
    return (line[0] == '[' && strstr(line, "][")) || (begins_json() && strstr(line, "**/"));
}

static bool take(void *context, const struct wr_parse_record *record)
{
    (void)context;
    records++;
    if (is_skipped())
        return true;
    if (begins_json())
        check_json(record);
    else
        check_words(record);
    return true;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    (void)context;
    if (fault->is_value)
        left_out++;
    else
        refused++;
}

static void check_line(struct wr_parser *parser, size_t length)
{
    size_t used;
    records = refused = left_out = 0;
    FUZZ_CHECK(wr_parser_put(parser, line, length, &used) && wr_parser_put(parser, "\r\n", 2, &used));
    const char *first = line + strspn(line, " \t");
    FUZZ_CHECK(records + refused <= 1);
    if (strlen(line) != length || !wr_utf8_is_valid(line, length, NULL))
        FUZZ_CHECK(refused == 1);
    else if (!*first || *first == '#')
        FUZZ_CHECK(!records && !refused && !left_out);
    else
        FUZZ_CHECK(records + refused + left_out > 0);
    if (strlen(line) == length && (are_plain_words() || is_plain_object()))
        FUZZ_CHECK(!refused);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wr_parser_sink sink = {take, refuse, NULL};
    const struct wr_parser_options options = {0};
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find("auto"), &options, &sink);
    const uint8_t *end = data + size;
    char *text;
    size_t used;
    FUZZ_CHECK(parser && wr_parser_put(parser, "\n", 1, &used)); /* a byte order mark is for the first line */
    while (data < end) {
        const uint8_t *next = fuzz_take_line(data, end, &text);
        size_t length = (size_t)(next - data) - (next > data && next[-1] == '\n');
        length -= length && text[length - 1] == '\r';
        text[length] = '\0';
        line = text;
        check_line(parser, length);
        free(text);
        data = next;
    }
    wr_parser_free(parser);
    return 0;
}
