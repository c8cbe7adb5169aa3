#include "format/format.h"

#include "text/common.h"
#include "text/escape.h"
#include "text/number.h"

enum { CRLF = 0 }; /* value of the option newline */

struct csv_options {
    bool header;
    int64_t newline;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("header", BOOL, 0, "true", NULL,
                    "begin files and requests with the line timestamp,group,name,value,labels",
                    struct csv_options, header),
    WEIR_OPTION_ROW("newline", ENUM, 0, "crlf", "crlf|lf", "what ends a line; RFC 4180 has crlf",
                    struct csv_options, newline),
    {0},
};

static const char *find_header(const void *given)
{
    const struct csv_options *options = given;
    if (!options->header)
        return "";
    return options->newline == CRLF ? "timestamp,group,name,value,labels\r\n"
                                    : "timestamp,group,name,value,labels\n";
}

/* RFC 4180, 2.5 to 2.7: quotes are added only where necessary, and quotes inside are doubled. */
static void put_field(struct wr_buffer *out, const char *text)
{
    if (!text[strcspn(text, "\",\r\n")]) {
        wr_buffer_put_text(out, text);
        return;
    }
    wr_buffer_put_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            wr_buffer_put_char(out, '"');
        wr_buffer_put_char(out, *text);
    }
    wr_buffer_put_char(out, '"');
}

/* One field for all labels: a JSON object, which contains no line break; empty without labels. */
static void put_labels(const struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    struct wr_buffer object = {0};
    wr_encoder_put_labels(encoder, series, &object, "", wr_escape_json);
    const char *text = wr_buffer_text(&object);
    if (text && !object.failed)
        put_field(out, text);
    else
        out->failed = true;
    wr_buffer_fini(&object);
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    wr_buffer_put_char(out, ',');
    put_field(out, series->group);
    wr_buffer_put_char(out, ',');
    put_field(out, series->name);
    wr_buffer_put_char(out, ',');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct csv_options *options = encoder->options;
    wr_buffer_put_char(out, ',');
    put_labels(encoder, series, out);
    wr_buffer_put_text(out, options->newline == CRLF ? "\r\n" : "\n");
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    enum { TIME_ROOM = 40 + WR_ENCODER_SLACK };
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes ||
        !wr_buffer_reserve(out, TIME_ROOM + WR_NUMBER_ROOM + (size_t)affixes->prefix + affixes->suffix)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    at += wr_encoder_put_time(encoder, at, sample->time_ns, 9);
    at = wr_encoder_copy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += sample->kind == WEIR_KIND_INT ? wr_number_put_int(at, sample->value.i64)
                                        : wr_number_put_double(at, sample->value.f64);
    at = wr_encoder_copy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    out->length = (size_t)(at - out->data);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        put_sample(encoder, &encoder->batch->samples[i]);
}

const struct wr_format wr_format_csv = {
    .name = "csv",
    .summary = "a record for each sample, RFC 4180: timestamp,group,name,value,labels",
    .content_type = "text/csv; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct csv_options)},
    .header = find_header,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
