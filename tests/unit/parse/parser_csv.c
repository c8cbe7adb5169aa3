/* parser_csv: RFC 4180. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_csv, records_have_the_columns_of_the_format_csv)
{
    parse_expect("csv",
                 "timestamp,group,name,value,labels\r\n1795219607.576198123,my_app,latency,49.403,\"{"
                 "\"\"route\"\":\"\"/x\"\"}\"\r\n"
                 "1.5,g,n,NaN,\r\n",
                 "2 my_app{route=/x} latency=49.403 @1795219607576198123\n3 g n=NaN @1500000000\n");
    parse_expect("csv", "1,g,n,5,\n", "1 g n=5 @1000000000\n");
}

Test(parser_csv, the_first_record_may_name_the_columns)
{
    parse_expect("csv", "value,name\n5,a\n-Infinity,\"b \"\"c\"\"\"\nvalue,name\n1.5,d\n",
                 "2  a=5\n3  b \"c\"=-Infinity\n5  d=1.5\n");
}

Test(parser_csv, further_columns_of_a_value_are_labels)
{
    parse_expect("csv",
                 "ts,host,name,value,ts,labels,labels\n1,h,a,5,x,\"{\"\"k\"\":\"\"v\"\"}\",l\n2,,b,6,,,\nname,"
                 "value\nc,7\n",
                 "2 {host=h,ts=x,k=v,labels=l} a=5 @1000000000\n"
                 "3  b=6 @2000000000\n"
                 "5  c=7\n");
}

Test(parser_csv, columns_that_are_no_names_of_a_value_are_values)
{
    parse_expect(
        "csv",
        "\xef\xbb\xbfts,cpu,\"mem, "
        "\"\"used\"\"\"\n1.5,0.25,7\n2.5,,8\n3,,\n4,x,9\n5,NaN,1e3\n6,7\nts,cpu,\"mem, \"\"used\"\"\"\n7,1,2\n",
        "2  cpu=0.25 mem, \"used\"=7 @1500000000\n"
        "3  mem, \"used\"=8 @2500000000\n"
        "5:3 value: column \"cpu\": \"x\" is not a number\n"
        "5  mem, \"used\"=9 @4000000000\n"
        "6  cpu=NaN mem, \"used\"=1000.0 @5000000000\n"
        "7:1: 2 fields, but there are 3 columns\n"
        "9  cpu=1 mem, \"used\"=2 @7000000000\n");
    parse_expect("csv", ",cpu,group,labels,value,time\n17,1,g,\"{\"\"a\"\":\"\"b\"\"}\",3,4\n",
                 "2 g{a=b} cpu=1 value=3 @4000000000\n");
    parse_expect("csv", "cpu,mem\n1,2\nname,value\n3,4\n",
                 "2  cpu=1 mem=2\n"
                 "4  3=4\n");
}

Test(parser_csv, times_may_be_those_of_iso_8601)
{
    parse_expect(
        "csv",
        "time,cpu\n2026-11-28T12:00:00Z,1\n2026-11-28 13:00:00.25+01:00,2\n2026-11-28T12:00:00.5-0130,3\n"
        "1795867200.75,4\n2026-11-28T25:00:00Z,5\n2026-11-28,6\n",
        "2  cpu=1 @1795867200000000000\n"
        "3  cpu=2 @1795867200250000000\n"
        "4  cpu=3 @1795872600500000000\n"
        "5  cpu=4 @1795867200750000000\n"
        "6:1: \"2026-11-28T25:00:00Z\" is not a time (seconds since 1970, like 1795219607.5, or like "
        "2026-11-28T12:00:00Z)\n"
        "7:1: \"2026-11-28\" is not a time (seconds since 1970, like 1795219607.5, or like "
        "2026-11-28T12:00:00Z)\n");
    parse_expect("csv", "2026-11-28T12:00:00Z,g,n,5,\n", "1 g n=5 @1795867200000000000\n");
}

Test(parser_csv, a_first_record_with_a_number_or_that_is_no_names_is_a_record)
{
    parse_expect(
        "csv", "a,b,c,d,\n1,g,n,5,\n",
        "1:1: \"a\" is not a time (seconds since 1970, like 1795219607.5, or like 2026-11-28T12:00:00Z)\n"
        "2 g n=5 @1000000000\n");
    parse_expect("csv", "Starting\nnow\n1,g,n,5,\n2,g,n,6,\n",
                 "2:1 value: column \"Starting\": \"now\" is not a number\n"
                 "3:1 value: the first record, \"Starting\", is not the column of this one\n"
                 "3 g n=5 @1000000000\n4 g n=6 @2000000000\n");
    parse_expect("csv", "ts,1,cpu\n1,g,n,5,\n",
                 "1:1: 3 fields, but there are 5 columns (timestamp,group,name,value,labels)\n"
                 "2 g n=5 @1000000000\n");
    parse_expect("csv", "ts,\"c\npu\"\n1,g,n,5,\n",
                 "1:1: 2 fields, but there are 5 columns (timestamp,group,name,value,labels)\n"
                 "3 g n=5 @1000000000\n");
}

Test(parser_csv, a_single_column_is_a_value)
{
    parse_expect("csv", "cpu\n0.5\n7\nx\n1,2\n\"cpu\"\n9\n",
                 "2  cpu=0.5\n3  cpu=7\n4:1 value: column \"cpu\": \"x\" is not a number\n"
                 "5:1: 2 fields, but there are 1 columns\n7  cpu=9\n");
    parse_expect("csv", "value\n5\n", "2  value=5\n");
}

Test(parser_csv, columns_without_values_are_refused)
{
    parse_expect("csv", "ts\n1\n", "2:0: the first record names no column of values\n");
    parse_expect("csv", "ts,group\n1,g\n", "2:0: the first record names no column of values\n");
    parse_expect("csv", "\"\"\n1\n", "2:0: the first record names no column of values\n");
}

Test(parser_csv, columns_with_name_and_without_value_are_refused)
{
    parse_expect("csv", "ts,name,val\n1,a,5\n2,b,6\n",
                 "2:0: the first record names a column \"name\", but none \"value\"\n"
                 "3:0: the first record names a column \"name\", but none \"value\"\n");
}

Test(parser_csv, fields_in_quotes_may_contain_commas)
{
    parse_expect("csv", "name,value\n\"a,\"\"b\",\"7\"\n", "2  a,\"b=7\n");
}

Test(parser_csv, fields_in_quotes_may_contain_line_ends)
{
    parse_expect(
        "csv", "1,g,a,2,\"{\"\"x\"\":\n\"\"y\"\"}\"\n1,g,\"b\nx=5\",3,\n1,g,c,4,\n",
        "1 g{x=y} a=2 @1000000000\n3:6: name \"b\\nx=5\": control character at byte 2; names must be valid "
        "UTF-8 without control characters\n5 g c=4 @1000000000\n");
}

Test(parser_csv, wrong_records_are_refused_with_their_place)
{
    parse_expect("csv",
                 "1,g,n,5\n1,g,n,x,\nx,g,n,1,\n1,g,n,1,[]\n1,g,n,1,{\n1,\"g\"x,n,1,\n1,g\",n,1,\n1,g,\"n\n1,g,"
                 "n,5,\n1,g,,1,\n",
                 "1:1: 4 fields, but there are 5 columns (timestamp,group,name,value,labels)\n2:7: \"x\" is "
                 "not a number\n3:1: \"x\" is not a time "
                 "(seconds since 1970, like 1795219607.5, or like 2026-11-28T12:00:00Z)\n"
                 "4:9: labels: must be a JSON object of texts\n5:9: labels: unclosed {\n6:6: text after a "
                 "field in quotes\n"
                 "7:3: a quote in a field without quotes\n8:5: unclosed quotes\n9 g n=5 @1000000000\n10:5: "
                 "name \"\": empty; a name "
                 "must have 1 to 255 bytes\n");
}
