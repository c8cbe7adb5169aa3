#include "format/otlp_document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/encoder.h"
#include "format/otlp_histogram.h"
#include "format/otlp_resource.h"
#include "format/otlp_writer.h"
#include "format/ucum.h"
#include "registry/labels_walk.h"
#include "summary/exponential.h"
#include "summary/summary.h"
#include "text/array.h"
#include "text/error.h"

/* Numbers of fields: opentelemetry/proto/metrics/v1/metrics.proto. */
static const struct wr_otlp_field resource_metrics = {1, NULL}, resource_field = {1, "resource"},
                                  scope_metrics = {2, NULL}, scope_field = {1, "scope"},
                                  scope_name = {1, "name"}, metric_field = {2, NULL}, metric_name = {1, "name"},
                                  metric_description = {2, "description"}, metric_unit = {3, "unit"},
                                  data_point = {1, NULL}, temporality_field = {2, "aggregationTemporality"},
                                  monotonic_field = {3, "isMonotonic"}, start_field = {2, "startTimeUnixNano"},
                                  time_field = {3, "timeUnixNano"}, as_double = {4, "asDouble"};
enum { POINT_ATTRIBUTES = 7, HISTOGRAM_ATTRIBUTES = 9, EXPONENTIAL_ATTRIBUTES = 1, WIRE_BYTES = 2 };
enum { DELTA = 1, CUMULATIVE = 2 };

/* What kind of metric samples become, in the order of metrics of one name. */
enum form { FORM_GAUGE, FORM_SUM_DELTA, FORM_SUM_CUMULATIVE, FORM_HISTOGRAM, FORM_EXPONENTIAL, FORMS };

static const struct wr_otlp_field form_fields[FORMS] = {
    [FORM_GAUGE] = {5, "gauge"},
    [FORM_SUM_DELTA] = {7, "sum"},
    [FORM_SUM_CUMULATIVE] = {7, "sum"},
    [FORM_HISTOGRAM] = {9, "histogram"},
    [FORM_EXPONENTIAL] = {10, "exponentialHistogram"},
};

/* The samples of one series that have one form. */
struct entry {
    const weir_series *series;
    enum form form;
    uint32_t first, last; /* samples, relative to the document's first */
};

struct wr_otlp_document {
    struct wr_otlp_style style;
    struct wr_buffer resource; /* the attributes */
    struct wr_summary_room *reading;
    struct wr_exponential *histogram; /* NULL: not used so far */

    /* Of the present document. */
    struct entry *entries;
    uint32_t entry_count, entry_room;
    uint32_t *places; /* by series id and form: of the entry, plus 1; 0: there is none */
    uint32_t place_room;
    uint32_t *next; /* by sample: the next one of its entry */
    uint32_t next_room;
};

struct wr_otlp_document *wr_otlp_document_new(const struct wr_otlp_resource *resource,
                                              const struct wr_otlp_style *style)
{
    struct wr_otlp_document *document = calloc(1, sizeof *document);
    if (!document)
        return NULL;
    document->style = *style;
    const struct wr_otlp_writer writer = {&document->resource, style->json};
    wr_otlp_resource_put(&writer, resource);
    if (!document->resource.failed)
        return document;
    wr_otlp_document_free(document);
    return NULL;
}

void wr_otlp_document_free(struct wr_otlp_document *document)
{
    if (!document)
        return;
    wr_buffer_fini(&document->resource);
    free(document->reading);
    free(document->histogram);
    free(document->entries);
    free(document->places);
    free(document->next);
    free(document);
}

/* The document that is being written. */
struct work {
    struct wr_otlp_document *document;
    struct wr_encoder *encoder;
    struct wr_otlp_writer writer;
    uint32_t first; /* of the batch's samples */
};

