#include "text/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "text/numeral.h"

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
    const char *end = text + strspn(text, "0123456789.");
    *unit = end + strspn(end, " ");
    return end - text < WR_UNITS_ROOM && wr_numeral_read_double(text, end, number);
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

bool wr_units_read_duration(const char *text, int64_t *ns)
{
    double number;
    const char *unit;
    return split(text, &number, &unit) && multiply(number, find_factor(durations, unit), ns);
}

bool wr_units_read_size(const char *text, int64_t *bytes)
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

/* ---- Suggestions ----------------------------------------------------------------------------- */

static bool is_same_word(const char *word, const char *text, size_t length)
{
    for (; length; length--, word++, text++)
        if (!*word || *word != (*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text))
            return false;
    return *word == '\0';
}

/* What people write for a unit of time. */
static const char *find_duration_unit(const char *word)
{
    static const struct {
        const char *word, *unit;
    } others[] = {
        {"sec", "s"},   {"second", "s"}, {"min", "m"},          {"minute", "m"},       {"hr", "h"},
        {"hour", "h"},  {"day", "d"},    {"msec", "ms"},        {"millisecond", "ms"}, {"milli", "ms"},
        {"usec", "us"}, {"nsec", "ns"},  {"microsecond", "us"}, {"nanosecond", "ns"},  {"s", "s"},
        {"h", "h"},     {"d", "d"},      {"ms", "ms"},          {"us", "us"},          {"ns", "ns"}};
    size_t length = strlen(word);
    length -= length > 2 && (word[length - 1] == 's' || word[length - 1] == 'S'); /* the plural */
    for (size_t i = 0; i < WR_COUNT_OF(others); i++)
        if (is_same_word(others[i].word, word, length) || is_same_word(others[i].word, word, strlen(word)))
            return others[i].unit;
    return NULL;
}

/* "10M" is 10MiB or 10MB; "10mib" can only be 10MiB. */
static void suggest_size(const char *unit, int length, const char *text, char *out)
{
    static const char letters[] = "kmgt";
    char letter = unit[0] >= 'A' && unit[0] <= 'Z' ? (char)(unit[0] - 'A' + 'a') : unit[0];
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found) {
        if (is_same_word("b", unit, strlen(unit)) || is_same_word("byte", unit, 4))
            snprintf(out, WR_UNITS_NEAREST_ROOM, "; did you mean %.*sB?", length, text);
        return;
    }
    size_t power = (size_t)(found - letters);
    const char *binary = sizes[power + 1].name, *decimal = decimal_sizes[power].name, *rest = unit + 1;
    if (*rest == '\0')
        snprintf(out, WR_UNITS_NEAREST_ROOM, "; did you mean %.*s%s or %.*s%s?", length, text, binary, length,
                 text, decimal);
    else if (is_same_word("ib", rest, strlen(rest)) || is_same_word("i", rest, strlen(rest)))
        snprintf(out, WR_UNITS_NEAREST_ROOM, "; did you mean %.*s%s?", length, text, binary);
    else if (is_same_word("b", rest, strlen(rest)))
        snprintf(out, WR_UNITS_NEAREST_ROOM, "; did you mean %.*s%s?", length, text, decimal);
}

const char *wr_units_suggest(const char *text, bool is_size, char out[WR_UNITS_NEAREST_ROOM])
{
    double number;
    const char *unit;
    *out = '\0';
    if (!split(text, &number, &unit))
        return out;
    int length = (int)strspn(text, "0123456789.");
    if (is_size)
        suggest_size(unit, length, text, out);
    else if (find_duration_unit(unit))
        snprintf(out, WR_UNITS_NEAREST_ROOM, "; did you mean %.*s%s?", length, text, find_duration_unit(unit));
    return out;
}
