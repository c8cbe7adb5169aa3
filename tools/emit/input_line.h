/* input_line: parses one line of input as an event.
 *
 *     latency=12.5 errors=1              values by name
 *     {"latency": 12.5, "errors": 1}     the same as JSON
 *     {"name": "latency", "value": ...}  one value as the format "json" writes it: with time, group, labels and
 *                                        metadata */
#ifndef WEIR_TOOLS_INPUT_LINE_H
#define WEIR_TOOLS_INPUT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "runtime/event.h"
#include "text/error.h"

struct wr_document;

enum { INPUT_LINE_MAX_VALUES = 1000, INPUT_LINE_MAX_LABELS = 64 };

/* All zeros: empty. Texts are borrowed from the parsed line and from the document. */
struct input_line {
    struct wr_event_value values[INPUT_LINE_MAX_VALUES];
    size_t count;      /* 0: an empty line or a comment */
    const char *group; /* NULL: not given */
    weir_label labels[INPUT_LINE_MAX_LABELS];
    size_t label_count;
    bool has_time, cumulative;
    int64_t time_ns;
    const char *metadata; /* NULL: none */
    struct wr_document *document;
};

struct input_line_fault {
    unsigned column; /* in characters, from 1; 0: unknown */
    char text[WR_ERROR_ROOM];
};

/* Adds one value in the form name=12.5; the last '=' separates. Modifies the word. Returns false with
 * fault->text set if it is invalid. */
bool input_line_add_word(struct input_line *line, char *word, struct input_line_fault *fault);

/* Parses a whole line, replacing what was parsed before. Modifies the text, which has to stay valid. Returns
 * false with *fault set if it is invalid. */
bool input_line_parse(struct input_line *line, char *text, size_t length, struct input_line_fault *fault);

void input_line_clear(struct input_line *line);

#endif
