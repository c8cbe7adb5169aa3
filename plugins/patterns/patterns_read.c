#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/name.h"
#include "text/array.h"
#include "text/base64.h"
#include "text/common.h"
#include "text/error.h"
#include "text/json.h"
#include "text/numeral.h"
#include "text/suggest.h"
#include "text/utf8.h"

#include "compiled_patterns.h"

/* The JSON that is being read, and its pattern. */
struct reader {
    const char *name, *text;
    size_t length;
    struct wr_json json;
    struct wr_patterns *patterns;
    struct wr_pattern *pattern;
    const struct wr_json_value *expression;
    bool is_benchmarkai; /* the pattern has the key "units", and its expression is base64 */
    struct wr_error *error;
};

/* ---- Errors ---------------------------------------------------------------------------------- */

static bool fail_at(const struct reader *reader, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns false. */
static bool fail_at(const struct reader *reader, size_t offset, const char *format, ...)
{
    char text[WR_ERROR_ROOM];
    unsigned line, column;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_json_locate(reader->text, reader->length, offset, &line, &column);
    return wr_error_refuse(reader->error, WEIR_ERR_CONFIG, "%s:%u:%u: %s", reader->name, line, column, text);
}

/* Describes a value for messages. */
static const char *show(const struct wr_json_value *value, char out[WR_UTF8_QUOTE_ROOM])
{
    static const char *const names[] = {
        [WR_NODE_NULL] = "null", [WR_NODE_ARRAY] = "an array", [WR_NODE_OBJECT] = "an object"};
    if (value->type == WR_NODE_STRING)
        return wr_utf8_quote(out, WR_UTF8_QUOTE_ROOM, value->text, strlen(value->text));
    if (value->type == WR_NODE_NUMBER)
        snprintf(out, WR_UTF8_QUOTE_ROOM, "%.100s", value->text);
    else
        snprintf(out, WR_UTF8_QUOTE_ROOM, "%s",
                 value->type == WR_NODE_BOOL ? (value->truth ? "true" : "false") : names[value->type]);
    return out;
}

static bool refuse(const struct reader *reader, const struct wr_json_value *value, const char *allowed)
{
    char shown[WR_UTF8_QUOTE_ROOM];
    return fail_at(reader, value->offset, "%s: must be %s, got %s", value->key, allowed, show(value, shown));
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Copies a text to the patterns. NULL: it is no string, or out of memory. */
static char *keep(const struct reader *reader, const struct wr_json_value *value)
{
    if (value->type != WR_NODE_STRING) {
        refuse(reader, value, "a string");
        return NULL;
    }
    char *text = wr_region_text(&reader->patterns->keep, value->text, strlen(value->text));
    if (!text)
        wr_error_no_memory(reader->error, reader->name);
    return text;
}

static bool read_name(struct reader *reader, const struct wr_json_value *value)
{
    struct wr_error error;
    reader->pattern->name = keep(reader, value);
    return reader->pattern->name &&
           (wr_name_check(value->text, "name", &error) || fail_at(reader, value->offset, "%s", error.text));
}

/* Compiled when all keys are known. */
static bool read_expression(struct reader *reader, const struct wr_json_value *value)
{
    reader->expression = value;
    return value->type == WR_NODE_STRING || refuse(reader, value, "a string");
}

static bool read_unit(struct reader *reader, const struct wr_json_value *value)
{
    struct wr_error error;
    const char *unit = keep(reader, value);
    if (!unit)
        return false;
    reader->pattern->unit = *unit ? unit : NULL;
    return wr_name_check_text(unit, WR_NAME_UNIT_LONGEST, "unit", &error) ||
           fail_at(reader, value->offset, "%s", error.text);
}

static bool read_instrument(struct reader *reader, const struct wr_json_value *value)
{
    static const char *const names[] = {[WEIR_VALUE] = "value",
                                        [WEIR_COUNTER] = "counter",
                                        [WEIR_GAUGE] = "gauge",
                                        [WEIR_HISTOGRAM] = "histogram"};
    for (int i = 0; value->type == WR_NODE_STRING && i < (int)WR_COUNT_OF(names); i++) {
        if (strcmp(value->text, names[i]) == 0) {
            reader->pattern->instrument = i;
            return true;
        }
    }
    return refuse(reader, value, "value, counter, gauge or histogram");
}

static bool read_constant(struct reader *reader, const struct wr_json_value *value)
{
    struct wr_pattern *pattern = reader->pattern;
    pattern->has_constant =
        value->type == WR_NODE_NUMBER &&
        wr_numeral_read(value->text, value->text + strlen(value->text), 0, &pattern->constant);
    return pattern->has_constant || refuse(reader, value, "a number");
}

static bool read_time(struct reader *reader, const struct wr_json_value *value)
{
    const char *text = keep(reader, value);
    return text &&
           (wr_time_form_compile(text, &reader->pattern->time) || refuse(reader, value, WR_TIME_FORM_HINT));
}

static bool add_replacement(struct reader *reader, const struct wr_json_value *value)
{
    struct wr_pattern *pattern = reader->pattern;
    const char *to = keep(reader, value);
    const char *from = to ? wr_region_text(&reader->patterns->keep, value->key, strlen(value->key)) : NULL;
    if (!from)
        return to && wr_error_no_memory(reader->error, reader->name);
    if (!*from)
        return fail_at(reader, value->key_offset, "replace: an empty key");
    pattern->replacements[pattern->replacement_count++] =
        (struct wr_pattern_replacement){from, to, strlen(from), strlen(to)};
    return true;
}

/* The members of an object follow it, with theirs. Returns the position after the last. */
static size_t find_end(const struct wr_json *json, size_t object)
{
    size_t i = object + 1;
    while (i < json->count && json->values[i].parent >= object)
        i++;
    return i;
}

static bool read_replace(struct reader *reader, const struct wr_json_value *value)
{
    const struct wr_json *json = &reader->json;
    size_t object = (size_t)(value - json->values), end = find_end(json, object);
    if (value->type != WR_NODE_OBJECT)
        return refuse(reader, value, "an object of texts and what they become, like {\",\": \"\"}");
    reader->pattern->replacements =
        wr_region_alloc(&reader->patterns->keep, (end - object) * sizeof *reader->pattern->replacements);
    if (!reader->pattern->replacements)
        return wr_error_no_memory(reader->error, reader->name);
    for (size_t i = object + 1; i < end; i++)
        if (json->values[i].parent == object && !add_replacement(reader, &json->values[i]))
            return false;
    return true;
}

static const struct key {
    const char *name;
    bool (*read)(struct reader *reader, const struct wr_json_value *value);
} keys[] =
    {
        {"name", read_name},       {"pattern", read_expression},
        {"unit", read_unit},       {"instrument", read_instrument},
        {"value", read_constant},  {"time", read_time},
        {"replace", read_replace},
},
  benchmarkai_keys[] = {{"name", read_name}, {"pattern", read_expression}, {"units", read_unit}};

/* ---- A pattern ------------------------------------------------------------------------------- */

static bool read_key(struct reader *reader, const struct wr_json_value *value)
{
    const struct key *allowed = reader->is_benchmarkai ? benchmarkai_keys : keys;
    size_t count = reader->is_benchmarkai ? WR_COUNT_OF(benchmarkai_keys) : WR_COUNT_OF(keys);
    struct wr_suggest suggest;
    char shown[WR_UTF8_QUOTE_ROOM], hint[WR_SUGGEST_ROOM];
    wr_suggest_init(&suggest, value->key);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value->key, allowed[i].name) == 0)
            return allowed[i].read(reader, value);
        wr_suggest_try(&suggest, allowed[i].name);
    }
    return fail_at(reader, value->key_offset, "unknown key %s; allowed are %s%s",
                   wr_utf8_quote(shown, sizeof shown, value->key, strlen(value->key)),
                   reader->is_benchmarkai
                       ? "name, pattern and units (a pattern with \"units\" is benchmarkai's)"
                       : "name, pattern, unit, instrument, value, time and replace",
                   wr_suggest_text(&suggest, hint, sizeof hint));
}

