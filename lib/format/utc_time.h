/* utc_time: dates and times of day in UTC. The C library's functions would read TZ, and take a lock for it. */
#ifndef WR_UTC_TIME_H
#define WR_UTC_TIME_H

#include <stdint.h>

/* In the proleptic Gregorian calendar. */
struct wr_utc_time {
    int year, month, day; /* month and day from 1 on */
    uint32_t hour, minute, second, microsecond;
};

/* Splits a time in nanoseconds since 1970; what is below a microsecond is cut off. */
struct wr_utc_time wr_utc_time_split(int64_t time_ns);

#endif
