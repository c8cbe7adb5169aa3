#include "config/bucket_series.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text/numeral.h"

enum { ARGUMENTS = 3, LONGEST_NUMBER = 63, MOST_DECIMALS = 15 };
_Static_assert(WR_FAMILY_BUCKETS_MAX == 200, "a message says so");
static const double EXACT = 0x1p53; /* integers up to here are doubles */
static const char blanks[] = " \t";

/* ---- Reading --------------------------------------------------------------------------------- */

/* Reads a number that ends before `end`. */
static bool read_number(const char *text, const char *end, double *number)
{
    text += strspn(text, blanks);
    while (end > text && strchr(blanks, end[-1]))
        end--;
    return end - text <= LONGEST_NUMBER && wr_numeral_read_double(text, end, number);
}

/* Reads NAME(NUMBER, NUMBER, NUMBER). */
static bool read_call(const char *text, const char *name, double numbers[ARGUMENTS])
{
    text += strspn(text, blanks);
    if (strncmp(text, name, strlen(name)) != 0)
        return false;
    text += strlen(name);
    text += strspn(text, blanks);
    for (int i = 0; i < ARGUMENTS; i++) {
        const char *begin = text + 1;
        if (*text != (i == 0 ? '(' : ','))
            return false;
        text = begin + strcspn(begin, ",)");
        if (!read_number(begin, text, &numbers[i]))
            return false;
    }
    return *text == ')' && text[1 + strspn(text + 1, blanks)] == '\0';
}

/* ---- Computing ------------------------------------------------------------------------------- */

static double nearest_integer(double number)
{
    return (double)(int64_t)(number < 0 ? number - 0.5 : number + 0.5);
}

/* Whether number is the double nearest to an integer / scale. */
static bool has_scale(double number, double scale)
{
    return fabs(number * scale) < EXACT && nearest_integer(number * scale) / scale == number;
}

/* Returns the least power of ten that makes integers of both; 0: none does. */
static double find_scale(double a, double b)
{
    double scale = 1;
    for (int i = 0; i <= MOST_DECIMALS; i++, scale *= 10)
        if (has_scale(a, scale) && has_scale(b, scale))
            return scale;
    return 0;
}

/* With a scale the division of two integers rounds once, so 0.1 * 3 is 0.3. */
static void compute_linear(double start, double width, double *bounds, size_t count)
{
    double scale = find_scale(start, width);
    for (size_t i = 0; i < count; i++)
        bounds[i] = scale
                        ? (nearest_integer(start * scale) + nearest_integer(width * scale) * (double)i) / scale
                        : start + width * (double)i;
}

static void compute_exponential(double start, double factor, double *bounds, size_t count)
{
    double scale = find_scale(start, 0), power = 1;
    for (size_t i = 0; i < count; i++, power *= factor)
        bounds[i] = scale ? nearest_integer(start * scale) * power / scale : start * power;
}

static bool rise(const double *bounds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1]))
            return false;
    return true;
}

size_t wr_bucket_series_read(const char *text, double bounds[WR_FAMILY_BUCKETS_MAX], const char **problem)
{
    double numbers[ARGUMENTS];
    bool exponential = read_call(text, "exponential", numbers);
    size_t count;
    *problem = NULL;
    if (!exponential && !read_call(text, "linear", numbers))
        *problem =
            "allowed are an array of bounds, \"exponential(START, FACTOR, COUNT)\" and \"linear(START, WIDTH, "
            "COUNT)\"";
    else if (exponential && numbers[0] <= 0)
        *problem = "START must be above 0";
    else if (exponential && numbers[1] <= 1)
        *problem = "FACTOR must be above 1";
    else if (!exponential && numbers[1] <= 0)
        *problem = "WIDTH must be above 0";
    else if (!(numbers[2] >= 1 && numbers[2] <= WR_FAMILY_BUCKETS_MAX) ||
             numbers[2] != nearest_integer(numbers[2]))
        *problem = "COUNT must be an integer from 1 to 200";
    if (*problem)
        return 0;
    count = (size_t)numbers[2];
    if (exponential)
        compute_exponential(numbers[0], numbers[1], bounds, count);
    else
        compute_linear(numbers[0], numbers[1], bounds, count);
    if (rise(bounds, count))
        return count;
    *problem = "the bounds must be finite and rising";
    return 0;
}