static bool has_member(const struct wr_json *json, size_t object, const char *key)
{
    for (size_t i = object + 1, end = find_end(json, object); i < end; i++)
        if (json->values[i].parent == object && strcmp(json->values[i].key, key) == 0)
            return true;
    return false;
}

static bool compile(struct reader *reader)
{
    const struct wr_json_value *value = reader->expression;
    size_t length = strlen(value->text);
    struct wr_error error;
    char *text = keep(reader, value);
    if (text && reader->is_benchmarkai &&
        (length = wr_base64_decode(text, length, true, text, length)) == SIZE_MAX)
        return refuse(reader, value, "a regular expression in base64, since there are \"units\"");
    return text && (wr_pattern_compile(reader->patterns, reader->pattern, text, length, &error) ||
                    fail_at(reader, value->offset, "pattern of \"%s\": %s", reader->pattern->name, error.text));
}

static bool check(struct reader *reader, const struct wr_json_value *object)
{
    if (!reader->pattern->name)
        return fail_at(reader, object->offset, "the key \"name\" is missing");
    if (!reader->expression)
        return fail_at(reader, object->offset, "the key \"pattern\" is missing");
    return compile(reader);
}

static bool read_pattern(struct reader *reader, size_t object)
{
    struct wr_patterns *patterns = reader->patterns;
    const struct wr_json *json = &reader->json;
    if (!WR_ARRAY_HAS_ROOM(&patterns->items, &patterns->room, patterns->count + 1))
        return wr_error_no_memory(reader->error, reader->name);
    reader->pattern = &patterns->items[patterns->count++];
    reader->expression = NULL;
    reader->is_benchmarkai = reader->pattern->is_python = has_member(json, object, "units");
    for (size_t i = object + 1, end = find_end(json, object); i < end; i++)
        if (json->values[i].parent == object && !read_key(reader, &json->values[i]))
            return false;
    return check(reader, &json->values[object]);
}

