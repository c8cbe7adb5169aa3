#include "text/numeral.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && wr_is_digit(*at))
        at++;
    return at;
}

/* ---- Doubles --------------------------------------------------------------------------------- */

/* A decimal of few digits: both it and the power of ten are exact doubles, so their quotient is the nearest
 * double. digits: of [at, end), without sign and exponent. */
static bool divide(const char *at, const char *end, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t decimals = 0;
    bool after_point = false;
    if (end - at > 16)
        return false;
    for (; at < end; at++) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*at - '0');
        decimals += after_point;
    }
    if (digits > UINT64_C(1) << 53 || decimals >= WR_COUNT_OF(powers))
        return false;
    *value = (double)digits / powers[decimals];
    return true;
}

/* strtod in the C locale, which ends at the part's end. */
static bool convert(const char *at, double *value)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return false;
    *value = strtod_l(at, NULL, c_locale);
    freelocale(c_locale);
    return isfinite(*value);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool is_word(const char *at, const char *end, const char *word)
{
    for (; at < end && *word; at++, word++)
        if ((*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at) != *word)
            return false;
    return at == end && !*word;
}

static bool read_special(const char *at, const char *end, bool has_sign, bool is_negative, double *value)
{
    if (is_word(at, end, "nan") && !has_sign) {
        *value = NAN;
        return true;
    }
    if (!is_word(at, end, "inf") && !is_word(at, end, "infinity"))
        return false;
    *value = is_negative ? -INFINITY : INFINITY;
    return true;
}

/* The form [digits][.digits][e[sign]digits], with a digit before the exponent. Sets the end of the digits. */
static bool is_decimal(const char *at, const char *end, const char **digits_end)
{
    const char *whole_end = skip_digits(at, end), *next = whole_end;
    bool has_digits = whole_end > at;
    if (next < end && *next == '.') {
        next = skip_digits(next + 1, end);
        has_digits |= next > whole_end + 1;
    }
    *digits_end = next;
    if (!has_digits || next == end || (*next != 'e' && *next != 'E'))
        return has_digits && next == end;
    next++;
    next += next < end && (*next == '-' || *next == '+');
    return next < end && skip_digits(next, end) == end;
}

/* Of digits only. */
static bool read_digits(const char *at, const char *end, bool is_negative, int64_t *value)
{
    uint64_t size = 0, limit = (uint64_t)INT64_MAX + is_negative;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (!wr_is_digit(*at) || size > (limit - digit) / 10)
            return false;
        size = size * 10 + digit;
    }
    *value = is_negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool wr_numeral_read(const char *at, const char *end, unsigned flags, weir_number *number)
{
    const char *digits_end, *start = at;
    bool is_negative = at < end && *at == '-';
    at += is_negative || (at < end && *at == '+' && flags & WR_NUMERAL_PLUS);
    number->kind = WEIR_KIND_DOUBLE;
    number->is.i64 = 0;
    number->is.f64 = 0;
    if (!is_decimal(at, end, &digits_end))
        return flags & WR_NUMERAL_SPECIAL && read_special(at, end, at > start, is_negative, &number->is.f64);
    if (read_digits(at, end, is_negative, &number->is.i64) && (number->is.i64 || !is_negative)) {
        number->kind = WEIR_KIND_INT;
        return true;
    }
    number->is.i64 = 0;
    if (digits_end != end || !divide(at, end, &number->is.f64))
        return convert(*start == '+' ? at : start, &number->is.f64);
    if (is_negative)
        number->is.f64 = -number->is.f64;
    return true;
}

bool wr_numeral_read_double(const char *at, const char *end, double *value)
{
    weir_number number;
    if (!wr_numeral_read(at, end, 0, &number))
        return false;
    *value = number.kind == WEIR_KIND_INT ? (double)number.is.i64 : number.is.f64;
    return true;
}

bool wr_numeral_read_int(const char *at, const char *end, int64_t *value)
{
    bool is_negative = at < end && *at == '-';
    at += is_negative;
    return at < end && read_digits(at, end, is_negative, value);
}

/* ---- Times ----------------------------------------------------------------------------------- */

static bool set_time(wr_int128 time, int64_t *time_ns)
{
    *time_ns = (int64_t)time;
    return *time_ns == time;
}

bool wr_numeral_read_time(const char *at, const char *end, int64_t *time_ns)
{
    enum { MOST_DIGITS = 10 }; /* of INT64_MAX nanoseconds in seconds */
    bool is_negative = at < end && *at == '-';
    at += is_negative;
    const char *whole_end = skip_digits(at, end);
    int64_t seconds, rest_ns = 0;
    if (whole_end == at || whole_end - at > MOST_DIGITS || !read_digits(at, whole_end, false, &seconds))
        return false;
    const char *decimals = whole_end + (whole_end < end && *whole_end == '.');
    if (skip_digits(decimals, end) != end)
        return false;
    for (int64_t unit = WR_NS_PER_S / 10; unit && decimals < end; unit /= 10)
        rest_ns += unit * (*decimals++ - '0');
    wr_int128 time = (wr_int128)seconds * WR_NS_PER_S + rest_ns;
    return set_time(is_negative ? -time : time, time_ns);
}

bool wr_numeral_read_ticks(const char *at, const char *end, int64_t unit_ns, int64_t *time_ns)
{
    int64_t ticks;
    return wr_numeral_read_int(at, end, &ticks) && set_time((wr_int128)ticks * unit_ns, time_ns);
}
