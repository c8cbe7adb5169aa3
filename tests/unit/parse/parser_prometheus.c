/* parser_prometheus: the text format 0.0.4, and OpenMetrics 1.0. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_prometheus, samples_have_the_type_and_help_of_their_family)
{
    parse_expect("prometheus",
                 "# HELP a How\\nmany\\\\.\n# TYPE a counter\na{x=\"1\"} 5 1395066363000\na{x=\"2\",} 7\n# "
                 "TYPE b gauge\nb -1.5\nc +Inf\n",
                 "3 {x=1} a=5 @1395066363000000000 total counter help=How\nmany\\.\n4 {x=2} a=7 total counter "
                 "help=How\nmany\\.\n6  "
                 "b=-1.5 gauge\n7  c=Infinity\n");
}

Test(parser_prometheus, parts_of_histograms_are_totals)
{
    parse_expect(
        "prometheus",
        "# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3.5\nh_count 2\nh_max 9\n"
        "# TYPE s summary\ns{quantile=\"0.5\"} 4\ns_sum 5\n",
        "2 {le=0.5} h.bucket=1 total histogram\n"
        "3 {le=+Inf} h.bucket=2 total histogram\n"
        "4  h.sum=3.5 total histogram\n"
        "5  h.count=2 total histogram\n"
        "6  h_max=9\n"
        "8 {quantile=0.5} s=4 gauge\n"
        "9  s_sum=5 total counter\n");
}

Test(parser_prometheus, bounds_of_buckets_are_numbers_written_in_one_way)
{
    parse_expect(
        "prometheus",
        "# TYPE h histogram\nh_bucket{le=\"1.0\",a=\"b\"} 1\nh_bucket{le=\"1e+03\"} 2\nh_bucket{le=\"inf\"} 3\n"
        "h_bucket{le=\"-Inf\"} 0\nh_bucket 1\nh_bucket{le=\"x\"} 1\nh_bucket{le=\"NaN\"} 1\nh_bucket{le=\"\"} "
        "1\n",
        "2 {le=1,a=b} h.bucket=1 total histogram\n"
        "3 {le=1000} h.bucket=2 total histogram\n"
        "4 {le=+Inf} h.bucket=3 total histogram\n"
        "5 {le=-Infinity} h.bucket=0 total histogram\n"
        "6:1: a bucket of a histogram needs a number as its label \"le\"\n"
        "7:1: a bucket of a histogram needs a number as its label \"le\"\n"
        "8:1: a bucket of a histogram needs a number as its label \"le\"\n"
        "9:1: a bucket of a histogram needs a number as its label \"le\"\n");
}

static int64_t moment_ns;

static int64_t next_moment(void)
{
    return ++moment_ns;
}

Test(parser_prometheus, the_buckets_of_a_histogram_have_one_time)
{
    static const char text[] =
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 2\nh_sum 3\nh_count 2\n"
        "h_bucket{le=\"1\",a=\"b\"} 1\nh_bucket{le=\"2\",a=\"b\"} 1\nh_bucket{le=\"1\"} 3\n"
        "h_bucket{le=\"2\"} 4 7\n# TYPE h histogram\nh_bucket{le=\"3\"} 5\nu 1\n";
    struct parse_fixture fixture = {.options = {.now = next_moment}};
    char *shown = parse_fixture_run(&fixture, "prometheus", text, strlen(text), 7);
    cr_assert_str_eq(shown,
                     "2 {le=1} h.bucket=1 @1 total histogram\n"
                     "3 {le=2} h.bucket=2 @1 total histogram\n"
                     "4  h.sum=3 total histogram\n"
                     "5  h.count=2 total histogram\n"
                     "6 {le=1,a=b} h.bucket=1 @2 total histogram\n"
                     "7 {le=2,a=b} h.bucket=1 @2 total histogram\n"
                     "8 {le=1} h.bucket=3 @3 total histogram\n"
                     "9 {le=2} h.bucket=4 @7000000 total histogram\n"
                     "11 {le=3} h.bucket=5 @4 total histogram\n"
                     "12  u=1\n",
                     "%s", shown);
    free(shown);
}

Test(parser_prometheus, the_parts_of_each_type_of_family)
{
    parse_expect(
        "openmetrics",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 3.5\nh_count 2\nh_created 7\n# TYPE s summary\n"
        "s{quantile=\"0.5\"} 4\ns_count 2\ns_created 7\n# TYPE g gaugehistogram\ng_bucket{le=\"+Inf\"} 2\n"
        "g_gsum 3\ng_gcount 2\n# TYPE i info\ni_info{v=\"2\"} 1\n# TYPE t stateset\nt{t=\"on\"} 1\n"
        "# TYPE u unknown\nu 1\n# TYPE v unknown\nv_created 4\n",
        "2 {le=+Inf} h.bucket=2 total histogram\n"
        "3  h.sum=3.5 total histogram\n"
        "4  h.count=2 total histogram\n"
        "7 {quantile=0.5} s=4 gauge\n"
        "8  s_count=2 total counter\n"
        "11 {le=+Inf} g_bucket=2 gauge\n"
        "12  g_gsum=3 gauge\n"
        "13  g_gcount=2 gauge\n"
        "15 {v=2} i_info=1 gauge\n"
        "17 {t=on} t=1 gauge\n"
        "19  u=1\n"
        "21  v_created=4\n");
}

Test(parser_prometheus, times_of_openmetrics_are_seconds_and_units_are_kept)
{
    parse_expect(
        "openmetrics",
        "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Say \\\"how\\\".\n"
        "a_seconds_total 5 1395066363.25\na_seconds_created 1395066360\na_seconds_total{x=\"1\"} 6 -1\n"
        "b 1 x\nb 1 1 2\n# TYPE c gauge\nc 3\n",
        "4  a_seconds_total=5 @1395066363250000000 total counter unit=seconds help=Say \"how\".\n"
        "6 {x=1} a_seconds_total=6 @-1000000000 total counter unit=seconds help=Say \"how\".\n"
        "7:5: \"x\" is not a time (seconds since 1970, like 1795219607.5)\n"
        "8:6: text after the time\n"
        "10  c=3 gauge\n");
}

Test(parser_prometheus, exemplars_of_openmetrics_are_passed_over)
{
    static const char text[] = "# TYPE a counter\na_total 5 # {id=\"x y\"} 0.67 1520879607.789\n"
                               "a_total 6 2.5 # {} 1\na_total 7 #{} 1\na_total 8 2 x # {} 1\n";
    parse_expect("openmetrics", text,
                 "2  a_total=5 total counter\n"
                 "3  a_total=6 @2500000000 total counter\n"
                 "4:11: \"#{}\" is not a time (seconds since 1970, like 1795219607.5)\n"
                 "5:12: text after the time\n");
    parse_expect("prometheus", text,
                 "2:11: \"#\" is not a time (milliseconds since 1970)\n"
                 "3:11: \"2.5\" is not a time (milliseconds since 1970)\n"
                 "4:11: \"#{}\" is not a time (milliseconds since 1970)\n"
                 "5:12: text after the time\n");
}

Test(parser_prometheus, a_document_ends_with_its_families)
{
    parse_expect("openmetrics",
                 "# TYPE a gauge\na 1\n# EOF\na 2\n# TYPE a counter\na_total 3\n# EOF x\na_total 4\n",
                 "2  a=1 gauge\n"
                 "4  a=2\n"
                 "6  a_total=3 total counter\n"
                 "8  a_total=4 total counter\n");
}

Test(parser_prometheus, label_values_are_unescaped)
{
    parse_expect("prometheus", "a { x = \"\\\\ \\\" \\n \\q }\" , y=\"\" } NaN\n",
                 "1 {x=\\ \" \n \\q },y=} a=NaN\n");
}

Test(parser_prometheus, wrong_lines_are_refused_with_their_place)
{
    parse_expect(
        "prometheus",
        "a\n1a 1\na{x} 1\na{x=\"1} 1\na{x=\"1\" y=\"2\"} 1\na 1 x\na 1 2 3\na{x=\"1\"\na{x=\"\",x=\"\"} 1\n",
        "1:2: \"\" is not a number\n2:1: \"1a\" is not a name (letters, digits, _ and :)\n3:3: \"x} 1\" is not "
        "the beginning of "
        "a label (like key=\"value\")\n4:3: \"x=\" is not the beginning of a label (like key=\"value\")\n5:9: "
        "expected ',' or "
        "'}' after a label\n6:5: \"x\" is not a time (milliseconds since 1970)\n7:6: text after the time\n8:2: "
        "unclosed {\n"
        "9:8: the label \"x\" is given twice\n");
}

Test(parser_prometheus, comments_are_skipped)
{
    parse_expect("prometheus", "# x\n#\n\n# TYPE\n# EOF\na 1\n", "6  a=1\n");
}
