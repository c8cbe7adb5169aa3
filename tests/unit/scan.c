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

/* A text that is refused, "LINE:COLUMN: PROBLEM: DETAIL". */
static void expect_refused_bytes(const char *text, size_t length, const char *expected)
{
    char said[500];
    unsigned line, column;
    cr_assert(!wr_scan_run(&scan, text, length), "%s was taken", text);
    cr_assert_not_null(scan.problem, "%s", text);
    wr_scan_locate(text, length, scan.offset, &line, &column);
    snprintf(said, sizeof said, "%u:%u: %s%s%s", line, column, scan.problem, *scan.detail ? ": " : "",
             scan.detail);
    cr_assert_str_eq(said, expected, "%s: %s", text, said);
    wr_scan_fini(&scan);
}

static void expect_refused(const char *text, const char *expected)
{
    expect_refused_bytes(text, strlen(text), expected);
}

Test(scan, every_kind_of_value_may_be_the_whole)
{
    static const char *const texts[] = {
        "{}",      "[]",          "\"\"", "0", "-0", "1.5e-3", "true", "false", "null", " \t\r\n{} \t\r\n",
        "[[],{}]", "{\"\":\"\"}",
    };
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_good(texts[i]);
}

Test(scan, numbers_are_those_of_json)
{
    static const char *const good[] = {"0",   "-1",   "10",   "0.5", "-0.0",
                                       "1e5", "1E+5", "1e-5", "0e0", "12345678901234567890"};
    static const char *const wrong[] = {"01",  "-",   "-01", "1.",   "1.e5", "1e",
                                        "1e+", "-.5", "00",  "1.5.", "0x10", "1_000"};
    for (size_t i = 0; i < WR_COUNT_OF(good); i++)
        expect_good(good[i]);
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++) {
        cr_assert(!wr_scan_run(&scan, wrong[i], strlen(wrong[i])), "%s", wrong[i]);
        wr_scan_fini(&scan);
    }
    expect_refused("[1,\n 01]", "2:2: not a number as JSON writes it");
    expect_refused("[-]", "1:2: not a number as JSON writes it");
}

Test(scan, what_begins_no_value_is_refused)
{
    static const char problem[] =
        "1:2: expected a value: an object, an array, a string in double quotes, a number, true, "
        "false or null";
    static const char *const texts[] = {"[nul]", "[True]", "[NaN]", "[Infinity]", "[+1]", "[.5]",
                                        "['a']", "[a]",    "[}",    "[:]",        "[,1]", "[undefined]"};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], problem);
    expect_refused("{\"a\":}",
                   "1:6: expected a value: an object, an array, a string in double quotes, a number, true, "
                   "false or null");
}

Test(scan, a_text_that_ends_too_early_is_refused)
{
    expect_refused("", "1:1: the text ends where a value is expected");
    expect_refused("  \n ", "2:2: the text ends where a value is expected");
    expect_refused("{\"a\":", "1:6: the text ends where a value is expected");
    expect_refused("[1,", "1:1: this [ has no ]");
    expect_refused("[", "1:1: this [ has no ]");
    expect_refused("{", "1:1: this { has no }");
    expect_refused("{\"a\"", "1:5: expected ':' behind the key");
    expect_refused("{\"a\":1,", "1:1: this { has no }");
}

Test(scan, what_is_never_closed_is_told_where_it_was_opened)
{
    expect_refused("{\n  \"a\": [1, 2\n", "2:8: this [ has no ]");
    expect_refused("{\n  \"a\": 1\n", "1:1: this { has no }");
    expect_refused("{\"a\": \"b}", "1:7: this string has no end");
    expect_refused("{\"a\": \"b\\", "1:9: the text ends inside a string");
    expect_refused("{\"a\": 1 /* b }", "1:9: this comment has no end");
    expect_refused("/*/", "1:1: this comment has no end");
}

Test(scan, what_stands_between_members_is_a_comma)
{
    expect_refused("{\"a\": 1 \"b\": 2}", "1:9: expected ',' or '}'");
    expect_refused("[1 2]", "1:4: expected ',' or ']'");
    expect_refused("[1}", "1:3: expected ',' or ']'");
    expect_refused("{\"a\": 1]", "1:8: expected ',' or '}'");
    expect_refused("[truefalse]", "1:6: expected ',' or ']'");
    expect_refused("{\"a\" 1}", "1:6: expected ':' behind the key");
    expect_refused("{\"a\"= 1}", "1:5: expected ':' behind the key");
}

