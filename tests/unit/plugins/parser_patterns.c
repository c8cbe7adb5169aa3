/* parser_patterns: values that regular expressions find in lines. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/error.h"

#include "../../../plugins/patterns/patterns.h"

#include "tests/support/parse_fixture.h"

/* The processor time of a line stands still, unless a test makes it advance: what a limit ends does not depend
 * on the machine. */
static int64_t processor_ns, advance_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_THREAD_CPUTIME_ID)
        return __real_clock_gettime(clock, now);
    processor_ns += advance_ns;
    now->tv_sec = processor_ns / 1000000000;
    now->tv_nsec = processor_ns % 1000000000;
    return 0;
}

static struct wr_patterns *read_patterns(const char *json)
{
    struct wr_error error;
    struct wr_patterns *patterns = wr_patterns_read("p", json, strlen(json), &error);
    cr_assert(patterns, "%s: %s", json, error.text);
    return patterns;
}

static char *run(const struct wr_patterns *patterns, const char *text, size_t length, size_t piece)
{
    struct parse_fixture fixture = {
        .type = wr_patterns_type(), .options.patterns = patterns, .refused_each = piece % 3};
    return parse_fixture_run(&fixture, NULL, text, length, piece);
}

static void expect_bytes(const char *json, const char *text, size_t length, const char *expected)
{
    struct wr_patterns *patterns = read_patterns(json);
    for (size_t piece = 1; piece < 100000; piece *= 7) {
        char *shown = run(patterns, text, length, piece);
        cr_assert_str_eq(shown, expected, "%s in pieces of %zu:\n%s-- expected:\n%s", text, piece, shown,
                         expected);
        free(shown);
    }
    wr_patterns_free(patterns);
}

static void expect(const char *json, const char *text, const char *expected)
{
    expect_bytes(json, text, strlen(text), expected);
}

#define PATTERN(expression) "{\"name\": \"x\", \"pattern\": \"" expression "\"}"
#define PATTERN_WITH(expression, more) "{\"name\": \"x\", \"pattern\": \"" expression "\", " more "}"

/* ---- Values ---------------------------------------------------------------------------------- */

Test(parser_patterns, the_value_is_the_group_of_this_name)
{
    expect(PATTERN_WITH("(a)(?<value>\\\\d+)", "\"value\": 9"), "a5\n", "1  x=5\n");
}

Test(parser_patterns, without_the_group_it_is_the_constant)
{
    expect(PATTERN_WITH("(\\\\d+)", "\"value\": 1.5"), "a5 6\n", "1  x=1.5\n1  x=1.5\n");
    expect(PATTERN_WITH("e(?<value>\\\\d+)?", "\"value\": 1"), "e e5\n", "1  x=1\n1  x=5\n");
}

Test(parser_patterns, without_a_constant_it_is_the_first_group_without_a_name)
{
    expect(PATTERN("x=(\\\\d+) y=(\\\\d+)"), "x=5 y=6\n", "1  x=5\n");
    expect(PATTERN("(?<k>\\\\d+) (\\\\d+)"), "5 6\n", "1 {k=5} x=6\n");
}

Test(parser_patterns, without_groups_it_is_the_whole_match)
{
    expect(PATTERN("\\\\d+"), "a5 -6.5\n", "1  x=5\n1  x=6\n1  x=5\n");
}

Test(parser_patterns, numbers_are_read_as_programs_print_them)
{
    expect(PATTERN("=([^,;]*)"), "=+1.5e3,= 7 ,=nan,=-inf,=18446744073709551616;\n",
           "1  x=1500.0\n1  x=7\n1  x=NaN\n1  x=-Infinity\n1  x=1.8446744073709552e+19\n");
}

Test(parser_patterns, a_value_that_is_no_number_is_left_out_and_the_rest_goes_on)
{
    expect(
        PATTERN("x=(\\\\S*)"), "x=1 x=\xc3\xa4 x=bad\tx=3\nx=\n",
        "1  x=1\n1:7 value: \"x\": \"\xc3\xa4\" is not a number\n1:11 value: \"x\": \"bad\" is not a number\n"
        "1  x=3\n2:3 value: \"x\": \"\" is not a number\n");
}

Test(parser_patterns, a_group_that_took_no_part_is_no_value)
{
    expect(PATTERN("a(\\\\d)|b(\\\\d)"), "b2 a1\n",
           "1:1 value: \"x\": the match has no value: its group took no part\n1  x=1\n");
}

