/* options: the allowed values of each type. */
#include "text/common.h"
#include "options_fixture.h"

struct all {
    bool flag;
    int64_t integer;
    double real;
    const char *string, *path;
    int64_t duration, size, word;
    weir_list list;
    weir_map map;
    int64_t port, pause, room;
    double share;
    int64_t pin;
    const char *token;
    weir_list tokens;
    weir_map headers;
    int64_t mode;
};

static const weir_option rows[] = {
    {"flag", WEIR_OPTION_BOOL, 0, NULL, NULL, "", offsetof(struct all, flag)},
    {"integer", WEIR_OPTION_INT, 0, NULL, NULL, "", offsetof(struct all, integer)},
    {"real", WEIR_OPTION_DOUBLE, 0, NULL, NULL, "", offsetof(struct all, real)},
    {"string", WEIR_OPTION_STRING, 0, NULL, NULL, "", offsetof(struct all, string)},
    {"path", WEIR_OPTION_PATH, 0, NULL, NULL, "", offsetof(struct all, path)},
    {"duration", WEIR_OPTION_DURATION, 0, NULL, NULL, "", offsetof(struct all, duration)},
    {"size", WEIR_OPTION_SIZE, 0, NULL, NULL, "", offsetof(struct all, size)},
    {"word", WEIR_OPTION_ENUM, 0, NULL, "auto|always|never", "", offsetof(struct all, word)},
    {"list", WEIR_OPTION_LIST, 0, NULL, NULL, "", offsetof(struct all, list)},
    {"map", WEIR_OPTION_MAP, 0, NULL, NULL, "", offsetof(struct all, map)},
    {"port", WEIR_OPTION_INT, 0, NULL, "1..65535", "", offsetof(struct all, port)},
    {"pause", WEIR_OPTION_DURATION, 0, NULL, "10ms..", "", offsetof(struct all, pause)},
    {"room", WEIR_OPTION_SIZE, 0, NULL, "..1KiB", "", offsetof(struct all, room)},
    {"share", WEIR_OPTION_DOUBLE, 0, NULL, "0..1", "", offsetof(struct all, share)},
    {"pin", WEIR_OPTION_INT, WEIR_OPTION_SECRET, NULL, "1000..9999", "", offsetof(struct all, pin)},
    {"token", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "", offsetof(struct all, token)},
    {"tokens", WEIR_OPTION_LIST, WEIR_OPTION_SECRET, NULL, NULL, "", offsetof(struct all, tokens)},
    {"headers", WEIR_OPTION_MAP, WEIR_OPTION_SECRET, NULL, NULL, "", offsetof(struct all, headers)},
    {"mode", WEIR_OPTION_ENUM, WEIR_OPTION_SECRET, NULL, "a|b", "", offsetof(struct all, mode)},
    {0},
};

static struct all all;

static void expect_good(const char *text)
{
    struct wr_options_fill fill = make_fill(WR_OPTIONS_TABLE(rows, struct all), &all);
    cr_assert(fill_members(&fill, 1, NULL, text), "%s: %s", text, error.text);
}

