/* period: which hour, day or week a time is in. */
#ifndef FILE_PERIOD_H
#define FILE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Whether periods of this length begin when a clock's hands or a calendar's days do: parts of a day in whole
 * seconds, or whole days. */
bool wr_period_is_allowed(int64_t every_ns);

/* The number of the period of this length that a time is in. Periods shorter than a day are counted from
 * midnight, whole days from a Monday. */
int64_t wr_period_number(int64_t every_ns, time_t time, bool utc);

#endif
