#include <stdio.h>
#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/json.h"
#include "text/numeral.h"

/* One object a line: an object with a text "name" is one value as the format json writes it, any other one an
 * event of values by name. In bai, which has no such form, every object is an event. */

/* The state of a parser is its reader of JSON, which keeps memory from line to line. */
void wr_parse_free_json(void *state)
{
    wr_json_fini(state);
}

static const char *find_place(const struct wr_parser *parser, const struct wr_json_value *value)
{
    return parser->line + value->offset;
}

static const char *find_key_place(const struct wr_parser *parser, const struct wr_json_value *value)
{
    return parser->line + value->key_offset;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static const char *show(char out[WR_PARSE_SHOWN_ROOM], const struct wr_json_value *value)
{
    static const char *const names[] = {
        [WR_NODE_NULL] = "null", [WR_NODE_ARRAY] = "an array", [WR_NODE_OBJECT] = "an object"};
    if (value->type == WR_NODE_STRING)
        return wr_parse_quote(out, value->text, value->text + strlen(value->text));
    snprintf(out, WR_PARSE_SHOWN_ROOM, "%.100s",
             value->type == WR_NODE_NUMBER ? value->text
             : value->type == WR_NODE_BOOL ? (value->truth ? "true" : "false")
                                           : names[value->type]);
    return out;
}

static bool refuse(struct wr_parser *parser, const struct wr_json_value *value, const char *allowed)
{
    char shown[WR_PARSE_SHOWN_ROOM], key[WR_PARSE_SHOWN_ROOM];
    return wr_parse_refuse(parser, find_place(parser, value), "%s: must be %s, got %s",
                           wr_parse_quote(key, value->key, value->key + strlen(value->key)), allowed,
                           show(shown, value));
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A number in a text, as programs write that have taken it out of a log. */
static bool read_text(const char *text, weir_number *value)
{
    const char *end = text + strlen(text), *start = wr_parse_skip_blanks(text, end);
    while (end > start && wr_parse_is_blank(end[-1]))
        end--;
    return wr_numeral_read(start, end, WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, value);
}

static bool read_value(const struct wr_json_value *from, weir_number *value)
{
    switch (from->type) {
    case WR_NODE_NUMBER:
        return wr_numeral_read(from->text, from->text + strlen(from->text), WR_NUMERAL_SPECIAL, value);
    case WR_NODE_STRING: return read_text(from->text, value);
    case WR_NODE_BOOL: *value = WEIR_INT(from->truth); return true;
    default: return false;
    }
}

#define ALLOWED "a number, true, false, or a number in a text"

/* ---- An event -------------------------------------------------------------------------------- */

/* Returns false if the line is refused. */
static bool add_member(struct wr_parser *parser, const struct wr_json_value *member)
{
    char shown[WR_PARSE_SHOWN_ROOM], name[WR_PARSE_SHOWN_ROOM];
    const char *place = find_place(parser, member);
    weir_number value;
    if (read_value(member, &value))
        return wr_parse_add_member(parser, find_key_place(parser, member), member->key, "name", &value);
    wr_parse_leave_out(parser, place, "%s: %s is not a value (" ALLOWED ")",
                       wr_parse_quote(name, member->key, member->key + strlen(member->key)),
                       show(shown, member));
    return true;
}

static bool read_event(struct wr_parser *parser, const struct wr_json *json)
{
    for (size_t i = 1; i < json->count; i++) {
        const struct wr_json_value *member = &json->values[i];
        if (member->parent == 0 && !member->is_replaced && !add_member(parser, member))
            return false;
    }
    if (json->count == 1)
        return wr_parse_refuse(parser, find_place(parser, json->values), "the object has no values");
    return parser->record.count;
}

/* ---- A value with its attributes ------------------------------------------------------------- */

/* What is read of a record: its object, and the members that it must have. */
struct parts {
    const struct wr_json *json;
    const struct wr_json_value *name, *value;
};

static bool read_timestamp(struct wr_parser *parser, const struct wr_json_value *member)
{
    struct wr_parse_record *record = &parser->record;
    const char *text = member->text;
    record->has_time =
        member->type == WR_NODE_NUMBER && wr_numeral_read_time(text, text + strlen(text), &record->time_ns);
    return record->has_time || refuse(parser, member, "a time (seconds since 1970, like 1795219607.576198123)");
}

static bool read_member_text(struct wr_parser *parser, const struct wr_json_value *member, const char **text)
{
    *text = member->text;
    return member->type == WR_NODE_STRING || refuse(parser, member, "a text");
}

static bool read_group(struct wr_parser *parser, const struct wr_json_value *member)
{
    return read_member_text(parser, member, &parser->record.group) &&
           wr_parse_set_group(parser, find_place(parser, member), member->text);
}

static bool read_label(struct wr_parser *parser, const struct wr_json_value *label)
{
    const char *place = find_key_place(parser, label);
    if (label->type != WR_NODE_STRING)
        return refuse(parser, label, "a text");
    return wr_parse_check_name(parser, place, label->key, "label key") &&
           wr_parse_add_label(parser, place, label->key, label->text);
}

static bool read_labels(struct wr_parser *parser, const struct wr_json_value *member,
                        const struct wr_json *json)
{
    size_t object = (size_t)(member - json->values);
    if (member->type != WR_NODE_OBJECT)
        return refuse(parser, member, "an object of texts");
    for (size_t i = object + 1; i < json->count; i++)
        if (json->values[i].parent == object && !read_label(parser, &json->values[i]))
            return false;
    return true;
}

static bool read_cumulative(struct wr_parser *parser, const struct wr_json_value *member)
{
    parser->record.cumulative = member->truth;
    return member->type == WR_NODE_BOOL || refuse(parser, member, "true or false");
}

static bool read_instrument(struct wr_parser *parser, const struct wr_json_value *member)
{
    static const char *const names[] = {[WEIR_VALUE] = "value",
                                        [WEIR_COUNTER] = "counter",
                                        [WEIR_GAUGE] = "gauge",
                                        [WEIR_HISTOGRAM] = "histogram"};
    for (int i = 0; member->type == WR_NODE_STRING && i < (int)WR_COUNT_OF(names); i++) {
        if (strcmp(member->text, names[i]) == 0) {
            parser->record.instrument = i;
            return true;
        }
    }
    return refuse(parser, member, "value, counter, gauge or histogram");
}

static bool is(const struct wr_json_value *member, const char *key)
{
    return strcmp(member->key, key) == 0;
}

static bool read_attribute(struct wr_parser *parser, const struct wr_json_value *member, struct parts *parts)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    if (is(member, "timestamp"))
        return read_timestamp(parser, member);
    if (is(member, "group"))
        return read_group(parser, member);
    if (is(member, "name")) {
        parts->name = member;
        return wr_parse_check_name(parser, find_place(parser, member), member->text, "name");
    }
    if (is(member, "value")) {
        parts->value = member;
        return true;
    }
    if (is(member, "labels"))
        return read_labels(parser, member, parts->json);
    if (is(member, "cumulative"))
        return read_cumulative(parser, member);
    if (is(member, "metadata"))
        return read_member_text(parser, member, &record->metadata);
    if (is(member, "instrument"))
        return read_instrument(parser, member);
    if (is(member, "unit"))
        return read_member_text(parser, member, &record->unit);
    if (is(member, "help"))
        return read_member_text(parser, member, &record->help);
    if (is(member, "origin") || is(member, "sequence"))
        return true; /* the sample gets an identity of its own */
    return wr_parse_refuse(
        parser, find_key_place(parser, member),
        "%s: unknown member; with \"name\" these are allowed: timestamp, group, name, value, "
        "labels, cumulative, metadata, instrument, unit, help, origin, sequence",
        wr_parse_quote(shown, member->key, member->key + strlen(member->key)));
}

static bool read_record(struct wr_parser *parser, const struct wr_json *json)
{
    struct parts parts = {.json = json};
    weir_number value;
    for (size_t i = 1; i < json->count; i++)
        if (json->values[i].parent == 0 && !read_attribute(parser, &json->values[i], &parts))
            return false;
    if (!parts.value)
        return wr_parse_refuse(parser, find_place(parser, json->values), "the member \"value\" is missing");
    return (read_value(parts.value, &value) || refuse(parser, parts.value, ALLOWED)) &&
           wr_parse_add_value(parser, find_place(parser, parts.name), parts.name->text, &value);
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* A value called "name" is a number. */
static bool is_record(const struct wr_json *json)
{
    for (size_t i = 1; i < json->count; i++)
        if (json->values[i].parent == 0 && strcmp(json->values[i].key, "name") == 0)
            return json->values[i].type == WR_NODE_STRING;
    return false;
}

static bool parse(struct wr_parser *parser)
{
    struct wr_json *json = parser->state;
    char shown[WR_PARSE_SHOWN_ROOM];
    wr_json_clear(json);
    json->specials = true;
    json->repeats = parser->type == &wr_parser_bai; /* as json.loads of Python */
    if (!wr_json_read(json, parser->line, (size_t)(parser->line_end - parser->line))) {
        const char *place = json->problem ? parser->line + json->offset : NULL;
        return wr_parse_refuse(parser, place, "%s%s%s", json->problem ? json->problem : "out of memory",
                               *json->detail ? ": " : "", json->detail);
    }
    if (json->values->type != WR_NODE_OBJECT)
        return wr_parse_refuse(parser, find_place(parser, json->values), "must be an object, got %s",
                               show(shown, json->values));
    return parser->type == &wr_parser_bai || !is_record(json) ? read_event(parser, json)
                                                              : read_record(parser, json);
}

static bool next(struct wr_parser *parser)
{
    return wr_parse_line(parser, '\0', parse);
}

const struct wr_parser_type wr_parser_json = {
    .name = "json",
    .has_groups = true,
    .next = next,
    .state_bytes = sizeof(struct wr_json),
    .free_state = wr_parse_free_json,
};

const struct wr_parser_type wr_parser_bai = {
    .name = "bai",
    .next = next,
    .state_bytes = sizeof(struct wr_json),
    .free_state = wr_parse_free_json,
};
