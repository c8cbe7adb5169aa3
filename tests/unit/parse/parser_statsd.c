/* parser_statsd: StatsD and DogStatsD. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_statsd, each_type_has_its_instrument)
{
    parse_expect("statsd", "a:1|c\nb:2.5|g\nc:320|ms\nd:1|h\ne:2|d\nf:u:1|s\n",
                 "1  a=1 counter\n2  b=2.5 gauge\n3  c=320 histogram unit=ms\n4  d=1 histogram\n5  e=2 "
                 "histogram\n6  f=1 member=u:1\n");
}

Test(parser_statsd, counters_are_scaled_by_their_sample_rate)
{
    parse_expect("statsd", "a:1|c|@0.1\na:3|c|@1\na:0.5|c|@0.5\n",
                 "1  a=10.0 counter\n2  a=3 counter\n3  a=1.0 counter\n");
}

Test(parser_statsd, timers_keep_their_sample_rate)
{
    parse_expect("statsd", "a:320|ms|@0.1\n", "1  a=320 histogram rate=0.1 unit=ms\n");
}

Test(parser_statsd, a_gauge_with_a_sign_is_a_change)
{
    parse_expect("statsd", "a:0|g\na:-5|g\na:+5.5|g\n",
                 "1  a=0 gauge\n2  a=-5 change gauge\n3  a=5.5 change gauge\n");
}

Test(parser_statsd, tags_and_times_of_dogstatsd_are_read)
{
    parse_expect("statsd", "a:1|c|#env:prod,up,url:http://x,\na:1|g|T1656581400|c:in-0\n",
                 "1 {env=prod,up=,url=http://x} a=1 counter\n2  a=1 @1656581400000000000 gauge\n");
}

Test(parser_statsd, several_values_of_a_line_are_records)
{
    parse_expect("statsd", "a:1:2:3|h|#x:y\n",
                 "1 {x=y} a=1 histogram\n1 {x=y} a=2 histogram\n1 {x=y} a=3 histogram\n");
    parse_expect("statsd", "a:1:b:3|h\n", "1  a=1 histogram\n1:5: \"b\" is not a finite number\n");
}

Test(parser_statsd, each_value_of_a_line_may_have_its_own_type)
{
    parse_expect("statsd", "a:320|ms:200|ms|@0.1\na:1|c|@0.5:-2|g:3|c|#x:y|c:in-0\n",
                 "1  a=320 histogram unit=ms\n1  a=200 histogram rate=0.1 unit=ms\n"
                 "2  a=2.0 counter\n2  a=-2 change gauge\n2 {x=y} a=3 counter\n");
    parse_expect("statsd", "a:1:2|h:3|c\na:b:c|s|@1:4|c\n",
                 "1  a=1 histogram\n1  a=2 histogram\n1  a=3 counter\n2  a=1 member=b:c\n2  a=4 counter\n");
    parse_expect("statsd", "a:1|c:\na:1|c:2\na:1|c:x|c\na:1|c:2|y\n",
                 "1  a=1 counter\n2  a=1 counter\n2:1: not a line like name:12.5|g (name:value|type)\n"
                 "3  a=1 counter\n3:7: \"x\" is not a finite number\n"
                 "4  a=1 counter\n4:9: \"y\" is not a type (c, g, ms, h, d or s)\n");
}

Test(parser_statsd, blanks_around_parts_do_not_count)
{
    parse_expect(
        "statsd", " a b : 320 | ms | @0.1 | #x:y \n \t\na: +1 |g: 2 : 3 | c \n",
        "1 {x=y} a b=320 histogram rate=0.1 unit=ms\n3  a=1 change gauge\n3  a=2 counter\n3  a=3 counter\n");
}

Test(parser_statsd, of_a_repeated_tag_the_last_value_holds)
{
    parse_expect("statsd", "a:1|c|#x:1,y:2,x:3,x\n", "1 {x=,y=2} a=1 counter\n");
    parse_expect("statsd", "a:1|c|#x:1|#x:2\n", "1 {x=2} a=1 counter\n");
}

Test(parser_statsd, paths_are_split_by_the_options)
{
    struct wr_parser_options options = {.split = WR_PARSER_SPLIT_LAST};
    parse_expect_by(
        &options, "statsd", "a.b.c:1|c\nd:1|c\na.:1|c\n",
        "1 a.b c=1 counter\n2  d=1 counter\n3:3: name \"\": empty; a name must have 1 to 255 bytes\n");
    options.split = WR_PARSER_SPLIT_FIRST;
    parse_expect_by(&options, "statsd", "a.b.c:1|c\n", "1 a b.c=1 counter\n");
}

Test(parser_statsd, wrong_lines_are_refused_with_their_place)
{
    parse_expect(
        "statsd",
        "a\na:1\n:1|c\na:|c\na:x|c\na:1|x\na:1|c|@2\na:1|c|@0\na:1|c|#:x\n_e{1,1}:a|b\n_sc|a|0\na:nan|g\n",
        "1:1: not a line like name:12.5|g (name:value|type)\n2:1: not a line like name:12.5|g "
        "(name:value|type)\n"
        "3:1: not a line like name:12.5|g (name:value|type)\n4:3: \"\" is not a finite number\n5:3: \"x\" is "
        "not a finite "
        "number\n6:5: \"x\" is not a type (c, g, ms, h, d or s)\n7:8: \"2\" is not a sample rate (greater than "
        "0, at most 1)\n"
        "8:8: \"0\" is not a sample rate (greater than 0, at most 1)\n9:8: tag \"\": empty; a name must have 1 "
        "to 255 "
        "bytes\n10:1: an event or "
        "a service check, not a value\n11:1: an event or a service check, not a value\n12:3: \"nan\" is not a "
        "finite number\n");
    parse_expect("statsd", "a:1e300|c|@1e-300\n", "1:3: out of range with its sample rate\n");
}
