#include <criterion/criterion.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/utf8.h"

/* Text with its length, for text that contains NUL. */
struct bytes {
    const char *text;
    size_t length;
};

#define BYTES(literal) ((struct bytes){literal, sizeof literal - 1})

static uint32_t decode(const char *text, unsigned expected_bytes)
{
    uint32_t code_point = 0xdead;
    unsigned bytes = wr_utf8_decode(text, strlen(text) ? strlen(text) : 1, &code_point);
    cr_assert_eq(bytes, expected_bytes, "%u bytes", bytes);
    char back[4];
    cr_assert(!bytes || (wr_utf8_encode(back, code_point) == bytes && memcmp(back, text, bytes) == 0));
    return code_point;
}

static const char *show(struct bytes given, char quote)
{
    static char text[400];
    struct wr_buffer out = {0};
    wr_utf8_show(&out, given.text, given.length, quote);
    strcpy(text, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return text;
}

Test(utf8, each_length_is_decoded_at_both_of_its_ends)
{
    cr_assert_eq(decode("", 1), 0);
    cr_assert_eq(decode("\x7f", 1), 0x7f);
    cr_assert_eq(decode("\xc2\x80", 2), 0x80);
    cr_assert_eq(decode("\xdf\xbf", 2), 0x7ff);
    cr_assert_eq(decode("\xe0\xa0\x80", 3), 0x800);
    cr_assert_eq(decode("\xef\xbf\xbf", 3), 0xffff);
    cr_assert_eq(decode("\xf0\x90\x80\x80", 4), 0x10000);
    cr_assert_eq(decode("\xf4\x8f\xbf\xbf", 4), 0x10ffff);
}

Test(utf8, neighbours_of_the_surrogates_are_characters)
{
    cr_assert_eq(decode("\xed\x9f\xbf", 3), 0xd7ff);
    cr_assert_eq(decode("\xee\x80\x80", 3), 0xe000);
}

Test(utf8, only_the_first_character_is_decoded)
{
    cr_assert_eq(decode("\xc3\xa9t\xc3\xa9", 2), 0xe9);
}

Test(utf8, sequences_that_rfc_3629_forbids_are_refused)
{
    static const char *const wrong[] = {
        "\x80",             /* a continuation alone */
        "\xbf",             /* the last continuation byte */
        "\xc0\x80",         /* overlong: NUL */
        "\xc1\xbf",         /* overlong: DEL */
        "\xe0\x9f\xbf",     /* overlong: U+07FF */
        "\xf0\x8f\xbf\xbf", /* overlong: U+FFFF */
        "\xed\xa0\x80",     /* the first surrogate */
        "\xed\xbf\xbf",     /* the last surrogate */
        "\xf4\x90\x80\x80", /* U+110000 */
        "\xf5\x80\x80\x80", /* beyond U+10FFFF */
        "\xff",             /* never a byte of UTF-8 */
        "\xc3",             /* truncated */
        "\xe2\x82",         /* truncated */
        "\xf0\x9f\x98",     /* truncated */
        "\xc3(",            /* no continuation */
        "\xe2(\xac",        /* no continuation in the middle */
        "\xe2\x82(",        /* no continuation at the end */
    };
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++) {
        uint32_t code_point;
        cr_assert_eq(wr_utf8_decode(wrong[i], strlen(wrong[i]), &code_point), 0, "number %zu", i);
        cr_assert(!wr_utf8_is_valid(wrong[i], strlen(wrong[i]), NULL), "number %zu", i);
    }
}

Test(utf8, the_position_of_the_first_invalid_byte_is_returned)
{
    size_t where = 99;
    cr_assert(wr_utf8_is_valid("abc", 3, &where));
    cr_assert(wr_utf8_is_valid("", 0, &where));
    cr_assert_eq(where, 99);
    cr_assert(!wr_utf8_is_valid("\xff", 1, &where));
    cr_assert_eq(where, 0);
    cr_assert(!wr_utf8_is_valid("\xc3\xa9\xc3\xa9\xe2\x82", 6, &where));
    cr_assert_eq(where, 4);
    cr_assert(wr_utf8_is_valid("a\0b", 3, NULL), "NUL is a character of UTF-8");
}

Test(utf8, control_characters_are_c0_del_and_c1)
{
    static const uint32_t controls[] = {0, '\t', '\n', '\r', 0x1b, 0x1f, 0x7f, 0x80, 0x9f};
    static const uint32_t others[] = {' ', '~', 0xa0, 0xad, 0x2028, 0x202e, 0xfeff, 0x10ffff};
    for (size_t i = 0; i < WR_COUNT_OF(controls); i++)
        cr_assert(wr_utf8_is_control(controls[i]) && wr_utf8_is_disguise(controls[i]), "%x", controls[i]);
    for (size_t i = 0; i < WR_COUNT_OF(others); i++)
        cr_assert(!wr_utf8_is_control(others[i]), "%x", others[i]);
}

