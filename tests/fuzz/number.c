/* Numbers as text: strtod reads every printed double back bit for bit; it has at most 17 digits, and no shorter
 * text would do. Integers survive the round trip too. Any text is parsed as by strtod. */

#include "text/number.h"
#include "fuzz.h"

#include <math.h>

static int count_digits(const char *text)
{
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text >= '1' && *text <= '9') {
            digits += digits ? zeros + 1 : 1;
            zeros = 0;
        } else if (*text == '0') {
            zeros++;
        }
    }
    return digits;
}

static bool is_same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_double(double value)
{
    char text[WR_NUMBER_ROOM + 1], shorter[64];
    double back;
    text[wr_number_put_double(text, value)] = '\0';
    if (!isfinite(value)) {
        FUZZ_CHECK(strcmp(text, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity") == 0);
        return;
    }
    FUZZ_CHECK(is_same(strtod(text, NULL), value));
    FUZZ_CHECK(wr_number_read_double(text, &back) && is_same(back, value));
    int digits = count_digits(text);
    FUZZ_CHECK(digits <= 17);
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
        FUZZ_CHECK(!is_same(strtod(shorter, NULL), value));
    }
    text[wr_number_put_repr(text, value)] = '\0';
    FUZZ_CHECK(is_same(strtod(text, NULL), value));
}

static void check_int(int64_t value)
{
    char text[WR_NUMBER_ROOM + 1], expected[WR_NUMBER_ROOM + 1];
    int64_t back;
    text[wr_number_put_int(text, value)] = '\0';
    snprintf(expected, sizeof expected, "%lld", (long long)value);
    FUZZ_CHECK(strcmp(text, expected) == 0);
    FUZZ_CHECK(wr_number_read_int(text, &back) && back == value);
}

static void check_text(const char *text)
{
    double value;
    char *end;
    if (wr_number_read_double(text, &value))
        FUZZ_CHECK(is_same(strtod(text, &end), value) && !*end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    union {
        uint64_t bits;
        double f64;
        int64_t i64;
    } value;
    for (size_t at = 0; at + sizeof value <= size; at += sizeof value) {
        memcpy(&value, data + at, sizeof value);
        check_double(value.f64);
        check_int(value.i64);
    }
    fuzz_take_line(data, data + size, &text);
    check_text(text);
    free(text);
    return 0;
}
