#include "read_back.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/options.h"
#include "format/format.h"
#include "parse/parser.h"
#include "registry/name.h"
#include "segment/batch.h"
#include "text/common.h"
#include "text/error.h"
#include "text/number.h"
#include "text/utf8.h"

#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

enum { SAMPLES = 2 };

/* A format, with one option changed from its default, and how it is read. */
struct way {
    const char *format, *option, *set_to;
    void (*check)(const struct wr_parse_record *record, int sample);
    bool (*is_written)(int sample); /* NULL: always */
    bool (*is_readable)(void);      /* NULL: always; else what was read is only valid */
};

/* The current case. */
static const struct read_back *written;
static const struct way *way;
static const char *encoded_text;
static weir_label label;
static weir_series series;
static weir_sample samples[SAMPLES];
static const char *notes[2];
static struct wr_batch_core core = {.labels_number = 1};
static int next_sample;

static void fail(int line, const char *condition)
{
    dprintf(2, "read_back.c:%d: %s: failed: format %s, %s=%s\n%s\n", line, condition, way->format,
            way->option ? way->option : "", way->set_to ? way->set_to : "", encoded_text);
    abort();
}

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    (void)id;
    return &series;
}

static const weir_batch batch = {.size = sizeof batch,
                                 .count = SAMPLES,
                                 .samples = samples,
                                 .notes = notes,
                                 .series = find_series,
                                 .core = &core,
                                 .origin = "0123456789abcdef0123456789abcdef"};

static void make_batch(void)
{
    label = (weir_label){written->key, written->value};
    series = (weir_series){.size = sizeof series,
                           .group = written->group,
                           .name = written->name,
                           .labels = &label,
                           .label_count = 1};
    notes[1] = written->note;
    samples[0] =
        (weir_sample){.kind = WEIR_KIND_DOUBLE, .time_ns = written->time_ns, .note = *written->note ? 1 : 0};
    samples[0].value.f64 = written->number;
    samples[1] = (weir_sample){.kind = WEIR_KIND_INT, .time_ns = written->time_ns + 1};
    samples[1].value.i64 = written->integer;
}

