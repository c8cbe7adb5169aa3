#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/numeral.h"
#include "text/utf8.h"

/* Graphite's plain text: path value seconds, or path;key=value value seconds. Bytes that the format graphite
 * writes as %XX in tags are decoded. */

/* ---- Tags ------------------------------------------------------------------------------------ */

/* Keeps [at, end) with %XX decoded; as it is, if that would not be UTF-8. */
static char *decode(struct wr_parser *parser, const char *at, const char *end)
{
    char *text = wr_parse_open(parser), *out = text;
    for (const char *from = at; from < end; from++) {
        bool is_encoded = *from == '%' && end - from > 2 && wr_hex_digit(from[1], 'A') >= 0 &&
                          wr_hex_digit(from[2], 'A') >= 0;
        char byte = *from;
        if (is_encoded)
            byte = (char)(wr_hex_digit(from[1], 'A') << 4 | wr_hex_digit(from[2], 'A'));
        *out++ = byte;
        from += is_encoded ? 2 : 0;
    }
    if (memchr(text, '\0', (size_t)(out - text)) || !wr_utf8_is_valid(text, (size_t)(out - text), NULL))
        return wr_parse_keep(parser, at, end);
    wr_parse_close(parser, out);
    return text;
}

/* The tag "name" is reserved, and was written with one more '_'. */
static char *decode_key(struct wr_parser *parser, const char *at, const char *end)
{
    char *key = decode(parser, at, end);
    size_t length = strlen(key);
    if (strncmp(key, "name_", 5) == 0 && !key[4 + strspn(key + 4, "_")])
        key[length - 1] = '\0';
    return key;
}

/* No value begins with '~': one that does was written with '_' in front. */
static char *decode_value(struct wr_parser *parser, const char *at, const char *end)
{
    char *value = decode(parser, at, end);
    size_t front = strspn(value, "_");
    return front && value[front] == '~' ? value + 1 : value;
}

/* key=value, up to `end`. */
static bool read_tag(struct wr_parser *parser, const char *at, const char *end)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    const char *equals = memchr(at, '=', (size_t)(end - at));
    if (!equals || equals == at || equals + 1 == end)
        return wr_parse_refuse(parser, at, "%s is not a tag (like key=value)", wr_parse_quote(shown, at, end));
    const char *key = decode_key(parser, at, equals), *value = decode_value(parser, equals + 1, end);
    return wr_parse_check_name(parser, at, key, "tag key") && wr_parse_add_label(parser, at, key, value);
}

static bool read_tags(struct wr_parser *parser, const char *at, const char *end)
{
    while (at++ < end) {
        const char *next = memchr(at, ';', (size_t)(end - at));
        if (!read_tag(parser, at, next ? next : end))
            return false;
        at = next ? next : end;
    }
    return true;
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* -1 and N mean the time of arrival. */
static bool read_time(struct wr_parser *parser, const char *at, const char *end)
{
    size_t length = (size_t)(end - at);
    if (length == 0 || (length == 1 && (*at == 'N' || *at == 'n')) || (length == 2 && memcmp(at, "-1", 2) == 0))
        return true;
    return wr_parse_set_time(parser, at, end);
}

static bool read_line(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_number value;
    const char *start = parser->at, *end = parser->line_end;
    const char *path_end = wr_parse_word_end(start, end), *number = wr_parse_skip_blanks(path_end, end);
    const char *number_end = wr_parse_word_end(number, end), *time = wr_parse_skip_blanks(number_end, end);
    const char *time_end = wr_parse_word_end(time, end);
    if (number == end)
        return wr_parse_refuse(parser, start, "%s has no value (path value seconds)",
                               wr_parse_quote(shown, start, path_end));
    if (!wr_numeral_read(number, number_end, WR_NUMERAL_PLUS, &value))
        return wr_parse_refuse(parser, number, "%s is not a finite number",
                               wr_parse_quote(shown, number, number_end));
    if (wr_parse_skip_blanks(time_end, end) != end)
        return wr_parse_refuse(parser, time_end, "text after the time");
    const char *tags = memchr(start, ';', (size_t)(path_end - start));
    return wr_parse_add_path(parser, start, tags ? tags : path_end, &value) &&
           read_time(parser, time, time_end) && (!tags || read_tags(parser, tags, path_end));
}

static bool next(struct wr_parser *parser)
{
    return wr_parse_line(parser, '\0', read_line);
}

const struct wr_parser_type wr_parser_graphite = {
    .name = "graphite",
    .has_paths = true,
    .next = next,
};