Test(utf8, characters_that_change_how_others_are_shown_are_disguises)
{
    static const uint32_t disguises[] = {0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
                                         0x202e, 0x2066, 0x2067, 0x2069, 0xfeff};
    static const uint32_t others[] = {' ', 'a', 0xa0, 0xe9, 0x2027, 0x202f, 0x2065, 0x206a, 0x1f600};
    for (size_t i = 0; i < WR_COUNT_OF(disguises); i++)
        cr_assert(wr_utf8_is_disguise(disguises[i]), "%x", disguises[i]);
    for (size_t i = 0; i < WR_COUNT_OF(others); i++)
        cr_assert(!wr_utf8_is_disguise(others[i]), "%x", others[i]);
}

Test(utf8, plain_text_is_shown_unchanged)
{
    cr_assert_str_eq(show(BYTES("latency of /x"), 0), "latency of /x");
    cr_assert_str_eq(show(BYTES("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), 0),
                     "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    cr_assert_str_eq(show(BYTES(""), '"'), "");
}

Test(utf8, disguises_are_shown_as_escapes)
{
    cr_assert_str_eq(show(BYTES("a\nb\rc\td"), 0), "a\\nb\\rc\\td");
    cr_assert_str_eq(show(BYTES("\x1b[31mred"), 0), "\\x1b[31mred");
    cr_assert_str_eq(show(BYTES("nul\0 del\x7f"), 0), "nul\\x00 del\\x7f");
    cr_assert_str_eq(show(BYTES("\xc2\x9b"), 0), "\\x9b");
    cr_assert_str_eq(show(BYTES("\xe2\x80\xae"
                                "evil"),
                          0),
                     "\\u202eevil");
    cr_assert_str_eq(show(BYTES("\xef\xbb\xbf"), 0), "\\ufeff");
    cr_assert_str_eq(show(BYTES("\xd8\x9c"), 0), "\\u061c");
}

Test(utf8, invalid_bytes_are_shown_as_escapes)
{
    cr_assert_str_eq(show(BYTES("a\xff"
                                "b\xc3"),
                          0),
                     "a\\xffb\\xc3");
    cr_assert_str_eq(show(BYTES("\xed\xa0\x80"), 0), "\\xed\\xa0\\x80");
}

Test(utf8, a_backslash_and_the_quote_are_escaped)
{
    cr_assert_str_eq(show(BYTES("a\\n\"b\""), '"'), "a\\\\n\\\"b\\\"");
    cr_assert_str_eq(show(BYTES("say \"b\""), 0), "say \"b\"");
    cr_assert_str_eq(show(BYTES("it's"), '\''), "it\\'s");
}

Test(utf8, a_short_text_is_quoted_whole)
{
    char out[200];
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, "5x", 2), "\"5x\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, "", 0), "\"\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, "a\"\n", 3), "\"a\\\"\\n\"");
}

Test(utf8, a_long_text_is_truncated_with_dots_inside_the_quotes)
{
    char text[200], out[200], expected[200];
    memset(text, 'x', sizeof text);
    memset(expected, 'x', sizeof expected);
    expected[0] = '"';
    strcpy(expected + 81, "\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, text, 80), expected);
    strcpy(expected + 81, "...\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, text, 81), expected);
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, text, 200), expected);
}

Test(utf8, a_text_is_never_truncated_inside_a_character)
{
    char text[84], out[200];
    memset(text, 'x', 79);
    memcpy(text + 79, "\xe2\x82\xac!", 5);
    wr_utf8_quote(out, sizeof out, text, 83);
    cr_assert_eq(strlen(out), 1 + 79 + 4);
    cr_assert_str_eq(out + 79, "x...\"");
}

Test(utf8, a_quoted_text_that_does_not_fit_ends_in_dots)
{
    char text[80], out[20];
    memset(text, '\x01', sizeof text);
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, text, sizeof text), "\"\\x01\\x01\\x01...\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, "0123456789012345\xe2\x82\xac", 19),
                     "\"01234567890123...\"");
    cr_assert_str_eq(wr_utf8_quote(out, sizeof out, "01234567890123456", 17), "\"01234567890123456\"");
}

Test(utf8, a_message_becomes_one_line)
{
    char out[100];
    wr_utf8_line(out, sizeof out, "weir\r\n\x1b[1m \"\\n\" \xe2\x80\xae\xff\xc3\xa9");
    cr_assert_str_eq(out, "weir\\r\\n\\x1b[1m \"\\n\" \\u202e\\xff\xc3\xa9");
    wr_utf8_line(out, sizeof out, "");
    cr_assert_str_eq(out, "");
}

Test(utf8, a_line_is_truncated_before_the_first_character_that_does_not_fit)
{
    char out[8];
    wr_utf8_line(out, sizeof out, "1234567");
    cr_assert_str_eq(out, "1234567");
    wr_utf8_line(out, sizeof out, "12345678");
    cr_assert_str_eq(out, "1234567");
    wr_utf8_line(out, sizeof out, "12345\xe2\x82\xac");
    cr_assert_str_eq(out, "12345");
    wr_utf8_line(out, sizeof out, "1234\x1b");
    cr_assert_str_eq(out, "1234");
    wr_utf8_line(out, 1, "1");
    cr_assert_str_eq(out, "");
}
