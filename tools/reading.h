/* reading: one line of input as an event: `name=12.5 other=3`, or JSON.
 *
 * JSON is an object of values by name, {"latency": 12.5, "errors": 1}, or what the format "json" writes, one
 * value with its time, group, labels and metadata. */
#ifndef WEIR_TOOLS_READING_H
#define WEIR_TOOLS_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "error.h"
#include "event.h"

struct wr_document;

enum { READING_MOST_VALUES = 1000, READING_MOST_LABELS = 64 };

/* Texts are borrowed from what was read. */
struct reading {
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
struct reading_fault {
    unsigned column; /* in characters, from 1; 0: not known */
    char words[WR_ERROR_ROOM];
};

/* Adds a value that is written as name=12.5, which is cut in two; the last '=' counts. false: the fault's words
 * tell why not. */
bool reading_add_word(struct reading *reading, char *word, struct reading_fault *fault);

/* Reads a line, which is cut in pieces; what was read before is let go. */
bool reading_take_line(struct reading *reading, char *line, size_t length, struct reading_fault *fault);

/* Lets go of what was read. */
void reading_clear(struct reading *reading);

#endif
