#include "period.h"

enum { DAY_S = 86400, MONDAY = 4 /* 1970-01-05 */ };
static const int64_t second_ns = 1000000000;

bool wr_period_is_allowed(int64_t every_ns)
{
    if (every_ns < second_ns || every_ns % second_ns)
        return false;
    int64_t every_s = every_ns / second_ns;
    return DAY_S % every_s == 0 || every_s % DAY_S == 0;
}

static int64_t floor_divide(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Converts local time as if it were UTC, so that days of 23 and 25 hours also end at midnight. */
int64_t wr_period_number(int64_t every_ns, time_t time, bool utc)
{
    int64_t every_s = every_ns / second_ns;
    time_t local = time;
    struct tm parts;
    if (!utc && localtime_r(&time, &parts))
        local = timegm(&parts);
    if (every_s < DAY_S)
        return floor_divide(local, every_s);
    return floor_divide(floor_divide(local, DAY_S) - MONDAY, every_s / DAY_S);
}
