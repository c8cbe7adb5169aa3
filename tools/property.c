#include "property.h"

#include <stdio.h>
#include <string.h>

#include "text/buffer.h"
#include "config/option.h"
#include "table.h"
#include "text/units.h"

enum { KEY_ROOM = 200 }; /* no longer name is found in a configuration */

/* ---- What values look like ------------------------------------------------------------------- */

/* See wr_expand. */
#define VARIABLE "\\$\\{(?:file:/[^}]*|[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\\}"
#define PLAIN "(?:[^$\\u0000]|\\$\\$)"
#define TEXT "(?:" PLAIN "|" VARIABLE ")*"
#define EXPANSION PLAIN "*" VARIABLE TEXT

static void put_definition(struct json_out *out, const char *name, const char *description, const char *pattern)
{
    json_out_open(out, name, '{');
    json_out_text(out, "description", description);
    json_out_text(out, "type", "string");
    json_out_text(out, "pattern", pattern);
    json_out_text(out, "patternErrorMessage", description); /* what VS Code says */
    json_out_close(out, '}');
}

/* A number with one of these units, or what is expanded. */
static void put_measure(struct json_out *out, const char *name, const char *hint, const char *(*unit)(size_t i))
{
    struct wr_buffer pattern = {0};
    wr_buffer_put_text(&pattern, "^(?:(?:[0-9]+\\.?[0-9]*|\\.[0-9]+) *(?:");
    for (size_t i = 0; unit(i); i++)
        wr_buffer_put_format(&pattern, "%s%s", i ? "|" : "", unit(i));
    wr_buffer_put_text(&pattern, ")|" EXPANSION ")$");
    const char *text = wr_buffer_text(&pattern);
    if (text)
        put_definition(out, name, hint, text);
    else
        out->text.failed = true;
    wr_buffer_fini(&pattern);
}

void property_put_definitions(struct json_out *out)
{
    put_definition(out, "text", "a string; ${NAME}, ${NAME:-default} and ${file:/path} are expanded, $$ is $",
                   "^" TEXT "$");
    put_definition(out, "expansion", "a string in which a variable stands for the value, like ${NAME:-default}",
                   "^" EXPANSION "$");
    put_measure(out, "duration", WR_UNITS_DURATION_HINT, wr_units_duration_name);
    put_measure(out, "size", WR_UNITS_SIZE_HINT, wr_units_size_name);
}

/* Beside a $ref nothing else would count. */
void property_put_reference(struct json_out *out, const char *key, const char *definition)
{
    char reference[80];
    snprintf(reference, sizeof reference, "#/definitions/%s", definition);
    json_out_open(out, key, '{');
    json_out_text(out, "$ref", reference);
    json_out_close(out, '}');
}

void property_open_object(struct json_out *out, const char *key, const char *description, bool closed)
{
    json_out_open(out, key, '{');
    if (description)
        json_out_text(out, "description", description);
    json_out_text(out, "type", "object");
    if (closed)
        json_out_word(out, "additionalProperties", "false");
}

void property_put_constant(struct json_out *out, const char *key, const char *value)
{
    json_out_open(out, key, '{');
    json_out_text(out, "const", value);
    json_out_close(out, '}');
}

/* ---- One option ------------------------------------------------------------------------------ */

static void put_description(struct json_out *out, const weir_option *row)
{
    struct wr_buffer text = {0};
    bool is_range = row->allowed && row->type != WEIR_OPTION_ENUM;
    wr_buffer_put_text(&text, row->help);
    if (is_range)
        wr_buffer_put_format(&text, " (%s)", row->allowed);
    if (row->flags & WEIR_OPTION_SECRET)
        wr_buffer_put_text(&text, " (secret: masked wherever it is shown)");
    json_out_piece(out, "description", text.data, text.length);
    wr_buffer_fini(&text);
}

static void put_list(struct json_out *out, const char *key, const char *items)
{
    json_out_open(out, key, '[');
    while (*items) {
        size_t length = strcspn(items, ",");
        json_out_piece(out, NULL, items, length);
        items += length + (items[length] == ',');
    }
    json_out_close(out, ']');
}

static void put_default(struct json_out *out, const weir_option *row, const char *default_value)
{
    switch (row->type) {
    case WEIR_OPTION_BOOL:
    case WEIR_OPTION_INT:
    case WEIR_OPTION_DOUBLE: json_out_word(out, "default", default_value); break;
    case WEIR_OPTION_LIST: put_list(out, "default", default_value); break;
    default: json_out_text(out, "default", default_value);
    }
}

static void put_number(struct json_out *out, const weir_option *row)
{
    char bound[WR_UNITS_ROOM];
    json_out_text(out, "type", row->type == WEIR_OPTION_INT ? "integer" : "number");
    if (wr_option_get_bound(row, false, bound, sizeof bound))
        json_out_word(out, "minimum", bound);
    if (wr_option_get_bound(row, true, bound, sizeof bound))
        json_out_word(out, "maximum", bound);
}

static void put_words(struct json_out *out, const weir_option *row)
{
    const char *word;
    size_t length;
    json_out_open(out, "enum", '[');
    for (int64_t i = 0; (word = wr_option_word(row, i, &length)); i++)
        json_out_piece(out, NULL, word, length);
    json_out_close(out, ']');
}

