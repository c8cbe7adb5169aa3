/* json: grammar, positions of errors, limits. */
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

/* expected: "LINE:COLUMN: PROBLEM: DETAIL". */
static void expect_refused_bytes(const char *text, size_t length, const char *expected)
{
    char message[500];
    unsigned line, column;
    cr_assert(!wr_json_read(&json, text, length), "%s was accepted", text);
    cr_assert_not_null(json.problem, "%s", text);
    wr_json_locate(text, length, json.offset, &line, &column);
    snprintf(message, sizeof message, "%u:%u: %s%s%s", line, column, json.problem, *json.detail ? ": " : "",
             json.detail);
    cr_assert_str_eq(message, expected, "%s: %s", text, message);
    wr_json_fini(&json);
}

static void expect_refused(const char *text, const char *expected)
{
    expect_refused_bytes(text, strlen(text), expected);
}

Test(json, the_root_may_be_any_type_of_value)
{
    static const char *const texts[] = {
        "{}",      "[]",          "\"\"", "0", "-0", "1.5e-3", "true", "false", "null", " \t\r\n{} \t\r\n",
        "[[],{}]", "{\"\":\"\"}",
    };
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_parsed(texts[i]);
}

Test(json, numbers_follow_the_json_grammar)
{
    static const char *const good[] = {"0",   "-1",   "10",   "0.5", "-0.0",
                                       "1e5", "1E+5", "1e-5", "0e0", "12345678901234567890"};
    static const char *const wrong[] = {"01",  "-",   "-01", "1.",   "1.e5", "1e",
                                        "1e+", "-.5", "00",  "1.5.", "0x10", "1_000"};
    for (size_t i = 0; i < WR_COUNT_OF(good); i++)
        expect_parsed(good[i]);
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++) {
        cr_assert(!wr_json_read(&json, wrong[i], strlen(wrong[i])), "%s", wrong[i]);
        wr_json_fini(&json);
    }
    expect_refused("[1,\n 01]", "2:2: invalid number");
    expect_refused("[-]", "1:2: invalid number");
}

Test(json, other_text_where_a_value_is_expected_is_refused)
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

Test(json, a_text_that_ends_too_early_is_refused)
{
    expect_refused("", "1:1: the text ends where a value is expected");
    expect_refused("  \n ", "2:2: the text ends where a value is expected");
    expect_refused("{\"a\":", "1:6: the text ends where a value is expected");
    expect_refused("[1,", "1:1: unclosed [");
    expect_refused("[", "1:1: unclosed [");
    expect_refused("{", "1:1: unclosed {");
    expect_refused("{\"a\"", "1:5: expected ':' after the key");
    expect_refused("{\"a\":1,", "1:1: unclosed {");
}

Test(json, unclosed_text_is_reported_where_it_was_opened)
{
    expect_refused("{\n  \"a\": [1, 2\n", "2:8: unclosed [");
    expect_refused("{\n  \"a\": 1\n", "1:1: unclosed {");
    expect_refused("{\"a\": \"b}", "1:7: unterminated string");
    expect_refused("{\"a\": \"b\\", "1:9: the text ends inside a string");
    expect_refused("{\"a\": 1 /* b }", "1:9: unterminated comment");
    expect_refused("/*/", "1:1: unterminated comment");
}

Test(json, members_are_separated_by_commas)
{
    expect_refused("{\"a\": 1 \"b\": 2}", "1:9: expected ',' or '}'");
    expect_refused("[1 2]", "1:4: expected ',' or ']'");
    expect_refused("[1}", "1:3: expected ',' or ']'");
    expect_refused("{\"a\": 1]", "1:8: expected ',' or '}'");
    expect_refused("[truefalse]", "1:6: expected ',' or ']'");
    expect_refused("{\"a\" 1}", "1:6: expected ':' after the key");
    expect_refused("{\"a\"= 1}", "1:5: expected ':' after the key");
}

Test(json, a_key_is_a_string_in_double_quotes)
{
    expect_refused("{a: 1}", "1:2: expected a key in double quotes");
    expect_refused("{'a': 1}", "1:2: expected a key in double quotes");
    expect_refused("{1: 1}", "1:2: expected a key in double quotes");
    expect_refused("{,}", "1:2: expected a key in double quotes");
    expect_refused("{\"a\":1,,\"b\":2}", "1:8: expected a key in double quotes");
}

