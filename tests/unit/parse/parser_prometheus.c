/* parser_prometheus: the text format 0.0.4. */
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
        "2 {le=0.5} h_bucket=1 total histogram\n3 {le=+Inf} h_bucket=2 total histogram\n4  h_sum=3.5 total "
        "histogram\n5  "
        "h_count=2 total histogram\n6  h_max=9\n8 {quantile=0.5} s=4\n9  s_sum=5 total\n");
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
