/* scan: what may stand in strings, and keys that stand twice. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/scan.h"

static struct wr_scan scan;

static void expect_good(const char *text)
{
    cr_assert(wr_scan_run(&scan, text, strlen(text)), "%s: %s", text, scan.problem);
    wr_scan_fini(&scan);
}

static void expect_refused(const char *text, const char *expected)
{
    char said[500];
    unsigned line, column;
    cr_assert(!wr_scan_run(&scan, text, strlen(text)), "%s was taken", text);
    cr_assert_not_null(scan.problem, "%s", text);
    wr_scan_locate(text, strlen(text), scan.offset, &line, &column);
    snprintf(said, sizeof said, "%u:%u: %s%s%s", line, column, scan.problem, *scan.detail ? ": " : "",
             scan.detail);
    cr_assert_str_eq(said, expected, "%s: %s", text, said);
    wr_scan_fini(&scan);
}

Test(scan, every_escape_of_json_is_taken)
{
    expect_good("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00e9 \\u20AC \\uffff\"");
}

Test(scan, any_other_escape_is_refused_where_it_stands)
{
    static const char *const texts[] = {"\"ab\\x41\"", "\"ab\\0\"",         "\"ab\\'\"",
                                        "\"ab\\a\"",   "\"ab\\U00000041\"", "\"ab\\\n\""};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], "1:4: unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
}

Test(scan, u_is_followed_by_four_hexadecimal_digits)
{
    static const char *const texts[] = {"\"\\u\"",     "\"\\u12\"",   "\"\\u123",   "\"\\u12g4\"",
                                        "\"\\u 123\"", "\"\\u-123\"", "\"\\u{41}\""};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], "1:4: \\u must be followed by four hexadecimal digits");
}

Test(scan, nul_is_refused_as_an_escape_too)
{
    expect_refused("{\"a\": \"b\\u0000c\"}", "1:9: \\u0000 is not allowed in a string");
    expect_refused("{\"a\\u0000\": 1}", "1:4: \\u0000 is not allowed in a string");
    expect_good("\"\\u0001\\u001f\"");
}

Test(scan, surrogates_come_in_pairs)
{
    expect_good("\"\\ud83d\\ude00 \\uD800\\uDC00 \\udbff\\udfff\"");
    expect_refused("[\"x\\ud83d\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ude00\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ud83d\\u0041\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ud83d\\ud83d\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ud83d\\n\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ude00\\ud83d\"]", "1:4: half of a surrogate pair");
    expect_refused("[\"x\\ud83d\\ude\"]", "1:12: \\u must be followed by four hexadecimal digits");
}

Test(scan, control_characters_are_refused_in_strings)
{
    static const char problem[] = "control character in a string; write it as an escape (\\n, \\t, \\u001b)";
    char expected[200];
    for (char c = 1; c < 0x20; c++) {
        const char text[] = {'[', '"', 'a', c, '"', ']', '\0'};
        snprintf(expected, sizeof expected, "1:4: %s", problem);
        expect_refused(text, expected);
    }
    expect_good("\"\x7f\"");
}

Test(scan, a_key_that_stands_twice_is_refused_with_its_place)
{
    expect_refused("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "3:2: this key stands twice in its object: \"a\"");
    expect_refused("{\"x\": {\"a\": 1, \"a\": 1}}", "1:16: this key stands twice in its object: \"a\"");
    expect_refused("{\"\": 1, \"\": 2}", "1:9: this key stands twice in its object: \"\"");
}

Test(scan, a_key_is_the_same_however_it_is_written)
{
    expect_refused("{\"a\": 1, \"\\u0061\": 2}", "1:10: this key stands twice in its object: \"a\"");
    expect_refused("{\"\\/\": 1, \"/\": 2}", "1:11: this key stands twice in its object: \"/\"");
    expect_refused("{\"\xc3\xa9\": 1, \"\\u00E9\": 2}",
                   "1:10: this key stands twice in its object: \"\xc3\xa9\"");
    expect_refused("{\"\xe2\x82\xac\": 1, \"\\u20ac\": 2}",
                   "1:10: this key stands twice in its object: \"\xe2\x82\xac\"");
    expect_refused("{\"\xf0\x9f\x98\x80\": 1, \"\\ud83d\\ude00\": 2}",
                   "1:10: this key stands twice in its object: \"\xf0\x9f\x98\x80\"");
    expect_refused("{\"a\\n\": 1, \"a\\u000a\": 2}", "1:12: this key stands twice in its object: \"a\\n\"");
    expect_good("{\"\xc3\xa9\": 1, \"e\\u0301\": 2}");
}

Test(scan, a_key_may_stand_in_several_objects)
{
    expect_good("{\"a\": {\"a\": {\"a\": 1}}, \"b\": {\"a\": 2}, \"c\": [{\"a\": 3}, {\"a\": 4}]}");
    expect_good("{\"a\": 1, \"A\": 2, \"a \": 3, \"aa\": 4}");
    expect_good("[\"a\", \"a\"]");
    expect_good("{\"a\": \"a\"}");
}

Test(scan, an_outer_object_remembers_its_keys_behind_an_inner_one)
{
    expect_refused("{\"a\": {\"b\": 1}, \"a\": 2}", "1:17: this key stands twice in its object: \"a\"");
    expect_refused("{\"a\": {\"b\": 1}, \"b\": 2, \"b\": 3}",
                   "1:25: this key stands twice in its object: \"b\"");
}

Test(scan, a_key_that_stands_twice_is_found_among_thousands)
{
    static char text[100000] = "{";
    for (int i = 0; i < 5000; i++)
        sprintf(text + strlen(text), "\"key%d\":1,", i);
    size_t length = strlen(text);
    strcpy(text + length, "\"key\":2}");
    expect_good(text);
    strcpy(text + length, "\"key4321\":2}");
    cr_assert(!wr_scan_run(&scan, text, strlen(text)));
    cr_assert_str_eq(scan.detail, "\"key4321\"");
    cr_assert_eq(scan.offset, length);
    wr_scan_fini(&scan);
}

Test(scan, a_very_long_key_is_cut_in_the_message)
{
    enum { LONG = 100000 };
    char *text = malloc(2 * LONG + 100), *key = malloc(LONG + 1);
    memset(key, 'k', LONG);
    key[LONG] = '\0';
    sprintf(text, "{\"%s\": 1, \"%s\": 2}", key, key);
    cr_assert(!wr_scan_run(&scan, text, strlen(text)));
    cr_assert_str_eq(scan.problem, "this key stands twice in its object");
    cr_assert_eq(strlen(scan.detail), 1 + 80 + 4);
    wr_scan_fini(&scan);
    free(text);
    free(key);
}
