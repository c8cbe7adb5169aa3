/* readers: for each format a reader of its own, which has to find in a text what was written: names, labels,
 * values, times, metadata. What a format cannot carry as it is, as its document tells, has to be well-formed.
 */
#ifndef READERS_H
#define READERS_H

#include <stdbool.h>

#include "format/encoder.h"

/* What was written: a double with metadata, and an integer without, each an event of its own. */
struct written {
    const char *group, *name, *key, *value, *note;
    weir_sample samples[2];
};

enum { WRITTEN_SAMPLES = 2 };

/* A format, with an option that is not as it is by default. */
struct reader {
    const char *format, *option, *set_to; /* NULL: all are */
    /* Aborts if the text does not say what was written. `first`: in a format of records, which sample it is. */
    void (*check)(const struct reader *reader, const struct written *written, const char *text, int first);
};

/* All of them, ending with one without a format. */
extern const struct reader readers[];

#endif
