#include <string.h>

#include "parse/parser_type.h"
#include "parse/time_form.h"
#include "registry/name.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/json.h"
#include "text/numeral.h"

/* RFC 4180: records of fields, in quotes where a field contains commas, quotes or line ends. A first record
 * without any number names the columns:
 *
 * - with "name" and "value" among them, each record is one value, and further columns are labels;
 * - otherwise each column is a value of its name: ts,cpu,mem, or cpu only.
 *
 * "timestamp" ("time", "ts": seconds since 1970, or of ISO 8601), "group" and "labels" are what they say in
 * both. Without such a record the columns are those of the format csv, in its order. */

enum { MOST_COLUMNS = 256 };

enum column { TIMESTAMP, GROUP, NAME, VALUE, LABELS, OTHER, IGNORED };

/* The fields of a record. */
struct fields {
    const char *at[MOST_COLUMNS], *end[MOST_COLUMNS]; /* within the quotes */
    unsigned count;
};

struct columns {
    unsigned count; /* 0: the default */
    bool is_wide, lacks_value;
    enum column is[MOST_COLUMNS];
    struct wr_buffer names; /* each with a NUL */
    size_t name_at[MOST_COLUMNS];
};

struct state {
    struct wr_json json; /* the labels */
    bool is_started;     /* the first record has been read */
    struct columns columns;
    struct fields fields; /* of the present record */
};