Test(parser_patterns, replacements_are_made_in_the_text_of_the_value)
{
    expect(PATTERN_WITH("=(\\\\S+)", "\"replace\": {\".\": \"\", \",\": \".\", \"K\": \"e3\", \"up\": \"1\"}"),
           "=1.234,5 =2K =up =7\n", "1  x=1234.5\n1  x=2000.0\n1  x=1\n1  x=7\n");
}

Test(parser_patterns, a_number_that_is_too_long_is_none)
{
    char text[1200] = "=";
    memset(text + 1, '1', 1100);
    struct wr_patterns *patterns = read_patterns(PATTERN("=(\\\\d+)"));
    char *shown = run(patterns, text, strlen(text), 100);
    cr_assert(strstr(shown, "1:2 value: \"x\": \"1111") == shown && strstr(shown, "is not a number"), "%s",
              shown);
    free(shown);
    wr_patterns_free(patterns);
}

/* ---- Matches --------------------------------------------------------------------------------- */

Test(parser_patterns, all_matches_of_each_pattern_in_the_order_of_the_patterns)
{
    expect(
        "[{\"name\": \"b\", \"pattern\": \"b(\\\\d)\", \"unit\": \"ms\", \"instrument\": \"gauge\"},"
        " {\"name\": \"a\", \"pattern\": \"a(\\\\d)\", \"instrument\": \"counter\"}]",
        "a1 b2 a3 b4\nb5\n",
        "1  b=2 gauge unit=ms\n1  b=4 gauge unit=ms\n1  a=1 counter\n1  a=3 counter\n2  b=5 gauge unit=ms\n");
}

Test(parser_patterns, empty_matches_are_matches)
{
    expect(PATTERN_WITH("^", "\"value\": 1"), "a\n\nb", "1  x=1\n2  x=1\n3  x=1\n");
    expect(PATTERN_WITH("a*", "\"value\": 1"), "aab\n", "1  x=1\n1  x=1\n1  x=1\n");
    expect(PATTERN_WITH("(?=\xc3\xa4)", "\"value\": 1"), "\xc3\xa4\xc3\xa4-\n", "1  x=1\n1  x=1\n");
}

Test(parser_patterns, a_match_that_begins_behind_its_text_makes_progress)
{
    expect(PATTERN_WITH("a\\\\K", "\"value\": 1"), "aaa\n", "1  x=1\n1  x=1\n1  x=1\n");
    expect(PATTERN("a\\\\K\\\\d"), "a1a2\n", "1  x=1\n1  x=2\n");
}

/* ---- Labels and times ------------------------------------------------------------------------ */

Test(parser_patterns, named_groups_are_labels_if_they_took_part)
{
    expect(PATTERN("(?<p>[a-z]*)=(?<value>\\\\d)(?<q>;\\\\w+)?"), "ab=1;c =2\n",
           "1 {p=ab,q=;c} x=1\n1 {p=} x=2\n");
}

Test(parser_patterns, groups_may_overlap)
{
    expect(PATTERN("(?<a>(?<b>(?<c>\\\\w+)) (\\\\d))"), "foo 1\n", "1 {a=foo 1,b=foo,c=foo} x=1\n");
}

Test(parser_patterns, a_label_that_cannot_be_one_is_left_out_with_its_value)
{
    char text[1100] = "7 ";
    memset(text + 2, 'a', 1024);
    struct wr_patterns *patterns = read_patterns(PATTERN("(\\\\d) (?<k>\\\\w+)"));
    char *shown = run(patterns, text, strlen(text), 100);
    cr_assert(strstr(shown, "1:3 value: the label \"k\": \"aaa") == shown, "%s", shown);
    cr_assert(strstr(shown, "is longer than 1023 bytes\n"), "%s", shown);
    free(shown);
    text[2 + 1023] = '\0';
    shown = run(patterns, text, strlen(text), 100);
    cr_assert(strstr(shown, "1 {k=aaa") == shown, "%s", shown);
    free(shown);
    wr_patterns_free(patterns);
}

Test(parser_patterns, the_group_time_is_the_time)
{
    expect(PATTERN("(?<time>\\\\S+) (\\\\S+)"), "1.5 7\nx 8\n9\n",
           "1  x=7 @1500000000\n2:1 value: \"x\" is not a time (seconds since 1970, like 1795219607.5)\n");
    expect(PATTERN_WITH("(?<time>\\\\S+) (\\\\S+)", "\"time\": \"ms\""), "1500 7\n1.5 8\n",
           "1  x=7 @1500000000\n2:1 value: \"1.5\" is not a time (an integer, since 1970)\n");
    expect(PATTERN_WITH("(?<time>\\\\S+) (\\\\S+)", "\"time\": \"%Y-%m-%d%z\""),
           "1970-01-02Z 7\n1970-02-30Z 8\n",
           "1  x=7 @86400000000000\n2:1 value: \"1970-02-30Z\" is not a time (%Y-%m-%d%z)\n");
}

