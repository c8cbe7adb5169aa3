/* number: converts doubles and integers to text and back, independently of the locale.
 *
 * A double becomes the fewest digits that read back as the same double and, among those, the nearest, in the
 * layout of Python's repr: 49.403, 1e+16, 1e-05. All functions may be called from any thread. */
#ifndef WR_NUMBER_H
#define WR_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest output of any function below. None writes a NUL. */
enum { WR_NUMBER_ROOM = 32 };

/* Writes a double; integral values below 1e16 without ".0"; "NaN", "Infinity", "-Infinity". Returns the length.
 */
size_t wr_number_put_double(char *out, double value);

/* The same with ".0" after integral values without an exponent: Python's repr of a float, except for NaN and
 * infinities. */
size_t wr_number_put_repr(char *out, double value);

size_t wr_number_put_int(char *out, int64_t value);
size_t wr_number_put_uint(char *out, uint64_t value);

/* Parses a whole text as a double with a decimal point. Returns false if it is not one, or out of range. */
bool wr_number_read_double(const char *text, double *value);

/* Parses a whole text as a decimal integer. Returns false if it is not one, or out of range. */
bool wr_number_read_int(const char *text, int64_t *value);

/* "000102...99" and a NUL. */
extern const char wr_number_pairs[201];

/* Whether the integer has an exact double. Formats whose numbers are doubles cannot represent others. */
static inline bool wr_number_is_double(int64_t value)
{
    double nearest = (double)value;
    return nearest < 0x1p63 && (int64_t)nearest == value;
}

/* Writes value with exactly `width` digits and leading zeros. Excess higher digits are lost. */
static inline void wr_number_put_padded(char *out, uint32_t value, int width)
{
    while (width >= 2) {
        width -= 2;
        memcpy(out + width, wr_number_pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (width)
        *out = (char)('0' + value % 10);
}

#endif
