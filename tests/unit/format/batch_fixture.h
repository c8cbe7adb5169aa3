/* batch_fixture: a batch for tests of the encoder and the formats. Each test runs in its own process, so there
 * is one batch. */
#ifndef BATCH_FIXTURE_H
#define BATCH_FIXTURE_H

#include <criterion/criterion.h>
#include <string.h>

#include "segment/batch.h"
#include "format/encoder.h"
#include "text/error.h"
#include "config/option.h"

#define SOME_TIME_NS INT64_C(1795219607576198123)

static struct {
    weir_series series[16];
    weir_sample samples[256];
    const char *notes[16]; /* number 0: none */
    weir_label labels[8];
    uint32_t series_count, note_count;
    struct wr_batch_core core;
    weir_batch batch;
} fixture;

static inline const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    return &fixture.series[id % 16];
}

/* The batch of all samples added so far. */
static inline const weir_batch *fixture_batch(void)
{
    fixture.batch.size = sizeof fixture.batch;
    fixture.batch.samples = fixture.samples;
    fixture.batch.notes = fixture.notes;
    fixture.batch.labels = fixture.labels;
    fixture.batch.series = find_series;
    fixture.batch.core = &fixture.core;
    if (!fixture.batch.origin)
        fixture.batch.origin = "0123456789abcdef0123456789abcdef";
    return &fixture.batch;
}

/* Adds a series and returns its id. Labels must be sorted by key and are borrowed. */
static inline uint32_t add_series(const char *group, const char *name, const weir_label *labels, size_t count)
{
    uint32_t id = fixture.series_count++;
    fixture.series[id] = (weir_series){.size = sizeof(weir_series),
                                       .id = id,
                                       .group = group,
                                       .name = name,
                                       .labels = labels,
                                       .label_count = count};
    return id;
}

static inline weir_sample *add_double(uint32_t series, double value)
{
    weir_sample *sample = &fixture.samples[fixture.batch.count++];
    *sample =
        (weir_sample){.series = series, .kind = WEIR_KIND_DOUBLE, .time_ns = SOME_TIME_NS, .value.f64 = value};
    return sample;
}

static inline weir_sample *add_int(uint32_t series, int64_t value)
{
    weir_sample *sample = &fixture.samples[fixture.batch.count++];
    *sample =
        (weir_sample){.series = series, .kind = WEIR_KIND_INT, .time_ns = SOME_TIME_NS, .value.i64 = value};
    return sample;
}

static inline void set_metadata(weir_sample *sample, const char *text)
{
    fixture.notes[++fixture.note_count] = text;
    sample->note = fixture.note_count;
}

/* Sets the labels of the configuration as a new set; the encoder identifies sets by number. */
static inline void set_labels(const weir_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fixture.labels[i] = labels[i];
    fixture.batch.label_count = count;
    fixture.core.labels_number++;
}

static inline void clear_batch(void)
{
    fixture.batch.count = 0;
}

/* The whole batch in a format, as text. */
static inline const char *encode_with(struct wr_encoder *encoder)
{
    static char text[20000];
    weir_encoded encoded;
    cr_assert(wr_encoder_encode(encoder, fixture_batch(), 0, SIZE_MAX, &encoded));
    cr_assert_eq(encoded.count, fixture.batch.count);
    cr_assert_lt(encoded.length, sizeof text);
    memcpy(text, encoded.data, encoded.length);
    text[encoded.length] = '\0';
    return text;
}

/* A format's options: the defaults, except option `name` (NULL: none), set from text as defaults are. */
static inline void *make_options(const struct wr_format *format, const char *name, const char *value)
{
    static struct wr_region region; /* freed with the process */
    static const struct wr_option_site site = {&wr_environment_empty, &region};
    struct wr_error error = {0};
    void *options = wr_region_alloc(&region, format->options.struct_bytes + 1);
    const struct wr_options_fill fill = {
        .table = format->options, .target = options, .environment = &wr_environment_empty, .keep = &region};
    cr_assert(wr_options_set_defaults(&fill, &error), "%s", error.text);
    cr_assert(!name || wr_option_set(wr_options_find(&format->options, name), options, value, &site, &error),
              "%s", error.text);
    return options;
}

/* The whole batch in a format with these options, as text. */
static inline const char *encode_by(const struct wr_format *format, const void *options)
{
    struct wr_encoder encoder;
    wr_encoder_init(&encoder, format, options);
    const char *text = encode_with(&encoder);
    wr_encoder_fini(&encoder);
    return text;
}

/* The same with one of its options set. */
static inline const char *encode_as(const struct wr_format *format, const char *name, const char *value)
{
    return encode_by(format, make_options(format, name, value));
}

static inline const char *encode(const struct wr_format *format)
{
    return encode_as(format, NULL, NULL);
}

#endif