static struct wr_otlp_document *document_of(const struct wr_encoder *encoder)
{
    return encoder->state;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

void wr_otlp_put_attributes(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct wr_otlp_writer writer = {out, document_of(encoder)->style.json};
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label = wr_labels_next(&walk, series, encoder->batch);
    if (!label)
        return;
    if (writer.json)
        wr_buffer_put_text(out, "\"attributes\":[");
    for (; label; label = wr_labels_next(&walk, series, encoder->batch))
        wr_otlp_put_attribute(&writer, POINT_ATTRIBUTES, label->key, label->value);
    if (writer.json)
        wr_buffer_put_text(out, "]");
}

/* Writes the attributes of a series to a point, whose list of them has another number. */
static void put_numbered(const struct work *work, const struct wr_affixes *affixes, unsigned number)
{
    struct wr_buffer *out = work->writer.out;
    size_t at = out->length, end = at + affixes->prefix;
    wr_buffer_put(out, wr_encoder_prefix(work->encoder, affixes), affixes->prefix);
    while (!out->failed && !work->writer.json && at < end) {
        unsigned char *byte = (unsigned char *)out->data + at;
        size_t length = 0;
        unsigned shift = 0;
        *byte++ = (unsigned char)(number << 3 | WIRE_BYTES);
        do {
            length |= (size_t)(*byte & 0x7f) << shift;
            shift += 7;
        } while (*byte++ & 0x80);
        at = (size_t)(byte + length - (unsigned char *)out->data);
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static uint64_t bits_of(const weir_sample *sample)
{
    uint64_t bits;
    memcpy(&bits, &sample->value, sizeof bits);
    return bits;
}

enum { TAG_POINT = 1 << 3 | 2, TAG_TIME = 3 << 3 | 1, TAG_DOUBLE = 4 << 3 | 1, TAG_INT = 6 << 3 | 1 };

/* A point of protobuf: its length is known beforehand. */
static void put_binary_number(const struct work *work, const weir_sample *sample,
                              const struct wr_affixes *affixes)
{
    enum { FIELD = 9 };
    struct wr_buffer *out = work->writer.out;
    size_t length = 2 * FIELD + (size_t)affixes->prefix;
    if (!wr_buffer_reserve(out, 1 + WR_OTLP_VARINT + length + WR_ENCODER_SLACK))
        return;
    unsigned char *at = (unsigned char *)out->data + out->length;
    *at++ = TAG_POINT;
    at += wr_otlp_write_varint(at, length);
    *at = TAG_TIME;
    wr_otlp_write_fixed64(at + 1, (uint64_t)sample->time_ns);
    at[FIELD] = sample->kind == WEIR_KIND_INT ? TAG_INT : TAG_DOUBLE;
    wr_otlp_write_fixed64(at + FIELD + 1, bits_of(sample));
    at = (unsigned char *)wr_encoder_copy((char *)at + 2 * FIELD, wr_encoder_prefix(work->encoder, affixes),
                                          affixes->prefix);
    out->length = (size_t)((char *)at - out->data);
}

static void put_json_number(const struct work *work, const weir_sample *sample,
                            const struct wr_affixes *affixes)
{
    struct wr_buffer *out = work->writer.out;
    size_t begin = wr_otlp_begin(&work->writer, data_point);
    wr_buffer_put(out, wr_encoder_prefix(work->encoder, affixes), affixes->prefix);
    wr_buffer_put_text(out, affixes->prefix ? ",\"timeUnixNano\":" : "\"timeUnixNano\":");
    wr_otlp_put_json_int(out, sample->time_ns);
    if (sample->kind == WEIR_KIND_INT) {
        wr_buffer_put_text(out, ",\"asInt\":");
        wr_otlp_put_json_int(out, sample->value.i64);
    } else {
        wr_buffer_put_text(out, ",\"asDouble\":");
        wr_otlp_put_json_double(out, sample->value.f64);
    }
    wr_otlp_end(&work->writer, begin);
}

/* ---- Summaries ------------------------------------------------------------------------------- */

/* Returns false if out of memory. */
static bool read_summary(const struct work *work, const weir_sample *sample, struct wr_summary *summary)
{
    struct wr_otlp_document *document = work->document;
    struct wr_error error = {0};
    if (!document->reading)
        document->reading = malloc(sizeof *document->reading);
    return document->reading &&
           wr_summary_read(summary, document->reading, wr_encoder_note(work->encoder, sample), &error);
}

static void put_times(const struct work *work, const weir_sample *sample, const struct wr_summary *summary)
{
    int64_t start_ns = work->document->style.delta ? summary->start_ns : summary->since_ns;
    if (start_ns > 0 && summary->kind != WEIR_GAUGE)
        wr_otlp_put_fixed64(&work->writer, start_field, (uint64_t)start_ns);
    wr_otlp_put_fixed64(&work->writer, time_field, (uint64_t)sample->time_ns);
}

static double number_of(const struct work *work, const struct wr_summary *summary)
{
    if (summary->kind == WEIR_GAUGE)
        return summary->last;
    return work->document->style.delta ? summary->sum : summary->total_sum;
}

static enum form form_of_summary(const struct wr_otlp_document *document, const struct wr_summary *summary)
{
    if (summary->kind == WEIR_GAUGE)
        return FORM_GAUGE;
    if (summary->kind == WEIR_HISTOGRAM) /* a sketch that was not kept has no values */
        return document->style.buckets && summary->sketch.count == summary->count ? FORM_EXPONENTIAL
                                                                                  : FORM_HISTOGRAM;
    return document->style.delta ? FORM_SUM_DELTA : FORM_SUM_CUMULATIVE;
}

static unsigned attributes_of(enum form form)
{
    return form == FORM_HISTOGRAM     ? HISTOGRAM_ATTRIBUTES
           : form == FORM_EXPONENTIAL ? EXPONENTIAL_ATTRIBUTES
                                      : POINT_ATTRIBUTES;
}

/* Returns false if out of memory. */
static bool put_exponential(const struct work *work, const struct wr_summary *summary)
{
    struct wr_otlp_document *document = work->document;
    if (!document->histogram)
        document->histogram = malloc(sizeof *document->histogram);
    if (!document->histogram)
        return false;
    wr_exponential_make(document->histogram, &summary->sketch, document->style.buckets);
    wr_otlp_put_exponential(&work->writer, summary, document->histogram);
    return true;
}

/* Returns false if out of memory. */
static bool put_summary(const struct work *work, const weir_series *series, const weir_sample *sample,
                        const struct wr_affixes *affixes)
{
    struct wr_summary summary;
    if (!read_summary(work, sample, &summary))
        return false;
    enum form form = form_of_summary(work->document, &summary);
    size_t begin = wr_otlp_begin(&work->writer, data_point);
    bool written = true;
    put_numbered(work, affixes, attributes_of(form));
    put_times(work, sample, &summary);
    if (form == FORM_HISTOGRAM)
        wr_otlp_put_explicit(&work->writer, series, &summary, work->document->style.delta);
    else if (form == FORM_EXPONENTIAL)
        written = put_exponential(work, &summary);
    else
        wr_otlp_put_double(&work->writer, as_double, number_of(work, &summary));
    wr_otlp_end(&work->writer, begin);
    wr_sketch_fini(&summary.sketch);
    return written;
}

/* ---- Collecting ------------------------------------------------------------------------------ */

/* An increment of a counter that is not summed up is a delta. Returns FORMS if out of memory. */
static enum form find_form(const struct work *work, const weir_sample *sample, const weir_series *series)
{
    struct wr_summary summary;
    if (sample->kind == WEIR_KIND_SUMMARY) {
        if (!read_summary(work, sample, &summary))
            return FORMS;
        enum form form = form_of_summary(work->document, &summary);
        wr_sketch_fini(&summary.sketch);
        return form;
    }
    if (series->cumulative)
        return FORM_SUM_CUMULATIVE;
    return series->instrument == WEIR_COUNTER ? FORM_SUM_DELTA : FORM_GAUGE;
}

/* Returns false if out of memory. */
static bool add_entry(struct wr_otlp_document *document, uint32_t *place, const weir_series *series,
                      enum form form, uint32_t number)
{
    if (!WR_ARRAY_HAS_ROOM(&document->entries, &document->entry_room, document->entry_count + 1))
        return false;
    document->entries[document->entry_count++] = (struct entry){series, form, number, number};
    *place = document->entry_count;
    return true;
}

/* number: of the sample within the document. Returns false if out of memory. */
static bool collect(const struct work *work, uint32_t number)
{
    struct wr_otlp_document *document = work->document;
    const weir_sample *sample = &work->encoder->batch->samples[work->first + number];
    const weir_series *series = weir_batch_series(work->encoder->batch, sample);
    if (sample->time_ns < 0) { /* times are not negative there */
        wr_encoder_omit(work->encoder, work->first + number);
        return true;
    }
    enum form form = find_form(work, sample, series);
    if (form == FORMS ||
        !WR_ARRAY_HAS_ROOM(&document->places, &document->place_room, (sample->series + 1) * FORMS))
        return false;
    uint32_t *place = &document->places[sample->series * FORMS + form];
    document->next[number] = UINT32_MAX;
    if (!*place)
        return add_entry(document, place, series, form, number);
    struct entry *entry = &document->entries[*place - 1];
    document->next[entry->last] = number;
    entry->last = number;
    return true;
}

static bool collect_all(const struct work *work, uint32_t count)
{
    struct wr_otlp_document *document = work->document;
    if (!WR_ARRAY_HAS_ROOM(&document->next, &document->next_room, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!collect(work, i))
            return false;
    return true;
}

/* ---- The document ---------------------------------------------------------------------------- */

static int compare_texts(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a, b);
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_texts(a->series->group, b->series->group);
    if (!order)
        order = compare_texts(a->series->name, b->series->name);
    if (!order)
        order = (int)a->form - (int)b->form;
    return order ? order : (a->series->id > b->series->id) - (a->series->id < b->series->id);
}

/* Returns false if out of memory. */
static bool put_points(const struct work *work, const struct entry *entry)
{
    for (uint32_t i = entry->first; i != UINT32_MAX; i = work->document->next[i]) {
        const weir_sample *sample = &work->encoder->batch->samples[work->first + i];
        const struct wr_affixes *affixes = wr_encoder_affixes(work->encoder, sample->series);
        if (!affixes)
            return false;
        if (sample->kind == WEIR_KIND_SUMMARY) {
            if (!put_summary(work, entry->series, sample, affixes))
                return false;
        } else if (work->writer.json) {
            put_json_number(work, sample, affixes);
        } else {
            put_binary_number(work, sample, affixes);
        }
    }
    return true;
}

static void put_name(const struct work *work, const weir_series *series)
{
    char name[2 * 256];
    snprintf(name, sizeof name, "%s.%s", series->group, series->name);
    wr_otlp_put_text(&work->writer, metric_name, name);
    if (series->help)
        wr_otlp_put_text(&work->writer, metric_description, series->help);
    if (!series->unit)
        return;
    struct wr_buffer unit = {0};
    wr_ucum_put(&unit, series->unit);
    const char *text = wr_buffer_text(&unit);
    if (text)
        wr_otlp_put_text(&work->writer, metric_unit, text);
    else
        work->writer.out->failed = true;
    wr_buffer_fini(&unit);
}

static bool is_same_metric(const struct entry *a, const struct entry *b)
{
    return a->form == b->form && compare_texts(a->series->group, b->series->group) == 0 &&
           compare_texts(a->series->name, b->series->name) == 0;
}

static void put_kind(const struct work *work, enum form form)
{
    bool is_histogram = form == FORM_HISTOGRAM || form == FORM_EXPONENTIAL;
    bool delta = form == FORM_SUM_DELTA || (is_histogram && work->document->style.delta);
    if (form == FORM_GAUGE)
        return;
    wr_otlp_put_enum(&work->writer, temporality_field, delta ? DELTA : CUMULATIVE);
    if (!is_histogram)
        wr_otlp_put_true(&work->writer, monotonic_field);
}

/* Writes the metric that begins with an entry. Returns the first entry behind it; NULL: out of memory. */
static const struct entry *put_metric(const struct work *work, const struct entry *first,
                                      const struct entry *end)
{
    const struct wr_otlp_writer *writer = &work->writer;
    const struct entry *entry = first;
    size_t metric = wr_otlp_begin(writer, metric_field);
    put_name(work, first->series);
    size_t data = wr_otlp_begin(writer, form_fields[first->form]);
    wr_otlp_begin_list(writer, "dataPoints");
    for (; entry < end && is_same_metric(entry, first); entry++)
        if (!put_points(work, entry))
            return NULL;
    wr_otlp_end_list(writer);
    put_kind(work, first->form);
    wr_otlp_end(writer, data);
    wr_otlp_end(writer, metric);
    return entry;
}

/* The same for a scope. */
static const struct entry *put_scope(const struct work *work, const struct entry *first,
                                     const struct entry *end)
{
    const struct wr_otlp_writer *writer = &work->writer;
    const char *group = first->series->group;
    const struct entry *entry = first;
    size_t metrics = wr_otlp_begin(writer, scope_metrics), scope = wr_otlp_begin(writer, scope_field);
    wr_otlp_put_text(writer, scope_name, group);
    wr_otlp_end(writer, scope);
    wr_otlp_begin_list(writer, "metrics");
    while (entry && entry < end && compare_texts(entry->series->group, group) == 0)
        entry = put_metric(work, entry, end);
    wr_otlp_end_list(writer);
    wr_otlp_end(writer, metrics);
    return entry;
}

static void put_resource(const struct work *work)
{
    const struct wr_otlp_writer *writer = &work->writer;
    const struct wr_buffer *attributes = &work->document->resource;
    size_t resource = wr_otlp_begin(writer, resource_field);
    wr_otlp_begin_list(writer, "attributes");
    wr_buffer_put(writer->out, attributes->data, attributes->length);
    wr_otlp_end_list(writer);
    wr_otlp_end(writer, resource);
}

/* Returns false if out of memory. */
static bool put_all(const struct work *work)
{
    const struct wr_otlp_writer *writer = &work->writer;
    const struct entry *entry = work->document->entries, *end = entry + work->document->entry_count;
    qsort(work->document->entries, work->document->entry_count, sizeof *entry, compare);
    if (writer->json)
        wr_buffer_put_char(writer->out, '{');
    wr_otlp_begin_list(writer, "resourceMetrics");
    size_t metrics = wr_otlp_begin(writer, resource_metrics);
    put_resource(work);
    wr_otlp_begin_list(writer, "scopeMetrics");
    while (entry && entry < end)
        entry = put_scope(work, entry, end);
    wr_otlp_end_list(writer);
    wr_otlp_end(writer, metrics);
    wr_otlp_end_list(writer);
    if (writer->json)
        wr_buffer_put_char(writer->out, '}');
    return entry;
}

/* The next document begins empty. */
static void clear(struct wr_otlp_document *document)
{
    for (uint32_t i = 0; i < document->entry_count; i++) {
        const struct entry *entry = &document->entries[i];
        document->places[entry->series->id * FORMS + entry->form] = 0;
    }
    document->entry_count = 0;
}

bool wr_otlp_document_put(struct wr_otlp_document *document, struct wr_encoder *encoder, uint32_t first,
                          uint32_t end)
{
    const struct work work = {document, encoder, {&encoder->out, document->style.json}, first};
    bool written = collect_all(&work, end - first) && (!document->entry_count || put_all(&work));
    clear(document);
    return written && !encoder->out.failed;
}