/* ---- Hostile lines --------------------------------------------------------------------------- */

Test(parser_patterns, bytes_that_are_not_utf8_are_in_no_match)
{
    expect(PATTERN("x=(.)"), "\xff\xfex=1\xff x=\xffx=2\xc3\nx=\xc3\xa4\n",
           "1  x=1\n1  x=2\n2:3 value: \"x\": \"\xc3\xa4\" is not a number\n");
    expect(PATTERN("(?<k>.*)=(\\\\d)"),
           "a\xff"
           "b=1\n",
           "1 {k=b} x=1\n");
}

Test(parser_patterns, a_nul_byte_is_a_character_that_no_value_and_no_label_has)
{
    static const char text[] = "x=1\0002 y\nx=3\0 y\nx=4 \0\n";
    expect_bytes(PATTERN("x=(?<value>\\\\d[^ ]*) (?<k>.+)"), text, sizeof text - 1,
                 "1:3 value: \"x\": \"1\\x002\" is not a number\n2:3 value: \"x\": \"3\\x00\" is not a number\n"
                 "3:5 value: the label \"k\": \"\\x00\" has a NUL byte\n");
}

/* Both ways to match have a limit, and their own one for memory. */
static void expect_limit(const char *json, const char *message)
{
    size_t length = 1 << 20;
    char *text = malloc(length + 100), *shown;
    cr_assert(text);
    memset(text, 'a', length - 10);
    strcpy(text + length - 10, " = 1 c!\nx 7\n");
    struct wr_patterns *patterns = read_patterns(json);
    shown = run(patterns, text, strlen(text), 65536);
    cr_assert(strstr(shown, message) && strstr(shown, "2  y=7\n") && !strstr(shown, "1  "), "%s: %s", json,
              shown);
    free(shown);
    free(text);
    wr_patterns_free(patterns);
}

#define THEN_Y "[{\"name\": \"y\", \"pattern\": \"^x (\\\\d)\"}, "

Test(parser_patterns, exponential_backtracking_is_a_fault_and_ends)
{
    expect_limit(THEN_Y PATTERN("(a+)+$") "]", "1:1 value: the pattern of \"x\": match limit exceeded");
    expect_limit(THEN_Y PATTERN("(*NO_JIT)(a+)+$") "]",
                 "1:1 value: the pattern of \"x\": match limit exceeded");
}

Test(parser_patterns, memory_for_backtracking_is_bounded)
{
    expect_limit(THEN_Y PATTERN("(?:a|b)*c") "]", "1:1 value: the pattern of \"x\": ");
    expect_limit(THEN_Y PATTERN("(*NO_JIT)(?:a|b)*c") "]", "1:1 value: the pattern of \"x\": ");
}

/* No limit of PCRE2 sees these: each step reads to the end of the line. */
Test(parser_patterns, a_line_that_takes_too_much_processor_time_is_a_fault_and_ends)
{
#define TOO_LONG "the line takes more than 1 s of processor time; the rest of it is not read"
    advance_ns = 100000000;
    expect_limit(THEN_Y PATTERN("(\\\\w+)=(\\\\d+)") "]", TOO_LONG);
    expect_limit(THEN_Y PATTERN("a*a*y?=1") "]", TOO_LONG);
    expect_limit(THEN_Y PATTERN("(*NO_JIT)(\\\\w+)=(\\\\d+)") "]", TOO_LONG);
}

Test(parser_patterns, a_line_of_a_MiB_is_read_whole)
{
    static const char part[] = "loss=12.5 epoch=1 ";
    size_t count = (1 << 20) / (sizeof part - 1), found = 0;
    char *text = malloc(1 << 20);
    cr_assert(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * (sizeof part - 1), part, sizeof part - 1);
    for (int is_valid = 0; is_valid < 2; is_valid++) {
        struct wr_patterns *patterns = read_patterns(PATTERN("\\\\w+=([\\\\d.]+) epoch=(?<e>\\\\d+)"));
        text[count * (sizeof part - 1) - 1] = is_valid ? ' ' : '\xff';
        char *shown = run(patterns, text, count * (sizeof part - 1), 65536);
        found = 0;
        for (const char *at = shown; (at = strstr(at, "{e=1}")); at++)
            found++;
        cr_assert_eq(found, count, "%zu of %zu", found, count);
        cr_assert_not(strstr(shown, "value:"));
        free(shown);
        wr_patterns_free(patterns);
    }
    free(text);
}

