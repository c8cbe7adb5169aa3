/* read_back: whatever names, labels and numbers a program adds, each format is read back to the same values. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/read_back.h"

enum { LONGEST = 12, CASES = 20000, CASES_SANITIZED = 2000 };

/* Names are made of these: what formats give a meaning, what looks like their escapes, and several bytes. */
static const char *const pieces[] = {"a",
                                     "B",
                                     "7",
                                     "_",
                                     "-",
                                     ".",
                                     " ",
                                     "=",
                                     ",",
                                     "\\",
                                     "\"",
                                     "%",
                                     "%41",
                                     "%5C",
                                     "%25",
                                     "%0A",
                                     "%C3",
                                     "\\,",
                                     "\\ ",
                                     "\\=",
                                     "\\\\",
                                     "#",
                                     "[",
                                     "]",
                                     "]: ",
                                     "{",
                                     "}",
                                     ":",
                                     "|",
                                     "@",
                                     ";",
                                     "~",
                                     "time",
                                     "_field",
                                     "name",
                                     "NaN",
                                     "1e5",
                                     "\xc3\xa4",
                                     "\xe2\x80\xae",
                                     "\xf0\x9f\x98\x80",
                                     "/",
                                     "'",
                                     "*",
                                     "true"};

/* Label values and metadata may contain these too. */
static const char *const controls[] = {"\n", "\r", "\t", "\x01", "\x7f", "\xc2\x85", "\xe2\x80\xa8"};

static const double numbers[] = {0.0,
                                 -0.0,
                                 1e308,
                                 -1e308,
                                 5e-324,
                                 2.2250738585072014e-308,
                                 9007199254740992.0,
                                 9007199254740994.0,
                                 0.1,
                                 49.403,
                                 100,
                                 -5,
                                 1e16,
                                 1e15,
                                 1e-5,
                                 123456.789,
                                 1e22,
                                 1e23,
                                 0x1p63,
                                 -0x1p63,
                                 1.5,
                                 -0.5,
                                 1.7976931348623157e308};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   42,
                                   INT64_C(9007199254740992),
                                   INT64_C(9007199254740993),
                                   -INT64_C(9007199254740993),
                                   INT64_MAX,
                                   INT64_MIN};
static const int64_t times[] = {INT64_C(1795219607576198123),
                                0,
                                1,
                                -1,
                                -INT64_C(12500000001),
                                INT64_C(1795219607000000000),
                                INT64_MAX - 2,
                                INT64_MIN + 2,
                                -INT64_C(1000000000)};

#define PICK(array) ((array)[(size_t)rand() % (sizeof(array) / sizeof *(array))])

static void make_text(char *out, bool with_controls, int least)
{
    *out = '\0';
    for (int i = 0, count = least + rand() % LONGEST; i < count; i++)
        strcat(out, with_controls && rand() % 5 == 0 ? PICK(controls) : PICK(pieces));
}

static double make_number(void)
{
    union {
        uint64_t bits;
        double number;
    } any = {(uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand()};
    switch (rand() % 4) {
    case 0: return any.number;
    case 1: return rand() % 20 ? rand() / 1000.0 : NAN;
    case 2: return rand() % 10 ? rand() % 1000 : (rand() % 2 ? INFINITY : -INFINITY);
    default: return PICK(numbers);
    }
}

Test(read_back, hostile_names_labels_and_numbers_survive_every_format)
{
    static char group[200], name[200], key[200], value[200], note[200];
    const char *sanitized = getenv("WEIR_TEST_SANITIZED"); /* empty: not */
    const int cases = sanitized && *sanitized ? CASES_SANITIZED : CASES;
    int tried = 0;
    srand(20261123);
    while (tried < cases) {
        make_text(group, false, 1);
        make_text(name, false, 1);
        make_text(key, false, 1);
        make_text(value, true, 0);
        make_text(note, true, 0);
        const struct read_back written = {group,         name,           key,         value,     note,
                                          make_number(), PICK(integers), PICK(times), rand() % 4};
        if (!read_back_is_allowed(&written))
            continue;
        read_back_check(&written);
        tried++;
    }
}

Test(read_back, plain_names_survive_every_format_with_all_numbers)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t j = 0; j < sizeof integers / sizeof *integers; j++)
            for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
                const struct read_back written = {"my_app.db", "latency", "route",         "/x", "", numbers[i],
                                                  integers[j], times[k],  (int)(i + k) % 4};
                cr_assert(read_back_is_allowed(&written));
                read_back_check(&written);
            }
}