/* Sets one option to a value that is refused; `expected` is the message after the place. */
static void expect_refused(const char *name, const char *value, const char *expected)
{
    char text[300], place[600];
    struct wr_options_fill fill = make_fill(WR_OPTIONS_TABLE(rows, struct all), &all);
    snprintf(text, sizeof text, "{\"%s\": %s}", name, value);
    cr_assert(!fill_members(&fill, 1, NULL, text), "%s was accepted", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    snprintf(place, sizeof place, "weir.json:1:%zu: %s: %s", strlen(name) + 6, name, expected);
    cr_assert_str_eq(error.text, place);
}

#define DURATION "a duration (like 5s, 200ms; units: ns, us, ms, s, m, h, d)"
#define SIZE "a size (like 64KiB, 1MiB; units: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)"

TestSuite(options, .fini = free_options_fixture);

Test(options, a_bool_is_true_or_false)
{
    expect_good("{\"flag\": true}");
    cr_assert(all.flag);
    expect_good("{\"flag\": false}");
    cr_assert(!all.flag);
    expect_refused("flag", "\"true\"", "\"true\" is not true or false");
    expect_refused("flag", "1", "1 is not true or false");
    expect_refused("flag", "null", "null is not true or false");
    expect_refused("flag", "[]", "an array is not true or false");
    expect_refused("flag", "{}", "an object is not true or false");
}

Test(options, an_int_is_a_64_bit_integer)
{
    expect_good("{\"integer\": -9223372036854775808}");
    cr_assert_eq(all.integer, INT64_MIN);
    expect_good("{\"integer\": 9223372036854775807}");
    cr_assert_eq(all.integer, INT64_MAX);
    expect_good("{\"integer\": 9007199254740993}");
    cr_assert_eq(all.integer, INT64_C(9007199254740993));
    expect_refused("integer", "9223372036854775808", "9223372036854775808 is not an integer");
    expect_refused("integer", "1.5", "1.5 is not an integer");
    expect_refused("integer", "1.0", "1.0 is not an integer");
    expect_refused("integer", "1e3", "1e3 is not an integer");
    expect_refused("integer", "\"80\"", "\"80\" is not an integer");
    expect_refused("integer", "true", "true is not an integer");
    expect_refused("integer", "null", "null is not an integer");
    expect_refused("integer", "[1]", "an array is not an integer");
    expect_refused("integer", "{}", "an object is not an integer");
}

Test(options, a_double_is_a_number_in_range)
{
    expect_good("{\"real\": 0.5}");
    cr_assert_eq(all.real, 0.5);
    expect_good("{\"real\": -1E3}");
    cr_assert_eq(all.real, -1000);
    expect_good("{\"real\": 1e-400}");
    cr_assert_eq(all.real, 0);
    expect_refused("real", "1e999", "1e999 is not a number");
    expect_refused("real", "\"0.5\"", "\"0.5\" is not a number");
    expect_refused("real", "true", "true is not a number");
    expect_refused("real", "null", "null is not a number");
    expect_refused("real", "[]", "an array is not a number");
}

Test(options, a_string_is_any_text)
{
    expect_good("{\"string\": \"\"}");
    cr_assert_str_eq(all.string, "");
    expect_good("{\"string\": \"a\\n\\u00e9 b\"}");
    cr_assert_str_eq(all.string, "a\n\xc3\xa9 b");
    expect_refused("string", "5", "5 is not a string");
    expect_refused("string", "false", "false is not a string");
    expect_refused("string", "null", "null is not a string");
    expect_refused("string", "[\"a\"]", "an array is not a string");
    expect_refused("string", "{}", "an object is not a string");
}

Test(options, a_path_is_made_absolute)
{
    expect_good("{\"path\": \"/var/log/m.jsonl\"}");
    cr_assert_str_eq(all.path, "/var/log/m.jsonl");
    expect_good("{\"path\": \"m.jsonl\"}");
    cr_assert_str_eq(all.path, "/work/m.jsonl");
    expect_good("{\"path\": \"../${NAME}/m\"}");
    cr_assert_str_eq(all.path, "/work/../db/m");
    fixture_environment.folder = "/";
    expect_good("{\"path\": \"m.jsonl\"}");
    cr_assert_str_eq(all.path, "/m.jsonl");
    expect_refused("path", "\"\"", "\"\" is not a path");
    expect_refused("path", "\"${EMPTY}\"", "\"\" is not a path");
    expect_refused("path", "5", "5 is not a path, as a string");
}

Test(options, a_relative_path_needs_a_working_folder)
{
    fixture_environment.folder = NULL;
    expect_refused("path", "\"m.jsonl\"", "\"m.jsonl\" is relative, but the working folder is gone");
    expect_good("{\"path\": \"/m.jsonl\"}");
    cr_assert_str_eq(all.path, "/m.jsonl");
}

Test(options, a_duration_requires_a_unit)
{
    expect_good("{\"duration\": \"200ms\"}");
    cr_assert_eq(all.duration, 200000000);
    expect_good("{\"duration\": \"0s\"}");
    cr_assert_eq(all.duration, 0);
    expect_refused("duration", "5", "5 has no unit; it must be " DURATION);
    expect_refused("duration", "0", "0 has no unit; it must be " DURATION);
    expect_refused("duration", "\"5\"", "\"5\" has no unit; it must be " DURATION);
    expect_refused("duration", "\"5x\"", "\"5x\" is not " DURATION);
    expect_refused("duration", "\"-5s\"", "\"-5s\" is not " DURATION);
    expect_refused("duration", "\"\"", "\"\" is not " DURATION);
    expect_refused("duration", "\"5MiB\"", "\"5MiB\" is not " DURATION);
    expect_refused("duration", "true", "true is not " DURATION);
    expect_refused("duration", "null", "null is not " DURATION);
    expect_refused("duration", "[\"5s\"]", "an array is not " DURATION);
}

Test(options, a_size_requires_a_unit)
{
    expect_good("{\"size\": \"64MiB\"}");
    cr_assert_eq(all.size, 64 << 20);
    expect_refused("size", "1048576", "1048576 has no unit; it must be " SIZE);
    expect_refused("size", "\"1048576\"", "\"1048576\" has no unit; it must be " SIZE);
    expect_refused("size", "\"64M\"", "\"64M\" is not " SIZE "; did you mean 64MiB or 64MB?");
    expect_refused("size", "\"5s\"", "\"5s\" is not " SIZE);
    expect_refused("size", "false", "false is not " SIZE);
    expect_refused("size", "{}", "an object is not " SIZE);
}

Test(options, an_enum_is_stored_as_the_index_of_its_word)
{
    expect_good("{\"word\": \"auto\"}");
    cr_assert_eq(all.word, 0);
    expect_good("{\"word\": \"always\"}");
    cr_assert_eq(all.word, 1);
    expect_good("{\"word\": \"never\"}");
    cr_assert_eq(all.word, 2);
    static const char *const wrong[][2] = {{"nevr", "; did you mean \"never\"?"},
                                           {"Auto", "; did you mean \"auto\"?"},
                                           {"never ", "; did you mean \"never\"?"},
                                           {"al", ";"},
                                           {"auto|always", ";"},
                                           {"", ";"},
                                           {"|", ";"}};
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++) {
        char value[50], expected[100];
        snprintf(value, sizeof value, "\"%s\"", wrong[i][0]);
        snprintf(expected, sizeof expected, "\"%s\" is not allowed%s allowed: auto, always, never", wrong[i][0],
                 wrong[i][1]);
        expect_refused("word", value, expected);
    }
    expect_refused("word", "0", "0 is not allowed; allowed: auto, always, never");
    expect_refused("word", "true", "true is not allowed; allowed: auto, always, never");
    expect_refused("word", "null", "null is not allowed; allowed: auto, always, never");
}

