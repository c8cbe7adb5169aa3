/* iso_time: dates and times of day in UTC as ISO 8601 writes them. */
#ifndef WR_ISO_TIME_H
#define WR_ISO_TIME_H

#include <stdint.h>

/* The length of 2026-11-22T09:09:30.284552, and of what of it is before the decimals. */
enum { WR_ISO_TIME = 26, WR_ISO_TIME_WHOLE = 19 };

/* Writes WR_ISO_TIME characters, without a NUL; what is below a microsecond is cut off. */
void wr_iso_time_put(char *out, int64_t time_ns);

#endif
