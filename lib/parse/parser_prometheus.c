#include <math.h>
#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/number.h"
#include "text/numeral.h"

/* Prometheus' text format 0.0.4, name{key="value"} 49.4 milliseconds, and OpenMetrics 1.0, whose times are in
 * seconds, with # TYPE, # UNIT and # HELP before the samples of a family.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 * https://prometheus.io/docs/specs/om/open_metrics_spec/ */

enum { FAMILY_ROOM = 256, HELP_ROOM = 1024, UNIT_ROOM = 64 };

enum family_type { UNTYPED, COUNTER, GAUGE, HISTOGRAM, GAUGE_HISTOGRAM, SUMMARY, INFO, STATE_SET };

/* The family of the last comment. A longer name, help or unit than fits is as if it was not given. */
struct state {
    char name[FAMILY_ROOM];
    enum family_type type;
    char help[HELP_ROOM], unit[UNIT_ROOM];
    char bound[WR_NUMBER_ROOM]; /* of the present bucket */
    double upper;
    bool in_buckets; /* the sample before was a bucket, of this upper bound and time */
    int64_t time_ns;
};

/* ---- What the samples of a family are -------------------------------------------------------- */

enum meaning { LEVEL, TOTAL, LEFT_OUT };

/* A sample's name is that of its family and one of these suffixes. A histogram's parts are named as those of
 * weir's own histograms, and so are a histogram again in what handlers write. */
static const struct part {
    enum family_type type;
    const char *suffix, *own; /* own: what replaces the suffix; NULL: nothing */
    enum weir_instrument instrument;
    enum meaning meaning;
} parts[] = {
    {COUNTER, "", NULL, WEIR_COUNTER, TOTAL},
    {COUNTER, "_total", NULL, WEIR_COUNTER, TOTAL},
    {COUNTER, "_created", NULL, WEIR_VALUE, LEFT_OUT},
    {GAUGE, "", NULL, WEIR_GAUGE, LEVEL},
    {HISTOGRAM, "_bucket", ".bucket", WEIR_HISTOGRAM, TOTAL},
    {HISTOGRAM, "_sum", ".sum", WEIR_HISTOGRAM, TOTAL},
    {HISTOGRAM, "_count", ".count", WEIR_HISTOGRAM, TOTAL},
    {HISTOGRAM, "_created", NULL, WEIR_VALUE, LEFT_OUT},
    {GAUGE_HISTOGRAM, "_bucket", NULL, WEIR_GAUGE, LEVEL},
    {GAUGE_HISTOGRAM, "_gsum", NULL, WEIR_GAUGE, LEVEL},
    {GAUGE_HISTOGRAM, "_gcount", NULL, WEIR_GAUGE, LEVEL},
    {SUMMARY, "", NULL, WEIR_GAUGE, LEVEL},
    {SUMMARY, "_sum", NULL, WEIR_COUNTER, TOTAL},
    {SUMMARY, "_count", NULL, WEIR_COUNTER, TOTAL},
    {SUMMARY, "_created", NULL, WEIR_VALUE, LEFT_OUT},
    {INFO, "_info", NULL, WEIR_GAUGE, LEVEL},
    {STATE_SET, "", NULL, WEIR_GAUGE, LEVEL},
};

/* NULL: the sample is of no known family, or no part of it. */
static const struct part *find_part(const struct state *state, const char *name)
{
    size_t length = strlen(state->name);
    if (!length || strncmp(name, state->name, length) != 0)
        return NULL;
    for (size_t i = 0; i < WR_COUNT_OF(parts); i++)
        if (parts[i].type == state->type && strcmp(name + length, parts[i].suffix) == 0)
            return &parts[i];
    return NULL;
}

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
    state->in_buckets = false;
    if (is_word(at, end, state->name))
        return;
    size_t length = end - at < FAMILY_ROOM ? (size_t)(end - at) : 0;
    *state = (struct state){0};
    memcpy(state->name, at, length);
}

static void read_type(struct state *state, const char *at, const char *end)
{
    static const struct {
        const char *name;
        enum family_type type;
    } types[] = {
        {"counter", COUNTER}, {"gauge", GAUGE}, {"histogram", HISTOGRAM}, {"gaugehistogram", GAUGE_HISTOGRAM},
        {"summary", SUMMARY}, {"info", INFO},   {"stateset", STATE_SET}};
    state->type = UNTYPED;
    for (size_t i = 0; i < WR_COUNT_OF(types); i++)
        if (is_word(at, wr_parse_word_end(at, end), types[i].name))
            state->type = types[i].type;
}

static void read_unit(struct state *state, const char *at, const char *end)
{
    size_t length = (size_t)(wr_parse_word_end(at, end) - at);
    *state->unit = '\0';
    if (length < UNIT_ROOM)
        *(char *)mempcpy(state->unit, at, length) = '\0';
}

