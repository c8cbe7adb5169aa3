/* Formats: what a program may name, in every format. What json writes is read by json-c, what influx writes by
 * a reader of its own below; both have to find the same names, labels and values. All others write whole lines
 * of valid UTF-8.
 *
 * The input: a value's 8 bytes, then lines: group, name, label's key, label's value, metadata. */

#include <json-c/json.h>
#include <math.h>

#include "batch.h"
#include "encoder.h"
#include "error.h"
#include "format.h"
#include "fuzz.h"
#include "name.h"
#include "utf8.h"

enum { TIME_S = 1795219607, LINES = 5, SAMPLES = 2 };
enum { GROUP, NAME, KEY, VALUE, NOTE };

static char *texts[LINES];
static weir_label label;
static weir_series series;
static weir_sample samples[SAMPLES];
static const char *notes[2];
static struct wr_batch_core core = {.labels_number = 1};

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
                                 .core = &core};

/* ---- Input ----------------------------------------------------------------------------------- */

static bool is_allowed(void)
{
    struct wr_error error;
    return wr_name_check_group(texts[GROUP], &error) && wr_name_check(texts[NAME], "name", &error) &&
           wr_name_check(texts[KEY], "label", &error) &&
           wr_name_check_text(texts[VALUE], WR_NAME_VALUE_LONGEST, "value", &error) &&
           wr_name_check_text(texts[NOTE], 1000, "metadata", &error);
}

static void make_batch(double value)
{
    label = (weir_label){texts[KEY], texts[VALUE]};
    series = (weir_series){
        .size = sizeof series, .group = texts[GROUP], .name = texts[NAME], .labels = &label, .label_count = 1};
    notes[1] = texts[NOTE];
    samples[0] = (weir_sample){.kind = WEIR_KIND_DOUBLE, .time_ns = TIME_S * INT64_C(1000000000), .note = 1};
    samples[0].value.f64 = value;
    samples[1] = (weir_sample){.kind = WEIR_KIND_INT, .time_ns = TIME_S * INT64_C(1000000000) + 1};
    memcpy(&samples[1].value.i64, &value, sizeof value);
}

/* ---- json ------------------------------------------------------------------------------------ */

static bool is_text(struct json_object *object, const char *key, const char *expected)
{
    struct json_object *member;
    return json_object_object_get_ex(object, key, &member) && json_object_is_type(member, json_type_string) &&
           (size_t)json_object_get_string_len(member) == strlen(expected) &&
           strcmp(json_object_get_string(member), expected) == 0;
}

static void check_json_value(struct json_object *object, const weir_sample *sample)
{
    struct json_object *value;
    FUZZ_CHECK(json_object_object_get_ex(object, "value", &value));
    if (sample->kind == WEIR_KIND_INT) {
        FUZZ_CHECK(json_object_get_int64(value) == sample->value.i64);
    } else if (isfinite(sample->value.f64)) {
        double read = json_object_get_double(value);
        FUZZ_CHECK(read == sample->value.f64);
    }
}

static void check_json(const char *text)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct json_object *labels, *object = json_tokener_parse(text);
        FUZZ_CHECK(object);
        FUZZ_CHECK(is_text(object, "group", texts[GROUP]) && is_text(object, "name", texts[NAME]));
        FUZZ_CHECK(json_object_object_get_ex(object, "labels", &labels) &&
                   is_text(labels, texts[KEY], texts[VALUE]));
        FUZZ_CHECK(i > 0 || !*texts[NOTE] || is_text(object, "metadata", texts[NOTE]));
        check_json_value(object, &samples[i]);
        json_object_put(object);
        text = strchr(text, '\n') + 1;
    }
}

/* ---- influx ---------------------------------------------------------------------------------- */

/* Reads a part of a line up to a separator that is not escaped, as a server does; answers where that is. */
static const char *read_part(const char *at, const char *separators, char *out)
{
    while (*at && !strchr(separators, *at)) {
        if (*at == '\\' && at[1] && strchr(", =", at[1]))
            at++;
        *out++ = *at++;
    }
    *out = '\0';
    return at;
}