Test(options, a_list_is_an_array_of_strings)
{
    expect_good("{\"list\": []}");
    cr_assert_eq(all.list.count, 0);
    expect_good("{\"list\": [\"a,b\", \"\", \"${NAME}\"]}");
    cr_assert_eq(all.list.count, 3);
    cr_assert_str_eq(all.list.items[0], "a,b");
    cr_assert_str_eq(all.list.items[1], "");
    cr_assert_str_eq(all.list.items[2], "db");
    expect_refused("list", "\"a\"", "\"a\" is not an array of strings");
    expect_refused("list", "\"${NAME}\"", "\"${NAME}\" is not an array of strings");
    expect_refused("list", "{}", "an object is not an array of strings");
    expect_refused("list", "null", "null is not an array of strings");
}

Test(options, errors_name_the_index_of_a_list_item)
{
    struct wr_options_fill fill = make_fill(WR_OPTIONS_TABLE(rows, struct all), &all);
    cr_assert(!fill_members(&fill, 1, NULL, "{\"list\": [\"a\", 5]}"));
    cr_assert_str_eq(error.text, "weir.json:1:16: list[1]: 5 is not a string");
    cr_assert(!fill_members(&fill, 1, NULL, "{\"list\": [[\"a\"]]}"));
    cr_assert_str_eq(error.text, "weir.json:1:11: list[0]: an array is not a string");
    cr_assert(!fill_members(&fill, 1, NULL, "{\"list\": [\"$\"]}"));
    cr_assert_str_eq(
        error.text, "weir.json:1:11: list[0]: unescaped $; write $$ for a dollar sign, ${NAME} for a variable");
}

Test(options, a_map_is_an_object_with_strings)
{
    expect_good("{\"map\": {}}");
    cr_assert_eq(all.map.count, 0);
    expect_good("{\"map\": {\"z\": \"${NAME}\", \"a.${NAME}\": \"\"}}");
    cr_assert_eq(all.map.count, 2);
    cr_assert_str_eq(all.map.items[0].key, "z");
    cr_assert_str_eq(all.map.items[0].value, "db");
    cr_assert_str_eq(all.map.items[1].key, "a.${NAME}", "keys are not expanded");
    cr_assert_str_eq(all.map.items[1].value, "");
    expect_refused("map", "[]", "an array is not an object with strings for values");
    expect_refused("map", "\"a\"", "\"a\" is not an object with strings for values");
    expect_refused("map", "null", "null is not an object with strings for values");
}

Test(options, errors_name_the_key_of_a_map_member)
{
    struct wr_options_fill fill = make_fill(WR_OPTIONS_TABLE(rows, struct all), &all);
    cr_assert(!fill_members(&fill, 1, NULL, "{\"map\": {\"k\": \"v\", \"port\": 5}}"));
    cr_assert_str_eq(error.text, "weir.json:1:28: map.port: 5 is not a string");
}

