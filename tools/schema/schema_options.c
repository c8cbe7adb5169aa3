#include "schema_options.h"

#include <stdio.h>
#include <string.h>

#include "common/command.h"
#include "common/table.h"
#include "config/option.h"
#include "text/buffer.h"
#include "text/units.h"

enum { KEY_ROOM = 200 }; /* more than any option name of a valid configuration */

/* ---- Building blocks ------------------------------------------------------------------------- */

void schema_add_reference(struct json_object *parent, const char *key, const char *definition)
{
    char reference[80];
    snprintf(reference, sizeof reference, "#/definitions/%s", definition);
    json_add_text(json_add_object(parent, key), "$ref", reference);
}

void schema_add_constant(struct json_object *parent, const char *key, const char *value)
{
    json_add_text(json_add_object(parent, key), "const", value);
}

void schema_add_all_of(struct json_object *parent, const char *definition)
{
    schema_add_reference(json_add_array(parent, "allOf"), NULL, definition);
}

void schema_add_required(struct json_object *parent, const char *name)
{
    json_add_text(json_add_array(parent, "required"), NULL, name);
}

struct json_object *schema_add_object(struct json_object *parent, const char *key, const char *description,
                                      bool closed)
{
    struct json_object *object = json_add_object(parent, key);
    if (description)
        json_add_text(object, "description", description);
    json_add_text(object, "type", "object");
    if (closed)
        json_add_bool(object, "additionalProperties", false);
    return object;
}

/* ---- Definitions of values ------------------------------------------------------------------- */

/* What wr_expand accepts. */
#define VARIABLE "\\$\\{(?:file:/[^}]*|[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\\}"
#define PLAIN "(?:[^$\\u0000]|\\$\\$)"
#define TEXT "(?:" PLAIN "|" VARIABLE ")*"
#define EXPANSION PLAIN "*" VARIABLE TEXT

static void add_definition(struct json_object *definitions, const char *name, const char *description,
                           const char *pattern)
{
    struct json_object *definition = json_add_object(definitions, name);
    json_add_text(definition, "description", description);
    json_add_text(definition, "type", "string");
    json_add_text(definition, "pattern", pattern);
    json_add_text(definition, "patternErrorMessage", description); /* shown by VS Code */
}

/* A number with a unit, or a string with a variable. */
static void add_measure(struct json_object *definitions, const char *name, const char *hint,
                        const char *(*unit)(size_t i))
{
    struct wr_buffer pattern = {0};
    wr_buffer_put_text(&pattern, "^(?:(?:[0-9]+\\.?[0-9]*|\\.[0-9]+) *(?:");
    for (size_t i = 0; unit(i); i++)
        wr_buffer_put_format(&pattern, "%s%s", i ? "|" : "", unit(i));
    wr_buffer_put_text(&pattern, ")|" EXPANSION ")$");
    const char *text = command_text(&pattern);
    add_definition(definitions, name, hint, text);
    wr_buffer_fini(&pattern);
}

void schema_add_value_definitions(struct json_object *definitions)
{
    add_definition(definitions, "text",
                   "a string; ${NAME}, ${NAME:-default} and ${file:/path} are expanded, $$ is $", "^" TEXT "$");
    add_definition(definitions, "expansion", "a string that contains a variable, like ${NAME:-default}",
                   "^" EXPANSION "$");
    add_measure(definitions, "duration", WR_UNITS_DURATION_HINT, wr_units_duration_name);
    add_measure(definitions, "size", WR_UNITS_SIZE_HINT, wr_units_size_name);
}

/* ---- One option ------------------------------------------------------------------------------ */

static void add_description(struct json_object *option, const weir_option *row)
{
    struct wr_buffer text = {0};
    bool has_range = row->allowed && row->type != WEIR_OPTION_ENUM;
    wr_buffer_put_text(&text, row->help);
    if (has_range)
        wr_buffer_put_format(&text, " (%s)", row->allowed);
    if (row->flags & WEIR_OPTION_SECRET)
        wr_buffer_put_text(&text, " (secret: masked wherever it is shown)");
    if (text.failed)
        command_out_of_memory();
    json_add_piece(option, "description", text.data, text.length);
    wr_buffer_fini(&text);
}

/* Items are separated by commas, as in an option table. */
static void add_list(struct json_object *option, const char *key, const char *items, bool are_numbers)
{
    struct json_object *array = json_add_array(option, key);
    while (*items) {
        char number[32];
        size_t length = strcspn(items, ",");
        snprintf(number, sizeof number, "%.*s", (int)length, items);
        if (are_numbers)
            json_add_literal(array, NULL, number);
        else
            json_add_piece(array, NULL, items, length);
        items += length + (items[length] == ',');
    }
}

static void add_default(struct json_object *option, const weir_option *row, const char *value)
{
    switch (row->type) {
    case WEIR_OPTION_BOOL:
    case WEIR_OPTION_INT:
    case WEIR_OPTION_DOUBLE: json_add_literal(option, "default", value); break;
    case WEIR_OPTION_LIST: add_list(option, "default", value, row->allowed); break;
    default: json_add_text(option, "default", value);
    }
}

static void add_number(struct json_object *option, const weir_option *row)
{
    char bound[WR_UNITS_ROOM];
    json_add_text(option, "type", row->type == WEIR_OPTION_INT ? "integer" : "number");
    if (wr_option_get_bound(row, false, bound, sizeof bound))
        json_add_literal(option, "minimum", bound);
    if (wr_option_get_bound(row, true, bound, sizeof bound))
        json_add_literal(option, "maximum", bound);
}

