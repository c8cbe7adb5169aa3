/* options: tables of plugins, their defaults, and how values are shown. */
#include "text/buffer.h"
#include "text/common.h"
#include "options_fixture.h"
#include "config/option.h"

struct all {
    bool flag;
    int64_t integer;
    double real;
    const char *string, *path;
    int64_t duration, size, word;
    weir_list list;
    weir_map map;
};

static const weir_option rows[] = {
    {"flag", WEIR_OPTION_BOOL, 0, "true", NULL, "h", offsetof(struct all, flag)},
    {"integer", WEIR_OPTION_INT, 0, "-7", NULL, "h", offsetof(struct all, integer)},
    {"real", WEIR_OPTION_DOUBLE, 0, "0.5", NULL, "h", offsetof(struct all, real)},
    {"string", WEIR_OPTION_STRING, 0, "a \"b\"", NULL, "h", offsetof(struct all, string)},
    {"path", WEIR_OPTION_PATH, 0, "m.jsonl", NULL, "h", offsetof(struct all, path)},
    {"duration", WEIR_OPTION_DURATION, 0, "90s", NULL, "h", offsetof(struct all, duration)},
    {"size", WEIR_OPTION_SIZE, 0, "64KiB", NULL, "h", offsetof(struct all, size)},
    {"word", WEIR_OPTION_ENUM, 0, "never", "auto|always|never", "h", offsetof(struct all, word)},
    {"list", WEIR_OPTION_LIST, 0, "a,b c", NULL, "h", offsetof(struct all, list)},
    {"map", WEIR_OPTION_MAP, 0, NULL, NULL, "h", offsetof(struct all, map)},
    {0},
};

static struct wr_options_table table = {rows, sizeof rows[0], sizeof(struct all)};
static struct all all;

static void set_defaults(void)
{
    struct wr_options_fill fill = make_fill(table, &all);
    cr_assert(wr_options_set_defaults(&fill, &error), "%s", error.text);
}

TestSuite(options_table, .fini = free_options_fixture);

Test(options_table, rows_are_found_by_number_and_name)
{
    cr_assert_eq(wr_options_row(&table, 0), &rows[0]);
    cr_assert_eq(wr_options_row(&table, 9), &rows[9]);
    cr_assert_null(wr_options_row(&table, 10));
    cr_assert_eq(wr_options_find(&table, "size"), &rows[6]);
    cr_assert_null(wr_options_find(&table, "siz"));
    cr_assert_null(wr_options_find(&table, ""));
    static const struct wr_options_table none = {0};
    cr_assert_null(wr_options_row(&none, 0));
    cr_assert_null(wr_options_find(&none, "size"));
}

Test(options_table, defaults_are_set)
{
    set_defaults();
    cr_assert(all.flag);
    cr_assert_eq(all.integer, -7);
    cr_assert_eq(all.real, 0.5);
    cr_assert_str_eq(all.string, "a \"b\"");
    cr_assert_str_eq(all.path, "/work/m.jsonl");
    cr_assert_eq(all.duration, INT64_C(90000000000));
    cr_assert_eq(all.size, 65536);
    cr_assert_eq(all.word, 2);
    cr_assert_eq(all.list.count, 2);
    cr_assert_str_eq(all.list.items[0], "a");
    cr_assert_str_eq(all.list.items[1], "b c");
    cr_assert_eq(all.map.count, 0);
}

Test(options_table, a_default_is_not_expanded)
{
    struct wr_options_fill fill = make_fill(table, &all);
    cr_assert(wr_options_set_text(&fill, &rows[3], "${NAME}", &error));
    cr_assert_str_eq(all.string, "${NAME}");
}

Test(options_table, a_list_default_is_split_at_commas)
{
    struct wr_options_fill fill = make_fill(table, &all);
    cr_assert(wr_options_set_text(&fill, &rows[8], "", &error));
    cr_assert_eq(all.list.count, 0);
    cr_assert(wr_options_set_text(&fill, &rows[8], "one", &error));
    cr_assert_eq(all.list.count, 1);
    cr_assert_str_eq(all.list.items[0], "one");
    cr_assert(wr_options_set_text(&fill, &rows[8], ",a,", &error));
    cr_assert_eq(all.list.count, 3);
    cr_assert_str_eq(all.list.items[0], "");
    cr_assert_str_eq(all.list.items[1], "a");
    cr_assert_str_eq(all.list.items[2], "");
}

