/* numeral: reads numbers and times in part of a text, exactly as they are written. The byte behind the part
 * must exist and must not continue a number. */
#ifndef WR_NUMERAL_H
#define WR_NUMERAL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

enum {
    WR_NUMERAL_PLUS = 1,    /* a plus sign is allowed */
    WR_NUMERAL_SPECIAL = 2, /* and nan, inf and infinity in any case, the latter two with a sign */
};

/* Without a fraction and an exponent it is an integer, if it fits one and is not -0;
 * everything else is the nearest double. Returns false if it is no decimal number, or out of range. */
bool wr_numeral_read(const char *at, const char *end, unsigned flags, weir_number *number);

/* The same without flags, as a double. On failure *value is unchanged. */
bool wr_numeral_read_double(const char *at, const char *end, double *value);

/* A decimal integer. On failure *value is unchanged. Returns false if it is none, or out of range. */
bool wr_numeral_read_int(const char *at, const char *end, int64_t *value);

/* Seconds since 1970 in decimals, cut to nanoseconds. Returns false if it is no time, or out of range. */
bool wr_numeral_read_time(const char *at, const char *end, int64_t *time_ns);

/* An integer in units. Returns false if it is none, or out of range. */
bool wr_numeral_read_ticks(const char *at, const char *end, int64_t unit_ns, int64_t *time_ns);

#endif
