/* parser: turns bytes of other programs into records: lines of text, JSON, InfluxDB's line protocol and so on.
 *
 * A parser owns a buffer: read into wr_parser_room and call wr_parser_add, or give bytes to wr_parser_put. Each
 * complete line is parsed at once, and its records are offered to the sink. A sink that has no room returns
 * false: then nothing more is parsed until wr_parser_resume, which offers the same record again. So a source
 * never waits inside the parser, and stops reading while false is returned.
 *
 * After the first lines nothing is allocated, unless a line is longer than all before. Not thread-safe. */
#ifndef WR_PARSER_H
#define WR_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

/* The default of line_bytes, and the most values and labels of a record. JSON is also limited to a depth of 32.
 */
enum { WR_PARSER_LINE_BYTES = 1024 * 1024, WR_PARSER_VALUES = 1024, WR_PARSER_LABELS = 64 };

enum { WR_PARSE_FAULT_ROOM = 512 };

/* One event. All texts end in NUL, are valid UTF-8 and are valid until the sink returns. Group, names and label
 * keys are valid by registry/name.h; lengths of other texts are checked where they are added. */
struct wr_parse_record {
    uint64_t line;     /* from 1 */
    const char *group; /* NULL: not given */
    const weir_label *labels;
    size_t label_count;
    const weir_typed_value *values; /* doubles if written with a fraction or an exponent */
    size_t count;                   /* at least 1 */
    bool has_time;
    int64_t time_ns;
    bool cumulative;      /* values are running totals */
    bool is_summary;      /* the sum or the count of a summary, whose instrument is that of a counter */
    bool is_change;       /* of a gauge: values are added to the level */
    int instrument;       /* enum weir_instrument; WEIR_VALUE: not declared */
    double sample_rate;   /* 1: each value is one; 0.1: each value is one of ten */
    const char *unit;     /* NULL: not given, as the following */
    const char *help;     /* of the names */
    const char *metadata; /* only if count is 1 */
    const char *member;   /* of a set whose distinct members are counted; the value is 1 */
};

/* What was not understood. */
struct wr_parse_fault {
    uint64_t line;                  /* from 1 */
    unsigned column;                /* in characters, from 1; 0: the whole line */
    bool is_value;                  /* only this value is left out, and the rest of the line is used */
    char text[WR_PARSE_FAULT_ROOM]; /* names the value and what is allowed; without control characters */
};

struct wr_parser_sink {
    /* Returns false without having used the record if there is no room now. */
    bool (*take)(void *context, const struct wr_parse_record *record);
    void (*refuse)(void *context, const struct wr_parse_fault *fault);
    void *context;
};

/* How a dotted path becomes a group and a name: a.b.c */
enum wr_parser_split {
    WR_PARSER_SPLIT_NONE,  /* name a.b.c */
    WR_PARSER_SPLIT_FIRST, /* group a, name b.c */
    WR_PARSER_SPLIT_LAST,  /* group a.b, name c */
};

struct wr_patterns;

/* All zeros: the defaults. */
struct wr_parser_options {
    size_t line_bytes;    /* of the longest line; 0: WR_PARSER_LINE_BYTES */
    int64_t time_unit_ns; /* of times without a unit of their own: influx; 0: 1 */
    enum wr_parser_split split;
    /* The present time, for samples without a time that must have the same one. NULL: they have none. */
    int64_t (*now)(void);
    const struct wr_patterns *patterns; /* plugins/patterns; borrowed; only of the parser of this name */
};

struct wr_parser_type;
struct wr_parser;

/* Parser number i, in the order in which they are listed to users; NULL after the last. */
const struct wr_parser_type *wr_parser_type_at(size_t i);

/* Returns NULL if there is none of this name. */
const struct wr_parser_type *wr_parser_type_find(const char *name);

const char *wr_parser_type_name(const struct wr_parser_type *type);

/* Whether a record can have a group of its own. */
bool wr_parser_type_has_groups(const struct wr_parser_type *type, enum wr_parser_split split);

/* Returns NULL if out of memory. The sink is copied; its context is borrowed. */
struct wr_parser *wr_parser_new(const struct wr_parser_type *type, const struct wr_parser_options *options,
                                const struct wr_parser_sink *sink);
void wr_parser_free(struct wr_parser *parser);

/* Where the next bytes of the input belong, and how many at most. NULL if out of memory. */
char *wr_parser_room(struct wr_parser *parser, size_t *room);

/* Parses what was written to wr_parser_room. Returns false if the sink did: call wr_parser_resume until it
 * returns true before the next bytes are added. */
bool wr_parser_add(struct wr_parser *parser, size_t length);
bool wr_parser_resume(struct wr_parser *parser);

/* Copies bytes and parses them. *used: how many were taken. Returns false if the sink did, or if out of memory:
 * then *used is less than length and wr_parser_resume returns true. */
bool wr_parser_put(struct wr_parser *parser, const void *bytes, size_t length, size_t *used);

/* The input ends: parses the last line if it has no newline. Returns false if the sink did: call it again.
 * What a parser remembers of earlier lines is forgotten; lines are counted on. */
bool wr_parser_end(struct wr_parser *parser);

/* How many bytes of the input are behind the last record that was parsed. */
size_t wr_parser_pending(const struct wr_parser *parser);

/* Discards an incomplete last line. Returns its length. */
size_t wr_parser_cut(struct wr_parser *parser);

/* The number of lines so far. */
uint64_t wr_parser_lines(const struct wr_parser *parser);

/* One word name=12.5, split at the last '='. The name is copied to `name`, which has room for the word, and may
 * be the word itself.
 * Returns false and sets `text`, which describes the fault. */
bool wr_parser_read_word(const char *word, char *name, weir_typed_value *value, char text[WR_PARSE_FAULT_ROOM]);

#endif
