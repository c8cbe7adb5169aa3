#include "format/index_name.h"

#include <stdbool.h>
#include <string.h>

#include "format/series_template.h"
#include "text/buffer.h"

/* https://www.elastic.co/guide/en/elasticsearch/reference/current/indices-create-index.html */

static bool is_allowed(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

const char *wr_index_name_find_fault(const char *text)
{
    struct series_template_part part;
    const char *at = text;
    if (!*text || strlen(text) > WR_INDEX_NAME_LONGEST)
        return "\"index\" must have 1 to 255 characters";
    if (strchr("-_", *text) || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return "\"index\" must not begin with \"-\" or \"_\", nor be \".\" or \"..\"";
    while ((part = wr_series_template_next(&at)).kind != SERIES_TEMPLATE_END) {
        bool is_invalid = part.kind == SERIES_TEMPLATE_INVALID;
        if (is_invalid && part.length > 1 && part.text[part.length - 1] == '}')
            return "\"index\" has an unknown field; allowed: {group}, {name}, {label.KEY}";
        for (size_t i = 0; (is_invalid || part.kind == SERIES_TEMPLATE_TEXT) && i < part.length; i++)
            if (!is_allowed(part.text[i]))
                return "\"index\" has a character that index names do not have; allowed: lowercase letters, "
                       "digits, \".\", \"_\", \"-\", and the fields {group}, {name}, {label.KEY}";
    }
    return NULL;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* One '_' for a character of several bytes. */
static char to_index_byte(enum series_template_kind field, char byte)
{
    (void)field;
    char lower = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
    return ((unsigned char)byte & 0xc0) == 0x80 ? '\0' : is_allowed(lower) ? lower : '_';
}

/* Names must not begin so, but what replaces a field may. */
static bool begins_wrongly(const char *name, size_t length)
{
    return length && (*name == '-' || *name == '_' || (*name == '.' && length == 1) ||
                      (length == 2 && memcmp(name, "..", 2) == 0));
}

void wr_index_name_put(struct wr_buffer *out, const char *text, const weir_series *series,
                       const weir_batch *batch)
{
    static const struct series_template_rules rules = {.map = to_index_byte, .absent = "none"};
    static const char in_front[] = "weir";
    enum { IN_FRONT = sizeof in_front - 1 };
    char name[IN_FRONT + WR_INDEX_NAME_LONGEST + 1];
    char *expanded = name + IN_FRONT;
    size_t length = wr_series_template_expand(text, &rules, batch, series, expanded, WR_INDEX_NAME_LONGEST + 1);
    length = length < WR_INDEX_NAME_LONGEST ? length : WR_INDEX_NAME_LONGEST;
    memcpy(name, in_front, IN_FRONT);
    if (!begins_wrongly(expanded, length))
        wr_buffer_put(out, expanded, length);
    else
        wr_buffer_put(out, name,
                      length + IN_FRONT < WR_INDEX_NAME_LONGEST ? length + IN_FRONT : WR_INDEX_NAME_LONGEST);
}
