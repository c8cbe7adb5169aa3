/* read_back: what formats write, their parsers read back to the same values. */
#ifndef READ_BACK_H
#define READ_BACK_H

#include <stdbool.h>
#include <stdint.h>

/* A series with one label, and its two values: a double with metadata, and an integer. */
struct read_back {
    const char *group, *name, *key, *value, *note; /* note "": none */
    double number;
    int64_t integer;
    int64_t time_ns; /* of the double; the integer is a nanosecond younger */
    int instrument;  /* enum weir_instrument: for statsd and json, whose lines say it */
};

/* Whether names and texts are allowed, and the times within their range. */
bool read_back_is_allowed(const struct read_back *written);

/* Writes and reads in every format and with each option that matters. Aborts if something is not read back as
 * it was written, except for what a format cannot represent, as documented. */
void read_back_check(const struct read_back *written);

#endif