Test(parser_patterns, faults_of_a_line_are_limited)
{
    char text[3000] = "";
    for (int i = 0; i < 200; i++)
        strcat(text, "x=b ");
    strcat(text, "x=1\nx=2\n");
    struct wr_patterns *patterns = read_patterns(PATTERN("x=(\\\\S+)"));
    char *shown = run(patterns, text, strlen(text), 5000);
    const char *last = strstr(shown, "1:0: more than 99 faults; the rest of the line is not read\n2  x=2\n");
    size_t faults = 0;
    for (const char *at = shown; (at = strstr(at, "is not a number")); at++)
        faults++;
    cr_assert(last && faults == 100, "%zu: %s", faults, shown);
    free(shown);
    wr_patterns_free(patterns);
}

/* ---- nginx ----------------------------------------------------------------------------------- */

#define REQUEST "\"GET /a?b=\\x22 HTTP/1.1\" "

Test(parser_patterns, the_preset_nginx_reads_access_logs)
{
    expect("\"nginx\"",
           "203.0.113.7 - - [21/Nov/2026:12:34:56 +0000] " REQUEST "200 1234 \"-\" \"curl\"\n"
           "::1 - a b [21/Nov/2026:12:34:56 +0000] \"\" 400 - \"-\" \"-\" \"x rt=7\" sn=\"a rt=8\" rt=0.250 "
           "ua=\"-\"\n"
           "not a request\n",
           "1 {method=GET,status=200} requests=1 @1795264496000000000 counter\n"
           "1 {method=GET,status=200} bytes_sent=1234 @1795264496000000000 counter unit=bytes\n"
           "2 {status=400} requests=1 @1795264496000000000 counter\n"
           "2 {status=400} bytes_sent=0 @1795264496000000000 counter unit=bytes\n"
           "2 {status=400} request_time=0.25 @1795264496000000000 histogram unit=s\n");
}

Test(parser_patterns, what_clients_send_does_not_imitate_other_fields)
{
    expect("\"nginx\"",
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"GET /\\x22 200 9 rt=9\" 404 5 \"\\x22 rt=9\" \"rt=9 "
           "\\\" rt=9\"\n",
           "1 {method=GET,status=404} requests=1 @1795264496000000000 counter\n"
           "1 {method=GET,status=404} bytes_sent=5 @1795264496000000000 counter unit=bytes\n");
}

Test(parser_patterns, known_methods_are_labels)
{
    expect("\"nginx\"",
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"PATCH /a HTTP/1.1\" 204 0 \"-\" \"-\"\n"
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"get /a HTTP/1.1\" 405 1 \"-\" \"-\"\n"
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"GETS / HTTP/1.1\" 405 2 \"-\" \"-\"\n"
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"x GET / HTTP/1.1\" 400 3 \"-\" \"-\"\n"
           "1.2.3.4 - - [21/Nov/2026:12:34:56 +0000] \"GET\" 400 4 \"-\" \"-\"\n",
           "1 {method=PATCH,status=204} requests=1 @1795264496000000000 counter\n"
           "1 {method=PATCH,status=204} bytes_sent=0 @1795264496000000000 counter unit=bytes\n"
           "2 {status=405} requests=1 @1795264496000000000 counter\n"
           "2 {status=405} bytes_sent=1 @1795264496000000000 counter unit=bytes\n"
           "3 {status=405} requests=1 @1795264496000000000 counter\n"
           "3 {status=405} bytes_sent=2 @1795264496000000000 counter unit=bytes\n"
           "4 {status=400} requests=1 @1795264496000000000 counter\n"
           "4 {status=400} bytes_sent=3 @1795264496000000000 counter unit=bytes\n"
           "5 {status=400} requests=1 @1795264496000000000 counter\n"
           "5 {status=400} bytes_sent=4 @1795264496000000000 counter unit=bytes\n");
}

/* ---- benchmarkai ----------------------------------------------------------------------------- */

