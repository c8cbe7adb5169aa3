#include <criterion/criterion.h>
#include <string.h>

#include "format/format.h"

Test(format, each_format_is_found_by_its_name)
{
    cr_assert_eq(wr_format_find("text"), &wr_format_text);
    cr_assert_eq(wr_format_find("json"), &wr_format_json);
    cr_assert_eq(wr_format_find("bai"), &wr_format_bai);
    cr_assert_eq(wr_format_find("csv"), &wr_format_csv);
    cr_assert_eq(wr_format_find("influx"), &wr_format_influx);
    cr_assert_eq(wr_format_find("prometheus"), &wr_format_prometheus);
    cr_assert_eq(wr_format_find("openmetrics"), &wr_format_openmetrics);
    cr_assert_eq(wr_format_find("graphite"), &wr_format_graphite);
    cr_assert_eq(wr_format_find("statsd"), &wr_format_statsd);
    cr_assert_eq(wr_format_find("mlbench"), &wr_format_mlbench);
}

Test(format, unknown_names_are_not_found)
{
    cr_assert_null(wr_format_find(""));
    cr_assert_null(wr_format_find("JSON"));
    cr_assert_null(wr_format_find("jso"));
    cr_assert_null(wr_format_find("json "));
}

Test(format, the_list_has_each_format_once_and_an_end)
{
    size_t count = 0;
    for (const struct wr_format *format; (format = wr_format_at(count)); count++)
        cr_assert_eq(wr_format_find(format->name), format);
    cr_assert_geq(count, 3);
    cr_assert_null(wr_format_at(count + 1));
}

Test(format, each_format_has_a_summary)
{
    const struct wr_format *format;
    for (size_t i = 0; (format = wr_format_at(i)); i++) {
        cr_assert(format->summary && *format->summary && !strchr(format->summary, '\n'), "%s", format->name);
        cr_assert(format->content_type && strchr(format->content_type, '/'), "%s", format->name);
        cr_assert(format->shape == WEIR_FORMAT_LINES || format->shape == WEIR_FORMAT_DOCUMENTS ||
                  format->shape == WEIR_FORMAT_RECORDS);
        cr_assert(format->put_event);
        cr_assert(format->put_prefix || format->shape == WEIR_FORMAT_DOCUMENTS);
    }
}

Test(format, media_types_are_those_of_the_formats)
{
    cr_assert_str_eq(wr_format_text.content_type, "text/plain; charset=utf-8");
    cr_assert_str_eq(wr_format_json.content_type, "application/x-ndjson");
    cr_assert_str_eq(wr_format_prometheus.content_type, "text/plain; version=0.0.4; charset=utf-8");
    cr_assert_str_eq(wr_format_openmetrics.content_type,
                     "application/openmetrics-text; version=1.0.0; charset=utf-8");
    cr_assert_str_eq(wr_format_bai.content_type, "application/x-ndjson");
}
