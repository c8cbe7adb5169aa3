#include <string.h>

#include "parse/numeral.h"
#include "parse/parser_internal.h"
#include "text/common.h"
#include "text/json.h"

/* RFC 4180: records of fields, in quotes where a field contains commas or quotes. Columns are those of the
 * format csv, in its order; or in the order of a first record that names them. A field in
 * quotes may have line ends in it. */

enum { MOST_COLUMNS = 16 };

enum column { TIMESTAMP, GROUP, NAME, VALUE, LABELS, COLUMNS };

static const char *const column_names[COLUMNS] = {"timestamp", "group", "name", "value", "labels"};

struct state {
    struct wr_json json; /* the labels */
    bool is_started;     /* the first record has been read */
    unsigned count;      /* of columns that the first record names; 0: the default */
    enum column columns[MOST_COLUMNS];
};

/* The fields of a record. */
struct fields {
    const char *at[MOST_COLUMNS], *end[MOST_COLUMNS]; /* within the quotes */
    unsigned count;
};

static void free_state(void *state)
{
    wr_json_fini(&((struct state *)state)->json);
}

/* ---- Records --------------------------------------------------------------------------------- */

enum { FIELD_BEGINS, IN_FIELD, AFTER_QUOTE, IN_QUOTES = WR_PARSE_QUOTED };

static uint8_t step(uint8_t state, char byte)
{
    bool opens = state == FIELD_BEGINS || state == AFTER_QUOTE; /* two quotes in quotes are one */
    if (byte == '"' && (opens || state == IN_QUOTES))
        return state == IN_QUOTES ? AFTER_QUOTE : IN_QUOTES;
    if (state == IN_QUOTES)
        return IN_QUOTES;
    return byte == ',' ? FIELD_BEGINS : IN_FIELD;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The closing quote of a field that begins after `at`. NULL: none. */
static const char *find_quote(const char *at, const char *end)
{
    while (at < end && (*at != '"' || (at + 1 < end && at[1] == '"')))
        at += *at == '"' ? 2 : 1;
    return at < end ? at : NULL;
}

/* Sets one field, and *next: the comma or the end behind it. */
static bool read_field(struct wr_parser *parser, const char *at, const char **next, struct fields *fields)
{
    const char *end = parser->line_end, *comma = memchr(at, ',', (size_t)(end - at));
    bool is_quoted = at < end && *at == '"';
    const char *field_end = is_quoted ? find_quote(at + 1, end) : comma ? comma : end;
    if (fields->count == MOST_COLUMNS)
        return wr_parse_refuse(parser, at, "at most %d columns are allowed", MOST_COLUMNS);
    if (!field_end)
        return wr_parse_refuse(parser, at, "unclosed quotes");
    *next = field_end + is_quoted;
    if (*next < end && **next != ',')
        return wr_parse_refuse(parser, *next, "text after a field in quotes");
    fields->at[fields->count] = at + is_quoted;
    fields->end[fields->count++] = field_end;
    return is_quoted || !memchr(at, '"', (size_t)(field_end - at)) ||
           wr_parse_refuse(parser, at, "a quote in a field without quotes");
}

static bool read_fields(struct wr_parser *parser, struct fields *fields)
{
    const char *at = parser->at;
    fields->count = 0;
    for (;; at++) {
        if (!read_field(parser, at, &at, fields))
            return false;
        if (at == parser->line_end)
            return true;
    }
}

/* ---- Columns --------------------------------------------------------------------------------- */

static enum column find_column(const char *at, const char *end)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        if (strlen(column_names[i]) == (size_t)(end - at) &&
            memcmp(column_names[i], at, (size_t)(end - at)) == 0)
            return (enum column)i;
    return COLUMNS;
}

/* Whether the record names the columns: all of them, and name and value among them. */
static bool is_header(const struct fields *fields)
{
    unsigned found = 0;
    for (unsigned i = 0; i < fields->count; i++) {
        enum column column = find_column(fields->at[i], fields->end[i]);
        if (column == COLUMNS || found & 1U << column)
            return false;
        found |= 1U << column;
    }
    return found & 1U << NAME && found & 1U << VALUE;
}

