#include "format/format.h"

#include <math.h>
#include <stdlib.h>

#include "format/exposition.h"
#include "text/array.h"
#include "text/common.h"
#include "text/number.h"

/* The formats prometheus and openmetrics. */

enum { UNITS_BASE };

struct prometheus_options {
    int64_t units;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW(
        "units", ENUM, 0, "base", "base|as_is",
        "base: values in ms, KiB and the like are converted to seconds and bytes, and their names say so",
        struct prometheus_options, units),
    {0},
};

/* What is known of a series. */
struct known {
    const weir_series *series; /* NULL: nothing */
    struct wr_series_text text;
    uint32_t place; /* in the document, plus 1; 0: not in it */
};

struct prometheus {
    struct known *known; /* by series id */
    uint32_t known_room;
    uint64_t labels;      /* number of the label set that the texts contain */
    uint64_t definitions; /* weir_batch.definitions, when they were made */
    struct wr_exposed *document;
    uint32_t count, room;
};

static void forget_all(struct prometheus *prometheus)
{
    for (uint32_t i = 0; i < prometheus->known_room; i++) {
        wr_series_text_fini(&prometheus->known[i].text);
        prometheus->known[i].series = NULL;
    }
}

static void free_state(void *state)
{
    struct prometheus *prometheus = state;
    forget_all(prometheus);
    free(prometheus->known);
    free(prometheus->document);
    free(prometheus);
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* A series whose unit, help or instrument has changed is called anew, by the next document if this one contains
 * it already: the document borrows the text. Returns NULL if out of memory. */
static struct known *find_known(const struct wr_encoder *encoder, uint32_t series)
{
    struct prometheus *prometheus = encoder->state;
    const struct prometheus_options *options = encoder->options;
    const weir_batch *batch = encoder->batch;
    const struct wr_series_rules rules = {.base_units = options->units == UNITS_BASE};
    const weir_series *view = batch->series(batch, series);
    if (!WR_ARRAY_HAS_ROOM(&prometheus->known, &prometheus->known_room, series + 1))
        return NULL;
    struct known *known = &prometheus->known[series];
    if (known->series == view || known->place)
        return known;
    wr_series_text_fini(&known->text);
    known->series = NULL;
    if (!wr_series_text_init(&known->text, view, batch, &rules))
        return NULL;
    known->series = view;
    return known;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static double value_of(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
}

/* Numbers are doubles; integers without an exact double are omitted. In OpenMetrics a counter is a number that
 * is not negative. */
static bool is_written(const struct wr_encoder *encoder, const weir_sample *sample, const struct known *known)
{
    if (sample->kind == WEIR_KIND_INT && !wr_number_is_double(sample->value.i64))
        return false;
    return encoder->format != &wr_format_openmetrics || known->text.type != WR_SERIES_COUNTER ||
           (isfinite(value_of(sample)) && value_of(sample) >= 0);
}

/* Returns the series' place in the document, at its end if it is not in it yet. NULL: out of memory. */
static struct wr_exposed *find_place(struct prometheus *prometheus, struct known *known)
{
    if (known->place)
        return &prometheus->document[known->place - 1];
    if (!WR_ARRAY_HAS_ROOM(&prometheus->document, &prometheus->room, prometheus->count + 1))
        return NULL;
    struct wr_exposed *place = &prometheus->document[prometheus->count++];
    *place = (struct wr_exposed){.series = known->series, .text = known->text};
    known->place = prometheus->count;
    return place;
}

static bool record(struct wr_encoder *encoder, uint32_t number)
{
    const weir_sample *sample = &encoder->batch->samples[number];
    struct known *known = find_known(encoder, sample->series);
    if (!known)
        return false;
    if (!is_written(encoder, sample, known)) {
        wr_encoder_omit(encoder, number);
        return true;
    }
    struct wr_exposed *place = find_place(encoder->state, known);
    if (!place)
        return false;
    place->value = value_of(sample);
    place->time_ns = sample->time_ns;
    return true;
}

static bool record_all(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (!record(encoder, i))
            return false;
    return true;
}

/* ---- The document ---------------------------------------------------------------------------- */

/* What the document has found out about names. */
static void remember_clashes(struct prometheus *prometheus)
{
    for (uint32_t i = 0; i < prometheus->count; i++) {
        const struct wr_exposed *place = &prometheus->document[i];
        struct known *known = &prometheus->known[place->series->id];
        known->text.named = place->text.named;
        known->text.puts_group = place->text.puts_group;
        known->text.puts_name = place->text.puts_name;
        known->text.puts_labels = place->text.puts_labels;
    }
}

/* The next document begins empty. */
static void clear(const struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct prometheus *prometheus = encoder->state;
    for (uint32_t i = first; i < end; i++)
        if (encoder->batch->samples[i].series < prometheus->known_room)
            prometheus->known[encoder->batch->samples[i].series].place = 0;
    prometheus->count = 0;
}

static void put_document(struct wr_encoder *encoder)
{
    struct prometheus *prometheus = encoder->state;
    bool is_openmetrics = encoder->format == &wr_format_openmetrics;
    if (!prometheus->count)
        return;
    wr_exposition_sort(prometheus->document, prometheus->count);
    wr_exposition_write(&encoder->out, prometheus->document, prometheus->count,
                        is_openmetrics ? WR_EXPOSITION_OPENMETRICS : WR_EXPOSITION_TEXT);
    remember_clashes(prometheus);
}

static bool has_state(struct wr_encoder *encoder)
{
    if (!encoder->state)
        encoder->state = calloc(1, sizeof(struct prometheus));
    return encoder->state;
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    if (!has_state(encoder)) {
        encoder->out.failed = true;
        return;
    }
    struct prometheus *prometheus = encoder->state;
    if (prometheus->labels != encoder->labels || prometheus->definitions != encoder->batch->definitions)
        forget_all(prometheus);
    prometheus->labels = encoder->labels;
    prometheus->definitions = encoder->batch->definitions;
    if (record_all(encoder, first, end))
        put_document(encoder);
    else
        encoder->out.failed = true;
    clear(encoder, first, end);
}

const struct wr_format wr_format_prometheus = {
    .name = "prometheus",
    .summary = "Prometheus' text format: the last value of each series, with HELP and TYPE",
    .content_type = WR_EXPOSITION_TEXT_TYPE,
    .shape = WEIR_FORMAT_DOCUMENTS,
    .options = {option_rows, sizeof(weir_option), sizeof(struct prometheus_options)},
    .wants = WR_WANTS_INSTANCE,
    .put_event = put_event,
    .free_state = free_state,
};

const struct wr_format wr_format_openmetrics = {
    .name = "openmetrics",
    .summary = "OpenMetrics 1.0: the last value of each series, with HELP, TYPE and UNIT",
    .content_type = WR_EXPOSITION_OPENMETRICS_TYPE,
    .shape = WEIR_FORMAT_DOCUMENTS,
    .options = {option_rows, sizeof(weir_option), sizeof(struct prometheus_options)},
    .wants = WR_WANTS_INSTANCE,
    .put_event = put_event,
    .free_state = free_state,
};
