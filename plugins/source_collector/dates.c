#include "dates.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../system.h"
#include "json_text.h"
#include "parse/time_form.h"

enum { US_PER_S = 1000000 };

bool dates_parse(const char *text, int64_t *time_us)
{
    enum { HOUR_AT = 11, SECONDS_AT = 16 };
    char whole[64];
    int64_t time_ns;
    if (strlen(text) < SECONDS_AT)
        return false;
    int length =
        snprintf(whole, sizeof whole, "%.*s%s%s%s", SECONDS_AT, text, text[SECONDS_AT] == ':' ? "" : ":00",
                 text + SECONDS_AT, strpbrk(text + HOUR_AT, "Z+-") ? "" : "Z");
    if ((size_t)length >= sizeof whole || !wr_time_form_read_iso(whole, whole + length, &time_ns))
        return false;
    *time_us = json_text_us(time_ns);
    return true;
}

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
