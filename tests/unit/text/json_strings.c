/* json: strings and duplicate keys. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/json.h"

static struct wr_json json;

static void expect_parsed(const char *text)
{
    cr_assert(wr_json_read(&json, text, strlen(text)), "%s: %s", text, json.problem);
    wr_json_fini(&json);
}

static void expect_refused(const char *text, const char *expected)
{
    char message[500];
    unsigned line, column;
    cr_assert(!wr_json_read(&json, text, strlen(text)), "%s was accepted", text);
    cr_assert_not_null(json.problem, "%s", text);
    wr_json_locate(text, strlen(text), json.offset, &line, &column);
    snprintf(message, sizeof message, "%u:%u: %s%s%s", line, column, json.problem, *json.detail ? ": " : "",
             json.detail);
    cr_assert_str_eq(message, expected, "%s: %s", text, message);
    wr_json_fini(&json);
}

Test(json_strings, every_json_escape_is_accepted)
{
    expect_parsed("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00e9 \\u20AC \\uffff\"");
}

Test(json_strings, any_other_escape_is_reported_at_its_place)
{
    static const char *const texts[] = {"\"ab\\x41\"", "\"ab\\0\"",         "\"ab\\'\"",
                                        "\"ab\\a\"",   "\"ab\\U00000041\"", "\"ab\\\n\""};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], "1:4: unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
}

Test(json_strings, u_must_be_followed_by_four_hexadecimal_digits)
{
    static const char *const texts[] = {"\"\\u\"",     "\"\\u12\"",   "\"\\u123",   "\"\\u12g4\"",
                                        "\"\\u 123\"", "\"\\u-123\"", "\"\\u{41}\""};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], "1:4: \\u must be followed by four hexadecimal digits");
}

Test(json_strings, nul_is_refused_as_an_escape_too)
{
    expect_refused("{\"a\": \"b\\u0000c\"}", "1:9: \\u0000 is not allowed in a string");
    expect_refused("{\"a\\u0000\": 1}", "1:4: \\u0000 is not allowed in a string");
    expect_parsed("\"\\u0001\\u001f\"");
}

Test(json_strings, surrogates_come_in_pairs)
{
    expect_parsed("\"\\ud83d\\ude00 \\uD800\\uDC00 \\udbff\\udfff\"");
    expect_refused("[\"x\\ud83d\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ude00\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ud83d\\u0041\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ud83d\\ud83d\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ud83d\\n\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ude00\\ud83d\"]", "1:4: unpaired surrogate");
    expect_refused("[\"x\\ud83d\\ude\"]", "1:12: \\u must be followed by four hexadecimal digits");
}

Test(json_strings, control_characters_are_refused_in_strings)
{
    static const char problem[] = "control character in a string; write it as an escape (\\n, \\t, \\u001b)";
    char expected[200];
    for (char c = 1; c < 0x20; c++) {
        const char text[] = {'[', '"', 'a', c, '"', ']', '\0'};
        snprintf(expected, sizeof expected, "1:4: %s", problem);
        expect_refused(text, expected);
    }
    expect_parsed("\"\x7f\"");
}

Test(json_strings, a_duplicate_key_is_reported_at_its_second_occurrence)
{
    expect_refused("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "3:2: duplicate key: \"a\"");
    expect_refused("{\"x\": {\"a\": 1, \"a\": 1}}", "1:16: duplicate key: \"a\"");
    expect_refused("{\"\": 1, \"\": 2}", "1:9: duplicate key: \"\"");
}

Test(json_strings, escaped_and_plain_forms_of_a_key_are_equal)
{
    expect_refused("{\"a\": 1, \"\\u0061\": 2}", "1:10: duplicate key: \"a\"");
    expect_refused("{\"\\/\": 1, \"/\": 2}", "1:11: duplicate key: \"/\"");
    expect_refused("{\"\xc3\xa9\": 1, \"\\u00E9\": 2}", "1:10: duplicate key: \"\xc3\xa9\"");
    expect_refused("{\"\xe2\x82\xac\": 1, \"\\u20ac\": 2}", "1:10: duplicate key: \"\xe2\x82\xac\"");
    expect_refused("{\"\xf0\x9f\x98\x80\": 1, \"\\ud83d\\ude00\": 2}",
                   "1:10: duplicate key: \"\xf0\x9f\x98\x80\"");
    expect_refused("{\"a\\n\": 1, \"a\\u000a\": 2}", "1:12: duplicate key: \"a\\n\"");
    expect_parsed("{\"\xc3\xa9\": 1, \"e\\u0301\": 2}");
}

Test(json_strings, a_key_may_occur_in_several_objects)
{
    expect_parsed("{\"a\": {\"a\": {\"a\": 1}}, \"b\": {\"a\": 2}, \"c\": [{\"a\": 3}, {\"a\": 4}]}");
    expect_parsed("{\"a\": 1, \"A\": 2, \"a \": 3, \"aa\": 4}");
    expect_parsed("[\"a\", \"a\"]");
    expect_parsed("{\"a\": \"a\"}");
}

Test(json_strings, an_inner_object_does_not_hide_keys_of_the_outer_one)
{
    expect_refused("{\"a\": {\"b\": 1}, \"a\": 2}", "1:17: duplicate key: \"a\"");
    expect_refused("{\"a\": {\"b\": 1}, \"b\": 2, \"b\": 3}", "1:25: duplicate key: \"b\"");
}

Test(json_strings, a_duplicate_key_is_found_among_thousands)
{
    static char text[100000] = "{";
    for (int i = 0; i < 5000; i++)
        sprintf(text + strlen(text), "\"key%d\":1,", i);
    size_t length = strlen(text);
    strcpy(text + length, "\"key\":2}");
    expect_parsed(text);
    strcpy(text + length, "\"key4321\":2}");
    cr_assert(!wr_json_read(&json, text, strlen(text)));
    cr_assert_str_eq(json.detail, "\"key4321\"");
    cr_assert_eq(json.offset, length);
    wr_json_fini(&json);
}

Test(json_strings, a_very_long_key_is_truncated_in_the_message)
{
    enum { LONG = 100000 };
    char *text = malloc(2 * LONG + 100), *key = malloc(LONG + 1);
    memset(key, 'k', LONG);
    key[LONG] = '\0';
    sprintf(text, "{\"%s\": 1, \"%s\": 2}", key, key);
    cr_assert(!wr_json_read(&json, text, strlen(text)));
    cr_assert_str_eq(json.problem, "duplicate key");
    cr_assert_eq(strlen(json.detail), 1 + 80 + 4);
    wr_json_fini(&json);
    free(text);
    free(key);
}
