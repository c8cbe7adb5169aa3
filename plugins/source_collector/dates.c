#include "dates.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../system.h"

enum { US_PER_S = 1000000 };

/* ---- Parsing --------------------------------------------------------------------------------- */

/* Reads so many digits, and moves *at behind them. */
static bool take_number(const char **at, int digits, int *number)
{
    *number = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *number = *number * 10 + (**at - '0');
    }
    return true;
}

static bool take(const char **at, char wanted)
{
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

/* ".5": up to six digits. */
static bool take_decimals(const char **at, int64_t *us)
{
    int64_t unit = US_PER_S / 10;
    if (!take(at, '.'))
        return true;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10) {
        if (!unit)
            return false;
        *us += (**at - '0') * unit;
    }
    return true;
}

/* Nothing, Z, +01:00 or +0100. */
static bool take_offset(const char **at, int64_t *seconds)
{
    int hours, minutes = 0, sign = **at == '-' ? -1 : 1;
    *seconds = 0;
    if (take(at, 'Z') || take(at, 'z') || !**at)
        return true;
    if (!take(at, '+') && !take(at, '-'))
        return false;
    if (!take_number(at, 2, &hours))
        return false;
    take(at, ':');
    if (**at && !take_number(at, 2, &minutes))
        return false;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

static bool take_day(const char **at, struct tm *day)
{
    int year, month;
    if (!take_number(at, 4, &year) || !take(at, '-') || !take_number(at, 2, &month) || !take(at, '-') ||
        !take_number(at, 2, &day->tm_mday))
        return false;
    day->tm_year = year - 1900;
    day->tm_mon = month - 1;
    return year > 0 && month >= 1 && month <= 12 && day->tm_mday >= 1;
}

static bool take_time(const char **at, struct tm *day, int64_t *us)
{
    if (!(take(at, 'T') || take(at, ' ')) || !take_number(at, 2, &day->tm_hour) || !take(at, ':') ||
        !take_number(at, 2, &day->tm_min))
        return false;
    if (take(at, ':') && (!take_number(at, 2, &day->tm_sec) || !take_decimals(at, us)))
        return false;
    return day->tm_hour < 24 && day->tm_min < 60 && day->tm_sec < 60;
}

bool dates_parse(const char *text, int64_t *time_us)
{
    struct tm day = {0}, same;
    int64_t us = 0, offset;
    if (!take_day(&text, &day) || !take_time(&text, &day, &us) || !take_offset(&text, &offset) || *text)
        return false;
    same = day;
    int64_t seconds = timegm(&same);
    *time_us = (seconds - offset) * US_PER_S + us;
    return same.tm_mday == day.tm_mday; /* else it was the 30th of February */
}

/* ---- Writing --------------------------------------------------------------------------------- */

const char *dates_format(char out[DATES_ROOM], int64_t time_us, enum dates_style style)
{
    struct tm day;
    time_t seconds = (time_t)(time_us / US_PER_S);
    int us = (int)(time_us % US_PER_S);
    if (us < 0) {
        us += US_PER_S;
        seconds--;
    }
    gmtime_r(&seconds, &day);
    size_t length = strftime(out, DATES_ROOM, "%Y-%m-%dT%H:%M:%S", &day);
    if (style == DATES_MS && us)
        length += (size_t)snprintf(out + length, DATES_ROOM - length, ".%03d", us / 1000);
    else if (style == DATES_SIX || us)
        length += (size_t)snprintf(out + length, DATES_ROOM - length, ".%06d", us);
    snprintf(out + length, DATES_ROOM - length, "Z");
    return out;
}

int64_t dates_now_us(void)
{
    return wr_system_clock_ns(CLOCK_REALTIME) / 1000;
}
