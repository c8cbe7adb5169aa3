#include "parse_fixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/number.h"

static void put_number(struct wr_buffer *out, const weir_typed_value *value)
{
    char number[WR_NUMBER_ROOM];
    wr_buffer_put(out, number,
                  value->number.kind == WEIR_KIND_INT ? wr_number_put_int(number, value->number.is.i64)
                                                      : wr_number_put_repr(number, value->number.is.f64));
}

static void put_part(struct wr_buffer *out, const char *name, const char *text)
{
    if (text)
        wr_buffer_put_format(out, " %s=%s", name, text);
}

static void put_series(struct wr_buffer *out, const struct wr_parse_record *record)
{
    wr_buffer_put_format(out, "%" PRIu64 " %s", record->line, record->group ? record->group : "");
    for (size_t i = 0; i < record->label_count; i++)
        wr_buffer_put_format(out, "%c%s=%s", i ? ',' : '{', record->labels[i].key, record->labels[i].value);
    wr_buffer_put_text(out, record->label_count ? "}" : "");
}

void parse_fixture_show(struct wr_buffer *out, const struct wr_parse_record *record)
{
    static const char *const instruments[] = {"", " counter", " gauge", " histogram"};
    put_series(out, record);
    for (size_t i = 0; i < record->count; i++) {
        wr_buffer_put_format(out, " %s=", record->values[i].name);
        put_number(out, &record->values[i]);
    }
    if (record->has_time)
        wr_buffer_put_format(out, " @%" PRId64, record->time_ns);
    wr_buffer_put_text(out, record->cumulative ? " total" : "");
    wr_buffer_put_text(out, record->is_change ? " change" : "");
    wr_buffer_put_text(out, instruments[record->instrument]);
    if (record->sample_rate != 1)
        wr_buffer_put_format(out, " rate=%g", record->sample_rate);
    put_part(out, "unit", record->unit);
    put_part(out, "help", record->help);
    put_part(out, "metadata", record->metadata);
    put_part(out, "member", record->member);
    wr_buffer_put_char(out, '\n');
}

static bool take(void *context, const struct wr_parse_record *record)
{
    struct parse_fixture *fixture = context;
    if (fixture->refused++ < fixture->refused_each)
        return false;
    fixture->refused = 0;
    parse_fixture_show(&fixture->shown, record);
    return true;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    struct parse_fixture *fixture = context;
    wr_buffer_put_format(&fixture->shown, "%" PRIu64 ":%u%s: %s\n", fault->line, fault->column,
                         fault->is_value ? " value" : "", fault->text);
}

char *parse_fixture_run(struct parse_fixture *fixture, const char *type, const char *text, size_t length,
                        size_t piece)
{
    const struct wr_parser_sink sink = {take, refuse, fixture};
    const struct wr_parser_type *found = fixture->type ? fixture->type : wr_parser_type_find(type);
    struct wr_parser *parser = wr_parser_new(found, &fixture->options, &sink);
    fixture->shown = (struct wr_buffer){0};
    if (!parser)
        abort();
    for (size_t done = 0, used; done < length; done += used) {
        size_t part = length - done < piece ? length - done : piece;
        if (!wr_parser_put(parser, text + done, part, &used))
            while (!wr_parser_resume(parser))
                ;
    }
    while (!wr_parser_end(parser))
        ;
    wr_parser_free(parser);
    wr_buffer_put_text(&fixture->shown, "");
    return wr_buffer_take(&fixture->shown);
}
