/* options: the members of an object, and the tables that define them. */
#include "text/common.h"
#include "options_fixture.h"

struct own {
    const char *path, *url;
    bool verify;
    const char *ca;
    int64_t port, depth;
};

static const weir_option own_rows[] = {
    {"path", WEIR_OPTION_PATH, 0, NULL, NULL, "where the file is", offsetof(struct own, path)},
    {"url", WEIR_OPTION_STRING, WEIR_OPTION_REQUIRED, NULL, NULL, "where to send to",
     offsetof(struct own, url)},
    {"tls.verify", WEIR_OPTION_BOOL, 0, "true", NULL, "h", offsetof(struct own, verify)},
    {"tls.ca", WEIR_OPTION_PATH, 0, NULL, NULL, "h", offsetof(struct own, ca)},
    {"proxy.http.port", WEIR_OPTION_INT, 0, NULL, NULL, "h", offsetof(struct own, port)},
    {"queue_depth", WEIR_OPTION_INT, 0, NULL, NULL, "h", offsetof(struct own, depth)},
    {0},
};

struct common {
    int64_t queue, path;
    int64_t versions;
};

static const weir_option common_rows[] = {
    {"queue", WEIR_OPTION_SIZE, 0, "1MiB", NULL, "h", offsetof(struct common, queue)},
    {"path", WEIR_OPTION_INT, 0, NULL, NULL, "h", offsetof(struct common, path)},
    {"tls.versions", WEIR_OPTION_INT, 0, NULL, NULL, "h", offsetof(struct common, versions)},
    {0},
};

static struct own own;
static struct common common;
static struct wr_options_fill fills[2];

static void set_up(void)
{
    fills[0] = make_fill(WR_OPTIONS_TABLE(own_rows, struct own), &own);
    fills[1] = make_fill(WR_OPTIONS_TABLE(common_rows, struct common), &common);
    fills[1].seen = NULL;
}

static const char *const others[] = {"type", "format", NULL};

/* Both tables have a path; it is listed once. */
#define ALLOWED                                                                                                \
    "allowed: type, format, path, url, tls.verify, tls.ca, proxy.http.port, queue_depth, queue, "              \
    "tls.versions"

static void expect_good(const char *text)
{
    cr_assert(fill_members(fills, 2, others, text), "%s: %s", text, error.text);
}

static void expect_refused(const char *text, const char *expected)
{
    cr_assert(!fill_members(fills, 2, others, text), "%s was accepted", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, expected);
}

TestSuite(options_members, .init = set_up, .fini = free_options_fixture);

Test(options_members, each_member_is_stored_by_its_table)
{
    expect_good("{\"url\": \"http://x\", \"queue\": \"4MiB\", \"queue_depth\": 7}");
    cr_assert_str_eq(own.url, "http://x");
    cr_assert_eq(common.queue, 4 << 20);
    cr_assert_eq(own.depth, 7);
}

Test(options_members, the_first_table_with_a_name_takes_precedence)
{
    common.path = 42;
    expect_good("{\"path\": \"/x\"}");
    cr_assert_str_eq(own.path, "/x");
    cr_assert_eq(common.path, 42);
}

Test(options_members, other_members_are_ignored)
{
    expect_good("{\"type\": 5, \"format\": {\"type\": \"json\", \"any\": [\"thing\"]}}");
}

Test(options_members, an_empty_object_changes_nothing)
{
    own.depth = 42;
    expect_good("{}");
    cr_assert_eq(own.depth, 42);
}

Test(options_members, dotted_names_make_objects)
{
    expect_good("{\"tls\": {\"verify\": true, \"ca\": \"/ca.pem\", \"versions\": 3}, \"proxy\": {\"http\": "
                "{\"port\": 3128}}}");
    cr_assert(own.verify);
    cr_assert_str_eq(own.ca, "/ca.pem");
    cr_assert_eq(common.versions, 3, "two tables may share an object");
    cr_assert_eq(own.port, 3128);
    expect_good("{\"tls\": {}}");
}

Test(options_members, errors_in_an_inner_object_name_their_place)
{
    expect_refused("{\"tls\": {\"verify\": 1}}", "weir.json:1:20: tls.verify: 1 is not true or false");
    expect_refused("{\"tls\": true}", "weir.json:1:9: tls: true is not an object");
    expect_refused("{\"proxy\": {\"http\": 3128}}", "weir.json:1:20: proxy.http: 3128 is not an object");
    expect_refused("{\"tls\": {\"verfy\": true}}",
                   "weir.json:1:10: tls.verfy: unknown option; did you mean \"tls.verify\"? " ALLOWED);
}

