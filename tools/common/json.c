#include "json.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "text/buffer.h"
#include "text/number.h"
#include "text/utf8.h"

struct json_object *json_start_object(void)
{
    return command_must(json_object_new_object());
}

struct json_object *json_start_array(void)
{
    return command_must(json_object_new_array());
}

/* The parent owns the value. NULL is JSON's null. */
static struct json_object *add(struct json_object *parent, const char *key, struct json_object *value)
{
    int result = key ? json_object_object_add(parent, key, value) : json_object_array_add(parent, value);
    if (result != 0)
        command_out_of_memory();
    return value;
}

struct json_object *json_add_object(struct json_object *parent, const char *key)
{
    return add(parent, key, json_start_object());
}

struct json_object *json_add_array(struct json_object *parent, const char *key)
{
    return add(parent, key, json_start_array());
}

/* ---- Values ---------------------------------------------------------------------------------- */

void json_add_piece(struct json_object *parent, const char *key, const char *text, size_t length)
{
    struct wr_buffer shown = {0};
    bool is_valid = length == 0 || wr_utf8_is_valid(text, length, NULL);
    if (!is_valid)
        wr_utf8_show(&shown, text, length, 0);
    if (shown.failed)
        command_out_of_memory();
    const char *bytes = is_valid ? text : shown.data;
    size_t count = is_valid ? length : shown.length;
    add(parent, key, command_must(json_object_new_string_len(bytes, (int)count)));
    wr_buffer_fini(&shown);
}

void json_add_text(struct json_object *parent, const char *key, const char *text)
{
    if (text)
        json_add_piece(parent, key, text, strlen(text));
    else
        add(parent, key, NULL);
}

void json_add_expandable(struct json_object *parent, const char *key, const char *text)
{
    struct wr_buffer escaped = {0};
    for (; *text; text++) {
        wr_buffer_put_char(&escaped, *text);
        if (*text == '$')
            wr_buffer_put_char(&escaped, '$');
    }
    if (!wr_buffer_text(&escaped))
        command_out_of_memory();
    json_add_text(parent, key, escaped.data);
    wr_buffer_fini(&escaped);
}

void json_add_bool(struct json_object *parent, const char *key, bool value)
{
    add(parent, key, command_must(json_object_new_boolean(value)));
}

void json_add_count(struct json_object *parent, const char *key, uint64_t count)
{
    add(parent, key, command_must(json_object_new_uint64(count)));
}

/* json-c prints the text instead of the number, which it would format with "%.17g". */
static void add_formatted(struct json_object *parent, const char *key, double number, const char *text)
{
    add(parent, key, command_must(json_object_new_double_s(number, text)));
}

void json_add_number(struct json_object *parent, const char *key, double number)
{
    char text[WR_NUMBER_ROOM + 1];
    if (!isfinite(number)) {
        add(parent, key, NULL);
        return;
    }
    text[wr_number_put_double(text, number)] = '\0';
    add_formatted(parent, key, number, text);
}

void json_add_decimals(struct json_object *parent, const char *key, double number, int decimals)
{
    char text[400]; /* the largest double has 309 digits */
    if (!isfinite(number)) {
        add(parent, key, NULL);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, number);
    add_formatted(parent, key, number, text);
}

void json_add_literal(struct json_object *parent, const char *key, const char *literal)
{
    int64_t integer;
    double number;
    if (strcmp(literal, "true") == 0 || strcmp(literal, "false") == 0)
        json_add_bool(parent, key, *literal == 't');
    else if (wr_number_read_int(literal, &integer))
        add(parent, key, command_must(json_object_new_int64(integer)));
    else if (wr_number_read_double(literal, &number))
        json_add_number(parent, key, number);
    else
        json_add_text(parent, key, literal);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void put_value(struct wr_buffer *out, struct json_object *value, int flags)
{
    size_t length;
    const char *text =
        json_object_to_json_string_length(value, flags | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
    if (!text)
        command_out_of_memory();
    wr_buffer_put(out, text, length);
}

static void put_elements(struct wr_buffer *out, struct json_object *array)
{
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < json_object_array_length(array); i++) {
        wr_buffer_put_text(out, i ? ",\n " : "");
        put_value(out, json_object_array_get_idx(array, i), JSON_C_TO_STRING_PLAIN);
    }
    wr_buffer_put_char(out, ']');
}

char *json_take(struct json_object *root)
{
    const char *text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN);
    char *copy = text ? strdup(text) : NULL;
    json_object_put(root);
    return command_must(copy);
}

int json_print(struct json_object *root, enum json_style style, int result)
{
    struct wr_buffer out = {0};
    if (style == JSON_INDENTED)
        put_value(&out, root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
    else if (json_object_is_type(root, json_type_array))
        put_elements(&out, root);
    else
        put_value(&out, root, JSON_C_TO_STRING_PLAIN);
    wr_buffer_put_char(&out, '\n');
    json_object_put(root);
    return command_finish(&out, result);
}
