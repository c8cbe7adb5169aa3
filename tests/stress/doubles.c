/* doubles: written numbers read back as exactly the same double, with the fewest possible digits. Tests
 * kinds of doubles on which algorithms fail: random bits, neighbours of powers of two and ten, few decimals,
 * subnormals, large integers.
 *
 * usage: doubles [COUNT [SEED]]. The default count is small enough for each test run; hundreds of millions
 * are possible. */

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "../support/plain.h"
#include "text/number.h"

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t draw(void)
{
    return (uint64_t)plain_draw(&state, UINT32_MAX) << 32 | plain_draw(&state, UINT32_MAX);
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void expect(bool good, const char *what, const char *text, double value)
{
    if (good)
        return;
    fprintf(stderr, "doubles: %s: %a is written as %s\n", what, value, text);
    exit(1);
}

/* A double within three steps of a value. */
static double neighbour_of(double value)
{
    return from_bits(to_bits(value) + draw() % 7 - 3);
}

static double draw_double(uint64_t i)
{
    switch (i % 8) {
    case 0: return neighbour_of(ldexp(1, (int)(draw() % 2098) - 1074));
    case 1: {
        char text[16];
        snprintf(text, sizeof text, "1e%d", (int)(draw() % 632) - 323);
        return neighbour_of(strtod(text, NULL));
    }
    case 2: return (double)(draw() % 100000000) / 1000;
    case 3: return from_bits(draw() >> 12); /* subnormal */
    case 4: return (double)(int64_t)draw();
    case 5: return (double)(draw() % 1000000000000) / 1000000;
    default: return from_bits(draw());
    }
}

static unsigned count_digits(const char *text)
{
    const char *first = NULL;
    unsigned digits = 0, zeros = 0;
    for (const char *c = text; *c && *c != 'e'; c++) {
        if (*c < '0' || *c > '9' || (!first && *c == '0'))
            continue;
        first = first ? first : c;
        digits++;
        zeros = *c == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

/* Checks that no shorter decimal reads back as the value: neither the nearest one with one digit less, nor
 * its neighbours, because the shortest one need not be the nearest. */
static void check_shortest(double value, const char *text)
{
    unsigned digits = count_digits(text);
    char less[40], beside[40];
    if (digits < 2)
        return;
    snprintf(less, sizeof less, "%.*e", (int)digits - 2, value);
    expect(strtod(less, NULL) != value, less, text, value);
    double step = fabs(strtod(less, NULL) - value);
    for (int side = -1; side <= 1; side += 2) {
        snprintf(beside, sizeof beside, "%.*e", (int)digits - 2, value + side * 10 * step);
        expect(strtod(beside, NULL) != value, beside, text, value);
    }
}

static void check(double value)
{
    char text[WR_NUMBER_ROOM + 1], repr[WR_NUMBER_ROOM + 1];
    size_t length = wr_number_put_double(text, value);
    expect(length <= WR_NUMBER_ROOM, "too long", "a text of another length", value);
    text[length] = '\0';
    char *end;
    double back = strtod(text, &end);
    expect(*end == '\0' && to_bits(back) == to_bits(value), "strtod returns another value", text, value);
    check_shortest(value, text);
    repr[wr_number_put_repr(repr, value)] = '\0';
    expect(to_bits(strtod(repr, NULL)) == to_bits(value), "strtod returns another value", repr, value);
    double parsed;
    expect(wr_number_read_double(text, &parsed) && to_bits(parsed) == to_bits(value),
           "wr_number_read_double returns another value", text, value);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, checked = 0;
    if (argc > 2)
        state = strtoull(argv[2], NULL, 10) | 1;
    for (uint64_t i = 0; i < count; i++) {
        double value = draw_double(i);
        if (!isfinite(value))
            continue;
        check(value);
        checked++;
    }
    printf("%" PRIu64 " doubles read back unchanged, each with the fewest digits\n", checked);
    return 0;
}
