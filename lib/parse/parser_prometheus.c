#include <string.h>

#include "parse/numeral.h"
#include "parse/parser_internal.h"
#include "text/common.h"

/* Prometheus' text format 0.0.4: name{key="value"} 49.4 milliseconds, with # TYPE and # HELP before the samples
 * of a family. Counters, and the parts of histograms and summaries that only grow, are running totals. */

enum { FAMILY_ROOM = 256, HELP_ROOM = 1024 };

enum family_type { UNTYPED, COUNTER, GAUGE, HISTOGRAM, SUMMARY };

/* The family of the last comment. A longer name or help than fits is as if it was not given. */
struct state {
    char name[FAMILY_ROOM];
    enum family_type type;
    char help[HELP_ROOM];
};

/* ---- Escapes --------------------------------------------------------------------------------- */

/* Unescapes \\, \n and, in label values, \" to out. Other backslashes stay. Returns the end. */
static char *unescape(char *out, const char *at, const char *end)
{
    for (; at < end; at++) {
        bool is_escape = *at == '\\' && at + 1 < end && strchr("\\n\"", at[1]);
        at += is_escape;
        *out++ = is_escape && *at == 'n' ? '\n' : *at;
    }
    return out;
}

/* ---- Comments -------------------------------------------------------------------------------- */

static bool is_word(const char *at, const char *end, const char *word)
{
    return strlen(word) == (size_t)(end - at) && memcmp(at, word, (size_t)(end - at)) == 0;
}

static void start_family(struct state *state, const char *at, const char *end)
{
    if (is_word(at, end, state->name))
        return;
    size_t length = end - at < FAMILY_ROOM ? (size_t)(end - at) : 0;
    *state = (struct state){0};
    memcpy(state->name, at, length);
}

static void read_type(struct state *state, const char *at, const char *end)
{
    static const char *const names[] = {[UNTYPED] = "untyped",
                                        [COUNTER] = "counter",
                                        [GAUGE] = "gauge",
                                        [HISTOGRAM] = "histogram",
                                        [SUMMARY] = "summary"};
    state->type = UNTYPED;
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        if (is_word(at, wr_parse_word_end(at, end), names[i]))
            state->type = (enum family_type)i;
}

/* # TYPE name type, # HELP name text */
static void read_comment(struct wr_parser *parser)
{
    struct state *state = parser->state;
    const char *end = parser->line_end, *word = wr_parse_skip_blanks(parser->at + 1, end);
    const char *word_end = wr_parse_word_end(word, end), *name = wr_parse_skip_blanks(word_end, end);
    const char *name_end = wr_parse_word_end(name, end), *rest = wr_parse_skip_blanks(name_end, end);
    bool is_type = is_word(word, word_end, "TYPE");
    if (!is_type && !is_word(word, word_end, "HELP"))
        return;
    start_family(state, name, name_end);
    if (is_type)
        read_type(state, rest, end);
    else if (end - rest < HELP_ROOM)
        *unescape(state->help, rest, end) = '\0';
}

/* ---- Families -------------------------------------------------------------------------------- */

/* What the sample's name has behind the family's; NULL: it is of no known family. */
static const char *find_suffix(const struct state *state, const char *name)
{
    static const char *const suffixes[] = {"_bucket", "_count", "_sum"};
    size_t length = strlen(state->name);
    if (!length || strncmp(name, state->name, length) != 0)
        return NULL;
    if (!name[length])
        return name + length;
    for (size_t i = 0; i < WR_COUNT_OF(suffixes) && state->type >= HISTOGRAM; i++)
        if (strcmp(name + length, suffixes[i]) == 0)
            return name + length;
    return NULL;
}

static void set_family(struct wr_parser *parser, const char *name)
{
    const struct state *state = parser->state;
    struct wr_parse_record *record = &parser->record;
    const char *suffix = find_suffix(state, name);
    if (!suffix)
        return;
    record->help = *state->help ? state->help : NULL;
    record->cumulative = state->type == COUNTER || (state->type >= HISTOGRAM && *suffix);
    record->instrument = state->type == COUNTER     ? WEIR_COUNTER
                         : state->type == GAUGE     ? WEIR_GAUGE
                         : state->type == HISTOGRAM ? WEIR_HISTOGRAM
                                                    : WEIR_VALUE;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static const char *find_quote(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    return at < end ? at : NULL;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && !strchr("={}, \t\"", *at))
        at++;
    return at;
}