Test(scan, a_key_is_a_string_in_double_quotes)
{
    expect_refused("{a: 1}", "1:2: expected a key in double quotes");
    expect_refused("{'a': 1}", "1:2: expected a key in double quotes");
    expect_refused("{1: 1}", "1:2: expected a key in double quotes");
    expect_refused("{,}", "1:2: expected a key in double quotes");
    expect_refused("{\"a\":1,,\"b\":2}", "1:8: expected a key in double quotes");
}

Test(scan, a_trailing_comma_is_refused_where_it_stands)
{
    expect_refused("[1, 2,]", "1:6: trailing comma");
    expect_refused("{\n  \"a\": 1,\n}", "2:9: trailing comma");
    expect_refused("{\"a\": 1, // the last\n}", "1:8: trailing comma");
}

Test(scan, text_behind_the_end_is_refused)
{
    expect_refused("{} {}", "1:4: text behind the end of the configuration");
    expect_refused("{}\n}", "2:1: text behind the end of the configuration");
    expect_refused("1 2", "1:3: text behind the end of the configuration");
    expect_good("{} // done");
}

Test(scan, columns_are_counted_in_characters)
{
    expect_refused("{\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\": x}",
                   "1:9: expected a value: an object, an array, a string "
                   "in double quotes, a number, true, false or null");
    expect_refused("{ /* \xc3\xa9\xe2\x82\xac */ x}", "1:12: expected a key in double quotes");
}

