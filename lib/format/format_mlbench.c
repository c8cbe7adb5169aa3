#include "format/format.h"

#include "format/iso_time.h"
#include "text/escape.h"
#include "text/number.h"

struct mlbench_options {
    const char *run_id, *pod_name;
    bool group;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("run_id", STRING, 0, NULL, NULL, "the run that values belong to; or else pod_name",
                    struct mlbench_options, run_id),
    WEIR_OPTION_ROW("pod_name", STRING, 0, NULL, NULL,
                    "the pod that values belong to, with MLBench 2.x; or else run_id", struct mlbench_options,
                    pod_name),
    WEIR_OPTION_ROW("group", BOOL, 0, "false", NULL, "put the group and a dot in front of names",
                    struct mlbench_options, group),
    {0},
};

static const char *find_fault(const void *given)
{
    const struct mlbench_options *options = given;
    if (options->run_id && options->pod_name)
        return "only one of \"run_id\" and \"pod_name\" is allowed";
    if (!options->run_id && !options->pod_name)
        return "the option \"run_id\" or \"pod_name\" is missing";
    return NULL;
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct mlbench_options *options = encoder->options;
    wr_buffer_put_text(out, options->run_id ? "run_id=" : "pod_name=");
    wr_escape_form(out, options->run_id ? options->run_id : options->pod_name);
    wr_buffer_put_text(out, "&name=");
    if (options->group) {
        wr_escape_form(out, series->group);
        wr_buffer_put_char(out, '.');
    }
    wr_escape_form(out, series->name);
    wr_buffer_put_text(out, series->cumulative ? "&cumulative=True&date=" : "&cumulative=False&date=");
}

/* Writes 2026-01-31 12:34:56.789012 in UTC, encoded for forms. */
static size_t put_date(char *out, int64_t time_ns)
{
    static const char pattern[] = "0000-00-00+00%3A00%3A00.000000";
    char iso[WR_ISO_TIME];
    wr_iso_time_put(iso, time_ns);
    memcpy(out, pattern, sizeof pattern - 1);
    memcpy(out, iso, 10);
    memcpy(out + 11, iso + 11, 2);
    memcpy(out + 16, iso + 14, 2);
    memcpy(out + 21, iso + 17, WR_ISO_TIME - 17);
    return sizeof pattern - 1;
}

static size_t put_value(char *out, const weir_sample *sample)
{
    char number[WR_NUMBER_ROOM];
    size_t length = sample->kind == WEIR_KIND_INT ? wr_number_put_int(number, sample->value.i64)
                                                  : wr_number_put_double(number, sample->value.f64);
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        if (number[i] == '+') { /* of an exponent; in a form it would mean a blank */
            memcpy(out + written, "%2B", 3);
            written += 3;
        } else {
            out[written++] = number[i];
        }
    }
    return written;
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    enum { REST_ROOM = 128 };
    struct wr_buffer *out = &encoder->out;
    const weir_sample *sample = &encoder->batch->samples[first];
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    (void)end;
    if (!affixes || !wr_buffer_reserve(out, (size_t)affixes->prefix + REST_ROOM)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    at += put_date(at, sample->time_ns);
    memcpy(at, "&value=", 7);
    at += 7;
    at += put_value(at, sample);
    memcpy(at, "&metadata=", 10);
    out->length = (size_t)(at + 10 - out->data);
    const char *note = wr_encoder_note(encoder, sample);
    if (note)
        wr_escape_form(out, note);
}

const struct wr_format wr_format_mlbench = {
    .name = "mlbench",
    .summary = "MLBench's metrics, a form for each sample, for POST to /api/metrics/",
    .content_type = "application/x-www-form-urlencoded",
    .shape = WEIR_FORMAT_RECORDS,
    .options = {option_rows, sizeof(weir_option), sizeof(struct mlbench_options)},
    .find_fault = find_fault,
    .wants = WR_WANTS_NO_BUCKETS,
    .put_prefix = put_prefix,
    .put_event = put_event,
};