/* Returns whether the record is the header. */
static bool read_header(struct state *state, const struct fields *fields)
{
    bool is_first = !state->is_started;
    state->is_started = true;
    if (!is_header(fields))
        return false;
    if (is_first)
        state->count = fields->count;
    for (unsigned i = 0; is_first && i < fields->count; i++)
        state->columns[i] = find_column(fields->at[i], fields->end[i]);
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Keeps a field without the doubling of its quotes. */
static char *keep(struct wr_parser *parser, const char *at, const char *end)
{
    char *text = wr_parse_open(parser), *out = text;
    for (; at < end; at++) {
        at += *at == '"';
        *out++ = *at;
    }
    wr_parse_close(parser, out);
    return text;
}

/* A JSON object of texts. */
static bool read_labels(struct wr_parser *parser, const char *at, const char *end)
{
    struct wr_json *json = &((struct state *)parser->state)->json;
    const char *text = keep(parser, at, end);
    wr_json_clear(json);
    if (!wr_json_parse(json, text, strlen(text)))
        return wr_parse_refuse(parser, at, "labels: %s", json->problem ? json->problem : "out of memory");
    if (json->values->type != WR_NODE_OBJECT)
        return wr_parse_refuse(parser, at, "labels: must be a JSON object of texts");
    for (size_t i = 1; i < json->count; i++) {
        const struct wr_json_value *label = &json->values[i];
        if (label->type != WR_NODE_STRING)
            return wr_parse_refuse(parser, at, "labels: must be a JSON object of texts");
        if (!wr_parse_check_name(parser, at, label->key, "label key") ||
            !wr_parse_add_label(parser, at, label->key, label->text))
            return false;
    }
    return true;
}

/* An empty field is as if the column was missing, but for name and value. */
static bool read_column(struct wr_parser *parser, enum column column, const char *at, const char *end)
{
    if (at == end)
        return true;
    switch (column) {
    case TIMESTAMP: return wr_parse_set_time(parser, at, end);
    case GROUP: return wr_parse_set_group(parser, at, keep(parser, at, end));
    case LABELS: return read_labels(parser, at, end);
    default: return true; /* name and value are read together */
    }
}

static bool read_value(struct wr_parser *parser, const struct fields *fields, unsigned name, unsigned value)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_typed_value number;
    const char *at = fields->at[name], *text = keep(parser, at, fields->end[name]);
    if (!wr_parse_check_name(parser, at, text, "name"))
        return false;
    at = fields->at[value];
    if (!wr_numeral_read(at, fields->end[value], WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &number))
        return wr_parse_refuse(parser, at, "%s is not a number", wr_parse_quote(shown, at, fields->end[value]));
    return wr_parse_add_value(parser, fields->at[name], text, &number);
}

/* ---- A record -------------------------------------------------------------------------------- */

static bool read_record(struct wr_parser *parser)
{
    static const enum column defaults[] = {TIMESTAMP, GROUP, NAME, VALUE, LABELS};
    struct state *state = parser->state;
    struct fields fields;
    unsigned name = 0, value = 0;
    if (!read_fields(parser, &fields) || read_header(state, &fields))
        return false;
    const enum column *columns = state->count ? state->columns : defaults;
    unsigned count = state->count ? state->count : WR_COUNT_OF(defaults);
    if (fields.count != count)
        return wr_parse_refuse(parser, parser->at, "%u fields, but there are %u columns", fields.count, count);
    for (unsigned i = 0; i < count; i++) {
        name = columns[i] == NAME ? i : name;
        value = columns[i] == VALUE ? i : value;
        if (!read_column(parser, columns[i], fields.at[i], fields.end[i]))
            return false;
    }
    return read_value(parser, &fields, name, value);
}

static bool next(struct wr_parser *parser)
{
    if (parser->at == parser->line_end)
        return false;
    wr_parse_start(parser);
    bool has_record = read_record(parser);
    parser->at = parser->line_end;
    return has_record;
}

const struct wr_parser_type wr_parser_csv = {
    .name = "csv",
    .summary = "RFC 4180: timestamp,group,name,value,labels, or the columns that the first record names",
    .next = next,
    .step = step,
    .state_bytes = sizeof(struct state),
    .free_state = free_state,
};