Test(options_table, a_map_cannot_be_set_from_text)
{
    struct wr_options_fill fill = make_fill(table, &all);
    cr_assert(!wr_options_set_text(&fill, &rows[9], "a=b", &error));
    cr_assert_str_eq(error.text, "is not possible here: a map has no form as a text");
}

/* ---- Invalid tables -------------------------------------------------------------------------- */

/* A table of one row over a struct of 16 bytes. */
static void expect_faulty(weir_option row, const char *expected)
{
    const weir_option one[] = {row, {0}};
    const struct wr_options_table wrong = {one, sizeof one[0], 16};
    error = (struct wr_error){0};
    cr_assert(!wr_options_check_table(&wrong, &error), "%s was accepted", expected);
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert_str_eq(error.text, expected);
}

Test(options_table, a_valid_table_is_accepted)
{
    static const struct wr_options_table none = {0};
    static const weir_option end[] = {{0}};
    static const struct wr_options_table empty = {end, sizeof end[0], 0};
    cr_assert(wr_options_check_table(&table, &error), "%s", error.text);
    cr_assert(wr_options_check_table(&none, &error), "%s", error.text);
    cr_assert(wr_options_check_table(&empty, &error), "%s", error.text);
}

Test(options_table, invalid_names_are_refused)
{
    static const char *const names[] = {"", "A", "a-b", "a b", ".a", "a.", "a..b", "a/b", "\xc3\xa9", "a.B"};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "option \"%s\": its name is not of the form [a-z0-9_.]", names[i]);
        expect_faulty((weir_option){names[i], WEIR_OPTION_INT, 0, NULL, NULL, "h", 0}, expected);
    }
}

Test(options_table, unknown_types_are_refused)
{
    expect_faulty((weir_option){"a", 0, 0, NULL, NULL, "h", 0}, "option \"a\": its type is unknown");
    expect_faulty((weir_option){"a", WEIR_OPTION_MAP + 1, 0, NULL, NULL, "h", 0},
                  "option \"a\": its type is unknown");
    expect_faulty((weir_option){"a", UINT32_MAX, 0, NULL, NULL, "h", 0}, "option \"a\": its type is unknown");
}

Test(options_table, every_option_has_help)
{
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, NULL, NULL, NULL, 0}, "option \"a\": it has no help");
}

Test(options_table, an_offset_is_aligned_for_its_type)
{
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 4},
                  "option \"a\": its offset is not aligned for its type");
    expect_faulty((weir_option){"a", WEIR_OPTION_STRING, 0, NULL, NULL, "h", 1},
                  "option \"a\": its offset is not aligned for its type");
    const weir_option bools[] = {{"a", WEIR_OPTION_BOOL, 0, NULL, NULL, "h", 15}, {0}};
    const struct wr_options_table good = {bools, sizeof bools[0], 16};
    cr_assert(wr_options_check_table(&good, &error), "a bool needs no alignment: %s", error.text);
}

Test(options_table, a_field_lies_inside_the_struct)
{
    static const char expected[] = "option \"a\": its field lies outside the options struct";
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 16}, expected);
    expect_faulty((weir_option){"a", WEIR_OPTION_LIST, 0, NULL, NULL, "h", 8}, expected);
    expect_faulty((weir_option){"a", WEIR_OPTION_BOOL, 0, NULL, NULL, "h", 16}, expected);
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", SIZE_MAX - 7}, expected);
    expect_faulty((weir_option){"a", WEIR_OPTION_BOOL, 0, NULL, NULL, "h", SIZE_MAX}, expected);
    const weir_option last[] = {
        {"a", WEIR_OPTION_LIST, 0, NULL, NULL, "h", 0}, {"b", WEIR_OPTION_INT, 0, NULL, NULL, "h", 16}, {0}};
    const struct wr_options_table good = {last, sizeof last[0], 24};
    cr_assert(wr_options_check_table(&good, &error), "the last field may end with the struct: %s", error.text);
}

