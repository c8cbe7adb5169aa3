#include <math.h>

#include "format/format.h"
#include "batch_fixture.h"

static const weir_label route[] = {{"route", "/x"}};

static const char *header_of(const char *name, const char *value)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_csv, make_options(&wr_format_csv, name, value));
    return wr_encoder_header(&encoder);
}

Test(format_csv, a_sample_is_a_record_of_five_fields_that_ends_in_crlf)
{
    add_double(add_series("my_app", "latency", NULL, 0), 49.403);
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,my_app,latency,49.403,\r\n");
}

Test(format_csv, labels_are_a_json_object_in_one_field)
{
    static const weir_label two[] = {{"method", "GET"}, {"route", "/x"}};
    add_double(add_series("my_app", "latency", route, 1), 49.403);
    add_double(add_series("my_app", "latency", two, 2), 1);
    cr_assert_str_eq(encode(&wr_format_csv),
                     "1795219607.576198123,my_app,latency,49.403,\"{\"\"route\"\":\"\"/x\"\"}\"\r\n"
                     "1795219607.576198123,my_app,latency,1,"
                     "\"{\"\"method\"\":\"\"GET\"\",\"\"route\"\":\"\"/x\"\"}\"\r\n");
}

Test(format_csv, labels_of_the_configuration_are_merged_and_the_series_take_precedence)
{
    static const weir_label own[] = {{"host", "own"}}, common[] = {{"az", "eu"}, {"host", "all"}};
    set_labels(common, 2);
    add_double(add_series("g", "a", own, 1), 1);
    cr_assert_str_eq(encode(&wr_format_csv),
                     "1795219607.576198123,g,a,1,\"{\"\"az\"\":\"\"eu\"\",\"\"host\"\":\"\"own\"\"}\"\r\n");
}

Test(format_csv, fields_with_commas_or_quotes_are_quoted_and_their_quotes_doubled)
{
    add_double(add_series("a,b", "say \"x\"", NULL, 0), 1);
    add_double(add_series("\"", " a b ", NULL, 0), 1);
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,\"a,b\",\"say \"\"x\"\"\",1,\r\n"
                                             "1795219607.576198123,\"\"\"\", a b ,1,\r\n");
}

Test(format_csv, a_line_break_in_a_label_is_escaped)
{
    static const weir_label evil[] = {{"k", "a\r\nb"}};
    add_double(add_series("g", "a", evil, 1), 1);
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,g,a,1,\"{\"\"k\"\":\"\"a\\r\\nb\"\"}\"\r\n");
}

Test(format_csv, any_value_can_be_written)
{
    uint32_t series = add_series("g", "a", NULL, 0);
    add_double(series, NAN);
    add_double(series, -INFINITY);
    add_int(series, INT64_MIN);
    add_double(series, 1)->time_ns = -1500000;
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,g,a,NaN,\r\n"
                                             "1795219607.576198123,g,a,-Infinity,\r\n"
                                             "1795219607.576198123,g,a,-9223372036854775808,\r\n"
                                             "-0.001500000,g,a,1,\r\n");
}

Test(format_csv, metadata_is_left_out)
{
    set_metadata(add_double(add_series("g", "a", NULL, 0), 1), "run");
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,g,a,1,\r\n");
}

Test(format_csv, an_event_is_a_record_for_each_of_its_samples)
{
    uint32_t a = add_series("g", "a", NULL, 0), b = add_series("g", "b", NULL, 0);
    add_double(a, 1)->flags = WEIR_SAMPLE_MORE;
    add_double(b, 2);
    cr_assert_str_eq(encode(&wr_format_csv), "1795219607.576198123,g,a,1,\r\n1795219607.576198123,g,b,2,\r\n");
}

Test(format_csv, lines_end_in_lf_if_configured)
{
    add_double(add_series("g", "a", NULL, 0), 1);
    cr_assert_str_eq(encode_as(&wr_format_csv, "newline", "lf"), "1795219607.576198123,g,a,1,\n");
}

Test(format_csv, the_header_names_the_fields_unless_disabled)
{
    cr_assert_str_eq(header_of(NULL, NULL), "timestamp,group,name,value,labels\r\n");
    cr_assert_str_eq(header_of("newline", "lf"), "timestamp,group,name,value,labels\n");
    cr_assert_str_eq(header_of("header", "false"), "");
}
