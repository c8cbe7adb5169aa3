#include "format/metric_path.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text/buffer.h"
#include "text/utf8.h"

/* Characters that a program may split lines at (Unicode's White_Space), and invisible ones. */
static bool is_blank(uint32_t c)
{
    return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200b) || c == 0x202f || c == 0x205f ||
           c == 0x3000 || wr_utf8_is_disguise(c);
}

/* Appends the first character of text by the rules. Returns its number of bytes. */
static size_t put_one(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules)
{
    uint32_t code_point;
    unsigned bytes = wr_utf8_decode(text, strlen(text), &code_point);
    if (!bytes || is_blank(code_point) || strchr(rules->replace, *text))
        wr_buffer_put_char(out, '_');
    else if (!strchr(rules->strip, *text))
        wr_buffer_put(out, text, bytes);
    return bytes ? bytes : 1;
}

void wr_metric_path_put_word(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules)
{
    size_t start = out->length;
    bool is_empty = !*text;
    while (*text)
        text += put_one(out, text, rules);
    if (!is_empty && out->length == start)
        wr_buffer_put_char(out, '_');
}

void wr_metric_path_put(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules)
{
    size_t node = out->length;
    while (*text) {
        if (*text != '.') {
            text += put_one(out, text, rules);
            continue;
        }
        if (out->length == node)
            wr_buffer_put_char(out, '_');
        wr_buffer_put_char(out, '.');
        node = out->length;
        text++;
    }
    if (out->length == node)
        wr_buffer_put_char(out, '_');
}
