#include "table.h"

#include <string.h>

#include "common/command.h"
#include "common/json.h"
#include "config/option.h"
#include "text/buffer.h"
#include "text/utf8.h"

const char *table_default_of(const weir_option *row, const weir_default *defaults)
{
    for (; defaults && defaults->name; defaults++)
        if (strcmp(defaults->name, row->name) == 0)
            return defaults->value;
    return row->default_value;
}

/* "1..65535" unchanged, "a|b" as "a, b". */
static void put_allowed(struct wr_buffer *out, const char *allowed)
{
    const char *separator = "; allowed: ";
    while (*allowed) {
        size_t length = strcspn(allowed, "|");
        wr_buffer_put_text(out, separator);
        wr_utf8_show(out, allowed, length, 0);
        allowed += length + (allowed[length] == '|');
        separator = ", ";
    }
}

static void put_default(struct wr_buffer *out, const weir_option *row, const char *value)
{
    wr_buffer_put_text(out, value ? "default: " : "no default");
    if (value)
        command_put_text(out, *value ? value : row->type == WEIR_OPTION_LIST ? "[]" : "\"\"");
}

static void put_row(struct wr_buffer *out, const weir_option *row, const weir_default *defaults, size_t width)
{
    const char *value = table_default_of(row, defaults);
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, row->name, width);
    wr_buffer_put_format(out, "  %-8s  ", wr_option_type_name(row->type));
    command_put_text(out, row->help);
    wr_buffer_put_format(out, "\n  %*s  %8s  ", (int)width, "", "");
    if (row->flags & WEIR_OPTION_REQUIRED)
        wr_buffer_put_text(out, "required");
    else
        put_default(out, row, value);
    if (row->allowed)
        put_allowed(out, row->allowed);
    if (row->flags & WEIR_OPTION_SECRET)
        wr_buffer_put_text(out, "; secret");
    wr_buffer_put_char(out, '\n');
}

void table_put(struct wr_buffer *out, const struct wr_options_table *table, const weir_default *defaults)
{
    const weir_option *row;
    size_t width = 0;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        if (strlen(row->name) > width)
            width = strlen(row->name);
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        put_row(out, row, defaults, width);
}

void table_add_json(struct json_object *array, const struct wr_options_table *table,
                    const weir_default *defaults)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++) {
        struct json_object *option = json_add_object(array, NULL);
        json_add_text(option, "name", row->name);
        json_add_text(option, "type", wr_option_type_name(row->type));
        json_add_bool(option, "required", row->flags & WEIR_OPTION_REQUIRED);
        json_add_bool(option, "secret", row->flags & WEIR_OPTION_SECRET);
        json_add_text(option, "default", table_default_of(row, defaults));
        json_add_text(option, "allowed", row->allowed);
        json_add_text(option, "help", row->help);
    }
}