/* ---- Presets --------------------------------------------------------------------------------- */

/* nginx's log format "combined", which Apache has too. What clients send is inside quotes, and their quotes are
 * escaped: neither can imitate the fields behind it. rt=$request_time may follow, with other words and quoted
 * texts before it. Clients choose the method, too: only those of RFC 9110 and RFC 5789 are labels, so that the
 * number of series is bounded. */
#define NGINX_REQUEST                                                                                          \
    "^\\\\S+ \\\\S+ .*? \\\\[(?<time>\\\\d\\\\d/[A-Z][a-z]{2}/\\\\d{4}(?::\\\\d\\\\d){3} [-+]\\\\d{4})\\\\] "  \
    "\\\"(?:(?<method>GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH) )?+"                               \
    "(?:[^\\\"\\\\\\\\]|\\\\\\\\.)*+\\\" (?<status>\\\\d{3}) "
#define NGINX_TEXT " \\\"(?:[^\\\"\\\\\\\\]|\\\\\\\\.)*+\\\""
#define NGINX_TIME "\"time\": \"%d/%b/%Y:%H:%M:%S %z\""

static const char nginx[] =
    "[{\"name\": \"requests\", \"instrument\": \"counter\", \"value\": 1, " NGINX_TIME ",\n"
    "  \"pattern\": \"" NGINX_REQUEST "(?:\\\\d+|-)(?= |$)\"},\n"
    " {\"name\": \"bytes_sent\", \"instrument\": \"counter\", \"unit\": \"bytes\", " NGINX_TIME ",\n"
    "  \"pattern\": \"" NGINX_REQUEST "(?<value>\\\\d+|-)(?= |$)\", \"replace\": {\"-\": \"0\"}},\n"
    " {\"name\": \"request_time\", \"instrument\": \"histogram\", \"unit\": \"s\", " NGINX_TIME ",\n"
    "  \"pattern\": \"" NGINX_REQUEST "(?:\\\\d+|-)" NGINX_TEXT NGINX_TEXT
    "(?: (?!rt=)(?:[^ \\\"]|\\\"(?:[^\\\"\\\\\\\\]|\\\\\\\\.)*+\\\")++)*+ "
    "rt=(?<value>\\\\d+(?:\\\\.\\\\d+)?)(?= |$)\"}]\n";

static const struct {
    const char *name, *text;
} presets[] = {{"nginx", nginx}};

const char *wr_patterns_find_preset(const char *name)
{
    for (size_t i = 0; i < WR_COUNT_OF(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return presets[i].text;
    return NULL;
}

/* ---- The whole text -------------------------------------------------------------------------- */

static bool read_text(struct wr_patterns *patterns, const char *name, const char *text, size_t length,
                      struct wr_error *error);

static bool read_item(struct reader *reader, size_t i)
{
    const struct wr_json_value *value = &reader->json.values[i];
    char shown[WR_UTF8_QUOTE_ROOM];
    const char *preset = value->type == WR_NODE_STRING ? wr_patterns_find_preset(value->text) : NULL;
    if (value->type == WR_NODE_OBJECT)
        return read_pattern(reader, i);
    if (preset)
        return read_text(reader->patterns, value->text, preset, strlen(preset), reader->error);
    return fail_at(reader, value->offset, "%s is not a pattern (an object, or the name of a preset: \"nginx\")",
                   show(value, shown));
}

static bool read_items(struct reader *reader)
{
    const struct wr_json *json = &reader->json;
    if (json->values->type != WR_NODE_ARRAY)
        return read_item(reader, 0);
    for (size_t i = 1; i < json->count; i++)
        if (json->values[i].parent == 0 && !read_item(reader, i))
            return false;
    return json->count > 1 || fail_at(reader, json->values->offset, "there are no patterns");
}

static bool read_text(struct wr_patterns *patterns, const char *name, const char *text, size_t length,
                      struct wr_error *error)
{
    struct reader reader = {.name = name, .text = text, .length = length, .patterns = patterns, .error = error};
    bool is_good = wr_json_read(&reader.json, text, length);
    if (is_good)
        is_good = read_items(&reader);
    else if (reader.json.problem)
        fail_at(&reader, reader.json.offset, "%s%s%s", reader.json.problem, *reader.json.detail ? ": " : "",
                reader.json.detail);
    else
        wr_error_no_memory(error, name);
    wr_json_fini(&reader.json);
    return is_good;
}

struct wr_patterns *wr_patterns_read(const char *name, const char *text, size_t length, struct wr_error *error)
{
    struct wr_patterns *patterns = calloc(1, sizeof *patterns);
    if (!patterns) {
        wr_error_no_memory(error, name);
        return NULL;
    }
    if (read_text(patterns, name, text, length, error))
        return patterns;
    wr_patterns_free(patterns);
    return NULL;
}
