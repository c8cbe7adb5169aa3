#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/numeral.h"

/* InfluxDB's line protocol: measurement,tag=value field=1,other=2i 1795219607576198123. The measurement is the
 * group, each line an event. What the format influx writes as %XX, because the protocol cannot escape it, is
 * decoded; other percent signs are not touched. */

/* ---- Records --------------------------------------------------------------------------------- */

/* A text in quotes is a value of a field, and may have line ends in it; quotes elsewhere are characters like
 * others. ESCAPED is added to a state behind a backslash. */
enum { START, COMMENT, KEY, FIELDS, VALUE, ESCAPED = 0x10, TEXT = WR_PARSE_QUOTED };

static uint8_t step(uint8_t state, char byte)
{
    if (state & ESCAPED)
        return (uint8_t)(state - ESCAPED);
    if (byte == '\\' && state != COMMENT)
        return (uint8_t)((state == START ? KEY : state == VALUE ? FIELDS : state) + ESCAPED);
    switch (state) {
    case START: return byte == ' ' || byte == '\t' ? START : byte == '#' ? COMMENT : KEY;
    case KEY: return byte == ' ' ? FIELDS : KEY;
    case FIELDS: return byte == '=' ? VALUE : FIELDS;
    case VALUE: return byte == '"' ? TEXT : byte == '=' ? VALUE : FIELDS;
    case TEXT: return byte == '"' ? FIELDS : TEXT;
    default: return state;
    }
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Decodes %XX at `at`. Returns 0 if the format influx does not encode that character. */
static char read_encoded(const char *at, const char *end)
{
    if (end - at < 3 || *at != '%' || wr_hex_digit(at[1], 'A') < 0 || wr_hex_digit(at[2], 'A') < 0)
        return 0;
    int c = wr_hex_digit(at[1], 'A') << 4 | wr_hex_digit(at[2], 'A');
    return c < 0x20 || c == 0x7f || strchr("\\\"%", c) ? (char)c : 0;
}

/* Where an unescaped character of `stops` is, at most end. */
static const char *find_end(const char *at, const char *end, const char *stops)
{
    for (; at < end && !strchr(stops, *at); at++)
        at += *at == '\\' && at + 1 < end && strchr(" ,=", at[1]);
    return at;
}

/* Keeps [at, end) without its escapes: a backslash before one of `marks`. */
static char *unescape(struct wr_parser *parser, const char *at, const char *end, const char *marks)
{
    char *text = wr_parse_open(parser), *out = text;
    for (; at < end; at++) {
        char encoded = read_encoded(at, end);
        if (encoded)
            at += 2;
        else if (*at == '\\' && at + 1 < end && strchr(marks, at[1]))
            at++;
        *out++ = encoded ? encoded : *at;
    }
    wr_parse_close(parser, out);
    return text;
}

/* Keys that InfluxDB reserves were written with one more '_'. */
static char *unescape_key(struct wr_parser *parser, const char *at, const char *end)
{
    static const char *const reserved[] = {"time", "_field", "_measurement"};
    char *key = unescape(parser, at, end, " ,=");
    for (size_t i = 0; i < WR_COUNT_OF(reserved); i++) {
        size_t length = strlen(reserved[i]), rest;
        if (strncmp(key, reserved[i], length) != 0)
            continue;
        rest = strspn(key + length, "_");
        if (rest && !key[length + rest])
            key[length + rest - 1] = '\0';
    }
    return key;
}

static bool read_measurement(struct wr_parser *parser)
{
    const char *start = parser->at, *end = find_end(start, parser->line_end, ", ");
    char *group = unescape(parser, start, end, " ,");
    size_t front = strspn(group, "_");
    if (front && group[front] == '#') /* a line that begins with # is a comment */
        group++;
    parser->at = end;
    return wr_parse_set_group(parser, start, group);
}

static bool read_tag(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    const char *start = parser->at, *equals = find_end(start, parser->line_end, ", =");
    if (equals == parser->line_end || *equals != '=')
        return wr_parse_refuse(parser, start, "%s is not a tag (like key=value)",
                               wr_parse_quote(shown, start, equals));
    const char *end = find_end(equals + 1, parser->line_end, ", ");
    const char *key = unescape_key(parser, start, equals);
    if (end == equals + 1)
        return wr_parse_refuse(parser, end, "the tag \"%s\" has no value", key);
    const char *value = unescape(parser, equals + 1, end, " ,=");
    parser->at = end;
    return wr_parse_check_name(parser, start, key, "tag key") && wr_parse_add_label(parser, start, key, value);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The closing quote of a text whose opening one is at `at`; `end`: there is none. */
static const char *find_quote(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at;
}

/* The end of a field's value: a comma or blank outside of quotes. NULL: unclosed quotes. */
static const char *find_value_end(const char *at, const char *end)
{
    if (at == end || *at != '"')
        return find_end(at, end, ", ");
    const char *quote = find_quote(at, end);
    return quote < end ? find_end(quote + 1, end, ", ") : NULL;
}

/* The format has fields of texts, which are no values here. */
static bool is_text(const char *at, const char *end)
{
    return at < end && *at == '"' && find_quote(at, end) + 1 == end;
}

static bool is_word(const char *at, const char *end, const char *const words[5])
{
    for (int i = 0; i < 5; i++)
        if (strlen(words[i]) == (size_t)(end - at) && memcmp(at, words[i], (size_t)(end - at)) == 0)
            return true;
    return false;
}

static bool read_bool(const char *at, const char *end, weir_number *value)
{
    static const char *const yes[] = {"t", "T", "true", "True", "TRUE"}, *const no[] = {"f", "F", "false",
                                                                                        "False", "FALSE"};
    bool is_true = is_word(at, end, yes);
    *value = WEIR_INT(is_true);
    return is_true || is_word(at, end, no);
}

/* 1.5, 42i, 42u, t. Without i or u it is a double; unsigned ones beyond an int64_t are the nearest double. */
static bool read_value(const char *at, const char *end, weir_number *value)
{
    bool is_integer = end - at > 1 && (end[-1] == 'i' || end[-1] == 'u');
    if (is_integer)
        return strspn(at, "-0123456789") == (size_t)(end - at) - 1 && !(end[-1] == 'u' && *at == '-') &&
               wr_numeral_read(at, end - 1, 0, value) &&
               (value->kind == WEIR_KIND_INT || end[-1] == 'u' || value->is.f64 == 0);
    if (!wr_numeral_read(at, end, WR_NUMERAL_PLUS, value))
        return read_bool(at, end, value);
    if (value->kind == WEIR_KIND_INT)
        *value = WEIR_DOUBLE((double)value->is.i64);
    return true;
}

/* Returns false if the line is refused. */
static bool read_field(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_number value;
    const char *start = parser->at, *equals = find_end(start, parser->line_end, ", =");
    if (equals == parser->line_end || *equals != '=' || equals == start)
        return wr_parse_refuse(parser, start, "%s is not a field (like name=12.5)",
                               wr_parse_quote(shown, start, equals));
    const char *end = find_value_end(equals + 1, parser->line_end);
    if (!end)
        return wr_parse_refuse(parser, equals + 1, "unclosed quotes");
    parser->at = end;
    const char *name = unescape_key(parser, start, equals);
    if (is_text(equals + 1, end))
        return true;
    if (read_value(equals + 1, end, &value))
        return wr_parse_add_member(parser, start, name, "field", &value);
    wr_parse_leave_out(parser, equals + 1, "%s is not a value (a number, an integer like 42i, t or f)",
                       wr_parse_quote(shown, equals + 1, end));
    return true;
}

static bool read_fields(struct wr_parser *parser)
{
    parser->at = wr_parse_skip_blanks(parser->at, parser->line_end);
    if (parser->at == parser->line_end)
        return wr_parse_refuse(parser, parser->at, "the line has no fields (like name=12.5)");
    while (read_field(parser)) {
        if (parser->at == parser->line_end || *parser->at != ',')
            return true;
        parser->at++;
    }
    return false;
}

static bool read_time(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    const char *start = wr_parse_skip_blanks(parser->at, parser->line_end);
    const char *end = wr_parse_word_end(start, parser->line_end);
    parser->at = parser->line_end;
    if (start == parser->line_end)
        return true;
    record->has_time = wr_numeral_read_ticks(start, end, parser->options.time_unit_ns, &record->time_ns);
    if (!record->has_time || wr_parse_skip_blanks(end, parser->line_end) != parser->line_end)
        return wr_parse_refuse(parser, start, "%s is not a time (an integer)",
                               wr_parse_quote(shown, start, record->has_time ? parser->line_end : end));
    return true;
}

/* ---- A line ---------------------------------------------------------------------------------- */

static bool read_line(struct wr_parser *parser)
{
    if (!read_measurement(parser))
        return false;
    while (parser->at < parser->line_end && *parser->at == ',') {
        parser->at++;
        if (!read_tag(parser))
            return false;
    }
    return read_fields(parser) && read_time(parser) && parser->record.count;
}

static bool next(struct wr_parser *parser)
{
    return wr_parse_line(parser, '#', read_line);
}

const struct wr_parser_type wr_parser_influx = {
    .name = "influx",
    .has_groups = true,
    .next = next,
    .step = step,
};
