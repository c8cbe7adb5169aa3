#include "text/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "text/number.h"

struct unit {
    const char *name;
    int64_t factor;
};

/* In ascending order, for put. Decimal sizes are parsed, but not written. */
static const struct unit durations[] = {
    {"ns", 1},
    {"us", WR_NS_PER_US},
    {"ms", WR_NS_PER_MS},
    {"s", WR_NS_PER_S},
    {"m", 60 * WR_NS_PER_S},
    {"h", 3600 * WR_NS_PER_S},
    {"d", 86400 * WR_NS_PER_S},
    {NULL, 0},
};

static const struct unit sizes[] = {
    {"B", 1},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {NULL, 0},
};

static const struct unit decimal_sizes[] = {
    {"kB", 1000}, {"MB", 1000000}, {"GB", 1000000000}, {"TB", INT64_C(1000000000000)}, {NULL, 0},
};

const char *wr_units_duration_name(size_t i)
{
    return i < WR_COUNT_OF(durations) ? durations[i].name : NULL;
}

const char *wr_units_size_name(size_t i)
{
    const size_t binary = WR_COUNT_OF(sizes) - 1;
    if (i < binary)
        return sizes[i].name;
    return i - binary < WR_COUNT_OF(decimal_sizes) ? decimal_sizes[i - binary].name : NULL;
}

static int64_t find_factor(const struct unit *units, const char *name)
{
    for (; units->name; units++)
        if (strcmp(units->name, name) == 0)
            return units->factor;
    return 0;
}

/* Splits "1.5h" into 1.5 and "h"; blanks between them are allowed. */
static bool split(const char *text, double *number, const char **unit)
{
    char digits[WR_UNITS_ROOM];
    size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    *unit = text + length + strspn(text + length, " ");
    return wr_number_parse_double(digits, number);
}

static bool multiply(double number, int64_t factor, int64_t *result)
{
    double product = number * (double)factor;
    if (factor == 0 || product > 9e18)
        return false;
    /* product + 0.5 would itself be rounded, beyond 2^52 */
    *result = (int64_t)product;
    *result += product - (double)*result >= 0.5;
    return true;
}

bool wr_units_parse_duration(const char *text, int64_t *ns)
{
    double number;
    const char *unit;
    return split(text, &number, &unit) && multiply(number, find_factor(durations, unit), ns);
}

bool wr_units_parse_size(const char *text, int64_t *bytes)
{
    double number;
    const char *unit;
    if (!split(text, &number, &unit))
        return false;
    int64_t factor = find_factor(sizes, unit);
    return multiply(number, factor ? factor : find_factor(decimal_sizes, unit), bytes);
}

static const char *put(char *out, const struct unit *units, int64_t value)
{
    const struct unit *largest = units;
    for (; units->name; units++)
        if (value && value % units->factor == 0)
            largest = units;
    snprintf(out, WR_UNITS_ROOM, "%" PRId64 "%s", value / largest->factor, largest->name);
    return out;
}

const char *wr_units_put_duration(char out[WR_UNITS_ROOM], int64_t ns)
{
    return ns == 0 ? strcpy(out, "0s") : put(out, durations, ns);
}

const char *wr_units_put_size(char out[WR_UNITS_ROOM], int64_t bytes)
{
    return put(out, sizes, bytes);
}
