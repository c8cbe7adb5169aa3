#include <stdio.h>
#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/json.h"
#include "text/numeral.h"
#include "text/utf8.h"

/* Words name=value, or a line as the format text writes it:
 *
 *     [1795219607.576198][my_app]: latency=49.403 {route="/x"} metadata="..."
 *
 * That format is for people: what separates its parts is not escaped inside names. A line is read at the first
 * places where it makes sense as a whole. */

/* A backslash escape is at most six times as long as the character that it encodes. */
enum { MOST_ESCAPED = 6 * 255, LONGEST_NUMBER = 64 };

/* What the places of a line cost that are tried before it is refused, so that its time is proportional to its
 * length. */
enum { TRIES = 1024, COST_OF_REST = 16 };

/* ---- Words ----------------------------------------------------------------------------------- */

/* Splits [word, end) at its last '='. Returns false with the text of a fault. */
static bool split_word(const char *word, const char *end, const char **equals, weir_number *value,
                       char text[WR_PARSE_FAULT_ROOM])
{
    char shown[WR_PARSE_SHOWN_ROOM], number[WR_PARSE_SHOWN_ROOM];
    *equals = memrchr(word, '=', (size_t)(end - word));
    if (!*equals || *equals == word) {
        snprintf(text, WR_PARSE_FAULT_ROOM, "%s is not a value (like name=12.5)",
                 wr_parse_quote(shown, word, end));
        return false;
    }
    if (wr_numeral_read(*equals + 1, end, WR_NUMERAL_SPECIAL, value))
        return true;
    snprintf(text, WR_PARSE_FAULT_ROOM, "%s: %s is not a number", wr_parse_quote(shown, word, *equals),
             wr_parse_quote(number, *equals + 1, end));
    return false;
}

static bool add_word(struct wr_parser *parser, const char *word, const char *end)
{
    char text[WR_PARSE_FAULT_ROOM];
    const char *equals;
    weir_number value;
    if (!split_word(word, end, &equals, &value, text))
        return wr_parse_refuse(parser, word, "%s", text);
    const char *name = wr_parse_keep_name(parser, word, equals, "name");
    return name && wr_parse_add_value(parser, word, name, &value);
}

static bool read_words(struct wr_parser *parser)
{
    const char *at = parser->at, *end = parser->line_end;
    while ((at = wr_parse_skip_blanks(at, end)) < end) {
        const char *word_end = wr_parse_word_end(at, end);
        if (!add_word(parser, at, word_end))
            return false;
        at = word_end;
    }
    return true;
}

bool wr_parser_read_word(const char *word, char *name, weir_typed_value *value, char text[WR_PARSE_FAULT_ROOM])
{
    const char *equals;
    if (!split_word(word, word + strlen(word), &equals, &value->number, text))
        return false;
    memmove(name, word, (size_t)(equals - word));
    name[equals - word] = '\0';
    value->name = name;
    return true;
}

/* ---- Escapes --------------------------------------------------------------------------------- */

static const char *read_hex(const char *at, const char *end, int digits, uint32_t *code_point)
{
    *code_point = 0;
    for (; digits; digits--, at++) {
        int digit = at < end ? wr_hex_digit(*at, 'a') : -1;
        if (digit < 0)
            return NULL;
        *code_point = *code_point << 4 | (uint32_t)digit;
    }
    return at;
}

static bool is_character(uint32_t c)
{
    return c && (c < 0xd800 || c >= 0xe000);
}

/* After a backslash. Returns the position after the escape; NULL: it is none. */
static const char *read_escape(const char *at, const char *end, char **out)
{
    static const char letters[] = "nrt\\\"", meanings[] = "\n\r\t\\\"";
    uint32_t code_point;
    if (at == end)
        return NULL;
    if (*at == 'x' || *at == 'u') {
        const char *next = read_hex(at + 1, end, *at == 'x' ? 2 : 4, &code_point);
        if (!next || !is_character(code_point))
            return NULL;
        *out += wr_utf8_encode(*out, code_point);
        return next;
    }
    const char *letter = strchr(letters, *at);
    if (!letter || !*letter)
        return NULL;
    *(*out)++ = meanings[letter - letters];
    return at + 1;
}

