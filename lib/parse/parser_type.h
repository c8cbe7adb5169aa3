/* parser_type: what a parser is, for those that are one: those of this folder, and plugins/patterns. */
#ifndef WR_PARSER_TYPE_H
#define WR_PARSER_TYPE_H

#include "parse/parser.h"

/* In the state of wr_parser_type.step: a newline is a part of the record. */
enum { WR_PARSE_QUOTED = 0x80 };

struct wr_parser_type {
    const char *name;
    /* Reads the next record of the line, from parser->at, into parser->record; faults are reported. Returns
     * false if the line has no more. */
    bool (*next)(struct wr_parser *parser);
    /* Follows a record byte by byte, from state 0 at its beginning, to find where it ends: at a newline, in a
     * state without WR_PARSE_QUOTED. NULL: each record is a line. */
    uint8_t (*step)(uint8_t state, char byte);
    bool has_groups;      /* a record may name its group */
    bool has_paths;       /* the option split makes one of a part of the name */
    bool takes_any_bytes; /* also NUL and what is not UTF-8 */
    size_t state_bytes;   /* of parser->state; zeroed when the input ends */
    void (*free_state)(void *state);
};

/* In the current line. */
struct wr_parse_place {
    const char *at;
    unsigned row, column; /* from 1; columns in characters */
};

struct wr_parser {
    const struct wr_parser_type *type;
    struct wr_parser_options options;
    struct wr_parser_sink sink;
    void *state;

    char *buffer; /* unparsed bytes: buffer[start .. end) */
    size_t start, end, room, searched;
    bool skipping;      /* within a line that is too long */
    size_t skipped;     /* bytes of it that were discarded */
    bool is_ending;     /* nothing more comes */
    uint8_t step_state; /* of type->step, behind what was searched */
    uint64_t lines;     /* records: each is a line, unless it has line ends in quotes */
    /* Further lines: of records before the current one, of that one, and of what was discarded of the next one.
     */
    uint64_t further, own_further, discarded;

    const char *line, *at, *line_end; /* the current line; a NUL at line_end */
    struct wr_parse_place place;      /* of the latest fault */
    bool in_line, is_offered;         /* is_offered: record waits for the sink */
    struct wr_parse_record record;
    weir_typed_value *values;
    weir_label *labels;
    uint32_t value_room, label_room;
    char *texts; /* of the current record */
    size_t text_used, text_room;
};

extern const struct wr_parser_type wr_parser_auto;
extern const struct wr_parser_type wr_parser_text;
extern const struct wr_parser_type wr_parser_json;
extern const struct wr_parser_type wr_parser_bai;
extern const struct wr_parser_type wr_parser_csv;
extern const struct wr_parser_type wr_parser_influx;
extern const struct wr_parser_type wr_parser_statsd;
extern const struct wr_parser_type wr_parser_graphite;
extern const struct wr_parser_type wr_parser_prometheus;
extern const struct wr_parser_type wr_parser_openmetrics;

/* free_state of parsers whose state is a struct wr_json. */
void wr_parse_free_json(void *state);

/* ---- Faults ---------------------------------------------------------------------------------- */

enum { WR_PARSE_SHOWN_ROOM = 200 };

/* Quotes part of a line for a message. Returns out. */
const char *wr_parse_quote(char out[WR_PARSE_SHOWN_ROOM], const char *text, const char *end);

/* Reports that the line is not used. at: its place in the line; NULL: none. Returns false. */
bool wr_parse_refuse(struct wr_parser *parser, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports that a value is left out. */
void wr_parse_leave_out(struct wr_parser *parser, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Copies [text, end) and a NUL to memory of the record. All copies of a record together are not longer than
 * its line and one byte for each copy, which is never more than there is room for. */
char *wr_parse_keep(struct wr_parser *parser, const char *text, const char *end);

/* For texts that are decoded in place of copied: where to write, and after the last byte. */
static inline char *wr_parse_open(struct wr_parser *parser)
{
    return parser->texts + parser->text_used;
}

static inline void wr_parse_close(struct wr_parser *parser, char *text_end)
{
    *text_end = '\0';
    parser->text_used = (size_t)(text_end - parser->texts) + 1;
}

/* Copies and checks a name; `what` describes it. Returns NULL after wr_parse_refuse. */
const char *wr_parse_keep_name(struct wr_parser *parser, const char *text, const char *end, const char *what);

/* Sets the record's time from seconds since 1970, or refuses the line. */
bool wr_parse_set_time(struct wr_parser *parser, const char *at, const char *end);

/* Checks a kept name that was read at `at`, and sets record.group if it is a valid group. Return false after
 * wr_parse_refuse. */
bool wr_parse_check_name(struct wr_parser *parser, const char *at, const char *name, const char *what);
bool wr_parse_set_group(struct wr_parser *parser, const char *at, const char *group);

/* ---- The record ------------------------------------------------------------------------------ */

/* Starts a record without anything. */
void wr_parse_start(struct wr_parser *parser);

/* Adds a value with a kept name. Return false after wr_parse_refuse. */
bool wr_parse_add_value(struct wr_parser *parser, const char *at, const char *name, const weir_number *value);
bool wr_parse_add_label(struct wr_parser *parser, const char *at, const char *key, const char *value);

/* The value of a label of the record; NULL: it has none of this key. */
const char *wr_parse_find_label(const struct wr_parser *parser, const char *key);

/* Returns false if the record has no such label. */
bool wr_parse_replace_label(struct wr_parser *parser, const char *key, const char *value);

/* Adds one of several values, with a kept name that was read at `at`; `what` describes it. One whose name is
 * not allowed is left out. Returns false after wr_parse_refuse. */
bool wr_parse_add_member(struct wr_parser *parser, const char *at, const char *name, const char *what,
                         const weir_number *value);

/* Splits a path [text, end) into group and name by the options, and adds the value. Returns false after
 * wr_parse_refuse. */
bool wr_parse_add_path(struct wr_parser *parser, const char *text, const char *end, const weir_number *value);

static inline bool wr_parse_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next character that is not blank, at most end. */
static inline const char *wr_parse_skip_blanks(const char *at, const char *end)
{
    while (at < end && wr_parse_is_blank(*at))
        at++;
    return at;
}

/* The end of a quoted text that begins at `at`: its closing quote. NULL: none. */
static inline const char *wr_parse_find_quote(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    return at < end ? at : NULL;
}

/* wr_parser_type.next of parsers whose lines have one record each. comment: with what lines begin that have
 * none; '\0': nothing. */
static inline bool wr_parse_line(struct wr_parser *parser, char comment, bool (*read)(struct wr_parser *parser))
{
    parser->at = wr_parse_skip_blanks(parser->at, parser->line_end);
    if (parser->at == parser->line_end || *parser->at == comment)
        return false;
    wr_parse_start(parser);
    bool has_record = read(parser);
    parser->at = parser->line_end;
    return has_record;
}

/* The end of the word at `at`. */
static inline const char *wr_parse_word_end(const char *at, const char *end)
{
    while (at < end && !wr_parse_is_blank(*at))
        at++;
    return at;
}

#endif
