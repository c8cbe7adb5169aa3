/* patterns: which configurations of patterns are accepted. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/error.h"

#include "../../../plugins/patterns/patterns.h"

static void accept(const char *text)
{
    struct wr_error error;
    struct wr_patterns *patterns = wr_patterns_read("p", text, strlen(text), &error);
    cr_assert(patterns, "%s: %s", text, error.text);
    wr_patterns_free(patterns);
}

static void refuse(const char *text, const char *message)
{
    struct wr_error error;
    struct wr_patterns *patterns = wr_patterns_read("p", text, strlen(text), &error);
    cr_assert_null(patterns, "%s", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, message, "%s:\n%s\n-- expected:\n%s", text, error.text, message);
}

Test(patterns, an_object_an_array_and_presets_are_accepted)
{
    accept("{\"name\": \"a\", \"pattern\": \"b\"}");
    accept("[{\"name\": \"a\", \"pattern\": \"b\"}, {\"name\": \"a\", \"pattern\": \"c\"}] // comment");
    accept("\"nginx\"");
    accept("[\"nginx\", {\"name\": \"a\", \"pattern\": \"b\"}]");
    accept("{\"name\": \"a\", \"pattern\": \"b\", \"unit\": \"ms\", \"instrument\": \"gauge\", \"value\": -1.5,"
           " \"time\": \"%Y-%m-%d\", \"replace\": {\",\": \"\", \"a\": \"b\"}}");
    accept("{\"name\": \"a\", \"pattern\": \"YWNjPShcZCsp\", \"units\": \"%\"}");
    accept("{\"name\": \"a\", \"pattern\": \"(?|(?<x>a)|(?<x>b))(?P<y>c)\"}");
}

Test(patterns, a_wrong_expression_has_the_message_and_the_offset_of_PCRE2)
{
    refuse("{\"name\": \"a\",\n \"pattern\": \"a(b\"}",
           "p:2:13: pattern of \"a\": missing closing parenthesis (at offset 3 of the expression)");
    refuse("{\"name\": \"a\", \"pattern\": \"\xc3\xa4*+?\"}",
           "p:1:26: pattern of \"a\": quantifier does not follow a repeatable item (at offset 3 of the "
           "expression)");
    refuse(
        "{\"name\": \"a\", \"pattern\": \"\\\\C\"}",
        "p:1:26: pattern of \"a\": using \\C is disabled by the application (at offset 2 of the expression)");
    refuse("{\"name\": \"a\", \"pattern\": \"(?J)(?<x>a)(?<x>b)\"}",
           "p:1:26: pattern of \"a\": two groups have the name \"x\"");
}

Test(patterns, unknown_and_missing_keys_are_refused)
{
    refuse(
        "[{\"name\": \"a\", \"patern\": \"b\"}]",
        "p:1:16: unknown key \"patern\"; allowed are name, pattern, unit, instrument, value, time and replace;"
        " did you mean \"pattern\"?");
    refuse("{\"name\": \"a\", \"pattern\": \"YQ==\", \"units\": \"\", \"value\": 1}",
           "p:1:47: unknown key \"value\"; allowed are name, pattern and units (a pattern with \"units\" is "
           "benchmarkai's)");
    refuse("{\"name\": \"a\"}", "p:1:1: the key \"pattern\" is missing");
    refuse("[{\"pattern\": \"a\"}]", "p:1:2: the key \"name\" is missing");
    refuse("[]", "p:1:1: there are no patterns");
}

Test(patterns, base64_that_is_none_is_refused)
{
    static const char *const wrong[] = {"YQ", "Y", "YQ=", "Y===", "=", "YQ=a", "Y Q=", "YQ==YQ==", "Y-_="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[100], message[200];
        snprintf(text, sizeof text, "{\"name\": \"a\", \"units\": \"\", \"pattern\": \"%s\"}", wrong[i]);
        snprintf(
            message, sizeof message,
            "p:1:39: pattern: must be a regular expression in base64, since there are \"units\", got \"%s\"",
            wrong[i]);
        refuse(text, message);
    }
    refuse(
        "{\"name\": \"a\", \"units\": \"\", \"pattern\": \"//4=\"}",
        "p:1:39: pattern of \"a\": UTF-8 error: illegal byte (0xfe or 0xff) (at offset 0 of the expression)");
}

Test(patterns, values_of_keys_are_checked)
{
    refuse("{\"name\": 1}", "p:1:10: name: must be a string, got 1");
    refuse("{\"name\": \"\", \"pattern\": \"a\"}", "p:1:10: name \"\": empty; a name must have 1 to 255 bytes");
    refuse("{\"name\": \"a\", \"pattern\": null}", "p:1:26: pattern: must be a string, got null");
    refuse("{\"name\": \"a\", \"pattern\": \"a\", \"instrument\": \"timer\"}",
           "p:1:45: instrument: must be value, counter, gauge or histogram, got \"timer\"");
    refuse("{\"name\": \"a\", \"pattern\": \"a\", \"value\": \"1\"}",
           "p:1:40: value: must be a number, got \"1\"");
    refuse("{\"name\": \"a\", \"pattern\": \"a\", \"value\": 1e999}",
           "p:1:40: value: must be a number, got 1e999");
    refuse(
        "{\"name\": \"a\", \"pattern\": \"a\", \"time\": \"%Y\"}",
        "p:1:39: time: must be s, ms, us, ns (since 1970), or a format of %Y %m %b %d %H %M %S %f %z %% with "
        "%Y, %m or %b, and %d, got \"%Y\"");
    refuse(
        "{\"name\": \"a\", \"pattern\": \"a\", \"replace\": []}",
        "p:1:42: replace: must be an object of texts and what they become, like {\",\": \"\"}, got an array");
    refuse("{\"name\": \"a\", \"pattern\": \"a\", \"replace\": {\"\": \"x\"}}",
           "p:1:43: replace: an empty key");
    refuse("\"apache\"", "p:1:1: \"apache\" is not a pattern (an object, or the name of a preset: \"nginx\")");
    refuse("[1]", "p:1:2: 1 is not a pattern (an object, or the name of a preset: \"nginx\")");
    refuse("[", "p:1:1: unclosed [");
}

Test(patterns, more_labels_than_allowed_are_refused)
{
    char text[4000] = "{\"name\": \"a\", \"pattern\": \"";
    for (int i = 0; i < 65; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "(?<g%d>a)", i);
    strcat(text, "\"}");
    refuse(text, "p:1:26: pattern of \"a\": at most 64 labels are allowed");
}
