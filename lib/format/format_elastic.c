#include "format/format.h"

#include <math.h>
#include <string.h>

#include "format/index_name.h"
#include "format/iso_time.h"
#include "text/common.h"
#include "text/escape.h"
#include "text/number.h"

/* The body of Elasticsearch's _bulk: for each document a line with the action, and one with the document.
 * https://www.elastic.co/guide/en/elasticsearch/reference/current/docs-bulk.html */

enum { OP_CREATE, OP_INDEX };

struct elastic_options {
    const char *index;
    int64_t op_type;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("index", STRING, 0, "weir", NULL,
                    "the index or data stream; fields: {group}, {name}, {label.KEY}", struct elastic_options,
                    index),
    WEIR_OPTION_ROW("op_type", ENUM, 0, "create", "create|index",
                    "create: a document that is there already is left as it is; index: it is replaced",
                    struct elastic_options, op_type),
    {0},
};

static const char *find_fault(const void *given)
{
    const struct elastic_options *options = given;
    return wr_index_name_find_fault(options->index);
}

/* ---- Constant text --------------------------------------------------------------------------- */

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ')
            return false;
    return true;
}

/* Appends the name of a field. Elasticsearch takes a name with dots for a path and refuses empty parts of it:
 * these become '_'. */
static void put_field(struct wr_buffer *out, const char *name)
{
    struct wr_buffer path = {0};
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, ".");
        if (is_blank(part, length))
            wr_buffer_put_char(&path, '_');
        else
            wr_buffer_put(&path, part, length);
        part += length;
        if (!*part)
            break;
        wr_buffer_put_char(&path, '.');
    }
    const char *text = wr_buffer_text(&path);
    if (text)
        wr_escape_json(out, text);
    else
        out->failed = true;
    wr_buffer_fini(&path);
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    put_field(out, series->name);
    wr_buffer_put_char(out, ':');
}

/* Two texts, each ending in NUL: what is before the document's id, and what is behind its time. Samples with
 * equal ones may share a document. */
static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct elastic_options *options = encoder->options;
    wr_buffer_put_text(out, options->op_type == OP_CREATE ? "{\"create\":{\"_index\":\""
                                                          : "{\"index\":{\"_index\":\"");
    wr_index_name_put(out, options->index, series, encoder->batch);
    wr_buffer_put(out, "\"", 2);
    wr_buffer_put_text(out, "\",\"group\":");
    wr_escape_json(out, series->group);
    wr_encoder_put_labels(encoder, series, out, ",\"labels\":", put_field);
    if (series->cumulative)
        wr_buffer_put_text(out, ",\"cumulative\":true");
    wr_buffer_put(out, ",\"metrics\":{", sizeof ",\"metrics\":{");
}

/* ---- Samples --------------------------------------------------------------------------------- */

static bool is_number(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT || isfinite(sample->value.f64);
}

/* ---- Documents ------------------------------------------------------------------------------- */

/* Appends the action, with the id by which the destination recognises a document that is sent again. */
static void put_action(struct wr_encoder *encoder, uint32_t first, const char *action)
{
    struct wr_buffer *out = &encoder->out;
    const char *origin = wr_encoder_origin(encoder);
    wr_buffer_put_text(out, action);
    if (*origin) {
        wr_buffer_put_text(out, ",\"_id\":\"");
        wr_buffer_put_text(out, origin);
        wr_buffer_put_char(out, '-');
        if (wr_buffer_reserve(out, WR_NUMBER_ROOM))
            out->length += wr_number_put_uint(out->data + out->length, encoder->batch->sequence + first);
        wr_buffer_put_char(out, '"');
    }
    wr_buffer_put_text(out, "}}\n");
}

/* Appends {"@timestamp":"2026-11-22T09:09:30.284552198Z. */
static void put_time(struct wr_buffer *out, int64_t time_ns)
{
    char text[] = "{\"@timestamp\":\"0000-00-00T00:00:00.000000000Z";
    char *at = text + sizeof "{\"@timestamp\":\"" - 1;
    int64_t below_us = time_ns % WR_NS_PER_US;
    wr_iso_time_put(at, time_ns);
    wr_number_put_padded(at + WR_ISO_TIME, (uint32_t)(below_us < 0 ? below_us + WR_NS_PER_US : below_us), 3);
    wr_buffer_put(out, text, sizeof text - 1);
}

/* Appends the members. Returns how many. Doubles are written with a point or an exponent: the first value of a
 * name decides how Elasticsearch stores all of them, and 1 would make it an integer. */
static uint32_t put_values(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    struct wr_affixes affixes;
    for (uint32_t i = first; i < end; i++) {
        const weir_sample *sample = &encoder->batch->samples[i];
        if (!is_number(sample)) {
            wr_encoder_omit(encoder, i);
            continue;
        }
        if (!wr_encoder_copy_affixes(encoder, sample, &affixes))
            return count;
        if (count++)
            wr_buffer_put_char(&encoder->out, ',');
        wr_encoder_put_repr(encoder, sample, &affixes);
    }
    return count;
}

/* Appends an action and a document, or nothing if it would have no values. */
static void put_document(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    const weir_sample *sample = &encoder->batch->samples[first];
    const size_t start = out->length;
    struct wr_affixes affixes;
    if (!wr_encoder_copy_affixes(encoder, sample, &affixes))
        return;
    const char *action = wr_encoder_suffix(encoder, &affixes);
    put_action(encoder, first, action);
    put_time(out, sample->time_ns);
    wr_buffer_put_text(out, action + strlen(action) + 1);
    uint32_t count = put_values(encoder, first, end);
    const char *note = wr_encoder_note(encoder, sample);
    if (note) {
        wr_buffer_put_text(out, "},\"metadata\":");
        wr_escape_json(out, note);
        wr_buffer_put_text(out, "}\n");
    } else {
        wr_buffer_put_text(out, "}}\n");
    }
    if (!count)
        out->length = start;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Whether samples [first, i) have the series of sample i. A mark is the last sample of the series that was
 * looked at, plus 1, perhaps in an earlier batch. */
static bool is_repeated(struct wr_encoder *encoder, uint32_t first, uint32_t i)
{
    const weir_sample *samples = encoder->batch->samples;
    uint32_t *mark = &encoder->affixes[samples[i].series].mark, last = *mark - 1;
    *mark = i + 1;
    return last >= first && last < i && samples[last].series == samples[i].series;
}

/* Returns the end of the samples that share a document with the first one: those of the same index, group,
 * labels and metadata, until a name comes twice. */
static uint32_t find_document_end(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    const weir_sample *samples = encoder->batch->samples;
    struct wr_affixes one, other;
    if (first + 1 == end || !wr_encoder_copy_affixes(encoder, &samples[first], &one))
        return end;
    uint32_t i = first;
    while (i < end && samples[i].note == samples[first].note &&
           wr_encoder_copy_affixes(encoder, &samples[i], &other) &&
           wr_encoder_has_same_suffix(encoder, &one, &other) && !is_repeated(encoder, first, i))
        i++;
    return i;
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first, next; i < end && !encoder->out.failed; i = next) {
        next = find_document_end(encoder, i, end);
        put_document(encoder, i, next);
    }
}

const struct wr_format wr_format_elastic = {
    .name = "elastic",
    .summary = "Elasticsearch and OpenSearch: an action and a document for each event, for POST to /_bulk",
    .content_type = "application/x-ndjson",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct elastic_options)},
    .find_fault = find_fault,
    .wants = WR_WANTS_INSTANCE,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
