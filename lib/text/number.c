#include "text/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/numeral.h"
#include "text/pow10_table.h"

/* ---- Integers -------------------------------------------------------------------------------- */

const char wr_number_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static unsigned count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    /* 1233/4096 is slightly more than log10(2): the guess is the number of digits, or one less */
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    unsigned guess = bits * 1233 >> 12;
    return guess + 1 - (value < powers[guess]);
}

static inline void put_pair(char *out, unsigned value)
{
    memcpy(out, wr_number_pairs + (size_t)value * 2, 2);
}

/* Writes exactly eight digits, as two independent halves. */
static inline void put_eight(char *out, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000;
    put_pair(out, high / 100);
    put_pair(out + 2, high % 100);
    put_pair(out + 4, low / 100);
    put_pair(out + 6, low % 100);
}

/* Writes exactly `digits` digits. */
static inline void put_digits(char *out, uint64_t value, unsigned digits)
{
    while (digits >= 8) {
        digits -= 8;
        put_eight(out + digits, (uint32_t)(value % 100000000));
        value /= 100000000;
    }
    uint32_t rest = (uint32_t)value;
    while (digits >= 2) {
        digits -= 2;
        put_pair(out + digits, rest % 100);
        rest /= 100;
    }
    if (digits)
        out[0] = (char)('0' + rest);
}

size_t wr_number_put_uint(char *out, uint64_t value)
{
    if (value < 100) { /* a single digit is the second of its pair; the byte copied after it is not counted */
        size_t single = value < 10;
        memcpy(out, wr_number_pairs + value * 2 + single, 2);
        return 2 - single;
    }
    unsigned digits = count_digits(value);
    put_digits(out, value, digits);
    return digits;
}

size_t wr_number_put_int(char *out, int64_t value)
{
    if (value >= 0)
        return wr_number_put_uint(out, (uint64_t)value);
    *out = '-';
    return 1 + wr_number_put_uint(out + 1, -(uint64_t)value);
}

/* ---- Shortest digits of a double ----------------------------------------------------------------
 *
 * After Raffaello Giulietti, "The Schubfach way to render doubles" (2020): the interval of reals that round to
 * the double is scaled by a power of ten so that it contains only a few integers. One of them is chosen by
 * 128-bit products whose lost low bits are folded into one ("round to odd"). */

/* digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

enum { FRACTION_BITS = 52, EXPONENT_BIAS = 1075 };

static inline int floor_log10_pow2(int e)
{
    return (e * 1262611) >> 22;
}

static inline int floor_log10_three_quarters_pow2(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

static inline int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* The high bits of the 192-bit product; the last bit is set if a lower bit was lost. */
static inline uint64_t multiply_to_odd(const struct pow10 *g, uint64_t factor)
{
    wr_uint128 low = (wr_uint128)g->low * factor;
    wr_uint128 high = (wr_uint128)g->high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct decimal find_shortest(uint64_t fraction, int biased_exponent)
{
    uint64_t c = biased_exponent ? fraction | (uint64_t)1 << FRACTION_BITS : fraction;
    int q = (biased_exponent ? biased_exponent : 1) - EXPONENT_BIAS;
    bool lower_is_closer = fraction == 0 && biased_exponent > 1;
    uint64_t open = c & 1; /* the bounds of an odd significand round to its neighbours */

    int k = lower_is_closer ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    int shift = q + floor_log2_pow10(-k) + 1;
    const struct pow10 *g = &pow10_table[-k - POW10_FIRST];
    uint64_t lower = multiply_to_odd(g, (4 * c - 2 + lower_is_closer) << shift) + open;
    uint64_t value = multiply_to_odd(g, (4 * c) << shift);
    uint64_t upper = multiply_to_odd(g, (4 * c + 2) << shift) - open;

    /* all three are scaled by 4 * 10^-k; a multiple of ten inside the interval has one digit less */
    uint64_t s = value / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool low_inside = lower <= 40 * tens;
        bool high_inside = 40 * tens + 40 <= upper;
        if (low_inside != high_inside)
            return (struct decimal){tens + high_inside, k + 1};
    }
    bool low_inside = lower <= 4 * s;
    bool high_inside = 4 * s + 4 <= upper;
    if (low_inside != high_inside)
        return (struct decimal){s + high_inside, k};
    uint64_t middle = 4 * s + 2;
    bool round_up = value > middle || (value == middle && (s & 1));
    return (struct decimal){s + round_up, k};
}

/* ---- Layout ---------------------------------------------------------------------------------- */