Test(options_members, a_dotted_name_is_not_accepted_as_a_key)
{
    expect_refused("{\"tls.verify\": true}",
                   "weir.json:1:2: tls.verify: dots are not allowed in a key; write {\"tls\": {...}}");
    expect_refused("{\"proxy\": {\"http.port\": 1}}",
                   "weir.json:1:12: proxy.http.port: dots are not allowed in a key; write {\"http\": {...}}");
    expect_refused("{\"tls\": {\"verify\": true}, \"tls.verify\": false}",
                   "weir.json:1:27: tls.verify: dots are not allowed in a key; write {\"tls\": {...}}");
}

Test(options_members, an_unknown_member_is_refused_with_the_nearest_name)
{
    expect_refused("{\"url\": \"x\",\n \"pth\": \"/x\"}",
                   "weir.json:2:2: pth: unknown option; did you mean \"path\"? " ALLOWED);
    expect_refused("{\"queu\": \"1MiB\"}",
                   "weir.json:1:2: queu: unknown option; did you mean \"queue\"? " ALLOWED);
    expect_refused("{\"fromat\": \"json\"}",
                   "weir.json:1:2: fromat: unknown option; did you mean \"format\"? " ALLOWED);
    expect_refused("{\"Path\": \"/x\"}",
                   "weir.json:1:2: Path: unknown option; did you mean \"path\"? " ALLOWED);
}

Test(options_members, an_unknown_member_without_a_near_name_is_refused_with_the_allowed_names)
{
    expect_refused("{\"compression\": 1}", "weir.json:1:2: compression: unknown option; " ALLOWED);
    expect_refused("{\"\": 1}", "weir.json:1:2: unknown option; " ALLOWED);
    expect_refused("{\"tls\": {\"\": 1}}",
                   "weir.json:1:10: tls.: unknown option; did you mean \"tls.ca\"? " ALLOWED);
}

Test(options_members, a_very_long_name_is_unknown)
{
    char text[400] = "{\"", key[301] = "";
    memset(key, 'k', 300);
    strcat(strcat(text, key), "\": 1}");
    cr_assert(!fill_members(fills, 2, others, text));
    cr_assert(strstr(error.text, "kkk...: unknown option; " ALLOWED), "%s", error.text);
}

Test(options_members, a_table_without_rows_allows_nothing)
{
    struct wr_options_fill none = make_fill((struct wr_options_table){0}, NULL);
    cr_assert(fill_members(&none, 1, NULL, "{}"));
    cr_assert(!fill_members(&none, 1, NULL, "{\"a\": 1}"));
    cr_assert_str_eq(error.text, "weir.json:1:2: a: unknown option; allowed: ");
}

Test(options_members, given_members_are_recorded_as_seen)
{
    expect_good("{\"url\": \"x\", \"tls\": {\"ca\": \"/c\"}, \"queue\": \"1MiB\"}");
    static const unsigned char expected[] = {0, 1, 0, 1, 0, 0};
    cr_assert_eq(memcmp(fixture_seen, expected, sizeof expected), 0);
}

Test(options_members, required_members_must_be_present)
{
    expect_good("{\"path\": \"/x\"}");
    cr_assert(!wr_options_check_required(&fills[0], fixture_document->root, &error));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, "weir.json:1:1: the option \"url\" is missing: where to send to");
    cr_assert(!wr_options_check_required(&fills[0], NULL, &error));
    cr_assert_str_eq(error.text, "the option \"url\" is missing: where to send to");
    expect_good("{\"url\": \"\"}");
    cr_assert(wr_options_check_required(&fills[0], fixture_document->root, &error));
}

Test(options_members, rows_may_be_longer_than_the_known_struct)
{
    static const struct {
        weir_option row;
        const char *later;
    } rows[] = {{{"first", WEIR_OPTION_INT, 0, "1", NULL, "h", 0}, "x"},
                {{"second", WEIR_OPTION_INT, 0, "2", NULL, "h", 8}, "y"},
                {{0}, NULL}};
    int64_t values[2] = {0, 0};
    const struct wr_options_table table = {&rows[0].row, sizeof rows[0], sizeof values};
    struct wr_options_fill fill = make_fill(table, values);
    cr_assert(wr_options_check_table(&table, &error), "%s", error.text);
    cr_assert(wr_options_set_defaults(&fill, &error));
    cr_assert(fill_members(&fill, 1, NULL, "{\"second\": 20}"));
    cr_assert_eq(values[0], 1);
    cr_assert_eq(values[1], 20);
    cr_assert(!fixture_seen[0] && fixture_seen[1]);
}
