#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/error.h"
#include "registry/name.h"

static struct wr_error error;

static void expect_refused(const char *name, const char *text)
{
    error = (struct wr_error){0};
    cr_assert_eq(wr_name_check(name, "name", &error), 0);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, text);
}

static void expect_group_refused(const char *group, const char *text)
{
    error = (struct wr_error){0};
    cr_assert_eq(wr_name_check_group(group, &error), 0);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, text);
}

Test(name, the_length_of_a_valid_name_is_returned)
{
    static const char *const names[] = {
        "x", "latency", "calculate.duration.ms", "with blank",       "a,b=c\"d\\e",
        "*", "..",      "h\xc3\xb6he",           "\xf0\x9f\x98\x80", "\xc2\xa0"};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        cr_assert_eq(wr_name_check(names[i], "name", &error), strlen(names[i]), "%s: %s", names[i], error.text);
}

Test(name, a_name_has_at_most_255_bytes)
{
    char name[300] = "";
    memset(name, 'n', 255);
    cr_assert_eq(wr_name_check(name, "name", &error), 255);
    name[255] = 'n';
    cr_assert_eq(wr_name_check(name, "name", &error), 0);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert(strstr(error.text, "nnn...\": too long; a name must have 1 to 255 bytes"), "%s", error.text);
}

Test(name, at_most_256_bytes_of_a_name_are_read)
{
    /* exactly 256 bytes and no NUL: a sanitizer reports a read beyond them */
    char *name = malloc(256);
    memset(name, 'n', 256);
    cr_assert_eq(wr_name_check(name, "name", &error), 0);
    free(name);
}

Test(name, empty_and_null_are_refused)
{
    expect_refused("", "name \"\": empty; a name must have 1 to 255 bytes");
    expect_refused(NULL, "name: must not be NULL");
}

Test(name, control_characters_are_refused_with_their_place)
{
    expect_refused(
        "a\nb",
        "name \"a\\nb\": control character at byte 2; names must be valid UTF-8 without control characters");
    expect_refused(
        "\x1b[0m",
        "name \"\\x1b[0m\": control character at byte 1; names must be valid UTF-8 without control characters");
    expect_refused(
        "ab\x7f",
        "name \"ab\\x7f\": control character at byte 3; names must be valid UTF-8 without control characters");
    expect_refused("\xc3\xa9\xc2\x85",
                   "name \"\xc3\xa9\\x85\": control character at byte 3; names must be valid "
                   "UTF-8 without control characters");
}

Test(name, invalid_utf8_is_refused_with_its_place)
{
    expect_refused(
        "ab\xff",
        "name \"ab\\xff\": invalid UTF-8 at byte 3; names must be valid UTF-8 without control characters");
    expect_refused(
        "\xc3",
        "name \"\\xc3\": invalid UTF-8 at byte 1; names must be valid UTF-8 without control characters");
    expect_refused(
        "\xc0\x80",
        "name \"\\xc0\\x80\": invalid UTF-8 at byte 1; names must be valid UTF-8 without control characters");
}

Test(name, a_character_cut_by_the_end_of_the_name_is_invalid)
{
    char name[300] = "";
    memset(name, 'n', 254);
    name[254] = '\xc3';
    cr_assert_eq(wr_name_check(name, "name", &error), 0);
    cr_assert(strstr(error.text, "invalid UTF-8 at byte 255"), "%s", error.text);
}

Test(name, the_error_names_the_kind_of_name_and_may_be_null)
{
    cr_assert_eq(wr_name_check("", "label key", &error), 0);
    cr_assert_str_eq(error.text, "label key \"\": empty; a name must have 1 to 255 bytes");
    cr_assert_eq(wr_name_check("", "label key", NULL), 0);
    cr_assert_eq(wr_name_check("\xff", "label key", NULL), 0);
}

Test(name, groups_are_names_with_single_dots_between)
{
    static const char *const groups[] = {"my_app", "my_app.db",    "a.b.c.d",
                                         "weir",   "with blank.x", "h\xc3\xb6he"};
    for (size_t i = 0; i < WR_COUNT_OF(groups); i++)
        cr_assert_eq(wr_name_check_group(groups[i], &error), strlen(groups[i]), "%s", error.text);
}

Test(name, a_group_with_an_empty_part_is_refused)
{
    static const char *const groups[] = {".", "..", ".a", "a.", "a..b", "a.b."};
    for (size_t i = 0; i < WR_COUNT_OF(groups); i++) {
        cr_assert_eq(wr_name_check_group(groups[i], &error), 0, "%s", groups[i]);
        cr_assert(strstr(error.text, "empty part; a group is one or more names separated by single dots"));
    }
    expect_group_refused("a..b",
                         "group \"a..b\": empty part; a group is one or more names separated by single dots");
}

Test(name, a_group_with_an_asterisk_is_refused)
{
    expect_group_refused("*", "group \"*\": a group must not contain '*'");
    expect_group_refused("a.*", "group \"a.*\": a group must not contain '*'");
    expect_group_refused("a*b", "group \"a*b\": a group must not contain '*'");
}

Test(name, an_invalid_name_is_an_invalid_group)
{
    expect_group_refused("", "group \"\": empty; a name must have 1 to 255 bytes");
    expect_group_refused(NULL, "group: must not be NULL");
    expect_group_refused(
        "a\tb",
        "group \"a\\tb\": control character at byte 2; names must be valid UTF-8 without control characters");
}

Test(name, a_text_may_be_empty_and_hold_control_characters)
{
    cr_assert(wr_name_check_text("", 10, "label value", &error));
    cr_assert(wr_name_check_text("a\nb\x1b", 10, "label value", &error));
    cr_assert(wr_name_check_text("0123456789", 10, "label value", &error));
}

Test(name, a_text_that_is_too_long_or_not_utf8_is_refused)
{
    cr_assert(!wr_name_check_text("0123456789X", 10, "unit", &error));
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, "unit \"0123456789X\": too long; at most 10 bytes are allowed");
    cr_assert(!wr_name_check_text("ab\xe2\x82", 10, "help", &error));
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, "help \"ab\\xe2\\x82\": invalid UTF-8 at byte 3");
    cr_assert(!wr_name_check_text(NULL, 10, "help", &error));
    cr_assert_str_eq(error.text, "help: must not be NULL");
}