Test(scan, lines_and_columns_begin_at_one)
{
    static const char text[] = "ab\n\xc3\xa9"
                               "d\n";
    unsigned line, column;
    static const struct {
        size_t offset;
        unsigned line, column;
    } places[] = {{0, 1, 1}, {1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {5, 2, 2}, {6, 2, 3}, {7, 3, 1}, {100, 3, 1}};
    for (size_t i = 0; i < WR_COUNT_OF(places); i++) {
        wr_scan_locate(text, sizeof text - 1, places[i].offset, &line, &column);
        cr_assert_eq(line, places[i].line, "offset %zu: line %u", places[i].offset, line);
        cr_assert_eq(column, places[i].column, "offset %zu: column %u", places[i].offset, column);
    }
}

Test(scan, comments_may_stand_wherever_blanks_may)
{
    expect_good("/**/{/**/\"a\"/**/:/**/1/**/,/**/\"b\"/**/:/**/[/**/1/**/,/**/2/**/]/**/}/**/");
    expect_good("//\n{//\n\"a\"//\n://\n1//\n}//");
    expect_good("/* ** / */{}");
    expect_good("[1 /* \"unfinished */ ]");
    expect_refused("[1 / 2]", "1:4: expected ',' or ']'");
    expect_refused("[1 # 2\n]", "1:4: expected ',' or ']'");
}

Test(scan, thirty_two_levels_are_the_deepest)
{
    char text[200] = "";
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    expect_good(text);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    expect_refused(text, "1:33: nested too deeply; at most 32 levels are allowed");
    *text = '\0';
    for (int i = 0; i < 33; i++)
        strcat(text, "{\"\":");
    expect_refused(text, "1:129: nested too deeply; at most 32 levels are allowed");
}

Test(scan, levels_side_by_side_do_not_add_up)
{
    static char text[4000] = "[";
    for (int i = 0; i < 1000; i++)
        strcat(text, "[],");
    strcat(text, "{}]");
    expect_good(text);
}

Test(scan, sixteen_mebibytes_are_the_longest)
{
    char *text = malloc(WR_SCAN_LONGEST + 1);
    memset(text, ' ', WR_SCAN_LONGEST + 1);
    text[0] = '1';
    cr_assert(wr_scan_run(&scan, text, WR_SCAN_LONGEST));
    wr_scan_fini(&scan);
    cr_assert(!wr_scan_run(&scan, text, WR_SCAN_LONGEST + 1));
    cr_assert_str_eq(scan.problem, "too long; at most 16 MiB are allowed");
    wr_scan_fini(&scan);
    free(text);
}

Test(scan, a_byte_order_mark_is_refused)
{
    expect_refused("\xef\xbb\xbf{}", "1:1: the text begins with a byte order mark; save it without one");
}

Test(scan, invalid_utf8_is_refused_wherever_it_stands)
{
    expect_refused("{\"a\": \"\xff\"}", "1:8: invalid UTF-8");
    expect_refused("{} // \xc3", "1:7: invalid UTF-8");
    expect_refused("{\"a\":\n\"\xed\xa0\x80\"}", "2:2: invalid UTF-8");
    expect_refused("\xff\xfe{\0}", "1:1: invalid UTF-8");
}

Test(scan, a_nul_byte_is_refused_wherever_it_stands)
{
    expect_refused_bytes("{\"a\0b\": 1}", 10, "1:4: a NUL byte");
    expect_refused_bytes("{}\0", 3, "1:3: a NUL byte");
    expect_refused_bytes("{} // \0", 7, "1:7: a NUL byte");
}

Test(scan, the_text_need_not_end_in_nul)
{
    char *exact = malloc(7);
    memcpy(exact, "{\"a\":1}", 7);
    cr_assert(wr_scan_run(&scan, exact, 7), "%s", scan.problem);
    wr_scan_fini(&scan);
    cr_assert(!wr_scan_run(&scan, exact, 6));
    wr_scan_fini(&scan);
    free(exact);
}

Test(scan, every_value_has_its_place_in_the_order_of_their_beginnings)
{
    static const char text[] = "{ \"a\" : [10, \"x\"],\n/* b */ \"b\": {\"c\": null} }";
    static const struct {
        const char *value;
        const char *key;
        size_t parent;
    } expected[] = {{"{ \"a\"", "{ \"a\"", 0}, {"[10, \"x\"]", "\"a\" :", 0},  {"10", "10", 1},
                    {"\"x\"", "\"x\"", 1},     {"{\"c\": null}", "\"b\":", 0}, {"null", "\"c\":", 4}};
    cr_assert(wr_scan_run(&scan, text, sizeof text - 1));
    cr_assert_eq(scan.count, WR_COUNT_OF(expected));
    for (size_t i = 0; i < scan.count; i++) {
        const struct wr_scan_value *value = &scan.values[i];
        cr_assert_eq(strncmp(text + value->offset, expected[i].value, strlen(expected[i].value)), 0,
                     "value %zu", i);
        cr_assert_eq(strncmp(text + value->key_offset, expected[i].key, strlen(expected[i].key)), 0,
                     "key of %zu", i);
        cr_assert_eq(value->parent, expected[i].parent, "parent of %zu", i);
    }
    wr_scan_fini(&scan);
}

Test(scan, values_are_what_is_written)
{
    static const char text[] = "[null, true, false, -0.50e1, 99999999999999999999, "
                               "\"a\\u00e9\\ud83d\\ude00\\n\\/\", \"\", {\"k\\t\": []}]";
    static const struct {
        enum wr_node_type type;
        const char *text, *key;
        bool truth;
    } expected[] = {
        {WR_NODE_ARRAY, NULL, NULL, false},
        {WR_NODE_NULL, NULL, NULL, false},
        {WR_NODE_BOOL, NULL, NULL, true},
        {WR_NODE_BOOL, NULL, NULL, false},
        {WR_NODE_NUMBER, "-0.50e1", NULL, false},
        {WR_NODE_NUMBER, "99999999999999999999", NULL, false},
        {WR_NODE_STRING, "a\xc3\xa9\xf0\x9f\x98\x80\n/", NULL, false},
        {WR_NODE_STRING, "", NULL, false},
        {WR_NODE_OBJECT, NULL, NULL, false},
        {WR_NODE_ARRAY, NULL, "k\t", false},
    };
    cr_assert(wr_scan_run(&scan, text, sizeof text - 1), "%s", scan.problem);
    cr_assert_eq(scan.count, WR_COUNT_OF(expected));
    for (size_t i = 0; i < scan.count; i++) {
        const struct wr_scan_value *value = &scan.values[i];
        cr_assert_eq(value->type, expected[i].type, "value %zu", i);
        cr_assert_eq(value->truth, expected[i].truth, "value %zu", i);
        if (expected[i].text)
            cr_assert_str_eq(value->text, expected[i].text);
        else
            cr_assert_null(value->text, "value %zu", i);
        if (expected[i].key)
            cr_assert_str_eq(value->key, expected[i].key);
        else
            cr_assert_null(value->key, "value %zu", i);
    }
    wr_scan_fini(&scan);
}

Test(scan, there_may_be_a_million_values)
{
    char *text = malloc(2 * WR_SCAN_MOST + 2);
    memset(text, '[', 1);
    for (size_t i = 0; i < WR_SCAN_MOST; i++)
        memcpy(text + 1 + 2 * i, "1,", 2);
    size_t length = 2 * (WR_SCAN_MOST - 1) + 1;
    text[length - 1] = ']';
    cr_assert(wr_scan_run(&scan, text, length), "%s", scan.problem);
    cr_assert_eq(scan.count, WR_SCAN_MOST);
    cr_assert_eq(text[scan.values[WR_SCAN_MOST - 1].offset], '1');
    wr_scan_fini(&scan);
    text[length - 1] = ',';
    text[length + 1] = ']';
    cr_assert(!wr_scan_run(&scan, text, length + 2));
    cr_assert_str_eq(scan.problem, "too many values; at most 1,000,000 are allowed");
    cr_assert_eq(scan.offset, length);
    wr_scan_fini(&scan);
    free(text);
}