/* # TYPE name type, # UNIT name unit, # HELP name text, and # EOF, which ends a document. */
static void read_comment(struct wr_parser *parser)
{
    struct state *state = parser->state;
    const char *end = parser->line_end, *word = wr_parse_skip_blanks(parser->at + 1, end);
    const char *word_end = wr_parse_word_end(word, end), *name = wr_parse_skip_blanks(word_end, end);
    const char *name_end = wr_parse_word_end(name, end), *rest = wr_parse_skip_blanks(name_end, end);
    bool is_type = is_word(word, word_end, "TYPE"), is_unit = is_word(word, word_end, "UNIT");
    if (is_word(word, word_end, "EOF") && name == end)
        start_family(state, end, end);
    if (!is_type && !is_unit && !is_word(word, word_end, "HELP"))
        return;
    start_family(state, name, name_end);
    if (is_type)
        read_type(state, rest, end);
    else if (is_unit)
        read_unit(state, rest, end);
    else if (end - rest < HELP_ROOM)
        *unescape(state->help, rest, end) = '\0';
}

/* ---- Labels ---------------------------------------------------------------------------------- */

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
    const char *closing = opening < end && *opening == '"' ? wr_parse_find_quote(opening + 1, end) : NULL;
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

/* An exemplar: # {key="value"} 0.67 seconds. Nothing of it is used. */
static bool is_exemplar(const char *at, const char *end)
{
    return at + 2 < end && at[0] == '#' && wr_parse_is_blank(at[1]) && at[2] == '{';
}

static bool set_time(struct wr_parser *parser, const char *at, const char *end)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    if (parser->type == &wr_parser_openmetrics)
        return wr_parse_set_time(parser, at, end);
    record->has_time = wr_numeral_read_ticks(at, end, WR_NS_PER_MS, &record->time_ns);
    return record->has_time || wr_parse_refuse(parser, at, "%s is not a time (milliseconds since 1970)",
                                               wr_parse_quote(shown, at, end));
}

/* What is behind the value at `at`: nothing, or a time, and in OpenMetrics an exemplar. */
static bool read_rest(struct wr_parser *parser, const char *at)
{
    const char *end = parser->line_end;
    bool has_exemplars = parser->type == &wr_parser_openmetrics;
    if (at == end || (has_exemplars && is_exemplar(at, end)))
        return true;
    const char *time_end = wr_parse_word_end(at, end), *rest = wr_parse_skip_blanks(time_end, end);
    return set_time(parser, at, time_end) && (rest == end || (has_exemplars && is_exemplar(rest, end)) ||
                                              wr_parse_refuse(parser, time_end, "text after the time"));
}

/* Bounds are numbers, and are written as those of weir's own histograms. The buckets of a histogram have one
 * time, by which handlers know that they belong together. */
static bool set_bucket(struct wr_parser *parser, const char *at)
{
    struct state *state = parser->state;
    struct wr_parse_record *record = &parser->record;
    weir_number bound = {0};
    const char *le = wr_parse_find_label(parser, "le");
    bool is_number = le && wr_numeral_read(le, le + strlen(le), WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &bound);
    double upper = bound.kind == WEIR_KIND_INT ? (double)bound.is.i64 : bound.is.f64;
    if (!is_number || isnan(upper))
        return wr_parse_refuse(parser, at, "a bucket of a histogram needs a number as its label \"le\"");
    bool is_first = !state->in_buckets || upper <= state->upper;
    if (is_first && parser->options.now)
        state->time_ns = parser->options.now();
    state->in_buckets = true;
    state->upper = upper;
    state->bound[wr_number_put_double(state->bound, upper)] = '\0';
    wr_parse_replace_label(parser, "le", isinf(upper) && upper > 0 ? "+Inf" : state->bound);
    if (!record->has_time && parser->options.now) {
        record->has_time = true;
        record->time_ns = state->time_ns;
    }
    return true;
}

/* Sets what the comments say of a sample whose name was kept. Sets *is_used: whether it is a value. */
static bool set_part(struct wr_parser *parser, char *name, const char *at, bool *is_used)
{
    struct state *state = parser->state;
    struct wr_parse_record *record = &parser->record;
    const struct part *part = find_part(state, name);
    bool is_bucket = part && part->type == HISTOGRAM && strcmp(part->suffix, "_bucket") == 0;
    *is_used = !part || part->meaning != LEFT_OUT;
    state->in_buckets &= is_bucket;
    if (!part || !*is_used)
        return true;
    if (part->own)
        memcpy(name + strlen(state->name), part->own, strlen(part->own));
    record->help = *state->help ? state->help : NULL;
    record->unit = *state->unit ? state->unit : NULL;
    record->cumulative = part->meaning == TOTAL;
    record->is_summary = record->cumulative && part->type == SUMMARY;
    record->instrument = part->instrument;
    return !is_bucket || set_bucket(parser, at);
}

static bool read_sample(struct wr_parser *parser)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_number value;
    bool is_used;
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
    char *name = wr_parse_keep(parser, start, name_end);
    return wr_parse_check_name(parser, start, name, "name") &&
           read_rest(parser, wr_parse_skip_blanks(number_end, end)) &&
           set_part(parser, name, start, &is_used) && is_used &&
           wr_parse_add_value(parser, start, name, &value);
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
    .next = next,
    .state_bytes = sizeof(struct state),
};

const struct wr_parser_type wr_parser_openmetrics = {
    .name = "openmetrics",
    .next = next,
    .state_bytes = sizeof(struct state),
};
