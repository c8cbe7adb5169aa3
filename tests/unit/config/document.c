/* document: trees and error messages. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "config/document.h"
#include "text/error.h"

static struct wr_error error;

static struct wr_document *parse(const char *text)
{
    error = (struct wr_error){0};
    struct wr_document *document = wr_document_read_text("weir.json", text, strlen(text), &error);
    cr_assert_not_null(document, "%s: %s", text, error.text);
    return document;
}

static void expect_refused(const char *text, const char *expected)
{
    error = (struct wr_error){0};
    cr_assert_null(wr_document_read_text("weir.json", text, strlen(text), &error), "%s was accepted", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, expected, "%s: %s", text, error.text);
}

/* The message of wr_node_error for a value, found by keys. */
static const char *error_at(const struct wr_document *document, const char *section, const char *key)
{
    const struct wr_node *node = wr_node_member(document->root, section);
    node = key ? wr_node_member(node, key) : node;
    cr_assert_not_null(node);
    cr_assert_not(wr_node_error(node, &error, "is wrong"));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    return error.text;
}

Test(document, values_of_every_type_are_parsed)
{
    struct wr_document *document =
        parse("{\"n\": null, \"t\": true, \"f\": false, \"i\": 12, \"s\": \"x\", \"a\": [], \"o\": {}}");
    const struct wr_node *root = document->root;
    cr_assert_eq(root->type, WR_NODE_OBJECT);
    cr_assert_null(root->parent);
    cr_assert_null(root->key);
    cr_assert_eq(wr_node_member(root, "n")->type, WR_NODE_NULL);
    cr_assert_eq(wr_node_member(root, "t")->type, WR_NODE_BOOL);
    cr_assert(wr_node_member(root, "t")->truth);
    cr_assert(!wr_node_member(root, "f")->truth);
    cr_assert_eq(wr_node_member(root, "i")->type, WR_NODE_NUMBER);
    cr_assert_str_eq(wr_node_member(root, "i")->text, "12");
    cr_assert_str_eq(wr_node_member(root, "s")->text, "x");
    cr_assert_eq(wr_node_member(root, "a")->type, WR_NODE_ARRAY);
    cr_assert_null(wr_node_member(root, "a")->first);
    cr_assert_eq(wr_node_member(root, "o")->type, WR_NODE_OBJECT);
    wr_document_drop(document);
}

Test(document, members_keep_their_order)
{
    struct wr_document *document = parse("{\"z\": [3, 1, 2], \"a\": 0}");
    const struct wr_node *z = document->root->first, *item = z->first;
    cr_assert_str_eq(z->key, "z");
    cr_assert_str_eq(z->next->key, "a");
    cr_assert_null(z->next->next);
    for (size_t i = 0; i < 3; i++, item = item->next) {
        cr_assert_eq(item->index, i);
        cr_assert_eq(item->parent, z);
        cr_assert_null(item->key);
        cr_assert_eq(item->text[0], "312"[i]);
    }
    cr_assert_null(item);
    wr_document_drop(document);
}

Test(document, escapes_are_resolved_in_strings_and_keys)
{
    struct wr_document *document =
        parse("{\"\\u0061\\n\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83d\\ude00\"}");
    cr_assert_str_eq(document->root->first->key, "a\n");
    cr_assert_str_eq(document->root->first->text, "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    wr_document_drop(document);
}

Test(document, numbers_are_kept_as_written)
{
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "1.50",
                                          "1e5",
                                          "-1E+05",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "18446744073709551616",
                                          "99999999999999999999999999999999",
                                          "-99999999999999999999",
                                          "0.1000000000000000055511151231257827",
                                          "1e999",
                                          "-1e-999"};
    for (size_t i = 0; i < WR_COUNT_OF(numbers); i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"number\": %s}", numbers[i]);
        struct wr_document *document = parse(text);
        cr_assert_eq(document->root->first->type, WR_NODE_NUMBER, "%s", numbers[i]);
        cr_assert_str_eq(document->root->first->text, numbers[i]);
        wr_document_drop(document);
    }
}

Test(document, a_single_value_is_a_document)
{
    struct wr_document *document = parse("12");
    cr_assert_str_eq(document->root->text, "12");
    wr_document_drop(document);
    document = parse("null");
    cr_assert_eq(document->root->type, WR_NODE_NULL);
    wr_node_error(document->root, &error, "is wrong");
    cr_assert_str_eq(error.text, "weir.json:1:1: is wrong");
    wr_document_drop(document);
}

Test(document, comments_are_allowed)
{
    struct wr_document *document = parse("// a\n{ /* b */ \"k\": [1, // c\n 2] }\n// d");
    cr_assert_str_eq(document->root->first->first->next->text, "2");
    wr_document_drop(document);
}

Test(document, errors_have_name_line_and_column)
{
    expect_refused("", "weir.json:1:1: the text ends where a value is expected");
    expect_refused("{\n  \"a\": 1,\n}", "weir.json:2:9: trailing comma");
    expect_refused("{\"a\": 1, \"a\": 2}", "weir.json:1:10: duplicate key: \"a\"");
    expect_refused("{\"a\": 01}", "weir.json:1:7: invalid number");
    expect_refused("{} x", "weir.json:1:4: text after the end of the JSON value");
}

Test(document, thirty_two_levels_are_allowed)
{
    char text[100] = "";
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    wr_document_drop(parse(text));
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    expect_refused(text, "weir.json:1:33: nested too deeply; at most 32 levels are allowed");
}

