/* What is written; that another implementation reads it is tested by tests/handlers/http_otlp.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "format/otlp_writer.h"
#include "format/ucum.h"
#include "batch_fixture.h"

static const char *json(void)
{
    return encode_as(&wr_format_otlp, "encoding", "json");
}

static const char *content_type(const char *encoding)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, &wr_format_otlp, make_options(&wr_format_otlp, "encoding", encoding));
    const char *type = wr_encoder_content_type(&encoder);
    wr_encoder_fini(&encoder);
    return type;
}

/* Encodes as protobuf. Returns the number of bytes. */
static size_t encode_binary(unsigned char *out, size_t room)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    wr_encoder_init(&encoder, &wr_format_otlp, make_options(&wr_format_otlp, "service_name", "s"));
    cr_assert(wr_encoder_encode(&encoder, fixture_batch(), 0, SIZE_MAX, &encoded));
    cr_assert(encoded.count == fixture.batch.count && encoded.length <= room);
    memcpy(out, encoded.data, encoded.length);
    wr_encoder_fini(&encoder);
    return encoded.length;
}

Test(format_otlp, the_media_type_depends_on_the_encoding)
{
    cr_assert_str_eq(content_type("protobuf"), "application/x-protobuf");
    cr_assert_str_eq(content_type("json"), "application/json");
}

Test(format_otlp, a_batch_is_one_document)
{
    static const weir_label labels[] = {{"k", "\"v\""}};
    setenv("OTEL_SERVICE_NAME", "test", 1);
    uint32_t a = add_series("g", "a", labels, 1), b = add_series("f", "b", NULL, 0);
    add_double(a, 1.5);
    add_int(b, INT64_MIN);
    add_double(a, NAN);
    fixture.series[b].unit = "bytes";
    fixture.series[b].help = "what";
    cr_assert_str_eq(
        json(),
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":"
        "\"test\"}}]},\"scopeMetrics\":[{\"scope\":{\"name\":\"f\"},\"metrics\":[{\"name\":\"f.b\","
        "\"description\":"
        "\"what\",\"unit\":\"By\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"1795219607576198123\","
        "\"asInt\":"
        "\"-9223372036854775808\"}]}}]},{\"scope\":{\"name\":\"g\"},\"metrics\":[{\"name\":\"g.a\",\"gauge\":{"
        "\"dataPoints\":[{\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"\\\"v\\\"\"}}],"
        "\"timeUnixNano\":"
        "\"1795219607576198123\",\"asDouble\":1.5},{\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":"
        "\"\\\"v\\\"\"}}],"
        "\"timeUnixNano\":\"1795219607576198123\",\"asDouble\":\"NaN\"}]}}]}]}]}");
}

Test(format_otlp, protobuf_has_the_standards_field_numbers_and_shortest_lengths)
{
    unsigned char bytes[500];
    static const unsigned char expected[] =
        "\x0a\x4b"                                              /* resource_metrics */
        "\x0a\x15\x0a\x13\x0a\x0cservice.name\x12\x03\x0a\x01s" /* resource */
        "\x12\x32\x0a\x03\x0a\x01g"                             /* scope_metrics */
        "\x12\x2b\x0a\x03g.a\x3a\x24\x0a\x1e"                   /* metrics, sum, data_points */
        "\x19\x01\x00\x00\x00\x00\x00\x00\x00"                  /* time_unix_nano */
        "\x31\xfe\xff\xff\xff\xff\xff\xff\xff"                  /* as_int */
        "\x3a\x0a\x0a\x01k\x12\x05\x0a\x03uvw"                  /* attributes */
        "\x10\x01\x18\x01";                                     /* delta, monotonic */
    static const weir_label labels[] = {{"k", "uvw"}};
    uint32_t a = add_series("g", "a", labels, 1);
    fixture.series[a].instrument = WEIR_COUNTER;
    add_int(a, -2)->time_ns = 1;
    size_t length = encode_binary(bytes, sizeof bytes);
    cr_assert_eq(length, sizeof expected - 1, "%zu", length);
    cr_assert(memcmp(bytes, expected, length) == 0);
}

Test(format_otlp, running_totals_and_increments_of_one_name_are_two_metrics)
{
    uint32_t a = add_series("g", "a", NULL, 0), total = add_series("g", "a", NULL, 0);
    fixture.series[a].instrument = WEIR_COUNTER;
    fixture.series[total].cumulative = true;
    add_double(total, 9);
    add_double(a, 1);
    const char *text = json(), *delta = strstr(text, "\"aggregationTemporality\":1,\"isMonotonic\":true"),
               *cumulative = strstr(text, "\"aggregationTemporality\":2,\"isMonotonic\":true");
    cr_assert(delta && cumulative && delta < cumulative);
}

Test(format_otlp, samples_before_1970_are_left_out_and_a_document_without_points_is_empty)
{
    uint32_t a = add_series("g", "a", NULL, 0);
    add_double(a, 1)->time_ns = -1;
    cr_assert_str_eq(json(), "");
    add_double(a, 2);
    cr_assert(strstr(json(), "\"asDouble\":2.0}]") && !strstr(json(), "\"asDouble\":1"));
}

Test(format_otlp, lengths_of_messages_are_exact_at_every_size)
{
    static char text[70000];
    for (size_t size = 0; size < sizeof text - 1; size = size < 300 ? size + 1 : size * 2) {
        struct wr_buffer out = {0};
        const struct wr_otlp_writer writer = {&out, false};
        memset(text, 'x', size);
        text[size] = '\0';
        size_t outer = wr_otlp_begin(&writer, (struct wr_otlp_field){1, NULL});
        wr_otlp_put_text(&writer, (struct wr_otlp_field){2, NULL}, text);
        wr_otlp_end(&writer, outer);
        unsigned char expected[30];
        size_t text_length = wr_otlp_write_varint(expected, size), head = 1;
        expected[0] = 1 << 3 | 2;
        head += wr_otlp_write_varint(expected + 1, 1 + text_length + size);
        expected[head++] = 2 << 3 | 2;
        head += wr_otlp_write_varint(expected + head, size);
        cr_assert(out.length == head + size && memcmp(out.data, expected, head) == 0, "%zu", size);
        wr_buffer_fini(&out);
    }
}

Test(format_otlp, units_become_those_of_ucum)
{
    static const char *const units[][2] = {{"ms", "ms"},        {"bytes", "By"},     {"KiB", "KiBy"},
                                           {"%", "%"},          {"", "1"},           {"requests", "{requests}"},
                                           {"bytes/s", "By/s"}, {"{x}", "{x}"},      {"{", "{_}"},
                                           {"a b}", "{a_b_}"},  {"\xc3\xa4", "{_}"}, {"/", "1/1"},
                                           {"{a b}", "{_a_b_}"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct wr_buffer out = {0};
        wr_ucum_put(&out, units[i][0]);
        cr_assert_str_eq(wr_buffer_text(&out), units[i][1]);
        wr_buffer_fini(&out);
    }
}
