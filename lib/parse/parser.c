#include "parse/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse/parser_type.h"
#include "registry/name.h"
#include "text/array.h"
#include "text/common.h"
#include "text/error.h"
#include "text/json.h"
#include "text/numeral.h"
#include "text/units.h"
#include "text/utf8.h"

enum { READ_BYTES = 64 * 1024 };

/* ---- Life ------------------------------------------------------------------------------------ */

static void set_defaults(struct wr_parser_options *options)
{
    if (!options->line_bytes)
        options->line_bytes = WR_PARSER_LINE_BYTES;
    if (!options->time_unit_ns)
        options->time_unit_ns = 1;
}

struct wr_parser *wr_parser_new(const struct wr_parser_type *type, const struct wr_parser_options *options,
                                const struct wr_parser_sink *sink)
{
    struct wr_parser *parser = calloc(1, sizeof *parser);
    if (!parser)
        return NULL;
    parser->type = type;
    parser->options = *options;
    parser->sink = *sink;
    set_defaults(&parser->options);
    if (type->state_bytes && !(parser->state = calloc(1, type->state_bytes))) {
        free(parser);
        return NULL;
    }
    return parser;
}

void wr_parser_free(struct wr_parser *parser)
{
    if (!parser)
        return;
    if (parser->type->free_state)
        parser->type->free_state(parser->state);
    free(parser->state);
    free(parser->buffer);
    free(parser->values);
    free(parser->labels);
    free(parser->texts);
    free(parser);
}