/* What the format cannot carry as it is, as its document tells. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '\\')
            return false;
    return *text && *text != '#' && strcmp(text, "time") != 0 && strcmp(text, "_field") != 0 &&
           strcmp(text, "_measurement") != 0 && !strstr(text, "\xc2");
}

static void check_influx(const char *text, size_t length)
{
    char group[2000], key[2000], value[4000], name[2000], number[100];
    if (length == 0) /* nothing that it can carry */
        return;
    if (!is_plain(texts[GROUP]) || !is_plain(texts[KEY]) || !is_plain(texts[VALUE]) || !is_plain(texts[NAME]))
        return;
    const char *at = read_part(text, ", ", group);
    FUZZ_CHECK(*at == ',' && strcmp(group, texts[GROUP]) == 0);
    at = read_part(at + 1, "=", key);
    FUZZ_CHECK(*at == '=' && strcmp(key, texts[KEY]) == 0);
    at = read_part(at + 1, ", ", value);
    FUZZ_CHECK(*at == ' ' && strcmp(value, texts[VALUE]) == 0);
    at = read_part(at + 1, "=", name);
    FUZZ_CHECK(*at == '=' && strcmp(name, texts[NAME]) == 0);
    at = read_part(at + 1, " ", number);
    if (isfinite(samples[0].value.f64))
        FUZZ_CHECK(strtod(number, NULL) == samples[0].value.f64);
    FUZZ_CHECK(*at == ' ' && strncmp(at + 1, "1795219607", 10) == 0);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void check_text(const struct wr_format *format, const char *text, size_t length)
{
    struct wr_error error;
    FUZZ_CHECK(strlen(text) == length && wr_name_check_text(text, SIZE_MAX, "text", &error));
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    if (format->shape == WEIR_FORMAT_LINES) /* statsd writes a negative value behind a zero */
        FUZZ_CHECK(lines <= 2 * SAMPLES && (length == 0 || text[length - 1] == '\n'));
    if (strcmp(format->name, "json") == 0)
        check_json(text);
    if (strcmp(format->name, "influx") == 0)
        check_influx(text, length);
}

/* Formats that need options to be told are left to their own tests. */
static bool set_options(const struct wr_format *format, void *options, struct wr_keep *keep)
{
    static const char *entries[] = {NULL};
    static const struct wr_environment environment = {.entries = entries, .folder = "/"};
    struct wr_error error = {0};
    const struct wr_options_fill fill = {format->options, options, &environment, keep, NULL};
    return wr_options_set_defaults(&fill, &error) && !(format->find_fault && format->find_fault(options));
}

static void try_format(const struct wr_format *format)
{
    struct wr_keep keep = {0};
    struct wr_encoder encoder;
    weir_encoded encoded;
    void *options = wr_keep_get(&keep, format->options.struct_bytes + 1);
    if (set_options(format, options, &keep)) {
        wr_encoder_init(&encoder, format, options);
        wr_encoder_begin(&encoder);
        FUZZ_CHECK(wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded));
        char *text = strndup(encoded.length ? encoded.data : "", encoded.length);
        FUZZ_CHECK(text);
        check_text(format, text, encoded.length);
        free(text);
        wr_encoder_fini(&encoder);
    }
    wr_keep_fini(&keep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double value;
    if (size < sizeof value)
        return 0;
    memcpy(&value, data, sizeof value);
    const uint8_t *at = data + sizeof value;
    for (int i = 0; i < LINES; i++)
        at = fuzz_take_line(at, data + size, &texts[i]);
    if (is_allowed()) {
        make_batch(value);
        for (size_t i = 0; wr_format_at(i); i++)
            try_format(wr_format_at(i));
    }
    for (int i = 0; i < LINES; i++)
        free(texts[i]);
    return 0;
}
