/* parser_influx: InfluxDB's line protocol. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_influx, a_line_is_an_event_of_its_fields)
{
    parse_expect("influx", "my_app,route=/x,host=a latency=49.4,errors=1i,up=t,n=3u 1795219607576198123\n",
                 "1 my_app{route=/x,host=a} latency=49.4 errors=1 up=1 n=3 @1795219607576198123\n");
}

Test(parser_influx, numbers_without_a_letter_are_doubles)
{
    parse_expect("influx", "m a=42,b=-1.5e3,c=9007199254740993,d=9007199254740993i,e=+1",
                 "1 m a=42.0 b=-1500.0 c=9007199254740992.0 d=9007199254740993 e=1.0\n");
}

Test(parser_influx, escapes_and_encoded_characters_are_decoded)
{
    parse_expect("influx", "a\\ b\\,c=,k\\=1=v\\ \\,\\=,t=C:\\x f\\ \\=1=1",
                 "1 a b,c={k=1=v ,=,t=C:\\x} f =1=1.0\n");
    parse_expect("influx", "m,t=a%0Ab,u=%41,v=%2541,w=100%,x=%5C,y=%00 f%22=1",
                 "1 m{t=a\nb,u=%41,v=%41,w=100%,x=\\,y=%00} f\"=1.0\n");
}

Test(parser_influx, reserved_keys_lose_what_the_format_added)
{
    parse_expect("influx", "_#m,time_=1,_field__=2 time__=1,times_=2",
                 "1 #m{time=1,_field_=2} time_=1.0 times_=2.0\n");
}

Test(parser_influx, texts_are_passed_over)
{
    parse_expect("influx", "m a=\"x, \\\" y\",b=1 5\nm a=\"\",b=\"\\\\\" 5\nm b=2\n",
                 "1 m b=1.0 @5\n3 m b=2.0\n");
}

Test(parser_influx, texts_may_have_line_ends_in_them)
{
    parse_expect("influx", "m a=\"x\ncpu load=5\n\",b=1 5\nm b=2\nm b=3,a=\"\\\"\n=\",c=\n",
                 "1 m b=1.0 @5\n4 m b=2.0\n6:6 value: \"\" is not a value (a number, an integer like 42i, t or "
                 "f)\n5 m b=3.0\n");
}

Test(parser_influx, quotes_elsewhere_do_not_open_a_text)
{
    parse_expect(
        "influx", "# it\"s\nm\"x,a=\"b c=1\nm a=\\\"\nm\\ \"x=\" c=2\n",
        "2 m\"x{a=\"b} c=1.0\n3:5 value: \"\\\\\\\"\" is not a value (a number, an integer like 42i, t or f)\n"
        "4 m \"x=\" c=2.0\n");
}

Test(parser_influx, a_text_that_is_not_closed_costs_its_own_line)
{
    const struct wr_parser_options options = {.line_bytes = 20};
    parse_expect("influx", "m a=\"x\nm b=2\nm b=3", "1:5: unclosed quotes\n2 m b=2.0\n3 m b=3.0\n");
    parse_expect_by(&options, "influx", "m a=\"x\nm b=2\nm b=3\nm b=4\nm c=\"5\"\nm b=6\n",
                    "1:5: unclosed quotes\n2 m b=2.0\n3 m b=3.0\n4 m b=4.0\n6 m b=6.0\n");
    parse_expect_by(&options, "influx", "m a=\"234567890123456789\n\",b=1\nm b=2\n",
                    "1:0: longer than 20B\n2:6: the line has no fields (like name=12.5)\n3 m b=2.0\n");
}

Test(parser_influx, what_is_no_value_is_left_out_alone)
{
    parse_expect("influx", "m a=\"x\"y,b=1\nm a=x,b=2\n",
                 "1:5 value: \"\\\"x\\\"y\" is not a value (a number, an integer like 42i, t or f)\n1 m b=1.0\n"
                 "2:5 value: \"x\" is not a value (a number, an integer like 42i, t or f)\n2 m b=2.0\n");
}

#define RULE "; names must be valid UTF-8 without control characters\n"

Test(parser_influx, a_field_whose_name_is_not_allowed_is_left_out_alone)
{
    parse_expect("influx", "m a\tb=1,c=2,\x01=3\nm \x01=1\n",
                 "1:3 value: field \"a\\tb\": control character at byte 2" RULE
                 "1:13 value: field \"\\x01\": control character at byte 1" RULE
                 "1 m c=2.0\n2:3 value: field \"\\x01\": control character at byte 1" RULE);
}

Test(parser_influx, comments_and_empty_lines_are_skipped)
{
    parse_expect("influx", "# m a=1\n\n  \nm a=1\n", "4 m a=1.0\n");
}

Test(parser_influx, times_have_the_unit_of_the_options)
{
    const struct wr_parser_options options = {.time_unit_ns = 1000000};
    parse_expect_by(
        &options, "influx", "m a=1 1795219607576\nm a=1 9223372036854775807\n",
        "1 m a=1.0 @1795219607576000000\n2:7: \"9223372036854775807\" is not a time (an integer)\n");
}

Test(parser_influx, wrong_lines_are_refused_with_their_place)
{
    parse_expect("influx", "m\nm,a= b=1\nm,a b=1\nm b\nm b=1 x\nm b=1 5 6\nm b=\"x\n,a=1 b=1\nm a=1,\n",
                 "1:2: the line has no fields (like name=12.5)\n2:5: the tag \"a\" has no value\n3:3: \"a\" is "
                 "not a tag (like "
                 "key=value)\n4:3: \"b\" is not a field (like name=12.5)\n5:7: \"x\" is not a time (an "
                 "integer)\n6:7: \"5 6\" is "
                 "not a time (an integer)\n7:5: unclosed quotes\n8:1: group \"\": empty; a name must have 1 to "
                 "255 bytes\n9:7: \"\" is not a field "
                 "(like name=12.5)\n");
}
