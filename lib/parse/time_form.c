#include "parse/time_form.h"

#include <string.h>
#include <time.h>

#include "text/common.h"
#include "text/numeral.h"

/* What a text has been read to. */
struct parts {
    struct tm date;
    int64_t rest_ns;
    bool has_zone;
    int zone_s; /* east of UTC */
};

/* ---- The form -------------------------------------------------------------------------------- */

/* Whether the format has directives only that exist, each once, and a whole date. */
static bool check_format(const char *format)
{
    static const char known[] = "YmbdHMSfz%";
    unsigned found = 0;
    for (const char *at = strchr(format, '%'); at; at = strchr(at + 2, '%')) {
        const char *directive = at[1] ? strchr(known, at[1]) : NULL;
        unsigned bit = directive ? 1U << (directive - known) : 0;
        if (!directive || (*directive != '%' && found & bit))
            return false;
        found |= bit;
    }
    bool has_month = !(found & 2) != !(found & 4); /* one of %m and %b */
    return found & 1 && has_month && found & 8;
}

bool wr_time_form_compile(const char *text, struct wr_time_form *form)
{
    static const struct {
        const char *name;
        int64_t unit_ns;
    } units[] = {{"s", 0}, {"ms", WR_NS_PER_MS}, {"us", WR_NS_PER_US}, {"ns", 1}};
    *form = (struct wr_time_form){0};
    for (size_t i = 0; i < WR_COUNT_OF(units); i++) {
        form->unit_ns = units[i].unit_ns;
        if (strcmp(text, units[i].name) == 0)
            return true;
    }
    *form = (struct wr_time_form){.format = text};
    return check_format(text);
}

/* ---- Directives ------------------------------------------------------------------------------ */

/* Each returns the position after what it has read. NULL: it is not there. */
static const char *read_digits(const char *at, const char *end, int count, int least, int most, int *number)
{
    *number = 0;
    if (end - at < count)
        return NULL;
    for (int i = 0; i < count; i++, at++) {
        if (*at < '0' || *at > '9')
            return NULL;
        *number = *number * 10 + (*at - '0');
    }
    return *number >= least && *number <= most ? at : NULL;
}

static const char *read_month(const char *at, const char *end, int *month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (*month = 0; *month < 12; ++*month)
        if (end - at >= 3 && memcmp(at, names + 3 * *month, 3) == 0)
            return at + 3;
    return NULL;
}

static const char *read_fraction(const char *at, const char *end, int64_t *rest_ns)
{
    const char *start = at;
    *rest_ns = 0;
    for (int64_t unit = WR_NS_PER_S / 10; unit && at < end && *at >= '0' && *at <= '9'; unit /= 10)
        *rest_ns += unit * (*at++ - '0');
    return at > start ? at : NULL;
}

static const char *read_zone(const char *at, const char *end, struct parts *parts)
{
    int hours, minutes = 0;
    parts->has_zone = true;
    if (at < end && *at == 'Z')
        return at + 1;
    if (at == end || (*at != '+' && *at != '-'))
        return NULL;
    bool is_west = *at == '-';
    at = read_digits(at + 1, end, 2, 0, 23, &hours);
    if (at && at < end && (*at == ':' || (*at >= '0' && *at <= '9')))
        at = read_digits(at + (*at == ':'), end, 2, 0, 59, &minutes);
    if (at)
        parts->zone_s = (is_west ? -60 : 60) * (hours * 60 + minutes);
    return at;
}

static const char *read_directive(char directive, const char *at, const char *end, struct parts *parts)
{
    struct tm *date = &parts->date;
    switch (directive) {
    case 'Y':
        at = read_digits(at, end, 4, 1, 9999, &date->tm_year);
        date->tm_year -= 1900;
        return at;
    case 'm':
        at = read_digits(at, end, 2, 1, 12, &date->tm_mon);
        date->tm_mon--;
        return at;
    case 'b': return read_month(at, end, &date->tm_mon);
    case 'd': return read_digits(at, end, 2, 1, 31, &date->tm_mday);
    case 'H': return read_digits(at, end, 2, 0, 23, &date->tm_hour);
    case 'M': return read_digits(at, end, 2, 0, 59, &date->tm_min);
    case 'S': return read_digits(at, end, 2, 0, 60, &date->tm_sec);
    case 'f': return read_fraction(at, end, &parts->rest_ns);
    case 'z': return read_zone(at, end, parts);
    default: return at < end && *at == directive ? at + 1 : NULL;
    }
}

/* Returns the position after what follows the format, or NULL. */
static const char *read_parts(const char *format, const char *at, const char *end, struct parts *parts)
{
    for (; at && *format; format++) {
        if (*format == '%')
            at = read_directive(*++format, at, end, parts);
        else
            at = at < end && *at == *format ? at + 1 : NULL;
    }
    return at;
}

/* ---- Times ----------------------------------------------------------------------------------- */

/* Days that a month does not have are refused: mktime would count them into the next month. */
static bool is_day(const struct tm *date)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = date->tm_year + 1900;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return date->tm_mday <= days[date->tm_mon] && (date->tm_mon != 1 || date->tm_mday < 29 || is_leap);
}

static bool convert(struct parts *parts, int64_t *time_ns)
{
    parts->date.tm_isdst = -1; /* found out by mktime */
    if (!is_day(&parts->date))
        return false;
    int64_t seconds =
        parts->has_zone ? (int64_t)timegm(&parts->date) - parts->zone_s : (int64_t)mktime(&parts->date);
    wr_int128 time = (wr_int128)seconds * WR_NS_PER_S + parts->rest_ns;
    *time_ns = (int64_t)time;
    return *time_ns == time;
}

bool wr_time_form_read(const struct wr_time_form *form, const char *at, const char *end, int64_t *time_ns)
{
    struct parts parts = {0};
    if (form->unit_ns)
        return wr_numeral_read_ticks(at, end, form->unit_ns, time_ns);
    if (!form->format)
        return wr_numeral_read_time(at, end, time_ns);
    return read_parts(form->format, at, end, &parts) == end && convert(&parts, time_ns);
}

bool wr_time_form_read_iso(const char *at, const char *end, int64_t *time_ns)
{
    struct parts parts = {0};
    at = read_parts("%Y-%m-%d", at, end, &parts);
    if (!at || at == end || (*at != 'T' && *at != ' '))
        return false;
    at = read_parts("%H:%M:%S", at + 1, end, &parts);
    if (at && at < end && *at == '.')
        at = read_fraction(at + 1, end, &parts.rest_ns);
    if (at && at < end)
        at = read_zone(at, end, &parts);
    return at == end && convert(&parts, time_ns);
}