uint64_t wr_parser_lines(const struct wr_parser *parser)
{
    return parser->lines;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

const char *wr_parse_quote(char out[WR_PARSE_SHOWN_ROOM], const char *text, const char *end)
{
    return wr_utf8_quote(out, WR_PARSE_SHOWN_ROOM, text, (size_t)(end - text));
}

/* Counts on from the place before: a line may have as many faults as values. */
static void locate(struct wr_parser *parser, const char *at, struct wr_parse_fault *fault)
{
    struct wr_parse_place *place = &parser->place;
    unsigned row, column;
    if (at < place->at)
        *place = (struct wr_parse_place){parser->line, 1, 1};
    wr_json_locate(place->at, (size_t)(parser->line_end - place->at), (size_t)(at - place->at), &row, &column);
    *place = (struct wr_parse_place){at, place->row + row - 1, row > 1 ? column : place->column + column - 1};
    fault->line += place->row - 1;
    fault->column = place->column;
}

static void report(struct wr_parser *parser, const char *at, bool is_value, const char *format,
                   va_list arguments)
{
    struct wr_parse_fault fault = {.line = parser->lines + parser->further, .is_value = is_value};
    char text[WR_PARSE_FAULT_ROOM];
    vsnprintf(text, sizeof text, format, arguments);
    wr_utf8_line(fault.text, sizeof fault.text, text);
    if (at)
        locate(parser, at, &fault);
    parser->sink.refuse(parser->sink.context, &fault);
}

bool wr_parse_refuse(struct wr_parser *parser, const char *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(parser, at, false, format, arguments);
    va_end(arguments);
    parser->at = parser->line_end;
    return false;
}

void wr_parse_leave_out(struct wr_parser *parser, const char *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(parser, at, true, format, arguments);
    va_end(arguments);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

char *wr_parse_keep(struct wr_parser *parser, const char *text, const char *end)
{
    char *copy = wr_parse_open(parser);
    memcpy(copy, text, (size_t)(end - text));
    wr_parse_close(parser, copy + (end - text));
    return copy;
}

bool wr_parse_check_name(struct wr_parser *parser, const char *at, const char *name, const char *what)
{
    struct wr_error error;
    return wr_name_check(name, what, &error) || wr_parse_refuse(parser, at, "%s", error.text);
}

bool wr_parse_set_time(struct wr_parser *parser, const char *at, const char *end)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    struct wr_parse_record *record = &parser->record;
    record->has_time = wr_numeral_read_time(at, end, &record->time_ns);
    return record->has_time ||
           wr_parse_refuse(parser, at, "%s is not a time (seconds since 1970, like 1795219607.5)",
                           wr_parse_quote(shown, at, end));
}

bool wr_parse_set_group(struct wr_parser *parser, const char *at, const char *group)
{
    struct wr_error error;
    parser->record.group = group;
    return wr_name_check_group(group, &error) || wr_parse_refuse(parser, at, "%s", error.text);
}

const char *wr_parse_keep_name(struct wr_parser *parser, const char *text, const char *end, const char *what)
{
    const char *name = wr_parse_keep(parser, text, end);
    return wr_parse_check_name(parser, text, name, what) ? name : NULL;
}

/* ---- The record ------------------------------------------------------------------------------ */

void wr_parse_start(struct wr_parser *parser)
{
    parser->record = (struct wr_parse_record){.line = parser->lines + parser->further, .sample_rate = 1};
    parser->text_used = 0;
}

bool wr_parse_add_value(struct wr_parser *parser, const char *at, const char *name, const weir_number *value)
{
    struct wr_parse_record *record = &parser->record;
    if (record->count == WR_PARSER_VALUES)
        return wr_parse_refuse(parser, at, "at most %d values are allowed", WR_PARSER_VALUES);
    if (!WR_ARRAY_HAS_ROOM(&parser->values, &parser->value_room, (uint32_t)record->count + 1))
        return wr_parse_refuse(parser, NULL, "out of memory");
    record->values = parser->values;
    parser->values[record->count++] = (weir_typed_value){name, *value};
    return true;
}

bool wr_parse_add_member(struct wr_parser *parser, const char *at, const char *name, const char *what,
                         const weir_number *value)
{
    struct wr_error error;
    if (wr_name_check(name, what, &error))
        return wr_parse_add_value(parser, at, name, value);
    wr_parse_leave_out(parser, at, "%s", error.text);
    return true;
}

static weir_label *find_label(const struct wr_parser *parser, const char *key)
{
    for (size_t i = 0; i < parser->record.label_count; i++)
        if (strcmp(parser->labels[i].key, key) == 0)
            return &parser->labels[i];
    return NULL;
}

const char *wr_parse_find_label(const struct wr_parser *parser, const char *key)
{
    const weir_label *label = find_label(parser, key);
    return label ? label->value : NULL;
}

bool wr_parse_replace_label(struct wr_parser *parser, const char *key, const char *value)
{
    weir_label *label = find_label(parser, key);
    if (label)
        label->value = value;
    return label;
}

bool wr_parse_add_label(struct wr_parser *parser, const char *at, const char *key, const char *value)
{
    struct wr_parse_record *record = &parser->record;
    if (record->label_count == WR_PARSER_LABELS)
        return wr_parse_refuse(parser, at, "at most %d labels are allowed", WR_PARSER_LABELS);
    if (find_label(parser, key))
        return wr_parse_refuse(parser, at, "the label \"%s\" is given twice", key);
    if (!WR_ARRAY_HAS_ROOM(&parser->labels, &parser->label_room, (uint32_t)record->label_count + 1))
        return wr_parse_refuse(parser, NULL, "out of memory");
    record->labels = parser->labels;
    parser->labels[record->label_count++] = (weir_label){key, value};
    return true;
}

/* The dot that ends the group; NULL: none. */
static const char *find_split(const struct wr_parser *parser, const char *text, const char *end)
{
    size_t length = (size_t)(end - text);
    switch (parser->options.split) {
    case WR_PARSER_SPLIT_FIRST: return memchr(text, '.', length);
    case WR_PARSER_SPLIT_LAST: return memrchr(text, '.', length);
    default: return NULL;
    }
}

bool wr_parse_add_path(struct wr_parser *parser, const char *text, const char *end, const weir_number *value)
{
    const char *dot = find_split(parser, text, end);
    if (dot && !wr_parse_set_group(parser, text, wr_parse_keep(parser, text, dot)))
        return false;
    const char *start = dot ? dot + 1 : text;
    const char *name = wr_parse_keep_name(parser, start, end, "name");
    return name && wr_parse_add_value(parser, start, name, value);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool has_text_room(struct wr_parser *parser, size_t length)
{
    size_t needed = 2 * length + 16; /* texts are never longer than the line, nor more than its bytes */
    if (needed <= parser->text_room)
        return true;
    char *texts = realloc(parser->texts, needed);
    if (!texts)
        return false;
    parser->texts = texts;
    parser->text_room = needed;
    return true;
}

static bool check_bytes(struct wr_parser *parser, size_t length)
{
    const char *nul = memchr(parser->line, '\0', length);
    size_t invalid;
    if (parser->type->takes_any_bytes)
        return true;
    if (nul)
        return wr_parse_refuse(parser, nul, "a NUL byte");
    if (!wr_utf8_is_valid(parser->line, length, &invalid))
        return wr_parse_refuse(parser, parser->line + invalid, "invalid UTF-8");
    return has_text_room(parser, length) || wr_parse_refuse(parser, NULL, "out of memory");
}

static uint64_t count_newlines(const struct wr_parser *parser, const char *from, const char *end)
{
    uint64_t count = 0;
    while (parser->type->step && (from = memchr(from, '\n', (size_t)(end - from)))) {
        count++;
        from++;
    }
    return count;
}

/* newline: the end of the line, which becomes a NUL. */
static void start_line(struct wr_parser *parser, char *newline)
{
    static const char mark[] = "\xef\xbb\xbf";
    char *line = parser->buffer + parser->start;
    char size[WR_UNITS_ROOM];
    bool was_skipping = parser->skipping;
    parser->further += parser->own_further;
    parser->own_further = parser->discarded + count_newlines(parser, line, newline);
    parser->discarded = 0;
    parser->start = (size_t)(newline - parser->buffer) + 1;
    parser->searched = parser->step_state = 0;
    parser->skipping = false;
    parser->skipped = 0;
    bool too_long = was_skipping || (size_t)(newline - line) > parser->options.line_bytes;
    newline -= newline > line && newline[-1] == '\r';
    *newline = '\0';
    if (++parser->lines == 1 && newline - line >= 3 && memcmp(line, mark, 3) == 0)
        line += 3;
    parser->line = parser->at = line;
    parser->line_end = newline;
    parser->place = (struct wr_parse_place){line, 1, 1};
    if (too_long)
        wr_parse_refuse(parser, NULL, "longer than %s",
                        wr_units_put_size(size, (int64_t)parser->options.line_bytes));
    else
        parser->in_line = check_bytes(parser, (size_t)(newline - line));
}

/* What has been read of a line that is too long is discarded. */
static void discard(struct wr_parser *parser)
{
    if (parser->end - parser->start <= parser->options.line_bytes + 1)
        return;
    parser->skipping = true;
    parser->skipped += parser->end - parser->start;
    parser->discarded += count_newlines(parser, parser->buffer + parser->start, parser->buffer + parser->end);
    parser->start = parser->end = parser->searched = parser->step_state = 0;
}

/* Follows the record to the newline that ends it, and no further than it may be long; behind that, a newline
 * ends it that is not in quotes. NULL: it is not there yet. */
static char *step_to_end(struct wr_parser *parser, char *from, const char *end)
{
    const char *most = parser->buffer + parser->start + parser->options.line_bytes + 1;
    const char *limit = most < end ? most : end;
    uint8_t state = parser->step_state;
    for (; from < limit && (*from != '\n' || state & WR_PARSE_QUOTED); from++)
        state = parser->type->step(state, *from);
    parser->step_state = state;
    if (from < limit)
        return from;
    return state & WR_PARSE_QUOTED ? NULL : memchr(from, '\n', (size_t)(end - from));
}

static char *find_end(struct wr_parser *parser)
{
    char *from = parser->buffer + parser->start + parser->searched;
    const char *end = parser->buffer + parser->end;
    char *newline = memchr(from, '\n', (size_t)(end - from));
    bool is_line = !parser->type->step || parser->skipping ||
                   (newline && !parser->searched && !memchr(from, '"', (size_t)(newline - from)));
    return is_line ? newline : step_to_end(parser, from, end);
}

/* A quote that is not closed in line_bytes, or at all, costs its own line only. All that was searched for its
 * end has no other quote that would be left open, so the search is not repeated for the lines of it. */
static char *give_up_quote(const struct wr_parser *parser)
{
    char *start = parser->buffer + parser->start;
    size_t length = parser->end - parser->start;
    bool is_over = parser->is_ending || length > parser->options.line_bytes + 1;
    return parser->step_state & WR_PARSE_QUOTED && is_over ? memchr(start, '\n', length) : NULL;
}

/* Returns false if no whole line is left. */
static bool next_line(struct wr_parser *parser)
{
    if (parser->start == parser->end)
        return false;
    char *newline = find_end(parser);
    if (!newline)
        newline = give_up_quote(parser);
    if (newline) {
        start_line(parser, newline);
        return true;
    }
    parser->searched = parser->end - parser->start;
    discard(parser);
    return false;
}

/* Offers records until the sink has no room, or until no whole line is left. */
static bool run(struct wr_parser *parser)
{
    do {
        while (parser->in_line) {
            if (!parser->is_offered && !parser->type->next(parser)) {
                parser->in_line = false;
                break;
            }
            parser->is_offered = true;
            if (!parser->sink.take(parser->sink.context, &parser->record))
                return false;
            parser->is_offered = false;
        }
    } while (next_line(parser));
    return true;
}

/* ---- Input ----------------------------------------------------------------------------------- */

/* There is always a byte of room behind the end, for the NUL of a last line. */
char *wr_parser_room(struct wr_parser *parser, size_t *room)
{
    if (parser->buffer && parser->start) {
        memmove(parser->buffer, parser->buffer + parser->start, parser->end - parser->start);
        parser->end -= parser->start;
        parser->start = 0;
    }
    if (parser->room - parser->end < READ_BYTES + 1) {
        size_t larger = parser->room ? parser->room * 2 : 2 * READ_BYTES;
        char *buffer = realloc(parser->buffer, larger);
        if (!buffer)
            return NULL;
        parser->buffer = buffer;
        parser->room = larger;
    }
    *room = READ_BYTES;
    return parser->buffer + parser->end;
}

bool wr_parser_add(struct wr_parser *parser, size_t length)
{
    parser->end += length;
    return run(parser);
}

bool wr_parser_resume(struct wr_parser *parser)
{
    return run(parser);
}

bool wr_parser_put(struct wr_parser *parser, const void *bytes, size_t length, size_t *used)
{
    *used = 0;
    while (*used < length) {
        size_t room;
        char *to = wr_parser_room(parser, &room);
        if (!to)
            return false;
        size_t part = length - *used < room ? length - *used : room;
        memcpy(to, (const char *)bytes + *used, part);
        *used += part;
        if (!wr_parser_add(parser, part))
            return false;
    }
    return true;
}

size_t wr_parser_pending(const struct wr_parser *parser)
{
    return parser->end - parser->start + parser->skipped;
}

size_t wr_parser_cut(struct wr_parser *parser)
{
    size_t length = parser->end - parser->start;
    const char *start = parser->buffer + parser->start;
    bool is_quoted = parser->step_state & WR_PARSE_QUOTED; /* all of it is one record */
    const char *newline = length && !is_quoted ? memrchr(start, '\n', length) : NULL;
    size_t torn = newline ? (size_t)(parser->buffer + parser->end - newline) - 1 : length;
    parser->end -= torn;
    parser->searched = parser->step_state = 0;
    if (!newline && parser->skipping) {
        torn += parser->skipped;
        parser->skipping = false;
        parser->skipped = 0;
    }
    return torn;
}

bool wr_parser_end(struct wr_parser *parser)
{
    parser->is_ending = true;
    if (!run(parser))
        return false;
    if (parser->buffer && (parser->end > parser->start || parser->skipping)) {
        parser->buffer[parser->end++] = '\n';
        start_line(parser, parser->buffer + parser->end - 1);
        if (!run(parser))
            return false;
    }
    parser->is_ending = false;
    if (parser->type->free_state)
        parser->type->free_state(parser->state);
    if (parser->state)
        memset(parser->state, 0, parser->type->state_bytes);
    return true;
}
