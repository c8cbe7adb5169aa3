/* period: the hour, day or week that contains a time. */
#ifndef FILE_PERIOD_H
#define FILE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Whether a length is allowed: fractions of a day in whole seconds, or whole days. */
bool wr_period_is_allowed(int64_t every_ns);

/* The number of the period of this length that contains a time. Periods shorter than a day are counted from
 * midnight, whole days from a Monday. */
int64_t wr_period_number(int64_t every_ns, time_t time, bool utc);

#endif