Test(options, numbers_stay_within_their_range)
{
    expect_good("{\"port\": 1}");
    expect_good("{\"port\": 65535}");
    cr_assert_eq(all.port, 65535);
    expect_refused("port", "0", "0 is out of range; allowed: 1..65535");
    expect_refused("port", "65536", "65536 is out of range; allowed: 1..65535");
    expect_refused("port", "-9223372036854775808", "-9223372036854775808 is out of range; allowed: 1..65535");
    expect_good("{\"share\": 0}");
    expect_good("{\"share\": 1.0}");
    expect_refused("share", "1.0000001", "1.0000001 is out of range; allowed: 0..1");
    expect_refused("share", "-1e-9", "-1e-9 is out of range; allowed: 0..1");
}

Test(options, a_range_may_be_open_at_either_end)
{
    expect_good("{\"pause\": \"10ms\"}");
    expect_good("{\"pause\": \"100000d\"}");
    expect_refused("pause", "\"9999us\"", "\"9999us\" is out of range; allowed: 10ms..");
    expect_good("{\"room\": \"0B\"}");
    expect_good("{\"room\": \"1KiB\"}");
    expect_refused("room", "\"1025B\"", "\"1025B\" is out of range; allowed: ..1KiB");
}

Test(options, a_refused_value_leaves_the_option_unchanged)
{
    all.port = 42;
    expect_refused("port", "0", "0 is out of range; allowed: 1..65535");
    cr_assert_eq(all.port, 42);
}

Test(options, an_expanded_string_may_be_of_any_scalar_type)
{
    expect_good(
        "{\"flag\": \"${YES}\", \"port\": \"${PORT}\", \"real\": \"${HALF}\", \"duration\": \"${TIME}\","
        "\"word\": \"${WORD}\", \"string\": \"${NAME}$$\", \"size\": \"${NUMBER}MiB\"}");
    cr_assert(all.flag);
    cr_assert_eq(all.port, 8080);
    cr_assert_eq(all.real, 0.5);
    cr_assert_eq(all.duration, 5000000000);
    cr_assert_eq(all.word, 1);
    cr_assert_str_eq(all.string, "db$");
    cr_assert_eq(all.size, 5 << 20);
}

Test(options, the_result_of_an_expansion_is_checked)
{
    expect_refused("port", "\"${NAME}\"", "\"db\" is not an integer");
    expect_refused("port", "\"${NUMBER}${PORT}0\"", "\"580800\" is out of range; allowed: 1..65535");
    expect_refused("port", "\"${EMPTY}\"", "\"\" is not an integer");
    expect_refused("port", "\"$$5\"", "\"$5\" is not an integer");
    expect_refused("flag", "\"${PORT}\"", "\"8080\" is not true or false");
    expect_refused("duration", "\"${NUMBER}\"", "\"5\" has no unit; it must be " DURATION);
    expect_refused("word", "\"${NAME}\"", "\"db\" is not allowed; allowed: auto, always, never");
}

Test(options, a_failed_expansion_is_reported_with_its_place)
{
    expect_refused("port", "\"${NOPE}\"", "${NOPE}: the variable is not set; ${NOPE:-default} sets a default");
    expect_refused("string", "\"5$\"", "unescaped $; write $$ for a dollar sign, ${NAME} for a variable");
    expect_refused("path", "\"${file:token}\"", "${file:token}: the path must be absolute");
}

Test(options, a_secret_is_never_shown_in_an_error)
{
    expect_refused("pin", "12345", "the value is out of range; allowed: 1000..9999");
    expect_refused("pin", "1.5", "the value is not an integer");
    expect_refused("pin", "\"hunter2\"", "a string is not an integer");
    expect_refused("pin", "\"hunter$$2\"", "the value is not an integer");
    expect_refused("token", "12345", "a number is not a string");
    expect_refused("mode", "\"hunter2\"", "the value is not allowed; allowed: a, b");
    expect_refused("mode", "12345", "a number is not allowed; allowed: a, b");
    expect_refused("tokens", "\"hunter2\"", "a string is not an array of strings");
}

Test(options, an_item_of_a_secret_is_never_shown_in_an_error)
{
    struct wr_options_fill fill = make_fill(WR_OPTIONS_TABLE(rows, struct all), &all);
    cr_assert(!fill_members(&fill, 1, NULL, "{\"tokens\": [12345]}"));
    cr_assert_str_eq(error.text, "weir.json:1:13: tokens[0]: a number is not a string");
    cr_assert(!fill_members(&fill, 1, NULL, "{\"headers\": {\"X-Key\": 12345}}"));
    cr_assert_str_eq(error.text, "weir.json:1:23: headers.X-Key: a number is not a string");
}
