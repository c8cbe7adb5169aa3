/* parser_json: objects as events, lines of the format json, benchmarkai's lines. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

#define ALLOWED "is not a value (a number, true, false, or a number in a text)\n"

#define CONTROL "control character at byte 2; names must be valid UTF-8 without control characters\n"

Test(parser_json, an_object_of_numbers_is_an_event)
{
    parse_expect("json", "{\"a\": 1, \"b\": 2.0, \"name\": 3}\n{\"\\u00e4\":1e2}",
                 "1  a=1 b=2.0 name=3\n2  \xc3\xa4=100.0\n");
}

Test(parser_json, python_writes_bare_nan_and_infinity)
{
    parse_expect("json", "{\"a\": NaN, \"b\": -Infinity, \"c\": Infinity, \"d\": 1}",
                 "1  a=NaN b=-Infinity c=Infinity d=1\n");
}

Test(parser_json, numbers_in_texts_and_bools_are_values)
{
    parse_expect("json", "{\"a\": \"1e-5\", \"b\": true, \"c\": false, \"d\": \" 7 \", \"e\": \"NaN\"}",
                 "1  a=1e-05 b=1 c=0 d=7 e=NaN\n");
}

Test(parser_json, what_is_no_value_is_left_out_alone)
{
    parse_expect("json", "{\"a\": 1, \"b\": null, \"c\": \"x\", \"d\": [1, {\"y\": 2}], \"e\": 5}",
                 "1:15 value: \"b\": null " ALLOWED "1:26 value: \"c\": \"x\" " ALLOWED
                 "1:36 value: \"d\": an array " ALLOWED "1  a=1 e=5\n");
    parse_expect("json", "{\"a\": null}", "1:7 value: \"a\": null " ALLOWED);
}

Test(parser_json, integers_are_exact_and_minus_zero_keeps_its_sign)
{
    parse_expect("json", "{\"a\": 9007199254740993, \"b\": 49.0, \"c\": -0, \"d\": 18446744073709551616}",
                 "1  a=9007199254740993 b=49.0 c=-0.0 d=1.8446744073709552e+19\n");
}

Test(parser_json, a_value_of_the_format_json_has_all_its_attributes)
{
    parse_expect(
        "json",
        "{\"timestamp\":1795219607.576198123,\"group\":\"my_app\",\"name\":\"latency\",\"value\":49.403,"
        "\"labels\":{\"route\":\"/x\",\"a\":\"\"},\"cumulative\":true,\"metadata\":\"m\\n\"}",
        "1 my_app{route=/x,a=} latency=49.403 @1795219607576198123 total metadata=m\n\n");
    parse_expect("json",
                 "{\"name\":\"name\",\"value\":\"-Infinity\",\"unit\":\"ms\",\"help\":\"h\",\"instrument\":"
                 "\"histogram\","
                 "\"origin\":\"00\",\"sequence\":1}",
                 "1  name=-Infinity histogram unit=ms help=h\n");
    parse_expect("json",
                 "{\"timestamp\":-12.500000001,\"name\":\"5\",\"value\":1}\n{\"timestamp\":-9223372036."
                 "854775808,\"name\":"
                 "\"n\",\"value\":1}",
                 "1  5=1 @-12500000001\n2  n=1 @-9223372036854775808\n");
}

Test(parser_json, wrong_attributes_are_refused_with_their_place)
{
    parse_expect("json", "{\"name\": \"n\"}", "1:1: the member \"value\" is missing\n");
    parse_expect("json", "{\"name\": \"n\", \"value\": \"x\"}",
                 "1:24: \"value\": must be a number, true, false, or a number in a text, got \"x\"\n");
    parse_expect("json", "{\"name\": \"n\", \"value\": 5, \"timestamp\": 99999999999}",
                 "1:40: \"timestamp\": must be a time (seconds since 1970, like 1795219607.576198123), got "
                 "99999999999\n");
    parse_expect("json", "{\"name\": \"n\", \"value\": 5, \"labels\": {\"a\": 1}}",
                 "1:43: \"a\": must be a text, got 1\n");
    parse_expect("json", "{\"name\": \"n\", \"value\": 5, \"group\": \"a..b\"}",
                 "1:36: group \"a..b\": empty part; a group is one or more names separated by single dots\n");
    parse_expect("json", "{\"name\": \"n\", \"value\": 5, \"ttl\": 1}",
                 "1:27: \"ttl\": unknown member; with \"name\" these are allowed: timestamp, group, name, "
                 "value, labels, "
                 "cumulative, metadata, instrument, unit, help, origin, sequence\n");
}

Test(parser_json, wrong_json_is_refused_with_its_place)
{
    parse_expect("json", "{\"a\": 1,}\n{\"a\": 1, \"a\": 2}\n[1]\n{}\n{\"a\": 1} x\n{\"a\": Nan}\n",
                 "1:8: trailing comma\n2:10: duplicate key: \"a\"\n3:1: must be an object, got an array\n"
                 "4:1: the object has no values\n5:10: text after the end of the JSON value\n"
                 "6:7: expected a value: an object, an array, a string in double quotes, a number, true, false "
                 "or null\n");
}

Test(parser_json, in_bai_every_object_is_an_event)
{
    parse_expect("bai", "{\"accuracy\": \"20.34\", \"name\": \"7\", \"value\": 3, \"labels\": {}}\n",
                 "1:58 value: \"labels\": an object " ALLOWED "1  accuracy=20.34 name=7 value=3\n");
}

Test(parser_json, in_bai_the_last_value_of_a_key_holds)
{
    parse_expect(
        "bai", "{\"a\": 1, \"b\": {\"a\": 5}, \"a\": 2, \"b\": 3, \"\\u0061\": 4}\n{\"a\": 1, \"a\": \"x\"}\n",
        "1  b=3 a=4\n2:15 value: \"a\": \"x\" " ALLOWED);
}

Test(parser_json, a_member_whose_name_is_not_allowed_is_left_out_alone)
{
    parse_expect(
        "json", "{\"a\": 1, \"\": 2, \"b\\n\": 3, \"c\": 4}\n{\"\": 1}\n",
        "1:10 value: name \"\": empty; a name must have 1 to 255 bytes\n1:17 value: name \"b\\n\": " CONTROL
        "1  a=1 c=4\n2:2 value: name \"\": empty; a name must have 1 to 255 bytes\n");
}

Test(parser_json, lines_of_many_keys_are_followed_by_lines_of_few)
{
    struct wr_buffer text = {0}, expected = {0};
    wr_buffer_put_text(&text, "{");
    wr_buffer_put_text(&expected, "1 ");
    for (int i = 0; i < 1000; i++) {
        wr_buffer_put_format(&text, "%s\"k%d\": %d", i ? ", " : "", i, i);
        wr_buffer_put_format(&expected, " k%d=%d", i, i);
    }
    wr_buffer_put_text(&text, "}\n{\"k1\": 1}\n{\"k1\": 2}\n");
    wr_buffer_put_text(&expected, "\n2  k1=1\n3  k1=2\n");
    parse_expect("json", wr_buffer_text(&text), wr_buffer_text(&expected));
    wr_buffer_fini(&text);
    wr_buffer_fini(&expected);
}
