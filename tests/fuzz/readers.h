/* readers: an independent reader for each format, which checks that a text has the written names, labels,
 * values, times and metadata. Where a format cannot represent a text, as documented, it must be well-formed. */
#ifndef READERS_H
#define READERS_H

#include <stdbool.h>
#include <string.h>

#include "format/encoder.h"

/* The written samples: a double with metadata and an integer without, each an event. */
struct written {
    const char *group, *name, *key, *value, *note;
    weir_sample samples[2];
    int instrument; /* enum weir_instrument */
};

enum { WRITTEN_SAMPLES = 2 };

/* A format, with one option changed from its default. */
struct reader {
    const char *format, *option, *set_to; /* NULL: all defaults */
    /* Aborts unless the text represents what was written. first: in a record format, the index of the sample.
     */
    void (*check)(const struct reader *reader, const struct written *written, const char *text, int first);
};

/* Whether the reader's format has this option set. */
static inline bool reader_has(const struct reader *reader, const char *option)
{
    return reader->option && strcmp(reader->option, option) == 0;
}

/* All readers; the last has no format. */
extern const struct reader readers[];

#endif