/* Keeps [at, end) without its escapes. NULL: one of them is wrong. */
static const char *unescape(struct wr_parser *parser, const char *at, const char *end)
{
    char *text = wr_parse_open(parser), *out = text;
    while (at && at < end) {
        if (*at == '\\')
            at = read_escape(at + 1, end, &out);
        else
            *out++ = *at++;
    }
    if (!at)
        return NULL;
    wr_parse_close(parser, out);
    return text;
}

/* ---- A line of the format text --------------------------------------------------------------- */

/* The parts of a line, which is read whole before anything of it is kept. */
struct parts {
    const char *time, *time_end, *group, *group_end, *name, *name_end, *number_end;
    const char *labels; /* after the opening brace; NULL: none */
    const char *note, *note_end;
    int tries; /* left */
};

static bool starts_with(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* The first `word` from `at` on, near enough that a name ends there. */
static const char *find_near(const char *at, const char *end, const char *word)
{
    size_t room = (size_t)(end - at) < MOST_ESCAPED ? (size_t)(end - at) : MOST_ESCAPED;
    return memmem(at, room, word, strlen(word));
}

/* Where the label at `at` has its equals sign and the quote that ends its value. A character follows. */
static bool find_label(const char *at, const char *end, const char **equals, const char **quote)
{
    *equals = find_near(at, end, "=\"");
    *quote = *equals ? wr_parse_find_quote(*equals + 2, end) : NULL;
    return *quote && *quote + 1 < end;
}

/* key="value",...} Returns the position after the brace; NULL: it is no such list. */
static const char *skip_labels(const char *at, const char *end)
{
    const char *equals, *quote;
    while (find_label(at, end, &equals, &quote)) {
        at = quote + 2;
        if (quote[1] == '}')
            return at;
        if (quote[1] != ',')
            break;
    }
    return NULL;
}

/* What follows the number. */
static bool read_rest(const char *at, const char *end, struct parts *parts)
{
    static const char note[] = " metadata=\"";
    if (starts_with(at, end, " {")) {
        parts->labels = at + 2;
        at = skip_labels(at + 2, end);
    }
    if (at && starts_with(at, end, note)) {
        parts->note = at + sizeof note - 1;
        parts->note_end = wr_parse_find_quote(parts->note, end);
        at = parts->note_end ? parts->note_end + 1 : NULL;
    }
    return at == end;
}

/* Whether a number follows the equals sign, and behind it everything else. */
static bool read_value(const char *equals, const char *end, struct parts *parts)
{
    const char *number = equals + 1;
    const char *limit = end - number < LONGEST_NUMBER ? end : number + LONGEST_NUMBER;
    weir_number ignored;
    parts->name_end = equals;
    parts->number_end = wr_parse_word_end(number, limit);
    parts->labels = parts->note = NULL;
    parts->tries--;
    if (!wr_numeral_read(number, parts->number_end, WR_NUMERAL_SPECIAL, &ignored))
        return false;
    parts->tries -= COST_OF_REST;
    return read_rest(parts->number_end, end, parts);
}

static bool read_name(const char *at, const char *end, struct parts *parts)
{
    const char *limit = end - at < MOST_ESCAPED ? end : at + MOST_ESCAPED;
    parts->name = at;
    for (; parts->tries > 0 && (at = memchr(at, '=', (size_t)(limit - at))); at++)
        if (read_value(at, end, parts))
            return true;
    return false;
}

/* [time][group]: name=number */
static bool find_parts(const struct wr_parser *parser, struct parts *parts)
{
    const char *at = parser->at, *end = parser->line_end;
    parts->time = at + 1;
    parts->time_end = find_near(at, end, "][");
    if (!parts->time_end)
        return false;
    parts->group = at = parts->time_end + 2;
    for (; parts->tries-- > 0 && (at = find_near(at, end, "]: ")); at += 3) {
        parts->group_end = at;
        if (read_name(at + 3, end, parts))
            return true;
    }
    return false;
}

static bool refuse_escape(struct wr_parser *parser, const char *at)
{
    return wr_parse_refuse(parser, at, "a wrong escape; there are \\n \\r \\t \\xXX \\uXXXX \\\\ \\\"");
}

static bool keep_labels(struct wr_parser *parser, const char *at)
{
    const char *end = parser->line_end, *equals, *quote;
    for (bool more = true; more && find_label(at, end, &equals, &quote);
         at = quote + 2, more = quote[1] == ',') {
        const char *key = unescape(parser, at, equals);
        const char *value = key ? unescape(parser, equals + 2, quote) : NULL;
        if (!value)
            return refuse_escape(parser, at);
        if (!wr_parse_check_name(parser, at, key, "label key") || !wr_parse_add_label(parser, at, key, value))
            return false;
    }
    return true;
}

static bool keep_parts(struct wr_parser *parser, const struct parts *parts)
{
    struct wr_parse_record *record = &parser->record;
    weir_number value;
    const char *group = unescape(parser, parts->group, parts->group_end);
    const char *name = group ? unescape(parser, parts->name, parts->name_end) : NULL;
    if (!name)
        return refuse_escape(parser, group ? parts->name : parts->group);
    if (!wr_parse_set_time(parser, parts->time, parts->time_end))
        return false;
    if (parts->note && !(record->metadata = unescape(parser, parts->note, parts->note_end)))
        return refuse_escape(parser, parts->note);
    wr_numeral_read(parts->name_end + 1, parts->number_end, WR_NUMERAL_SPECIAL, &value);
    return wr_parse_set_group(parser, parts->group, group) &&
           wr_parse_check_name(parser, parts->name, name, "name") &&
           wr_parse_add_value(parser, parts->name, name, &value) &&
           (!parts->labels || keep_labels(parser, parts->labels));
}

static bool read_written(struct wr_parser *parser)
{
    struct parts parts = {.tries = TRIES};
    return find_parts(parser, &parts)
               ? keep_parts(parser, &parts)
               : wr_parse_refuse(parser, parser->at,
                                 "not a line like [1795219607.5][my_app]: latency=49.403 {route=\"/x\"}");
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* Whether the line begins with a time in brackets and another bracket. */
static bool is_written(const struct wr_parser *parser)
{
    const char *at = parser->at, *end = parser->line_end;
    if (end - at < 2 || *at != '[' || !((at[1] >= '0' && at[1] <= '9') || at[1] == '-'))
        return false;
    return find_near(at, end, "][");
}

static bool read_line(struct wr_parser *parser)
{
    return is_written(parser) ? read_written(parser) : read_words(parser);
}

static bool next_text(struct wr_parser *parser)
{
    return wr_parse_line(parser, '#', read_line);
}

const struct wr_parser_type wr_parser_text = {
    .name = "text",
    .has_groups = true,
    .next = next_text,
};

/* ---- text or json ---------------------------------------------------------------------------- */

static bool next_auto(struct wr_parser *parser)
{
    const char *first = wr_parse_skip_blanks(parser->at, parser->line_end);
    bool is_json = first < parser->line_end && (*first == '{' || *first == '[');
    return is_json && !is_written(parser) ? wr_parser_json.next(parser) : next_text(parser);
}

const struct wr_parser_type wr_parser_auto = {
    .name = "auto",
    .has_groups = true,
    .next = next_auto,
    .state_bytes = sizeof(struct wr_json),
    .free_state = wr_parse_free_json,
};