/* key="value" at parser->at */
static bool read_label(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    const char *end = parser->line_end, *start = parser->at, *key_end = skip_word(start, end);
    const char *equals = wr_parse_skip_blanks(key_end, end);
    const char *opening = equals < end && *equals == '=' ? wr_parse_skip_blanks(equals + 1, end) : end;
    const char *closing = opening < end && *opening == '"' ? find_quote(opening + 1, end) : NULL;
    if (!closing)
        return wr_parse_refuse(parser, start, "%s is not the beginning of a label (like key=\"value\")",
                               wr_parse_quote(shown, start, opening));
    parser->at = wr_parse_skip_blanks(closing + 1, end);
    const char *key = wr_parse_keep_name(parser, start, key_end, "label");
    char *value = wr_parse_open(parser);
    wr_parse_close(parser, unescape(value, opening + 1, closing));
    return key && wr_parse_add_label(parser, start, key, value);
}

/* {key="value",...} at parser->at; a comma may be behind the last. */
static bool read_labels(struct wr_parser *parser)
{
    const char *end = parser->line_end, *opening = parser->at++;
    for (;;) {
        parser->at = wr_parse_skip_blanks(parser->at, end);
        if (parser->at == end)
            return wr_parse_refuse(parser, opening, "unclosed {");
        if (*parser->at == '}') {
            parser->at++;
            return true;
        }
        if (!read_label(parser))
            return false;
        if (parser->at < end && *parser->at != ',' && *parser->at != '}')
            return wr_parse_refuse(parser, parser->at, "expected ',' or '}' after a label");
        parser->at += parser->at < end && *parser->at == ',';
    }
}

/* ---- A sample -------------------------------------------------------------------------------- */

static bool is_name(const char *at, const char *end)
{
    const char *start = at;
    for (; at < end; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' || *at == ':';
        if (!is_letter && (at == start || *at < '0' || *at > '9'))
            return false;
    }
    return end > start;
}

static bool read_time(struct wr_parser *parser, const char *at)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    const char *end = wr_parse_word_end(at, parser->line_end);
    if (at == end)
        return true;
    record->has_time = wr_numeral_read_ticks(at, end, WR_NS_PER_MS, &record->time_ns);
    if (!record->has_time)
        return wr_parse_refuse(parser, at, "%s is not a time (milliseconds since 1970)",
                               wr_parse_quote(shown, at, end));
    return wr_parse_skip_blanks(end, parser->line_end) == parser->line_end ||
           wr_parse_refuse(parser, end, "text after the time");
}

static bool read_sample(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_typed_value value;
    const char *end = parser->line_end, *start = parser->at, *name_end = skip_word(start, end);
    if (!is_name(start, name_end))
        return wr_parse_refuse(parser, start, "%s is not a name (letters, digits, _ and :)",
                               wr_parse_quote(shown, start, name_end));
    parser->at = wr_parse_skip_blanks(name_end, end);
    if (parser->at < end && *parser->at == '{' && !read_labels(parser))
        return false;
    const char *number = wr_parse_skip_blanks(parser->at, end), *number_end = wr_parse_word_end(number, end);
    if (!wr_numeral_read(number, number_end, WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &value))
        return wr_parse_refuse(parser, number, "%s is not a number", wr_parse_quote(shown, number, number_end));
    const char *name = wr_parse_keep_name(parser, start, name_end, "name");
    if (!name || !wr_parse_add_value(parser, start, name, &value))
        return false;
    set_family(parser, name);
    return read_time(parser, wr_parse_skip_blanks(number_end, end));
}

static bool next(struct wr_parser *parser)
{
    parser->at = wr_parse_skip_blanks(parser->at, parser->line_end);
    if (parser->at == parser->line_end)
        return false;
    if (*parser->at == '#') {
        read_comment(parser);
        return false;
    }
    wr_parse_start(parser);
    bool has_record = read_sample(parser);
    parser->at = parser->line_end;
    return has_record;
}

const struct wr_parser_type wr_parser_prometheus = {
    .name = "prometheus",
    .summary = "Prometheus' text format 0.0.4: name{key=\"value\"} 49.4 milliseconds, with TYPE and HELP",
    .next = next,
    .state_bytes = sizeof(struct state),
};
