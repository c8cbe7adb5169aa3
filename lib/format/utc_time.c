#include "format/utc_time.h"

#include "text/common.h"

/* Converts days since 1970-01-01. Years are counted from March, so that the leap day is the last one; an era is
 * 400 years. */
static void find_day(int64_t days, struct wr_utc_time *time)
{
    enum { ERA_DAYS = 146097, DAYS_TO_1970 = 719468 };
    days += DAYS_TO_1970;
    int64_t era = days / ERA_DAYS, day_of_era = days % ERA_DAYS;
    int64_t years = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * years + years / 4 - years / 100);
    int64_t months = (5 * day_of_year + 2) / 153;
    time->day = (int)(day_of_year - (153 * months + 2) / 5 + 1);
    time->month = (int)(months < 10 ? months + 3 : months - 9);
    time->year = (int)(era * 400 + years + (time->month <= 2));
}

/* The rest of a division that is rounded down, also of negative numbers. */
static int64_t split_off(int64_t *number, int64_t unit)
{
    int64_t rest = *number % unit;
    *number /= unit;
    if (rest < 0) {
        --*number;
        rest += unit;
    }
    return rest;
}

struct wr_utc_time wr_utc_time_split(int64_t time_ns)
{
    enum { DAY_S = 86400, HOUR_S = 3600, MINUTE_S = 60 };
    struct wr_utc_time time;
    int64_t at = time_ns;
    time.microsecond = (uint32_t)(split_off(&at, WR_NS_PER_S) / WR_NS_PER_US);
    uint32_t second_of_day = (uint32_t)split_off(&at, DAY_S);
    time.hour = second_of_day / HOUR_S;
    time.minute = second_of_day / MINUTE_S % MINUTE_S;
    time.second = second_of_day % MINUTE_S;
    find_day(at, &time);
    return time;
}