Test(parser_patterns, benchmarkais_form_is_read_as_it_is)
{
    /* acc=([-+]?\d*\.\d+|\d+) and Iter: (.*?)\s */
    expect("[{\"name\": \"acc\", \"pattern\": \"YWNjPShbLStdP1xkKlwuXGQrfFxkKyk=\", \"units\": \"%\"},"
           " {\"units\": \"\", \"pattern\": \"SXRlcjogKC4qPylccw==\", \"name\": \"iter\"}]",
           "Iter: 12 acc=20.34 acc=-.5\n", "1  acc=20.34 unit=%\n1  acc=-0.5 unit=%\n1  iter=12\n");
}

#define BENCHMARKAI(expression) "{\"name\": \"x\", \"units\": \"\", \"pattern\": \"" expression "\"}"

Test(parser_patterns, the_end_of_a_line_is_searched_by_benchmarkais)
{
    /* Iter: (.*?)\s */
    expect(BENCHMARKAI("SXRlcjogKC4qPylccw=="), "Iter: 50\nIter: 51\r\nIter: 52",
           "1  x=50\n2  x=51\n3  x=52\n");
    /* (\d+)\D */
    expect(BENCHMARKAI("KFxkKylcRA=="), "1 2\n3", "1  x=1\n1  x=2\n2  x=3\n");
    /* (\d+\s)$ */
    expect(BENCHMARKAI("KFxkK1xzKSQ="), "1 2\n", "1  x=2\n");
    /* n=(\d+)\n */
    expect(BENCHMARKAI("bj0oXGQrKVxu"), "n=1 n=2\nn=3\n", "1  x=2\n2  x=3\n");
    expect(PATTERN("n=(\\\\d+)\\\\s"), "n=1 n=2\n", "1  x=1\n");
}

Test(parser_patterns, groups_of_benchmarkais_have_numbers)
{
    /* (?P<loss>\d+) (\d+) */
    expect(BENCHMARKAI("KD9QPGxvc3M+XGQrKSAoXGQrKQ=="), "1 2\n", "1  x=1\n");
    /* (?P<time>\d+) */
    expect(BENCHMARKAI("KD9QPHRpbWU+XGQrKQ=="), "12\n", "1  x=12\n");
}

Test(parser_patterns, benchmarkais_are_read_as_pythons)
{
    /* a{,3}=(\d+)\s*\Z */
    expect(BENCHMARKAI("YXssM309KFxkKylccypcWg=="), "aaaa=1\naaa=2 \n", "1  x=1\n2  x=2\n");
    /* ^a{,1}=(\d+) */
    expect(BENCHMARKAI("XmF7LDF9PShcZCsp"), "aa=1\na=2\n=3\n", "2  x=2\n3  x=3\n");
    /* []\u00e9{,2}]=(\d+) */
    expect(BENCHMARKAI("W11cdTAwZTl7LDJ9XT0oXGQrKQ=="), "]=1\né=2\n{=3\n,=4\na=5\n",
           "1  x=1\n2  x=2\n3  x=3\n4  x=4\n");
    /* \U0001f600(\d) */
    expect(BENCHMARKAI("XFUwMDAxZjYwMChcZCk="), "😀7\n", "1  x=7\n");
    /* ^\w+ (\d+) */
    expect(BENCHMARKAI("Xlx3KyAoXGQrKQ=="), "é 5\n", "1  x=5\n");
    /* (\d+)\Z */
    expect(BENCHMARKAI("KFxkKylcWg=="), "5\n", "");
}

Test(parser_patterns, what_is_not_known_of_pythons_syntax_is_refused)
{
    struct wr_error error;
    static const char text13[] = BENCHMARKAI("XE57RElHSVQgT05FfQ=="); /* \N{DIGIT ONE} */
    cr_assert_null(wr_patterns_read("p", text13, strlen(text13), &error));
    cr_assert_str_eq(
        error.text,
        "p:1:39: pattern of \"x\": \\N{...} is not known; write the character, or its number as \\uXXXX");
    static const char text4[] = BENCHMARKAI("XHUxMg=="); /* \u12 */
    cr_assert_null(wr_patterns_read("p", text4, strlen(text4), &error));
    cr_assert_str_eq(error.text, "p:1:39: pattern of \"x\": \\u: 4 hexadecimal digits must follow");
    static const char text6[] = BENCHMARKAI("KD9hKVxk"); /* (?a)\d */
    cr_assert_null(wr_patterns_read("p", text6, strlen(text6), &error));
    cr_assert_str_eq(
        error.text,
        "p:1:39: pattern of \"x\": unrecognized character after (? or (?- (at offset 2 of the expression)");
}