static void add_enum(struct json_object *option, const weir_option *row)
{
    const char *word;
    size_t length;
    struct json_object *array = json_add_array(option, "enum");
    for (int64_t i = 0; (word = wr_option_word(row, i, &length)); i++)
        json_add_piece(array, NULL, word, length);
}

/* A value that is not a string may also be given as a string with a variable. */
static void add_choice(struct json_object *option, const weir_option *row)
{
    struct json_object *array = json_add_array(option, "anyOf");
    struct json_object *value = json_add_object(array, NULL);
    if (row->type == WEIR_OPTION_BOOL)
        json_add_text(value, "type", "boolean");
    else if (row->type == WEIR_OPTION_ENUM)
        add_enum(value, row);
    else
        add_number(value, row);
    schema_add_reference(array, NULL, "expansion");
}

static void add_constraint(struct json_object *option, const weir_option *row)
{
    switch (row->type) {
    case WEIR_OPTION_DURATION:
        schema_add_all_of(option, "duration");
        add_list(option, "examples", "200ms,5s,1m", false);
        break;
    case WEIR_OPTION_SIZE:
        schema_add_all_of(option, "size");
        add_list(option, "examples", "64KiB,4MiB,1GiB", false);
        break;
    case WEIR_OPTION_STRING: schema_add_all_of(option, "text"); break;
    case WEIR_OPTION_PATH:
        schema_add_all_of(option, "text");
        json_add_count(option, "minLength", 1);
        break;
    case WEIR_OPTION_LIST:
        json_add_text(option, "type", "array");
        if (row->allowed) { /* numbers, which may be given as such */
            json_add_text(json_add_object(option, "items"), "type", "number");
            break;
        }
        schema_add_reference(option, "items", "text");
        break;
    case WEIR_OPTION_MAP:
        json_add_text(option, "type", "object");
        schema_add_reference(option, "additionalProperties", "text");
        break;
    default: add_choice(option, row);
    }
}

static void add_option(struct json_object *properties, const char *key, const weir_option *row,
                       const weir_default *defaults)
{
    const char *value = table_default_of(row, defaults);
    struct json_object *option = json_add_object(properties, key);
    add_description(option, row);
    if (value)
        add_default(option, row, value);
    add_constraint(option, row);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* The rows of a table whose names begin with a prefix: "" for all, "tls." for the members of "tls". */
struct rows {
    const struct wr_options_table *table;
    const weir_default *defaults;
    const char *prefix;
};

/* The name of row i after the prefix; NULL if it has another prefix. */
static const char *suffix_of(const struct rows *rows, size_t i)
{
    const char *name = wr_options_row(rows->table, i)->name;
    size_t length = strlen(rows->prefix);
    return strncmp(name, rows->prefix, length) == 0 ? name + length : NULL;
}

/* Rows whose suffixes have the same first part are one property. */
static bool is_same_property(const char *suffix, const char *other)
{
    size_t length = strcspn(suffix, ".");
    return other && strcspn(other, ".") == length && strncmp(suffix, other, length) == 0;
}

static bool is_first_of_property(const struct rows *rows, size_t index)
{
    const char *suffix = suffix_of(rows, index);
    if (!suffix)
        return false;
    for (size_t i = 0; i < index; i++)
        if (is_same_property(suffix, suffix_of(rows, i)))
            return false;
    return true;
}

static bool is_required(const struct rows *rows, size_t first)
{
    const char *suffix = suffix_of(rows, first);
    const weir_option *row;
    for (size_t i = first; (row = wr_options_row(rows->table, i)); i++)
        if (row->flags & WEIR_OPTION_REQUIRED && is_same_property(suffix, suffix_of(rows, i)))
            return true;
    return false;
}

static void add_required(struct json_object *parent, const struct rows *rows)
{
    struct json_object *array = json_add_array(parent, "required");
    for (size_t i = 0; wr_options_row(rows->table, i); i++) {
        if (!is_first_of_property(rows, i) || !is_required(rows, i))
            continue;
        const char *suffix = suffix_of(rows, i);
        json_add_piece(array, NULL, suffix, strcspn(suffix, "."));
    }
}

static void add_properties(struct json_object *properties, const struct rows *rows);

static void add_nested(struct json_object *properties, const char *key, const struct rows *rows)
{
    struct json_object *object = schema_add_object(properties, key, NULL, true);
    add_required(object, rows);
    add_properties(json_add_object(object, "properties"), rows);
}

static void add_properties(struct json_object *properties, const struct rows *rows)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(rows->table, i)); i++) {
        if (!is_first_of_property(rows, i))
            continue;
        const char *suffix = suffix_of(rows, i), *dot = strchr(suffix, '.');
        if (!dot) {
            add_option(properties, suffix, row, rows->defaults);
            continue;
        }
        char key[KEY_ROOM], prefix[KEY_ROOM];
        snprintf(key, sizeof key, "%.*s", (int)(dot - suffix), suffix);
        snprintf(prefix, sizeof prefix, "%.*s", (int)(dot + 1 - row->name), row->name);
        const struct rows nested = {rows->table, rows->defaults, prefix};
        add_nested(properties, key, &nested);
    }
}

void schema_add_options(struct json_object *properties, const struct wr_options_table *table,
                        const weir_default *defaults)
{
    const struct rows rows = {table, defaults, ""};
    add_properties(properties, &rows);
}

void schema_add_required_options(struct json_object *parent, const struct wr_options_table *table)
{
    const struct rows rows = {table, NULL, ""};
    add_required(parent, &rows);
}
