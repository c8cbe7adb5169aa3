/* parser_graphite: Graphite's plain text. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_graphite, a_line_has_path_value_and_time)
{
    const struct wr_parser_options options = {.split = WR_PARSER_SPLIT_LAST};
    parse_expect_by(&options, "graphite", "my_app.db.latency 49.403 1795219607\nx -1 1.5\n",
                    "1 my_app.db latency=49.403 @1795219607000000000\n2  x=-1 @1500000000\n");
}

Test(parser_graphite, without_a_time_it_is_the_time_of_arrival)
{
    parse_expect("graphite", "x 1\nx 1 -1\nx 1 N\n", "1  x=1\n2  x=1\n3  x=1\n");
}

Test(parser_graphite, tags_are_labels)
{
    parse_expect("graphite", "a.b;k=v;l=a%3Bb%C3%A4;name_=x;m=_~y;n=%FF 1 2\n",
                 "1 {k=v,l=a;b\xc3\xa4,name=x,m=~y,n=%FF} a.b=1 @2000000000\n");
}

Test(parser_graphite, wrong_lines_are_refused_with_their_place)
{
    parse_expect("graphite", "x\nx y 1\nx 1 y\nx 1 2 3\nx nan 1\nx;k 1 2\nx;k=v;k=w 1 2\n",
                 "1:1: \"x\" has no value (path value seconds)\n2:3: \"y\" is not a finite number\n3:5: \"y\" "
                 "is not a time (seconds "
                 "since 1970, like 1795219607.5)\n4:6: text after the time\n5:3: \"nan\" is not a finite "
                 "number\n6:3: \"k\" is "
                 "not a tag (like "
                 "key=value)\n7:7: the label \"k\" is given twice\n");
}
