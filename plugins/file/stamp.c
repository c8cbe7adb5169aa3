#include "stamp.h"

#include <stdio.h>
#include <time.h>

int64_t wr_stamp_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * STAMP_US_PER_S + now.tv_nsec / 1000;
}

void wr_stamp_format(char out[STAMP_LENGTH + 1], int64_t time_us)
{
    char text[80];
    struct tm parts;
    time_t time_s = time_us / STAMP_US_PER_S;
    gmtime_r(&time_s, &parts);
    snprintf(text, sizeof text, "%04d%02d%02dT%02d%02d%02d.%06dZ", parts.tm_year + 1900, parts.tm_mon + 1,
             parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, (int)(time_us % STAMP_US_PER_S));
    snprintf(out, STAMP_LENGTH + 1, "%.*s", STAMP_LENGTH, text);
}

static int read_number(const char *text, int digits)
{
    int value = 0;
    for (int i = 0; i < digits; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

int64_t wr_stamp_parse(const char *text)
{
    static const char shape[] = "00000000T000000.000000Z";
    for (int i = 0; i < STAMP_LENGTH; i++)
        if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
            return -1;
    struct tm parts = {.tm_year = read_number(text, 4) - 1900,
                       .tm_mon = read_number(text + 4, 2) - 1,
                       .tm_mday = read_number(text + 6, 2),
                       .tm_hour = read_number(text + 9, 2),
                       .tm_min = read_number(text + 11, 2),
                       .tm_sec = read_number(text + 13, 2)};
    return (int64_t)timegm(&parts) * STAMP_US_PER_S + read_number(text + 16, 6);
}
