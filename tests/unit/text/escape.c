#include <criterion/criterion.h>
#include <string.h>

#include "text/buffer.h"
#include "text/escape.h"

static char shown[200];

static const char *json(const char *text)
{
    struct wr_buffer out = {0};
    wr_escape_json(&out, text);
    strcpy(shown, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return shown;
}

static const char *ascii(const char *text)
{
    struct wr_buffer out = {0};
    wr_escape_json_ascii(&out, text);
    strcpy(shown, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return shown;
}

Test(escape, plain_text_is_only_quoted)
{
    cr_assert_str_eq(json(""), "\"\"");
    cr_assert_str_eq(json("latency ms/s <&'>"), "\"latency ms/s <&'>\"");
    cr_assert_str_eq(ascii(""), "\"\"");
    cr_assert_str_eq(ascii(" !~/"), "\" !~/\"");
}

Test(escape, quotes_and_backslashes_are_escaped)
{
    cr_assert_str_eq(json("a\"b\\c"), "\"a\\\"b\\\\c\"");
    cr_assert_str_eq(ascii("a\"b\\c"), "\"a\\\"b\\\\c\"");
}

Test(escape, the_short_json_escapes_are_used)
{
    cr_assert_str_eq(json("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    cr_assert_str_eq(ascii("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
}

Test(escape, other_control_characters_are_written_as_code_points)
{
    cr_assert_str_eq(json("\x01\x0b\x1b\x1f"), "\"\\u0001\\u000b\\u001b\\u001f\"");
    cr_assert_str_eq(ascii("\x01\x0b\x1b\x1f"), "\"\\u0001\\u000b\\u001b\\u001f\"");
}

Test(escape, json_leaves_all_other_characters_as_they_are)
{
    cr_assert_str_eq(json("\x7f"), "\"\x7f\"");
    cr_assert_str_eq(json("\xc2\x80\xc2\x9b\xc2\xa0"), "\"\\u0080\\u009b\xc2\xa0\"");
    cr_assert_str_eq(json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    cr_assert_str_eq(json("\xe2\x80\xa8\xef\xbf\xbf\xf4\x8f\xbf\xbf"),
                     "\"\xe2\x80\xa8\xef\xbf\xbf\xf4\x8f\xbf\xbf\"");
}

Test(escape, ascii_escapes_all_other_characters_as_python_does)
{
    cr_assert_str_eq(ascii("\x7f"), "\"\\u007f\"");
    cr_assert_str_eq(ascii("\xc2\x80\xc3\xa9"), "\"\\u0080\\u00e9\"");
    cr_assert_str_eq(ascii("\xe2\x82\xac\xef\xbf\xbf"), "\"\\u20ac\\uffff\"");
}

Test(escape, ascii_writes_high_characters_as_surrogates)
{
    cr_assert_str_eq(ascii("\xf0\x90\x80\x80"), "\"\\ud800\\udc00\"");
    cr_assert_str_eq(ascii("\xf0\x9f\x98\x80"), "\"\\ud83d\\ude00\"");
    cr_assert_str_eq(ascii("\xf4\x8f\xbf\xbf"), "\"\\udbff\\udfff\"");
}

Test(escape, invalid_utf8_still_makes_valid_json)
{
    cr_assert_str_eq(json("a\xff"
                          "b"),
                     "\"a\\ufffdb\"");
    cr_assert_str_eq(ascii("\xc3"), "\"\\ufffd\"");
}

static const char *form(const char *text)
{
    struct wr_buffer out = {0};
    wr_escape_form(&out, text);
    strcpy(shown, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return shown;
}

Test(escape, forms_keep_letters_digits_and_unreserved_characters)
{
    cr_assert_str_eq(form(""), "");
    cr_assert_str_eq(form("AZaz09*-._"), "AZaz09*-._");
}

Test(escape, forms_write_a_space_as_plus_and_all_else_in_hexadecimal)
{
    cr_assert_str_eq(form("a b+c&d=e%f"), "a+b%2Bc%26d%3De%25f");
    cr_assert_str_eq(form("/\n~\x7f\xc3\xa9"), "%2F%0A%7E%7F%C3%A9");
}
