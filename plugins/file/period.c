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

static int64_t divide_down(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* By the hands of the clock, so that days of 23 and 25 hours end at midnight, too: what the clock shows is read
 * as if it were UTC. */
int64_t wr_period_number(int64_t every_ns, time_t time, bool utc)
{
    int64_t every_s = every_ns / second_ns;
    time_t shown = time;
    struct tm parts;
    if (!utc && localtime_r(&time, &parts))
        shown = timegm(&parts);
    if (every_s < DAY_S)
        return divide_down(shown, every_s);
    return divide_down(divide_down(shown, DAY_S) - MONDAY, every_s / DAY_S);
}