/* What is not a string may be given as one in which something is expanded. */
static void put_choice(struct json_out *out, const weir_option *row)
{
    json_out_open(out, "anyOf", '[');
    json_out_open(out, NULL, '{');
    if (row->type == WEIR_OPTION_BOOL)
        json_out_text(out, "type", "boolean");
    else if (row->type == WEIR_OPTION_ENUM)
        put_words(out, row);
    else
        put_number(out, row);
    json_out_close(out, '}');
    property_put_reference(out, NULL, "expansion");
    json_out_close(out, ']');
}

static void put_definition_of(struct json_out *out, const char *definition, const char *examples)
{
    json_out_open(out, "allOf", '[');
    property_put_reference(out, NULL, definition);
    json_out_close(out, ']');
    if (examples)
        put_list(out, "examples", examples);
}

static void put_constraint(struct json_out *out, const weir_option *row)
{
    switch (row->type) {
    case WEIR_OPTION_DURATION: put_definition_of(out, "duration", "200ms,5s,1m"); break;
    case WEIR_OPTION_SIZE: put_definition_of(out, "size", "64KiB,4MiB,1GiB"); break;
    case WEIR_OPTION_STRING: put_definition_of(out, "text", NULL); break;
    case WEIR_OPTION_PATH:
        put_definition_of(out, "text", NULL);
        json_out_word(out, "minLength", "1");
        break;
    case WEIR_OPTION_LIST:
        json_out_text(out, "type", "array");
        property_put_reference(out, "items", "text");
        break;
    case WEIR_OPTION_MAP:
        json_out_text(out, "type", "object");
        property_put_reference(out, "additionalProperties", "text");
        break;
    default: put_choice(out, row);
    }
}

static void put_option(struct json_out *out, const char *key, const weir_option *row,
                       const weir_default *defaults)
{
    const char *default_value = table_default_of(row, defaults);
    json_out_open(out, key, '{');
    put_description(out, row);
    if (default_value)
        put_default(out, row, default_value);
    put_constraint(out, row);
    json_out_close(out, '}');
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Rows of a table whose names begin with a prefix: "" for all, "tls." for the members of "tls". */
struct rows {
    const struct wr_options_table *table;
    const weir_default *defaults;
    const char *prefix;
};

/* What stands behind the prefix in the name of row number i; NULL: it begins otherwise. */
static const char *rest_of(const struct rows *rows, size_t i)
{
    const char *name = wr_options_row(rows->table, i)->name;
    size_t length = strlen(rows->prefix);
    return strncmp(name, rows->prefix, length) == 0 ? name + length : NULL;
}

/* Rows whose rests begin with the same part are one member. */
static bool is_same_member(const char *rest, const char *other)
{
    size_t part = strcspn(rest, ".");
    return other && strcspn(other, ".") == part && strncmp(rest, other, part) == 0;
}

static bool is_first_of_member(const struct rows *rows, size_t which)
{
    const char *rest = rest_of(rows, which);
    if (!rest)
        return false;
    for (size_t i = 0; i < which; i++)
        if (is_same_member(rest, rest_of(rows, i)))
            return false;
    return true;
}

static bool is_required(const struct rows *rows, size_t first)
{
    const char *rest = rest_of(rows, first);
    const weir_option *row;
    for (size_t i = first; (row = wr_options_row(rows->table, i)); i++)
        if (row->flags & WEIR_OPTION_REQUIRED && is_same_member(rest, rest_of(rows, i)))
            return true;
    return false;
}

static void put_required(struct json_out *out, const struct rows *rows)
{
    for (size_t i = 0; wr_options_row(rows->table, i); i++) {
        if (!is_first_of_member(rows, i) || !is_required(rows, i))
            continue;
        const char *rest = rest_of(rows, i);
        json_out_piece(out, NULL, rest, strcspn(rest, "."));
    }
}

static void put_members(struct json_out *out, const struct rows *rows);

static void put_object(struct json_out *out, const char *key, const struct rows *rows)
{
    property_open_object(out, key, NULL, true);
    json_out_open(out, "required", '[');
    put_required(out, rows);
    json_out_close(out, ']');
    json_out_open(out, "properties", '{');
    put_members(out, rows);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

static void put_members(struct json_out *out, const struct rows *rows)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(rows->table, i)); i++) {
        if (!is_first_of_member(rows, i))
            continue;
        const char *rest = rest_of(rows, i), *dot = strchr(rest, '.');
        if (!dot) {
            put_option(out, rest, row, rows->defaults);
            continue;
        }
        char key[KEY_ROOM], prefix[KEY_ROOM];
        snprintf(key, sizeof key, "%.*s", (int)(dot - rest), rest);
        snprintf(prefix, sizeof prefix, "%.*s", (int)(dot + 1 - row->name), row->name);
        const struct rows below = {rows->table, rows->defaults, prefix};
        put_object(out, key, &below);
    }
}

void property_put_all(struct json_out *out, const struct wr_options_table *table, const weir_default *defaults)
{
    const struct rows rows = {table, defaults, ""};
    put_members(out, &rows);
}

void property_put_required(struct json_out *out, const struct wr_options_table *table)
{
    const struct rows rows = {table, NULL, ""};
    put_required(out, &rows);
}
