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
                 "1:1: 4 fields, but there are 5 columns\n2:7: \"x\" is not a number\n3:1: \"x\" is not a time "
                 "(seconds since 1970, like 1795219607.5)\n"
                 "4:9: labels: must be a JSON object of texts\n5:9: labels: unclosed {\n6:6: text after a "
                 "field in quotes\n"
                 "7:3: a quote in a field without quotes\n8:5: unclosed quotes\n9 g n=5 @1000000000\n10:5: "
                 "name \"\": empty; a name "
                 "must have 1 to 255 bytes\n");
}
