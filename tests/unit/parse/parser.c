/* parser: lines, limits, back-pressure. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "../../support/failing.h"
#include "tests/support/parse_expect.h"

Test(parser, every_type_is_found_by_its_name)
{
    size_t i = 0;
    for (; wr_parser_type_at(i); i++)
        cr_assert_eq(wr_parser_type_find(wr_parser_type_name(wr_parser_type_at(i))), wr_parser_type_at(i));
    cr_assert_eq(i, 10);
    cr_assert_null(wr_parser_type_find("yaml"));
}

Test(parser, the_last_line_needs_no_newline_and_lines_may_end_in_crlf)
{
    parse_expect("text", "a=1\r\nb=2\n\r\nc=3", "1  a=1\n2  b=2\n4  c=3\n");
}

Test(parser, a_byte_order_mark_is_skipped_in_the_first_line_only)
{
    parse_expect("text",
                 "\xef\xbb\xbf"
                 "a=1\n\xef\xbb\xbf"
                 "b=2\n",
                 "1  a=1\n2  \xef\xbb\xbf"
                 "b=2\n");
}

Test(parser, invalid_utf8_is_refused_with_its_place)
{
    parse_expect("text", "a=1 \xff=2\nb=2\n", "1:5: invalid UTF-8\n2  b=2\n");
}

Test(parser, a_nul_byte_is_refused_with_its_place)
{
    struct parse_fixture fixture = {0};
    char *shown = parse_fixture_run(&fixture, "text", "a=1 b\0=2\nb=2\n", 13, 100);
    cr_assert_str_eq(shown, "1:6: a NUL byte\n2  b=2\n");
    free(shown);
}

Test(parser, names_are_checked_with_their_place)
{
    char text[600] = "a=1 ", expected[600], shown[81];
    memset(text + 4, 'n', 256);
    strcpy(text + 260, "=1\na=1 b\x01=2\n");
    memset(shown, 'n', 80);
    shown[80] = '\0';
    snprintf(expected, sizeof expected,
             "1:5: name \"%s...\": too long; a name must have 1 to 255 bytes\n2:5: name \"b\\x01\": control "
             "character at byte 2; names must be valid UTF-8 without control characters\n",
             shown);
    parse_expect("text", text, expected);
}

Test(parser, a_line_that_is_too_long_is_refused_and_the_next_one_read)
{
    const struct wr_parser_options options = {.line_bytes = 10};
    parse_expect_by(&options, "text", "a=1\nb=23456789\nb=234567890\nc=3\n",
                    "1  a=1\n2  b=23456789\n3:0: longer than 10B\n4  c=3\n");
    parse_expect_by(&options, "text", "b=2345678901234567890", "1:0: longer than 10B\n");
}

Test(parser, values_and_labels_of_a_record_are_limited)
{
    char text[5000], *end = text;
    for (int i = 0; i < 1025; i++)
        end = stpcpy(end, "a=1 ");
    strcpy(end, "\na=1\n");
    parse_expect("text", text, "1:4097: at most 1024 values are allowed\n2  a=1\n");
    end = stpcpy(text, "m");
    for (int i = 10; i < 75; i++)
        end += sprintf(end, ",%d=1", i);
    strcpy(end, " c=3\n");
    parse_expect("influx", text, "1:323: at most 64 labels are allowed\n");
}

static bool show(void *context, const struct wr_parse_record *record)
{
    parse_fixture_show(context, record);
    return true;
}

Test(parser, the_end_of_the_input_is_the_end_of_what_is_remembered)
{
    struct wr_buffer shown = {0};
    const struct wr_parser_sink sink = {show, NULL, &shown};
    const struct wr_parser_options options = {0};
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find("prometheus"), &options, &sink);
    size_t used;
    for (int i = 0; i < 2; i++) {
        cr_assert(wr_parser_put(parser, "a 1\n# TYPE a counter\na 1", 24, &used) && used == 24);
        cr_assert(wr_parser_end(parser));
    }
    cr_assert_str_eq(wr_buffer_text(&shown), "1  a=1\n3  a=1 total counter\n4  a=1\n6  a=1 total counter\n");
    cr_assert_eq(wr_parser_lines(parser), 6);
    wr_parser_free(parser);
    wr_buffer_fini(&shown);
}

static bool ignore(void *context, const struct wr_parse_record *record)
{
    (void)context, (void)record;
    return true;
}

static void ignore_fault(void *context, const struct wr_parse_fault *fault)
{
    (void)context, (void)fault;
}

/* Puts a text into a parser with short lines; that many bytes of it must be pending then. */
static void expect_pending(const char *type, const char *text, size_t pending)
{
    const struct wr_parser_sink sink = {ignore, ignore_fault, NULL};
    const struct wr_parser_options options = {.line_bytes = 20};
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find(type), &options, &sink);
    size_t used;
    for (const char *at = text; *at; at++)
        cr_assert(wr_parser_put(parser, at, 1, &used) && used == 1);
    cr_assert_eq(wr_parser_pending(parser), pending, "%s: %zu", text, wr_parser_pending(parser));
    cr_assert(wr_parser_end(parser));
    cr_assert_eq(wr_parser_pending(parser), 0, "%s", text);
    wr_parser_free(parser);
}

