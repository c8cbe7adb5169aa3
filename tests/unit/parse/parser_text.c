/* parser_text: words and lines of the format text. */
#include <criterion/criterion.h>

#include "tests/support/parse_expect.h"

Test(parser_text, words_are_values_of_one_event)
{
    parse_expect("text", "a=1 b=2.5\n\t c=-0\t d=1e3 \n", "1  a=1 b=2.5\n2  c=-0.0 d=1000.0\n");
}

Test(parser_text, empty_lines_and_comments_are_skipped)
{
    parse_expect("text", "\n  \n# x=1\r\nx=1\r\n", "4  x=1\n");
}

Test(parser_text, a_name_may_contain_equals_signs)
{
    parse_expect("text", "a=b=1", "1  a=b=1\n");
}

Test(parser_text, numbers_are_kept_exactly)
{
    parse_expect(
        "text", "a=9007199254740993 b=49.0 c=-9223372036854775808 d=9223372036854775808 e=5e-324 f=1e308",
        "1  a=9007199254740993 b=49.0 c=-9223372036854775808 d=9.223372036854776e+18 e=5e-324 f=1e+308\n");
    parse_expect("text", "a=.1 b=5. c=0.1234567890123456789 d=-0.0 e=00012",
                 "1  a=0.1 b=5.0 c=0.12345678901234568 d=-0.0 e=12\n");
}

Test(parser_text, nan_and_infinities_are_values)
{
    parse_expect("text", "a=NaN b=nan c=inf d=-Infinity", "1  a=NaN b=NaN c=Infinity d=-Infinity\n");
}

Test(parser_text, wrong_words_are_refused_with_their_place)
{
    parse_expect("text", "x", "1:1: \"x\" is not a value (like name=12.5)\n");
    parse_expect("text", "a=1 =5", "1:5: \"=5\" is not a value (like name=12.5)\n");
    parse_expect("text", "\xc3\xa4=1 b=x", "1:5: \"b\": \"x\" is not a number\n");
    parse_expect("text", "x=0x10\nx=1e999\nx=+1\nx=1,5\nx=-nan",
                 "1:1: \"x\": \"0x10\" is not a number\n2:1: \"x\": \"1e999\" is not a number\n3:1: \"x\": "
                 "\"+1\" is not "
                 "a number\n4:1: \"x\": \"1,5\" is not a number\n5:1: \"x\": \"-nan\" is not a number\n");
}

Test(parser_text, lines_of_the_format_text_have_all_their_parts)
{
    parse_expect("text", "[1795219607.576198][my_app]: latency=49.403",
                 "1 my_app latency=49.403 @1795219607576198000\n");
    parse_expect("text", "[-12.500000][a b]: a=b=5 {k=\"v\\\"\\\\\\n\\x01\\u202e\",l=\"\"} metadata=\"m {\"",
                 "1 a b{k=v\"\\\n\x01\xe2\x80\xae,l=} a=b=5 @-12500000000 metadata=m {\n");
}

Test(parser_text, lines_of_torchelastic_are_read)
{
    parse_expect("text", "[1574213883.4182858][my_app]: my_metric=12.375\n[1574213883.0][a]: b=inf\n",
                 "1 my_app my_metric=12.375 @1574213883418285800\n2 a b=Infinity @1574213883000000000\n");
}

Test(parser_text, names_may_contain_what_separates)
{
    parse_expect("text", "[1.0][a]: b]: c=7", "1 a b]: c=7 @1000000000\n");
    parse_expect("text", "[1.0][a]: x=1 {y=2", "1 a x=1 {y=2 @1000000000\n");
    parse_expect("text", "[1.0][a][b]: x=2", "1 a][b x=2 @1000000000\n");
}

Test(parser_text, wrong_lines_are_refused)
{
    parse_expect("text", "[1.0][a]: b",
                 "1:1: not a line like [1795219607.5][my_app]: latency=49.403 {route=\"/x\"}\n");
    parse_expect("text", "[1x][a]: b=1", "1:2: \"1x\" is not a time (seconds since 1970, like 1795219607.5)\n");
    parse_expect("text", "[1][a\\q]: b=1",
                 "1:5: a wrong escape; there are \\n \\r \\t \\xXX \\uXXXX \\\\ \\\"\n");
}

Test(parser_text, a_hostile_line_costs_no_more_than_its_length)
{
    enum { LENGTH = 1000000 };
    static const char part[] = "]: =1 {=\"";
    char *text = malloc(LENGTH + 1);
    strcpy(text, "[1][");
    for (size_t i = 4; i < LENGTH; i++)
        text[i] = part[(i - 4) % (sizeof part - 1)];
    text[LENGTH] = '\0';
    struct parse_fixture fixture = {0};
    char *shown = parse_fixture_run(&fixture, "text", text, LENGTH, LENGTH);
    cr_assert(strncmp(shown, "1:1: not a line like", 20) == 0, "%.200s", shown);
    free(shown);
    free(text);
}

Test(parser_text, auto_reads_json_and_text_by_line)
{
    parse_expect("auto", "a=1\n{\"a\": 2}\n[3.0][g]: a=3\n[3]\n# no\n",
                 "1  a=1\n2  a=2\n3 g a=3 @3000000000\n4:1: must be an object, got an array\n");
}