static void free_state(void *state)
{
    struct state *csv = state;
    wr_json_fini(&csv->json);
    wr_buffer_fini(&csv->columns.names);
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

/* ---- Columns --------------------------------------------------------------------------------- */

static bool is_text(const char *at, const char *end, const char *text)
{
    return strlen(text) == (size_t)(end - at) && memcmp(text, at, (size_t)(end - at)) == 0;
}

static enum column find_column(const char *at, const char *end)
{
    static const struct {
        const char *name;
        enum column column;
    } known[] = {{"timestamp", TIMESTAMP}, {"time", TIMESTAMP}, {"ts", TIMESTAMP}, {"group", GROUP},
                 {"name", NAME},           {"value", VALUE},    {"labels", LABELS}};
    for (size_t i = 0; i < WR_COUNT_OF(known); i++)
        if (is_text(at, end, known[i].name))
            return known[i].column;
    return at == end ? IGNORED : OTHER;
}

static bool has_number(const struct fields *fields)
{
    weir_number number;
    for (unsigned i = 0; i < fields->count; i++)
        if (wr_numeral_read(fields->at[i], fields->end[i], WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &number))
            return true;
    return false;
}

/* The first may be empty, as that of an index is. */
static bool are_names(struct wr_parser *parser, const struct fields *fields)
{
    struct wr_error error;
    for (unsigned i = 0; i < fields->count; i++) {
        bool is_empty = fields->at[i] == fields->end[i];
        if (is_empty ? i > 0 : !wr_name_check(keep(parser, fields->at[i], fields->end[i]), "column", &error))
            return false;
    }
    return fields->count;
}

static bool has_column(const struct fields *fields, enum column column)
{
    for (unsigned i = 0; i < fields->count; i++)
        if (find_column(fields->at[i], fields->end[i]) == column)
            return true;
    return false;
}

static bool are_present(struct wr_parser *parser, const struct columns *columns, const struct fields *fields)
{
    if (columns->count != fields->count)
        return false;
    for (unsigned i = 0; i < fields->count; i++)
        if (strcmp(keep(parser, fields->at[i], fields->end[i]), columns->names.data + columns->name_at[i]) != 0)
            return false;
    return true;
}

/* A column that is named again is one of its own name. Returns false if out of memory. */
static bool set_columns(struct wr_parser *parser, struct columns *columns, const struct fields *fields)
{
    bool has_name = has_column(fields, NAME), has_value = has_column(fields, VALUE);
    unsigned found = has_name ? 0 : 1U << VALUE, others = 0;
    columns->count = fields->count;
    columns->is_wide = !has_name;
    wr_buffer_clear(&columns->names);
    for (unsigned i = 0; i < fields->count; i++) {
        enum column column = find_column(fields->at[i], fields->end[i]);
        columns->is[i] = column < OTHER && found & 1U << column ? OTHER : column;
        found |= 1U << column;
        others += columns->is[i] == OTHER;
        columns->name_at[i] = columns->names.length;
        wr_buffer_put_text(&columns->names, keep(parser, fields->at[i], fields->end[i]));
        wr_buffer_put_char(&columns->names, '\0');
    }
    columns->lacks_value = has_name ? !has_value : !others;
    if (columns->names.failed)
        columns->count = 0;
    return columns->count;
}

/* Returns whether the record names the columns. A later one does so if it says the same again, or names "name"
 * and "value": files are read one after another. */
static bool read_header(struct wr_parser *parser, struct state *state)
{
    const struct fields *fields = &state->fields;
    bool is_first = !state->is_started;
    state->is_started = true;
    if (has_number(fields))
        return false;
    if (are_present(parser, &state->columns, fields))
        return true;
    wr_parse_start(parser);
    if ((!is_first && !(has_column(fields, NAME) && has_column(fields, VALUE))) || !are_names(parser, fields))
        return false;
    wr_parse_start(parser);
    if (!set_columns(parser, &state->columns, fields))
        wr_parse_refuse(parser, NULL, "out of memory");
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A JSON object of texts. */
static bool read_labels(struct wr_parser *parser, const char *at, const char *end)
{
    struct wr_json *json = &((struct state *)parser->state)->json;
    const char *text = keep(parser, at, end);
    wr_json_clear(json);
    if (!wr_json_read(json, text, strlen(text)))
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

static bool read_time(struct wr_parser *parser, const char *at, const char *end)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    record->has_time =
        wr_numeral_read_time(at, end, &record->time_ns) || wr_time_form_read_iso(at, end, &record->time_ns);
    return record->has_time || wr_parse_refuse(parser, at,
                                               "%s is not a time (seconds since 1970, like 1795219607.5, or "
                                               "like 2026-11-28T12:00:00Z)",
                                               wr_parse_quote(shown, at, end));
}

/* A column of its own name: a label of the value; or one of several values, which is left out if it is no
 * number. */
static bool read_other(struct wr_parser *parser, const char *name, const char *at, const char *end)
{
    const struct state *state = parser->state;
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_number number;
    if (!state->columns.is_wide)
        return wr_parse_add_label(parser, at, name, keep(parser, at, end));
    if (wr_numeral_read(at, end, WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &number))
        return wr_parse_add_value(parser, at, name, &number);
    wr_parse_leave_out(parser, at, "column \"%.100s\": %s is not a number", name,
                       wr_parse_quote(shown, at, end));
    return true;
}

/* An empty field is as if the column was missing, but for name and value. */
static bool read_column(struct wr_parser *parser, unsigned i, enum column column)
{
    struct state *state = parser->state;
    const char *at = state->fields.at[i], *end = state->fields.end[i];
    if (at == end)
        return true;
    switch (column) {
    case TIMESTAMP: return read_time(parser, at, end);
    case GROUP: return wr_parse_set_group(parser, at, keep(parser, at, end));
    case LABELS: return read_labels(parser, at, end);
    case OTHER: return read_other(parser, state->columns.names.data + state->columns.name_at[i], at, end);
    default: return true; /* name and value are read together */
    }
}

static bool read_value(struct wr_parser *parser, const struct fields *fields, unsigned name, unsigned value)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    weir_number number;
    const char *at = fields->at[name], *text = keep(parser, at, fields->end[name]);
    if (!wr_parse_check_name(parser, at, text, "name"))
        return false;
    at = fields->at[value];
    if (!wr_numeral_read(at, fields->end[value], WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &number))
        return wr_parse_refuse(parser, at, "%s is not a number", wr_parse_quote(shown, at, fields->end[value]));
    return wr_parse_add_value(parser, fields->at[name], text, &number);
}

/* ---- A record -------------------------------------------------------------------------------- */

static bool check_columns(struct wr_parser *parser, const struct state *state, unsigned count)
{
    if (state->columns.lacks_value)
        return wr_parse_refuse(parser, NULL, "the first record names %s",
                               state->columns.is_wide ? "no column of values"
                                                      : "a column \"name\", but none \"value\"");
    if (state->fields.count == count)
        return true;
    return wr_parse_refuse(parser, parser->at, "%u fields, but there are %u columns%s", state->fields.count,
                           count, state->columns.count ? "" : " (timestamp,group,name,value,labels)");
}

/* A single text before records of the default columns was no header. */
static void drop_single(struct wr_parser *parser, struct state *state, unsigned default_count)
{
    struct columns *columns = &state->columns;
    if (columns->count != 1 || state->fields.count != default_count)
        return;
    wr_parse_leave_out(parser, parser->at, "the first record, \"%.100s\", is not the column of this one",
                       columns->names.data);
    columns->count = 0;
    columns->is_wide = columns->lacks_value = false;
}

static bool read_record(struct wr_parser *parser)
{
    static const enum column defaults[] = {TIMESTAMP, GROUP, NAME, VALUE, LABELS};
    struct state *state = parser->state;
    unsigned name = 0, value = 0;
    if (!read_fields(parser, &state->fields) || read_header(parser, state))
        return false;
    drop_single(parser, state, WR_COUNT_OF(defaults));
    const enum column *columns = state->columns.count ? state->columns.is : defaults;
    unsigned count = state->columns.count ? state->columns.count : WR_COUNT_OF(defaults);
    wr_parse_start(parser);
    if (!check_columns(parser, state, count))
        return false;
    for (unsigned i = 0; i < count; i++) {
        name = columns[i] == NAME ? i : name;
        value = columns[i] == VALUE ? i : value;
        if (!read_column(parser, i, columns[i]))
            return false;
    }
    return state->columns.is_wide ? parser->record.count > 0 : read_value(parser, &state->fields, name, value);
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
    .has_groups = true,
    .next = next,
    .step = step,
    .state_bytes = sizeof(struct state),
    .free_state = free_state,
};
