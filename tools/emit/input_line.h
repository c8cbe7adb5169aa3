/* reading: one line of input as an event: `name=12.5 other=3`, or JSON.
 *
 * JSON is an object of values by name, {"latency": 12.5, "errors": 1}, or what the format "json" writes, one
 * value with its time, group, labels and metadata. */
#ifndef WEIR_TOOLS_INPUT_LINE_H
#define WEIR_TOOLS_INPUT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "text/error.h"
#include "runtime/event.h"

struct wr_document;

enum { READING_MOST_VALUES = 1000, READING_MOST_LABELS = 64 };

/* Texts are borrowed from what was read. */
struct input_line {
    struct wr_event_value values[READING_MOST_VALUES];
    size_t count;      /* 0: there was nothing in the line */
    const char *group; /* NULL: not said */
    weir_label labels[READING_MOST_LABELS];
    size_t label_count;
    bool timed, cumulative;
    int64_t time_ns;
    const char *metadata; /* NULL: none */
    struct wr_document *document;
};

/* What is wrong, and where. */
struct input_line_fault {
    unsigned column; /* in characters, from 1; 0: not known */
    char words[WR_ERROR_ROOM];
};

/* Adds a value that is written as name=12.5, which is cut in two; the last '=' counts. false: the fault's words
 * tell why not. */
bool input_line_add_word(struct input_line *line_reader, char *word, struct input_line_fault *fault);

/* Reads a line, which is cut in pieces; what was read before is let go. */
bool input_line_take_line(struct input_line *line_reader, char *line, size_t length,
                          struct input_line_fault *fault);

/* Lets go of what was read. */
void input_line_clear(struct input_line *line_reader);

#endif