static size_t put_exponent(char *out, int exponent)
{
    char *start = out;
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    unsigned size = (unsigned)abs(exponent);
    unsigned digits = size >= 100 ? 3 : 2;
    put_digits(out, size, digits);
    return (size_t)(out + digits - start);
}

/* Writes digits * 10^exponent; the last digit is not 0, except for the number 0. */
static size_t put_decimal(char *out, struct decimal decimal, bool point_zero)
{
    char digits[20] = {0};
    int count = (int)count_digits(decimal.digits);
    put_digits(digits, decimal.digits, (unsigned)count);
    int point = count + decimal.exponent; /* position of the decimal point, from the first digit */

    if (point <= -4 || point > 16) {
        char *start = out;
        *out++ = digits[0];
        if (count > 1) {
            *out++ = '.';
            memcpy(out, digits + 1, (size_t)count - 1);
            out += count - 1;
        }
        out += put_exponent(out, point - 1);
        return (size_t)(out - start);
    }
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        memcpy(out + 2 - point, digits, (size_t)count);
        return (size_t)(2 - point + count);
    }
    if (point >= count) {
        memcpy(out, digits, (size_t)count);
        memset(out + count, '0', (size_t)(point - count));
        if (point_zero)
            memcpy(out + point, ".0", 2);
        return (size_t)(point + (point_zero ? 2 : 0));
    }
    memcpy(out, digits, (size_t)point);
    out[point] = '.';
    memcpy(out + point + 1, digits + point, (size_t)(count - point));
    return (size_t)count + 1;
}

/* Writes whole + thousandths / 1000, thousandths not 0. */
static size_t put_thousandths(char *out, uint64_t whole, unsigned thousandths)
{
    size_t length = wr_number_put_uint(out, whole);
    out[length] = '.';
    out[length + 1] = (char)('0' + thousandths / 100);
    put_pair(out + length + 2, thousandths % 100);
    size_t last_is_zero = out[length + 3] == '0', both_are = last_is_zero & (out[length + 2] == '0');
    return length + 4 - last_is_zero - both_are;
}

/* The fast path: most measured values are integers or have at most three decimals. A decimal of at most 15
 * digits is determined by its double, so thousands that divide back to the value are the shortest form. Returns
 * 0 for other values. */
static inline size_t put_plain(char *out, double size, bool point_zero)
{
    if (!(size < 1e12))
        return 0;
    int64_t whole = (int64_t)size; /* signed: converted by one instruction */
    if ((double)whole == size) {
        size_t length = wr_number_put_uint(out, (uint64_t)whole);
        if (!point_zero)
            return length;
        memcpy(out + length, ".0", 2);
        return length + 2;
    }
    int64_t thousands = (int64_t)(size * 1000 + 0.5);
    if ((double)thousands / 1000 != size)
        return 0;
    return put_thousandths(out, (uint64_t)thousands / 1000, (unsigned)((uint64_t)thousands % 1000));
}

static size_t put_special(char *out, bool negative, bool is_nan)
{
    const char *text = is_nan ? "NaN" : negative ? "-Infinity" : "Infinity";
    size_t length = strlen(text);
    memcpy(out, text, length);
    return length;
}

/* All other values. Not inlined, as it needs many registers. */
static __attribute__((noinline)) size_t put_searched(char *out, double value, bool point_zero)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t sign = bits >> 63;
    int biased_exponent = (int)(bits >> FRACTION_BITS & 0x7ff);
    uint64_t fraction = bits & (((uint64_t)1 << FRACTION_BITS) - 1);

    if (biased_exponent == 0x7ff)
        return put_special(out, sign, fraction != 0);
    *out = '-';
    struct decimal decimal = find_shortest(fraction, biased_exponent);
    while (decimal.digits % 10 == 0) { /* never 0, which put_plain has written */
        decimal.digits /= 10;
        decimal.exponent++;
    }
    return sign + put_decimal(out + sign, decimal, point_zero);
}

static inline size_t put_double(char *out, double value, bool point_zero)
{
    size_t sign = signbit(value) != 0;
    *out = '-';
    size_t length = put_plain(out + sign, fabs(value), point_zero);
    return length ? sign + length : put_searched(out, value, point_zero);
}

size_t wr_number_put_double(char *out, double value)
{
    return put_double(out, value, false);
}

size_t wr_number_put_repr(char *out, double value)
{
    return put_double(out, value, true);
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool wr_number_read_double(const char *text, double *value)
{
    return wr_numeral_read_double(text, text + strlen(text), value);
}

bool wr_number_read_int(const char *text, int64_t *value)
{
    return wr_numeral_read_int(text, text + strlen(text), value);
}
