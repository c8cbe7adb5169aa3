#include "format/metric_path.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/escape.h"
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
    size_t length = bytes ? bytes : 1;
    bool replace = !bytes || is_blank(code_point) || strchr(rules->replace, *text);
    bool is_ambiguous = *text == '%' && wr_hex_digit(text[1], 'A') >= 0 && wr_hex_digit(text[2], 'A') >= 0;
    if (rules->encode && (replace || is_ambiguous))
        for (size_t i = 0; i < length; i++)
            wr_escape_byte(out, text[i]);
    else if (replace)
        wr_buffer_put_char(out, '_');
    else if (!strchr(rules->strip, *text))
        wr_buffer_put(out, text, bytes);
    return length;
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

/* NULL: the series is not of a bucket. An empty node would make the path invalid. */
static const char *find_bound(const weir_series *series)
{
    static const char ending[] = ".bucket";
    size_t length = strlen(series->name);
    if (length < sizeof ending || strcmp(series->name + length - (sizeof ending - 1), ending) != 0)
        return NULL;
    const char *bound = wr_labels_find(series->labels, series->label_count, "le");
    return bound && *bound ? bound : NULL;
}

void wr_metric_path_put_series(struct wr_buffer *out, const char *group, const weir_series *series,
                               bool has_labels, const struct wr_metric_path_rules *rules)
{
    const char *bound = has_labels ? NULL : find_bound(series);
    if (group) {
        wr_metric_path_put(out, group, rules);
        wr_buffer_put_char(out, '.');
    }
    wr_metric_path_put(out, series->name, rules);
    if (!bound)
        return;
    wr_buffer_put_char(out, '.');
    size_t start = out->length;
    wr_metric_path_put_word(out, strcmp(bound, "+Inf") == 0 ? "inf" : bound, rules);
    for (char *dot; out->length > start && (dot = memchr(out->data + start, '.', out->length - start));)
        *dot = '_';
}
