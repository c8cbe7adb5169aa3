#include "table.h"

#include <string.h>

#include "text/buffer.h"
#include "text/escape.h"
#include "config/option.h"

const char *table_default_of(const weir_option *row, const weir_default *defaults)
{
    for (; defaults && defaults->name; defaults++)
        if (strcmp(defaults->name, row->name) == 0)
            return defaults->value;
    return row->default_value;
}

/* "1..65535" as it is, "a|b" as "a, b". */
static void put_allowed(struct wr_buffer *out, const char *allowed)
{
    wr_buffer_put_text(out, "; allowed: ");
    for (; *allowed; allowed++) {
        if (*allowed == '|')
            wr_buffer_put_text(out, ", ");
        else
            wr_buffer_put_char(out, *allowed);
    }
}

static void put_row(struct wr_buffer *out, const weir_option *row, const weir_default *defaults, int width)
{
    const char *default_value = table_default_of(row, defaults);
    wr_buffer_put_format(out, "  %-*s  %-8s  %s\n", width, row->name, wr_option_type_name(row->type),
                         row->help);
    wr_buffer_put_format(out, "  %*s  %8s  ", width, "", "");
    if (row->flags & WEIR_OPTION_REQUIRED)
        wr_buffer_put_text(out, "required");
    else if (default_value)
        wr_buffer_put_format(out, "default: %s", *default_value ? default_value : "\"\"");
    else
        wr_buffer_put_text(out, "no default");
    if (row->allowed)
        put_allowed(out, row->allowed);
    if (row->flags & WEIR_OPTION_SECRET)
        wr_buffer_put_text(out, "; secret");
    wr_buffer_put_char(out, '\n');
}

void table_put(struct wr_buffer *out, const struct wr_options_table *table, const weir_default *defaults)
{
    const weir_option *row;
    int width = 0;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        if ((int)strlen(row->name) > width)
            width = (int)strlen(row->name);
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        put_row(out, row, defaults, width);
}

void table_put_json_member(struct wr_buffer *out, const char *key, const char *value)
{
    wr_escape_json(out, key);
    wr_buffer_put_char(out, ':');
    if (value)
        wr_escape_json(out, value);
    else
        wr_buffer_put_text(out, "null");
}

static void put_json_row(struct wr_buffer *out, const weir_option *row, const weir_default *defaults)
{
    wr_buffer_put_char(out, '{');
    table_put_json_member(out, "name", row->name);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "type", wr_option_type_name(row->type));
    wr_buffer_put_format(out, ",\"required\":%s", row->flags & WEIR_OPTION_REQUIRED ? "true" : "false");
    wr_buffer_put_format(out, ",\"secret\":%s,", row->flags & WEIR_OPTION_SECRET ? "true" : "false");
    table_put_json_member(out, "default", table_default_of(row, defaults));
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "allowed", row->allowed);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "help", row->help);
    wr_buffer_put_char(out, '}');
}

void table_put_json(struct wr_buffer *out, const struct wr_options_table *table, const weir_default *defaults)
{
    const weir_option *row;
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; (row = wr_options_row(table, i)); i++) {
        wr_buffer_put_text(out, i ? "," : "");
        put_json_row(out, row, defaults);
    }
    wr_buffer_put_char(out, ']');
}
