/* dates: times as MLBench's REST API writes them, in UTC. */
#ifndef WEIR_PLUGINS_COLLECTOR_DATES_H
#define WEIR_PLUGINS_COLLECTOR_DATES_H

#include <stdbool.h>
#include <stdint.h>

enum { DATES_ROOM = 40 };

/* Parses "2026-11-21T12:34:56.789012Z": T or a blank between, seconds and their decimals optional, then
 * nothing (UTC), Z, or an offset like +01:00. Microseconds since 1970; nanoseconds have room for them, too.
 * Returns false if it is no date, or one before 1678 or after 2261. */
bool dates_parse(const char *text, int64_t *time_us);

enum dates_style {
    DATES_AS_NEEDED, /* six decimals, none if they are all zero */
    DATES_SIX,       /* always six */
    DATES_MS,        /* three, none if the microseconds are zero */
};

/* Returns `out`. */
const char *dates_format(char out[DATES_ROOM], int64_t time_us, enum dates_style style);

int64_t dates_now_us(void);

#endif
