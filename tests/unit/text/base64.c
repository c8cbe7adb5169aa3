#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "text/base64.h"

/* From RFC 4648, section 10, but the last one: it has the digits 62 and 63. */
static const char *const pairs[][3] = {{"", "", ""},
                                       {"f", "Zg==", "Zg"},
                                       {"fo", "Zm8=", "Zm8"},
                                       {"foo", "Zm9v", "Zm9v"},
                                       {"foob", "Zm9vYg==", "Zm9vYg"},
                                       {"fooba", "Zm9vYmE=", "Zm9vYmE"},
                                       {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
                                       {"\xfb\xff\xbf", "+/+/", "+/+/"}};

enum { PAIRS = sizeof pairs / sizeof *pairs };

Test(base64, bytes_are_encoded_at_each_length)
{
    for (size_t i = 0; i < PAIRS; i++) {
        size_t length = strlen(pairs[i][0]);
        char text[20];
        for (int is_padded = 0; is_padded < 2; is_padded++) {
            const char *expected = pairs[i][is_padded ? 1 : 2];
            cr_assert_eq(wr_base64_encode(pairs[i][0], length, is_padded, text), strlen(expected));
            cr_assert_str_eq(text, expected);
        }
        cr_assert_eq(strlen(pairs[i][1]) + 1, WR_BASE64_ROOM(length));
    }
}

Test(base64, text_is_decoded_at_each_length)
{
    for (size_t i = 0; i < PAIRS; i++) {
        size_t expected = strlen(pairs[i][0]);
        for (int is_padded = 0; is_padded < 2; is_padded++) {
            char text[20];
            strcpy(text, pairs[i][is_padded ? 1 : 2]);
            size_t length = wr_base64_decode(text, strlen(text), is_padded, text, expected);
            cr_assert_eq(length, expected, "%s: %zu", pairs[i][1], length);
            cr_assert(memcmp(text, pairs[i][0], length) == 0, "%s", pairs[i][0]);
        }
    }
}

Test(base64, what_is_none_or_too_long_is_refused)
{
    static const char *const wrong[] = {"YQ", "Y", "YQ=", "Y===", "=", "YQ=a", "Y Q=", "YQ==YQ==", "Y-_="};
    char bytes[10];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(wr_base64_decode(wrong[i], strlen(wrong[i]), true, bytes, sizeof bytes), SIZE_MAX);
    cr_assert_eq(wr_base64_decode("YQ==", 4, false, bytes, sizeof bytes), SIZE_MAX);
    cr_assert_eq(wr_base64_decode("Zm9v", 4, true, bytes, 2), SIZE_MAX);
    cr_assert_eq(wr_base64_decode("Zm9v", 4, true, bytes, 3), 3);
}