Test(parser, what_is_behind_the_last_record_is_pending)
{
    expect_pending("text", "", 0);
    expect_pending("text", "a=1\n", 0);
    expect_pending("text", "a=1\nb=2", 3);
    expect_pending("influx", "m a=1\nm t=\"x\nm a=2\n", 13);
    expect_pending("influx", "m a=1\nm t=\"x\ny\"\n", 0);
    expect_pending("text", "a=1\nb=23456789012345678901234567890", 31);
    expect_pending("text", "a=1\nb=23456789012345678901234567890\nc", 1);
}

struct seen {
    unsigned records, faults, column;
};

static bool count(void *context, const struct wr_parse_record *record)
{
    struct seen *seen = context;
    seen->records += (unsigned)record->count;
    return true;
}

static void count_fault(void *context, const struct wr_parse_fault *fault)
{
    struct seen *seen = context;
    seen->faults++;
    cr_assert_str_eq(fault->text, "out of memory");
}

Test(parser, without_memory_a_line_is_refused_and_the_next_one_read)
{
    static const char *const lines[][2] = {
        {"text", "a=1 b=2\n"}, {"json", "{\"a\": 1, \"b\": 2}\n"}, {"influx", "m,k=v a=1,b=2\n"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (unsigned allowed = 0; allowed < 12; allowed++) {
            struct seen seen = {0};
            const struct wr_parser_sink sink = {count, count_fault, &seen};
            const struct wr_parser_options options = {0};
            size_t used, room, length = strlen(lines[i][1]);
            struct wr_parser *parser = wr_parser_new(wr_parser_type_find(lines[i][0]), &options, &sink);
            memcpy(wr_parser_room(parser, &room), lines[i][1], length);
            failing_after(allowed);
            cr_assert(wr_parser_add(parser, length));
            failing_set(false);
            cr_assert(seen.records == 2 ? seen.faults == 0 : seen.records == 0 && seen.faults == 1);
            cr_assert(wr_parser_put(parser, lines[i][1], length, &used) && used == length);
            cr_assert_eq(seen.records + 2 * seen.faults, 4);
            wr_parser_free(parser);
        }
}

static void count_place(void *context, const struct wr_parse_fault *fault)
{
    struct seen *seen = context;
    cr_assert(fault->is_value && fault->column > seen->column);
    seen->faults++;
    seen->column = fault->column;
}

/* Reads a line of a head, that many equal parts, a tail and that many characters behind it. */
static struct seen read_long(const char *type, const char *head, const char *part, size_t parts,
                             const char *tail, size_t fillers)
{
    struct seen seen = {0};
    const struct wr_parser_options options = {.line_bytes = (size_t)64 << 20};
    const struct wr_parser_sink sink = {count, count_place, &seen};
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find(type), &options, &sink);
    size_t used, length = strlen(head) + parts * strlen(part) + strlen(tail) + fillers;
    char *line = malloc(length + 1), *end = stpcpy(line, head);
    for (size_t i = 0; i < parts; i++)
        end = stpcpy(end, part);
    memset(stpcpy(end, tail), 'x', fillers);
    cr_assert(wr_parser_put(parser, line, length, &used) && used == length && wr_parser_end(parser));
    wr_parser_free(parser);
    free(line);
    return seen;
}

/* These would take an hour and more if a part of the line were read again for each value. */
Test(parser, the_time_for_a_line_is_linear_in_the_values_that_are_left_out)
{
    const struct seen seen =
        read_long("influx", "m ",
                  "eighty_characters_of_a_name_n\u00e4mlich_so_many_that_the_line_is_long_enough_it_is=x,",
                  600000, "b=1", 0);
    cr_assert_eq(seen.records, 1);
    cr_assert_eq(seen.faults, 600000);
    cr_assert_eq(seen.column, 600000 * 81 + 1);
}

Test(parser, the_time_for_a_line_is_linear_in_the_values_that_share_their_tags)
{
    const struct seen seen = read_long("statsd", "a", ":1", 5000000, "|c|#k:", 10000000);
    cr_assert_eq(seen.records, 5000000);
    cr_assert_eq(seen.faults, 0);
}