Test(json, a_trailing_comma_is_reported_at_its_place)
{
    expect_refused("[1, 2,]", "1:6: trailing comma");
    expect_refused("{\n  \"a\": 1,\n}", "2:9: trailing comma");
    expect_refused("{\"a\": 1, // the last\n}", "1:8: trailing comma");
}

Test(json, text_after_the_root_value_is_refused)
{
    expect_refused("{} {}", "1:4: text after the end of the JSON value");
    expect_refused("{}\n}", "2:1: text after the end of the JSON value");
    expect_refused("1 2", "1:3: text after the end of the JSON value");
    expect_parsed("{} // done");
}

Test(json, columns_are_counted_in_characters)
{
    expect_refused("{\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\": x}",
                   "1:9: expected a value: an object, an array, a string "
                   "in double quotes, a number, true, false or null");
    expect_refused("{ /* \xc3\xa9\xe2\x82\xac */ x}", "1:12: expected a key in double quotes");
}

Test(json, lines_and_columns_begin_at_one)
{
    static const char text[] = "ab\n\xc3\xa9"
                               "d\n";
    unsigned line, column;
    static const struct {
        size_t offset;
        unsigned line, column;
    } places[] = {{0, 1, 1}, {1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {5, 2, 2}, {6, 2, 3}, {7, 3, 1}, {100, 3, 1}};
    for (size_t i = 0; i < WR_COUNT_OF(places); i++) {
        wr_json_locate(text, sizeof text - 1, places[i].offset, &line, &column);
        cr_assert_eq(line, places[i].line, "offset %zu: line %u", places[i].offset, line);
        cr_assert_eq(column, places[i].column, "offset %zu: column %u", places[i].offset, column);
    }
}

Test(json, comments_are_allowed_wherever_whitespace_is)
{
    expect_parsed("/**/{/**/\"a\"/**/:/**/1/**/,/**/\"b\"/**/:/**/[/**/1/**/,/**/2/**/]/**/}/**/");
    expect_parsed("//\n{//\n\"a\"//\n://\n1//\n}//");
    expect_parsed("/* ** / */{}");
    expect_parsed("[1 /* \"unfinished */ ]");
    expect_refused("[1 / 2]", "1:4: expected ',' or ']'");
    expect_refused("[1 # 2\n]", "1:4: expected ',' or ']'");
}

Test(json, nesting_is_limited_to_32_levels)
{
    char text[200] = "";
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    expect_parsed(text);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    expect_refused(text, "1:33: nested too deeply; at most 32 levels are allowed");
    *text = '\0';
    for (int i = 0; i < 33; i++)
        strcat(text, "{\"\":");
    expect_refused(text, "1:129: nested too deeply; at most 32 levels are allowed");
}

Test(json, siblings_do_not_count_as_levels)
{
    static char text[4000] = "[";
    for (int i = 0; i < 1000; i++)
        strcat(text, "[],");
    strcat(text, "{}]");
    expect_parsed(text);
}

Test(json, the_length_is_limited_to_16_mebibytes)
{
    char *text = malloc(WR_JSON_BYTES_MAX + 1);
    memset(text, ' ', WR_JSON_BYTES_MAX + 1);
    text[0] = '1';
    cr_assert(wr_json_read(&json, text, WR_JSON_BYTES_MAX));
    wr_json_fini(&json);
    cr_assert(!wr_json_read(&json, text, WR_JSON_BYTES_MAX + 1));
    cr_assert_str_eq(json.problem, "too long; at most 16 MiB are allowed");
    wr_json_fini(&json);
    free(text);
}

Test(json, a_byte_order_mark_is_refused)
{
    expect_refused("\xef\xbb\xbf{}", "1:1: the text begins with a byte order mark; save it without one");
}

Test(json, invalid_utf8_is_refused_anywhere)
{
    expect_refused("{\"a\": \"\xff\"}", "1:8: invalid UTF-8");
    expect_refused("{} // \xc3", "1:7: invalid UTF-8");
    expect_refused("{\"a\":\n\"\xed\xa0\x80\"}", "2:2: invalid UTF-8");
    expect_refused("\xff\xfe{\0}", "1:1: invalid UTF-8");
}

Test(json, a_nul_byte_is_refused_anywhere)
{
    expect_refused_bytes("{\"a\0b\": 1}", 10, "1:4: NUL byte");
    expect_refused_bytes("{}\0", 3, "1:3: NUL byte");
    expect_refused_bytes("{} // \0", 7, "1:7: NUL byte");
}

Test(json, the_text_needs_no_terminating_nul)
{
    char *exact = malloc(7);
    memcpy(exact, "{\"a\":1}", 7);
    cr_assert(wr_json_read(&json, exact, 7), "%s", json.problem);
    wr_json_fini(&json);
    cr_assert(!wr_json_read(&json, exact, 6));
    wr_json_fini(&json);
    free(exact);
}

Test(json, values_are_listed_in_the_order_of_their_first_bytes)
{
    static const char text[] = "{ \"a\" : [10, \"x\"],\n/* b */ \"b\": {\"c\": null} }";
    static const struct {
        const char *value;
        const char *key;
        size_t parent;
    } expected[] = {{"{ \"a\"", "{ \"a\"", 0}, {"[10, \"x\"]", "\"a\" :", 0},  {"10", "10", 1},
                    {"\"x\"", "\"x\"", 1},     {"{\"c\": null}", "\"b\":", 0}, {"null", "\"c\":", 4}};
    cr_assert(wr_json_read(&json, text, sizeof text - 1));
    cr_assert_eq(json.count, WR_COUNT_OF(expected));
    for (size_t i = 0; i < json.count; i++) {
        const struct wr_json_value *value = &json.values[i];
        cr_assert_eq(strncmp(text + value->offset, expected[i].value, strlen(expected[i].value)), 0,
                     "value %zu", i);
        cr_assert_eq(strncmp(text + value->key_offset, expected[i].key, strlen(expected[i].key)), 0,
                     "key of %zu", i);
        cr_assert_eq(value->parent, expected[i].parent, "parent of %zu", i);
    }
    wr_json_fini(&json);
}

Test(json, values_have_type_text_and_key)
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
    cr_assert(wr_json_read(&json, text, sizeof text - 1), "%s", json.problem);
    cr_assert_eq(json.count, WR_COUNT_OF(expected));
    for (size_t i = 0; i < json.count; i++) {
        const struct wr_json_value *value = &json.values[i];
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
    wr_json_fini(&json);
}

Test(json, the_number_of_values_is_limited_to_a_million)
{
    char *text = malloc(2 * WR_JSON_VALUES_MAX + 2);
    memset(text, '[', 1);
    for (size_t i = 0; i < WR_JSON_VALUES_MAX; i++)
        memcpy(text + 1 + 2 * i, "1,", 2);
    size_t length = 2 * (WR_JSON_VALUES_MAX - 1) + 1;
    text[length - 1] = ']';
    cr_assert(wr_json_read(&json, text, length), "%s", json.problem);
    cr_assert_eq(json.count, WR_JSON_VALUES_MAX);
    cr_assert_eq(text[json.values[WR_JSON_VALUES_MAX - 1].offset], '1');
    wr_json_fini(&json);
    text[length - 1] = ',';
    text[length + 1] = ']';
    cr_assert(!wr_json_read(&json, text, length + 2));
    cr_assert_str_eq(json.problem, "too many values; at most 1,000,000 are allowed");
    cr_assert_eq(json.offset, length);
    wr_json_fini(&json);
    free(text);
}

Test(json, nan_and_infinities_are_numbers_only_on_request)
{
    static const char text[] = "[NaN, Infinity, -Infinity, -1]";
    cr_assert(!wr_json_read(&json, text, strlen(text)));
    wr_json_fini(&json);
    json.specials = true;
    cr_assert(wr_json_read(&json, text, strlen(text)), "%s", json.problem);
    cr_assert_eq(json.values[1].type, WR_NODE_NUMBER);
    cr_assert_str_eq(json.values[1].text, "NaN");
    cr_assert_str_eq(json.values[3].text, "-Infinity");
    cr_assert_str_eq(json.values[4].text, "-1");
    wr_json_fini(&json);
}

Test(json, a_cleared_reader_reads_the_next_text_alike)
{
    static const char *const texts[] = {"{\"a\": 1, \"b\": \"x\"}", "{\"a\": 2}", "{\"a\": 2, \"a\"",
                                        "{\"a\": 3}"};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++) {
        bool parsed = wr_json_read(&json, texts[i], strlen(texts[i]));
        cr_assert_eq(parsed, i != 2, "%s: %s", texts[i], json.problem);
        if (parsed)
            cr_assert_str_eq(json.values[1].key, "a");
        wr_json_clear(&json);
        cr_assert_eq(json.count, 0);
    }
    wr_json_fini(&json);
}