Test(document, an_error_names_the_place_by_keys_and_indices)
{
    struct wr_document *document =
        parse("{\n  \"handlers\": {\n    \"push\": {\"timeout\": \"5x\", \"list\": [1, {\"k\": 2}]}\n  }\n}");
    cr_assert_str_eq(error_at(document, "handlers", "push"), "weir.json:3:13: handlers.push: is wrong");
    const struct wr_node *push = wr_node_member(wr_node_member(document->root, "handlers"), "push");
    wr_node_error(push->first, &error, "%s is wrong", "\"5x\"");
    cr_assert_str_eq(error.text, "weir.json:3:25: handlers.push.timeout: \"5x\" is wrong");
    wr_node_key_error(push->first, &error, "is unknown");
    cr_assert_str_eq(error.text, "weir.json:3:14: handlers.push.timeout: is unknown");
    const struct wr_node *deep = push->first->next->first->next->first;
    wr_node_error(deep, &error, "is wrong");
    cr_assert_str_eq(error.text, "weir.json:3:49: handlers.push.list[1].k: is wrong");
    wr_node_key_error(push->first->next->first, &error, "is wrong");
    cr_assert_str_eq(error.text, "weir.json:3:40: handlers.push.list[0]: is wrong",
                     "a value without key is reported at the value");
    wr_document_drop(document);
}

Test(document, an_errors_column_counts_the_characters_of_comments_too)
{
    struct wr_document *document = parse("{ /* \xc3\xa9\xe2\x82\xac */ \"k\": 1 // \xc3\xa9\n, \"l\": 2}");
    cr_assert_str_eq(error_at(document, "k", NULL), "weir.json:1:17: k: is wrong");
    cr_assert_str_eq(error_at(document, "l", NULL), "weir.json:2:8: l: is wrong");
    wr_document_drop(document);
}

Test(document, keys_are_shown_escaped_in_errors)
{
    struct wr_document *document = parse("{\"a\\u001b[2J\\n\\u202e\": 1}");
    wr_node_error(document->root->first, &error, "is wrong");
    cr_assert_str_eq(error.text, "weir.json:1:24: a\\x1b[2J\\n\\u202e: is wrong");
    wr_document_drop(document);
}

Test(document, a_very_long_key_is_truncated_in_the_message)
{
    enum { LONG = 1024 * 1024 };
    char *text = malloc(LONG + 100);
    strcpy(text, "{\"a\": {\"");
    memset(text + 8, 'k', LONG);
    strcpy(text + 8 + LONG, "\": {\"b\": 1}}}");
    struct wr_document *document = parse(text);
    wr_node_error(document->root->first->first->first, &error, "is wrong");
    cr_assert(strstr(error.text, "weir.json:1:1048594: a.kkk"), "%s", error.text);
    cr_assert(strstr(error.text, "kkk....b: is wrong"), "%s", error.text);
    wr_document_drop(document);
    free(text);
}

Test(document, a_member_is_found_by_its_whole_key_in_objects_only)
{
    struct wr_document *document = parse("{\"ab\": {\"c\": 1}, \"a\": [2]}");
    cr_assert_eq(wr_node_member(document->root, "a")->type, WR_NODE_ARRAY);
    cr_assert_null(wr_node_member(document->root, "c"));
    cr_assert_null(wr_node_member(document->root, ""));
    cr_assert_null(wr_node_member(wr_node_member(document->root, "a"), "c"));
    cr_assert_null(wr_node_member(NULL, "a"));
    wr_document_drop(document);
}

Test(document, values_are_shown_as_written)
{
    static const struct {
        const char *text, *shown;
    } values[] = {{"\"5x\"", "\"5x\""}, {"\"a\\n\\\"\"", "\"a\\n\\\"\""},
                  {"1.50", "1.50"},     {"true", "true"},
                  {"false", "false"},   {"null", "null"},
                  {"[1]", "an array"},  {"{}", "an object"}};
    char shown[100];
    for (size_t i = 0; i < WR_COUNT_OF(values); i++) {
        struct wr_document *document = parse(values[i].text);
        cr_assert_str_eq(wr_node_show(document->root, shown, sizeof shown), values[i].shown);
        wr_document_drop(document);
    }
}

Test(document, types_have_names)
{
    cr_assert_str_eq(wr_node_type_name(WR_NODE_NULL), "null");
    cr_assert_str_eq(wr_node_type_name(WR_NODE_BOOL), "true or false");
    cr_assert_str_eq(wr_node_type_name(WR_NODE_NUMBER), "a number");
    cr_assert_str_eq(wr_node_type_name(WR_NODE_STRING), "a string");
    cr_assert_str_eq(wr_node_type_name(WR_NODE_ARRAY), "an array");
    cr_assert_str_eq(wr_node_type_name(WR_NODE_OBJECT), "an object");
}

Test(document, it_is_freed_with_its_last_reference)
{
    struct wr_document *document = parse("{\"a\": 1}");
    wr_document_hold(document);
    wr_document_drop(document);
    cr_assert_str_eq(document->root->first->key, "a");
    wr_document_drop(document);
    wr_document_drop(NULL);
}

Test(document, it_copies_name_and_text)
{
    char name[] = "weir.json", text[] = "{\"a\": 1}";
    struct wr_document *document = wr_document_read_text(name, text, strlen(text), &error);
    memset(name, '!', strlen(name));
    memset(text, '!', strlen(text));
    cr_assert_str_eq(error_at(document, "a", NULL), "weir.json:1:7: a: is wrong");
    wr_document_drop(document);
}