Test(options_table, fields_must_not_overlap)
{
    const weir_option across[] = {
        {"a", WEIR_OPTION_LIST, 0, NULL, NULL, "h", 0}, {"b", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8}, {0}};
    const weir_option other_type[] = {
        {"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8}, {"b", WEIR_OPTION_STRING, 0, NULL, NULL, "h", 8}, {0}};
    const weir_option two_names[] = {
        {"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8}, {"b", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8}, {0}};
    const struct wr_options_table wrong = {across, sizeof across[0], 16};
    const struct wr_options_table wrong_too = {other_type, sizeof other_type[0], 16};
    const struct wr_options_table good = {two_names, sizeof two_names[0], 16};
    cr_assert(!wr_options_check_table(&wrong, &error));
    cr_assert_str_eq(error.text, "option \"b\": its field lies across that of option \"a\"");
    cr_assert(!wr_options_check_table(&wrong_too, &error));
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert(wr_options_check_table(&good, &error), "%s", error.text);
}

Test(options_table, a_name_is_not_that_of_an_object_with_other_options)
{
    const weir_option three[] = {{"chunk", WEIR_OPTION_INT, 0, NULL, NULL, "h", 0},
                                 {"chunks.size", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8},
                                 {"chunk.size", WEIR_OPTION_INT, 0, NULL, NULL, "h", 16},
                                 {0}};
    const weir_option turned[] = {three[2], three[1], three[0], {0}}, good[] = {three[0], three[1], {0}};
    const struct wr_options_table wrong = {three, sizeof three[0], 24},
                                  wrong_too = {turned, sizeof three[0], 24};
    const struct wr_options_table lawful = {good, sizeof three[0], 24};
    cr_assert(!wr_options_check_table(&wrong, &error));
    cr_assert_str_eq(error.text, "option \"chunk.size\": with the option \"chunk\" one of them cannot be set");
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert(!wr_options_check_table(&wrong_too, &error));
    cr_assert_str_eq(error.text, "option \"chunk\": with the option \"chunk.size\" one of them cannot be set");
    cr_assert(wr_options_check_table(&lawful, &error), "%s", error.text);
}

Test(options_table, an_enum_requires_words)
{
    expect_faulty((weir_option){"a", WEIR_OPTION_ENUM, 0, NULL, NULL, "h", 0},
                  "option \"a\": an enum needs a list of allowed words");
}

Test(options_table, the_words_of_an_enum_are_unique_and_not_empty)
{
    static const char expected[] = "option \"a\": allowed: must be words separated by bars, like a|b|c, each "
                                   "different and none empty";
    const char *const wrong[] = {"", "|", "a|", "|a", "a||b", "a|b|a", "a|ab|ab"};
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++)
        expect_faulty((weir_option){"a", WEIR_OPTION_ENUM, 0, NULL, wrong[i], "h", 0}, expected);
    const weir_option alike[] = {{"a", WEIR_OPTION_ENUM, 0, "ab", "a|ab|b", "h", 0}, {0}};
    const struct wr_options_table good = {alike, sizeof alike[0], 16};
    cr_assert(wr_options_check_table(&good, &error), "%s", error.text);
}

Test(options_table, invalid_ranges_are_refused)
{
    static const char expected[] =
        "option \"a\": allowed: must be a range like 1..10, 1.. or ..10, of values of "
        "its type, the lower one first";
    static const struct {
        uint32_t type;
        const char *allowed;
    } wrong[] = {
        {WEIR_OPTION_INT, ""},
        {WEIR_OPTION_INT, ".."},
        {WEIR_OPTION_INT, "1-65535"},
        {WEIR_OPTION_INT, "5"},
        {WEIR_OPTION_INT, "10..1"},
        {WEIR_OPTION_INT, "1...9"},
        {WEIR_OPTION_INT, "1..x"},
        {WEIR_OPTION_INT, "x..9"},
        {WEIR_OPTION_INT, "1.5..9"},
        {WEIR_OPTION_INT, "1|2|3"},
        {WEIR_OPTION_INT, "1 .. 9"},
        {WEIR_OPTION_DOUBLE, "0,1..1"},
        {WEIR_OPTION_DURATION, "1..10"},
        {WEIR_OPTION_DURATION, "1s..5"},
        {WEIR_OPTION_DURATION, "1m..1s"},
        {WEIR_OPTION_SIZE, "1..1KiB"},
        {WEIR_OPTION_SIZE, "4KiB..1Q"},
        {WEIR_OPTION_INT, "1..00000000000000000000000000000000000000000009"},
    };
    static const weir_option right[] = {{"a", WEIR_OPTION_INT, 0, NULL, "-5..-5", "h", 0},
                                        {"b", WEIR_OPTION_DOUBLE, 0, NULL, "0.5..1e3", "h", 8},
                                        {"c", WEIR_OPTION_DURATION, 0, NULL, "1s..", "h", 16},
                                        {"d", WEIR_OPTION_SIZE, 0, NULL, "..1GiB", "h", 24},
                                        {"e", WEIR_OPTION_STRING, 0, NULL, "free", "h", 32},
                                        {0}};
    for (size_t i = 0; i < WR_COUNT_OF(wrong); i++)
        expect_faulty((weir_option){"a", wrong[i].type, 0, NULL, wrong[i].allowed, "h", 0}, expected);
    const struct wr_options_table good = {right, sizeof right[0], 40};
    cr_assert(wr_options_check_table(&good, &error), "%s", error.text);
}

Test(options_table, duplicate_names_are_refused)
{
    static const weir_option twice[] = {{"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 0},
                                        {"b", WEIR_OPTION_INT, 0, NULL, NULL, "h", 0},
                                        {"a", WEIR_OPTION_INT, 0, NULL, NULL, "h", 8},
                                        {0}};
    const struct wr_options_table wrong = {twice, sizeof twice[0], 16};
    cr_assert(!wr_options_check_table(&wrong, &error));
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert_str_eq(error.text, "option \"a\": its name is in the table twice");
}

Test(options_table, a_default_must_be_a_value_of_its_type)
{
    expect_faulty((weir_option){"a", WEIR_OPTION_BOOL, 0, "yes", NULL, "h", 0},
                  "option \"a\": the default \"yes\" is not true or false");
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, "1.5", NULL, "h", 0},
                  "option \"a\": the default \"1.5\" is not an integer");
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, 0, "0", "1..5", "h", 0},
                  "option \"a\": the default \"0\" is out of range; allowed: 1..5");
    expect_faulty((weir_option){"a", WEIR_OPTION_DOUBLE, 0, "nan", NULL, "h", 0},
                  "option \"a\": the default \"nan\" is not a number");
    expect_faulty(
        (weir_option){"a", WEIR_OPTION_DURATION, 0, "5", NULL, "h", 0},
        "option \"a\": the default \"5\" has no unit; it must be a duration (like 5s, 200ms; units: ns, "
        "us, ms, s, m, h, d)");
    expect_faulty((weir_option){"a", WEIR_OPTION_SIZE, 0, "-1B", NULL, "h", 0},
                  "option \"a\": the default \"-1B\" is not a size (like 64KiB, 1MiB; units: B, KiB, MiB, GiB, "
                  "TiB, kB, MB, GB, TB)");
    expect_faulty((weir_option){"a", WEIR_OPTION_ENUM, 0, "c", "a|b", "h", 0},
                  "option \"a\": the default \"c\" is not allowed; allowed: a, b");
    expect_faulty((weir_option){"a", WEIR_OPTION_PATH, 0, "", NULL, "h", 0},
                  "option \"a\": the default \"\" is not a path");
    expect_faulty((weir_option){"a", WEIR_OPTION_MAP, 0, "", NULL, "h", 0},
                  "option \"a\": the default \"\" is not possible here: a map has no form as a text");
    expect_faulty((weir_option){"a", WEIR_OPTION_INT, WEIR_OPTION_SECRET, "x", NULL, "h", 0},
                  "option \"a\": the default \"x\" is not an integer");
}