bool read_back_is_allowed(const struct read_back *candidate)
{
    struct wr_error error;
    return wr_name_check_group(candidate->group, &error) && wr_name_check(candidate->name, "name", &error) &&
           wr_name_check(candidate->key, "label", &error) &&
           wr_name_check_text(candidate->value, WR_NAME_VALUE_LONGEST, "value", &error) &&
           wr_name_check_text(candidate->note, 1000, "metadata", &error) &&
           candidate->time_ns > INT64_MIN + 1 && candidate->time_ns < INT64_MAX - 1;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static double as_double(const weir_typed_value *value)
{
    return value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64;
}

static void check_double(const weir_typed_value *value, double expected)
{
    double number = as_double(value);
    CHECK(memcmp(&number, &expected, sizeof number) == 0 || (isnan(number) && isnan(expected)));
}

/* Integers bit for bit; doubles too, but for their kind: integral ones may be written without a fraction. */
static void check_value(const weir_typed_value *value, int sample)
{
    if (sample == 0)
        check_double(value, written->number);
    else
        CHECK(value->number.kind == WEIR_KIND_INT && value->number.is.i64 == written->integer);
}

/* For destinations whose numbers are all doubles. */
static void check_as_double(const weir_typed_value *value, int sample)
{
    check_double(value, sample == 0 ? written->number : (double)written->integer);
}

static void check_labels(const struct wr_parse_record *record, bool has_label)
{
    CHECK(record->label_count == has_label);
    if (has_label)
        CHECK(strcmp(record->labels->key, written->key) == 0 &&
              strcmp(record->labels->value, written->value) == 0);
}

static void check_name(const struct wr_parse_record *record)
{
    CHECK(record->group && strcmp(record->group, written->group) == 0);
    CHECK(record->count == 1 && strcmp(record->values->name, written->name) == 0);
}

static void check_time(const struct wr_parse_record *record, int sample, int64_t unit_ns)
{
    int64_t time_ns = samples[sample].time_ns;
    CHECK(record->has_time && record->time_ns == time_ns - time_ns % unit_ns);
}

static void check_note(const struct wr_parse_record *record, int sample)
{
    bool has_note = sample == 0 && *written->note;
    CHECK(has_note ? record->metadata && strcmp(record->metadata, written->note) == 0 : !record->metadata);
}

/* ---- json, bai, csv, text ------------------------------------------------------------------------- */

static void check_json(const struct wr_parse_record *record, int sample)
{
    check_name(record);
    check_value(record->values, sample);
    check_labels(record, true);
    check_time(record, sample, 1);
    check_note(record, sample);
}

static void check_json_meaning(const struct wr_parse_record *record, int sample)
{
    check_json(record, sample);
    CHECK(record->instrument == written->instrument && strcmp(record->unit, written->key) == 0 &&
          strcmp(record->help, written->value) == 0);
}

static void check_bai(const struct wr_parse_record *record, int sample)
{
    CHECK(!record->group && record->count == 1 && strcmp(record->values->name, written->name) == 0);
    CHECK(record->values->number.kind == (sample ? WEIR_KIND_INT : WEIR_KIND_DOUBLE));
    check_value(record->values, sample);
}

/* The object `labels` is left out, and counted as what is no value. */
static bool is_not_labels(int sample)
{
    (void)sample;
    return strcmp(written->name, "labels") != 0;
}

static void check_csv(const struct wr_parse_record *record, int sample)
{
    check_name(record);
    check_value(record->values, sample);
    check_labels(record, true);
    check_time(record, sample, 1);
    CHECK(!record->metadata);
}

static void check_text(const struct wr_parse_record *record, int sample)
{
    check_name(record);
    check_value(record->values, sample);
    check_labels(record, true);
    check_time(record, sample, WR_NS_PER_US);
    check_note(record, sample);
}

/* What separates the parts of a line is not escaped in names. */
static bool has_plain_names(void)
{
    const char *const names[] = {written->group, written->name, written->key};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        if (strpbrk(names[i], "[]=\"{},"))
            return false;
    return true;
}

static void check_python(const struct wr_parse_record *record, int sample)
{
    check_name(record);
    check_value(record->values, sample);
    CHECK(record->has_time && !record->label_count && !record->metadata);
}

/* Times are doubles: tiny ones are written with an exponent, and those at the end of the range are beyond it.
 */
static bool has_python_time(void)
{
    int64_t size_s = llabs(written->time_ns / WR_NS_PER_S);
    return has_plain_names() && size_s > 0 && size_s < 9000000000;
}

/* ---- influx ---------------------------------------------------------------------------------- */

static bool is_finite(int sample)
{
    return sample == 1 || isfinite(written->number);
}

static bool is_influx(int sample)
{
    return is_finite(sample) && (sample == 0 || wr_number_is_double(written->integer));
}

static void check_influx_series(const struct wr_parse_record *record, int sample)
{
    check_name(record);
    check_labels(record, *written->value);
    check_time(record, sample, 1);
}

static void check_influx(const struct wr_parse_record *record, int sample)
{
    check_influx_series(record, sample);
    CHECK(record->values->number.kind == WEIR_KIND_DOUBLE);
    check_as_double(record->values, sample);
}

static void check_influx_integers(const struct wr_parse_record *record, int sample)
{
    check_influx_series(record, sample);
    CHECK(record->values->number.kind == (sample ? WEIR_KIND_INT : WEIR_KIND_DOUBLE));
    check_value(record->values, sample);
}

/* ---- graphite, statsd, prometheus ------------------------------------------------------------ */

static bool is_plain(const char *text, const char *others)
{
    for (; *text; text++) {
        bool is_letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (!is_letter && !(*text >= '0' && *text <= '9') && !strchr(others, *text))
            return false;
    }
    return true;
}

/* The path cannot keep all characters, nor where the group ends if the name has dots. */
static bool has_plain_path(void)
{
    return is_plain(written->group, "_-.") && is_plain(written->name, "_-");
}

/* With dots in the name a part of it becomes the group's, which may not be a valid one. */
static bool has_path(void)
{
    return !strchr(written->name, '.');
}

static bool is_graphite(int sample)
{
    return is_finite(sample) && samples[sample].time_ns >= 0;
}

static void check_graphite_path(const struct wr_parse_record *record, int sample)
{
    if (has_plain_path())
        check_name(record);
    check_value(record->values, sample);
    check_time(record, sample, WR_NS_PER_S);
}

static void check_graphite(const struct wr_parse_record *record, int sample)
{
    check_graphite_path(record, sample);
    CHECK(!record->label_count);
}

static void check_graphite_tags(const struct wr_parse_record *record, int sample)
{
    check_graphite_path(record, sample);
    check_labels(record, *written->value);
}

static double find_expected(int sample)
{
    return sample == 0 ? written->number : (double)written->integer;
}

/* Timers are not below 0. */
static bool is_statsd(int sample)
{
    return is_finite(sample) && (written->instrument != WEIR_HISTOGRAM || find_expected(sample) >= 0);
}

/* A negative level is a change of 0, which is written before it. */
static void check_level(const struct wr_parse_record *record, int sample)
{
    static double level;
    double number = as_double(record->values), expected = find_expected(sample);
    level = record->is_change ? level + number : number;
    if (level == 0 && expected < 0)
        next_sample--;
    else
        CHECK(level == expected);
}

static void check_statsd(const struct wr_parse_record *record, int sample)
{
    bool is_declared = written->instrument == WEIR_COUNTER || written->instrument == WEIR_HISTOGRAM;
    if (has_plain_path())
        check_name(record);
    CHECK(record->instrument == (is_declared ? written->instrument : WEIR_GAUGE) && !record->has_time);
    CHECK(record->sample_rate == 1 && !record->member && (is_declared ? !record->is_change : true));
    if (is_declared)
        CHECK(as_double(record->values) == find_expected(sample));
    else
        check_level(record, sample);
}

/* A document has the last sample of each series only, of those whose value is a double. */
static bool is_prometheus(int sample)
{
    return (sample == 1) == wr_number_is_double(written->integer);
}

static void check_prometheus(const struct wr_parse_record *record, int sample)
{
    char name[2 * WR_NAME_LONGEST + 2];
    snprintf(name, sizeof name, "%s_%s", written->group, written->name);
    bool is_kept = is_plain(written->group, "_:") && is_plain(written->name, "_:");
    if (is_kept && !strchr("0123456789", *written->group)) /* with _value behind a suffix that has a meaning */
        CHECK(strncmp(record->values->name, name, strlen(name)) == 0);
    check_as_double(record->values, sample);
    CHECK(record->label_count == !!*written->value && record->instrument == WEIR_GAUGE && record->help);
    if (record->label_count)
        CHECK(strcmp(record->labels->value, written->value) == 0);
}

/* Both are one name there, which may get a character in front and a suffix. */
static bool has_short_name(void)
{
    return strlen(written->group) + strlen(written->name) + strlen("___value") <= WR_NAME_LONGEST;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct way ways[] = {
    {"json", NULL, NULL, check_json, NULL, NULL},
    {"json", "origin", "true", check_json, NULL, NULL},
    {"json", "help", "true", check_json_meaning, NULL, NULL},
    {"bai", NULL, NULL, check_bai, NULL, NULL},
    {"bai", "style", "stdout", check_bai, is_not_labels, NULL},
    {"csv", NULL, NULL, check_csv, NULL, NULL},
    {"csv", "newline", "lf", check_csv, NULL, NULL},
    {"text", NULL, NULL, check_text, NULL, has_plain_names},
    {"text", "style", "python", check_python, NULL, has_python_time},
    {"influx", NULL, NULL, check_influx, is_influx, NULL},
    {"influx", "integers", "true", check_influx_integers, is_finite, NULL},
    {"graphite", NULL, NULL, check_graphite, is_graphite, has_path},
    {"graphite", "tags", "true", check_graphite_tags, is_graphite, has_path},
    {"statsd", NULL, NULL, check_statsd, is_statsd, has_path},
    {"statsd", "tags", "true", check_statsd, is_statsd, has_path},
    {"prometheus", NULL, NULL, check_prometheus, is_prometheus, has_short_name},
    {0},
};

static int skip_unwritten(int sample)
{
    while (sample < SAMPLES && way->is_written && !way->is_written(sample))
        sample++;
    return sample;
}

static bool take(void *context, const struct wr_parse_record *record)
{
    (void)context;
    if (way->is_readable && !way->is_readable())
        return true;
    next_sample = skip_unwritten(next_sample);
    CHECK(next_sample < SAMPLES);
    way->check(record, next_sample++);
    return true;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    static const char labels[] = "\"labels\": an object is not a value";
    (void)context;
    if (way->option && fault->is_value && strncmp(fault->text, labels, sizeof labels - 1) == 0)
        return;
    if (!way->is_readable || way->is_readable())
        fail(0, fault->text);
}

static void read_text(const char *text, size_t length)
{
    const struct wr_parser_sink sink = {take, refuse, NULL};
    const struct wr_parser_options options = {.split = WR_PARSER_SPLIT_LAST};
    struct wr_parser *parser = wr_parser_new(wr_parser_type_find(way->format), &options, &sink);
    size_t used;
    next_sample = 0;
    CHECK(parser && wr_parser_put(parser, "\n", 1, &used)); /* a byte order mark is skipped in the first line */
    CHECK(wr_parser_put(parser, text, length, &used) && used == length && wr_parser_end(parser));
    CHECK((way->is_readable && !way->is_readable()) || skip_unwritten(next_sample) == SAMPLES);
    wr_parser_free(parser);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void *set_options(const struct wr_format *format, struct wr_region *keep)
{
    struct wr_error error = {0};
    void *options = wr_region_alloc(keep, format->options.struct_bytes + 1);
    const struct wr_options_fill fill = {
        .table = format->options, .target = options, .environment = &wr_environment_empty, .keep = keep};
    CHECK(options && wr_options_set_defaults(&fill, &error));
    if (way->option)
        CHECK(wr_options_set_text(&fill, wr_options_find(&format->options, way->option), way->set_to, &error));
    return options;
}

static void check_way(void)
{
    const struct wr_format *format = wr_format_find(way->format);
    struct wr_region keep = {0};
    struct wr_encoder encoder;
    weir_encoded encoded;
    encoded_text = "";
    bool has_meaning = way->check == check_json_meaning;
    series.instrument = has_meaning || strcmp(way->format, "statsd") == 0 ? written->instrument : WEIR_VALUE;
    series.unit = has_meaning ? written->key : NULL;
    series.help = has_meaning ? written->value : NULL;
    wr_encoder_init(&encoder, format, set_options(format, &keep));
    wr_encoder_begin(&encoder);
    CHECK(wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded) && encoded.count == SAMPLES);
    char *text = strndup(encoded.data, encoded.length);
    CHECK(text);
    encoded_text = text;
    read_text(text, encoded.length);
    free(text);
    wr_encoder_fini(&encoder);
    wr_region_fini(&keep);
}

void read_back_check(const struct read_back *given)
{
    written = given;
    make_batch();
    for (way = ways; way->format; way++)
        check_way();
}
