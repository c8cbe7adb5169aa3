/* Parsers: any input becomes the same records and faults, in pieces and with a sink that has no room now and
 * then; what a record says is valid; and records that the format json writes are read back unchanged.
 *
 * The first byte selects the parser (its low four bits) and the size of the pieces. */

#include <math.h>

#include "format/format.h"
#include "fuzz.h"
#include "parse/parser.h"
#include "registry/name.h"
#include "segment/batch.h"
#include "../support/parse_fixture.h"
#include "text/error.h"
#include "text/utf8.h"

/* ---- Valid records --------------------------------------------------------------------------- */

static void check_texts(const struct wr_parse_record *record)
{
    const char *const texts[] = {record->unit, record->help, record->metadata, record->member};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        FUZZ_CHECK(!texts[i] || wr_utf8_is_valid(texts[i], strlen(texts[i]), NULL));
}

static void check_record(const struct wr_parse_record *record)
{
    struct wr_error error;
    FUZZ_CHECK(record->count && record->count <= WR_PARSER_VALUES && record->label_count <= WR_PARSER_LABELS);
    FUZZ_CHECK(!record->group || wr_name_check_group(record->group, &error));
    FUZZ_CHECK(!record->metadata || record->count == 1);
    FUZZ_CHECK(record->sample_rate > 0 && record->sample_rate <= 1);
    for (size_t i = 0; i < record->count; i++)
        FUZZ_CHECK(wr_name_check(record->values[i].name, "name", &error));
    for (size_t i = 0; i < record->label_count; i++)
        FUZZ_CHECK(wr_name_check(record->labels[i].key, "key", &error) &&
                   wr_utf8_is_valid(record->labels[i].value, strlen(record->labels[i].value), NULL));
    check_texts(record);
}

static void check_fault(void *context, const struct wr_parse_fault *fault)
{
    size_t length = strlen(fault->text);
    (void)context;
    FUZZ_CHECK(fault->line && length && length < WR_PARSE_FAULT_ROOM);
    FUZZ_CHECK(wr_utf8_is_valid(fault->text, length, NULL));
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((unsigned char)fault->text[i] >= ' ');
}

/* ---- Written and read again ------------------------------------------------------------------ */

/* One sample of a record, as the format json writes it. */
static weir_series series;
static weir_sample sample;
static const char *notes[2];
static struct wr_batch_core core = {.labels_number = 1};

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    (void)id;
    return &series;
}

static const weir_batch batch = {
    .size = sizeof batch, .count = 1, .samples = &sample, .notes = notes, .series = find_series, .core = &core};

static void set_sample(const struct wr_parse_record *record, const weir_typed_value *value)
{
    series = (weir_series){.size = sizeof series,
                           .group = record->group ? record->group : "g",
                           .name = value->name,
                           .labels = record->labels,
                           .label_count = (uint32_t)record->label_count,
                           .cumulative = record->cumulative};
    sample = (weir_sample){
        .kind = (uint16_t)value->number.kind, .time_ns = record->time_ns, .note = record->metadata ? 1 : 0};
    notes[1] = record->metadata;
    if (value->number.kind == WEIR_KIND_INT)
        sample.value.i64 = value->number.is.i64;
    else
        sample.value.f64 = value->number.is.f64;
}

static bool is_same_number(const weir_typed_value *value)
{
    if (sample.kind == WEIR_KIND_INT)
        return value->number.kind == WEIR_KIND_INT && value->number.is.i64 == sample.value.i64;
    double number = value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64;
    return memcmp(&number, &sample.value.f64, sizeof number) == 0 || (isnan(number) && isnan(sample.value.f64));
}

/* Integral doubles are written without a fraction. */
static bool check_again(void *context, const struct wr_parse_record *record)
{
    bool *seen = context;
    FUZZ_CHECK(!*seen && strcmp(record->group, series.group) == 0 && record->count == 1);
    FUZZ_CHECK(strcmp(record->values->name, series.name) == 0 && is_same_number(record->values));
    FUZZ_CHECK(record->has_time && record->time_ns == sample.time_ns &&
               record->cumulative == series.cumulative);
    FUZZ_CHECK(record->label_count == series.label_count);
    for (size_t i = 0; i < record->label_count; i++)
        FUZZ_CHECK(strcmp(record->labels[i].key, series.labels[i].key) == 0 &&
                   strcmp(record->labels[i].value, series.labels[i].value) == 0);
    FUZZ_CHECK(sample.note ? strcmp(record->metadata, notes[1]) == 0 : !record->metadata);
    return *seen = true;
}

static void refuse_again(void *context, const struct wr_parse_fault *fault)
{
    (void)context;
    fuzz_fail(__FILE__, __LINE__, fault->text);
}

static void write_and_read(const struct wr_parse_record *record, const weir_typed_value *value)
{
    const struct wr_parser_options options = {.line_bytes = (size_t)1 << 24};
    bool seen = false;
    const struct wr_parser_sink sink = {check_again, refuse_again, &seen};
    struct wr_encoder encoder;
    weir_encoded encoded;
    size_t used;
    set_sample(record, value);
    wr_encoder_init(&encoder, &wr_format_json, NULL);
    wr_encoder_begin(&encoder);
    FUZZ_CHECK(wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded) && encoded.count == 1);
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find("json"), &options, &sink);
    FUZZ_CHECK(parser && wr_parser_put(parser, encoded.data, encoded.length, &used) && used == encoded.length);
    FUZZ_CHECK(seen);
    wr_parser_free(parser);
    wr_encoder_fini(&encoder);
}

static bool check_take(void *context, const struct wr_parse_record *record)
{
    unsigned *written = context;
    check_record(record);
    for (size_t i = 0; i < record->count && *written < 20; i++, ++*written)
        write_and_read(record, &record->values[i]);
    return true;
}

/* ---- One input ------------------------------------------------------------------------------- */

static void check_whole(const struct wr_parser_type *type, const char *data, size_t size)
{
    unsigned written = 0;
    const struct wr_parser_sink sink = {check_take, check_fault, &written};
    const struct wr_parser_options options = {.split = WR_PARSER_SPLIT_LAST};
    struct wr_parser *parser = wr_parser_new(type, &options, &sink);
    size_t used;
    FUZZ_CHECK(parser && wr_parser_put(parser, data, size, &used) && used == size && wr_parser_end(parser));
    wr_parser_free(parser);
}

static void check_pieces(const struct wr_parser_type *type, const char *data, size_t size, unsigned choice)
{
    struct parse_fixture whole = {.options = {.line_bytes = 200}}, pieces = {.options = {.line_bytes = 200}};
    pieces.refused_each = choice % 3;
    char *one = parse_fixture_run(&whole, wr_parser_type_name(type), data, size, size + 1);
    char *other = parse_fixture_run(&pieces, wr_parser_type_name(type), data, size, 1 + choice * 7);
    FUZZ_CHECK(strcmp(one, other) == 0);
    free(one);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wr_parser_type *type = size ? wr_parser_type_at(data[0] & 15) : NULL;
    if (!type)
        return 0;
    check_whole(type, (const char *)data + 1, size - 1);
    check_pieces(type, (const char *)data + 1, size - 1, data[0] >> 4);
    return 0;
}
