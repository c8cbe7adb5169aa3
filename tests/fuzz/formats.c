/* Formats: samples with any allowed names, encoded in every format and with each of its options, are read back
 * unchanged by independent readers; all output is valid UTF-8.
 *
 * The input: a value's 8 bytes, whose first two bits are the instrument, then texts, each ending with a NUL:
 * group, name, label key, label value, metadata, and optionally a time in nanoseconds. */

#include "segment/batch.h"
#include "format/encoder.h"
#include "text/error.h"
#include "format/format.h"
#include "fuzz.h"
#include "registry/name.h"
#include "readers.h"
#include "text/utf8.h"

enum { TIME_S = 1795219607, TEXTS = 6 };
enum { GROUP, NAME, KEY, VALUE, NOTE, TIME };

static char *texts[TEXTS];
static weir_label label;
static weir_series series;
static const char *notes[2];
static struct written written;
static struct wr_batch_core core = {.labels_number = 1};

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    (void)id;
    return &series;
}

static const weir_batch batch = {.size = sizeof batch,
                                 .count = WRITTEN_SAMPLES,
                                 .samples = written.samples,
                                 .notes = notes,
                                 .series = find_series,
                                 .core = &core,
                                 .origin = "0123456789abcdef0123456789abcdef"};

/* ---- Input ----------------------------------------------------------------------------------- */

static bool is_allowed(void)
{
    struct wr_error error;
    return wr_name_check_group(texts[GROUP], &error) && wr_name_check(texts[NAME], "name", &error) &&
           wr_name_check(texts[KEY], "label", &error) &&
           wr_name_check_text(texts[VALUE], WR_NAME_VALUE_LONGEST, "value", &error) &&
           wr_name_check_text(texts[NOTE], 1000, "metadata", &error);
}

static void make_batch(double value, int instrument)
{
    int64_t time_ns = *texts[TIME] ? strtoll(texts[TIME], NULL, 10) : TIME_S * INT64_C(1000000000);
    label = (weir_label){texts[KEY], texts[VALUE]};
    series = (weir_series){.size = sizeof series,
                           .group = texts[GROUP],
                           .name = texts[NAME],
                           .labels = &label,
                           .label_count = 1,
                           .instrument = instrument};
    notes[1] = texts[NOTE];
    written = (struct written){texts[GROUP], texts[NAME], texts[KEY], texts[VALUE],
                               texts[NOTE],  {{0}, {0}},  instrument};
    written.samples[0] =
        (weir_sample){.kind = WEIR_KIND_DOUBLE, .time_ns = time_ns, .note = *texts[NOTE] ? 1 : 0};
    written.samples[0].value.f64 = value;
    written.samples[1] = (weir_sample){.kind = WEIR_KIND_INT, .time_ns = time_ns + (time_ns < INT64_MAX)};
    memcpy(&written.samples[1].value.i64, &value, sizeof value);
}

/* ---- Formats --------------------------------------------------------------------------------- */

/* All options have their defaults except that of the reader; mlbench requires one of two. */
static void *set_options(const struct wr_format *format, const struct reader *reader, struct wr_region *keep)
{
    struct wr_error error = {0};
    void *options = wr_region_alloc(keep, format->options.struct_bytes + 1);
    const struct wr_options_fill fill = {
        .table = format->options, .target = options, .environment = &wr_environment_empty, .keep = keep};
    FUZZ_CHECK(options && wr_options_set_defaults(&fill, &error));
    if (!reader->option)
        return options;
    const weir_option *row = wr_options_find(&format->options, reader->option);
    FUZZ_CHECK(row && wr_options_set_text(&fill, row, reader->set_to, &error));
    if (format->find_fault && format->find_fault(options))
        FUZZ_CHECK(wr_options_set_text(&fill, wr_options_find(&format->options, "run_id"), "run", &error));
    FUZZ_CHECK(!format->find_fault || !format->find_fault(options));
    return options;
}

/* Documents and lines are encoded at once, records one by one. */
static void try_reader(const struct reader *reader)
{
    const struct wr_format *format = wr_format_find(reader->format);
    struct wr_region keep = {0};
    struct wr_encoder encoder;
    weir_encoded encoded;
    wr_encoder_init(&encoder, format, set_options(format, reader, &keep));
    wr_encoder_begin(&encoder);
    for (uint32_t done = 0; done < WRITTEN_SAMPLES; done += encoded.count) {
        FUZZ_CHECK(wr_encoder_encode(&encoder, &batch, done, SIZE_MAX, &encoded) && encoded.count);
        FUZZ_CHECK(format->shape == WEIR_FORMAT_RECORDS || encoded.count == WRITTEN_SAMPLES);
        char *text = strndup(encoded.data, encoded.length);
        FUZZ_CHECK(text && strlen(text) == encoded.length);
        FUZZ_CHECK(wr_utf8_is_valid(text, encoded.length, NULL));
        reader->check(reader, &written, text, (int)done);
        free(text);
    }
    wr_encoder_fini(&encoder);
    wr_region_fini(&keep);
}

/* Checks that every format has a reader. */
static void check_readers(void)
{
    for (size_t i = 0; wr_format_at(i); i++) {
        const struct reader *reader = readers;
        while (reader->format && strcmp(reader->format, wr_format_at(i)->name) != 0)
            reader++;
        FUZZ_CHECK(reader->format);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double value;
    if (size < sizeof value)
        return 0;
    check_readers();
    memcpy(&value, data, sizeof value);
    const uint8_t *at = data + sizeof value;
    for (int i = 0; i < TEXTS; i++)
        at = fuzz_take_text(at, data + size, '\0', &texts[i]);
    if (is_allowed()) {
        make_batch(value, data[0] & 3);
        for (const struct reader *reader = readers; reader->format; reader++)
            try_reader(reader);
    }
    for (int i = 0; i < TEXTS; i++)
        free(texts[i]);
    return 0;
}