Test(options_table, a_table_without_an_end_is_refused)
{
    enum { ROWS = 1001 };
    static weir_option many[ROWS];
    static char names[ROWS][16];
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "o%d", i);
        many[i] = (weir_option){names[i], WEIR_OPTION_BOOL, 0, NULL, NULL, "h", 0};
    }
    const struct wr_options_table endless = {many, sizeof many[0], 16};
    cr_assert(!wr_options_check_table(&endless, &error));
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert_str_eq(error.text, "the option table has no end: no row without a name");
    many[1000].name = NULL;
    cr_assert(wr_options_check_table(&endless, &error), "%s", error.text);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static const char *show(const weir_option *row, bool unmasked)
{
    static char text[200];
    struct wr_buffer out = {0};
    wr_option_show(row, &all, unmasked, &out);
    strcpy(text, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return text;
}

Test(options_table, values_are_shown_as_in_a_configuration)
{
    static const char *const shown[] = {"true", "-7",    "0.5",   "\"a \\\"b\\\"\"",  "\"/work/m.jsonl\"",
                                        "90s",  "64KiB", "never", "[\"a\", \"b c\"]", "{}"};
    set_defaults();
    for (size_t i = 0; i < WR_COUNT_OF(shown); i++)
        cr_assert_str_eq(show(&rows[i], false), shown[i]);
}

Test(options_table, unset_values_are_shown_as_zero_or_empty)
{
    static const char *const shown[] = {"false", "0", "0", "-", "-", "0s", "0B", "auto", "[]", "{}"};
    for (size_t i = 0; i < WR_COUNT_OF(shown); i++)
        cr_assert_str_eq(show(&rows[i], false), shown[i]);
}

Test(options_table, a_map_is_shown_as_an_object)
{
    static const weir_label items[] = {{"k", "v"}, {"a\n", "\"b\""}};
    all.map = (weir_map){2, items};
    cr_assert_str_eq(show(&rows[9], false), "{\"k\": \"v\", \"a\\n\": \"\\\"b\\\"\"}");
}

Test(options_table, a_secret_is_masked_by_default)
{
    set_defaults();
    for (size_t i = 0; i < WR_COUNT_OF(rows) - 1; i++) {
        weir_option secret = rows[i];
        secret.flags = WEIR_OPTION_SECRET;
        cr_assert_str_eq(show(&secret, false), "***");
        char masked[200];
        strcpy(masked, show(&rows[i], false));
        cr_assert_str_eq(show(&secret, true), masked);
    }
}

Test(options_table, secrets_in_a_url_are_masked_by_default)
{
    weir_option url = rows[3];
    url.flags = WEIR_OPTION_URL;
    cr_assert_str_eq(show(&url, false), "-");
    *(const char **)((char *)&all + url.offset) = "http://user:pass@host/?p=1&x=\"2\"";
    cr_assert_str_eq(show(&url, false), "\"http://***@host/?p=***&x=***\"");
    cr_assert_str_eq(show(&url, true), "\"http://user:pass@host/?p=1&x=\\\"2\\\"\"");
}

Test(options_table, types_have_names)
{
    static const char *const names[] = {"unknown",  "bool", "int",  "double", "string", "path",
                                        "duration", "size", "enum", "list",   "map",    "unknown"};
    for (uint32_t type = 0; type < WR_COUNT_OF(names); type++)
        cr_assert_str_eq(wr_option_type_name(type), names[type]);
    cr_assert_str_eq(wr_option_type_name(UINT32_MAX), "unknown");
}

static const char *bound_of(const char *allowed, bool upper)
{
    static char bound[8];
    const weir_option row = {"a", WEIR_OPTION_INT, 0, NULL, allowed, "", 0};
    return wr_option_get_bound(&row, upper, bound, sizeof bound) ? bound : "-";
}

Test(options_table, a_range_has_two_ends_or_one)
{
    cr_assert_str_eq(bound_of("1..65535", false), "1");
    cr_assert_str_eq(bound_of("1..65535", true), "65535");
    cr_assert_str_eq(bound_of("1s..", true), "-");
    cr_assert_str_eq(bound_of("..1GiB", false), "-");
    cr_assert_str_eq(bound_of("..1GiB", true), "1GiB");
    cr_assert_str_eq(bound_of("a|b", true), "-");
    cr_assert_str_eq(bound_of(NULL, false), "-");
    cr_assert_str_eq(bound_of("1..123456789", true), "-", "it does not fit");
}

Test(options_table, the_words_of_an_enum_can_be_iterated)
{
    const weir_option row = {"a", WEIR_OPTION_ENUM, 0, NULL, "auto|on", "", 0};
    const weir_option none = {"a", WEIR_OPTION_ENUM, 0, NULL, NULL, "", 0};
    size_t length;
    cr_assert_str_eq(wr_option_word(&row, 0, &length), "auto|on");
    cr_assert_eq(length, 4);
    cr_assert_str_eq(wr_option_word(&row, 1, &length), "on");
    cr_assert_eq(length, 2);
    cr_assert_null(wr_option_word(&row, 2, &length));
    cr_assert_null(wr_option_word(&none, 0, &length));
}
