#include "readers.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fuzz.h"
#include "read.h"
#include "servers.h"

/* ---- json and bai ---------------------------------------------------------------------------- */

static bool is_text(struct json_object *object, const char *key, const char *expected)
{
    struct json_object *member;
    return json_object_object_get_ex(object, key, &member) && json_object_is_type(member, json_type_string) &&
           (size_t)json_object_get_string_len(member) == strlen(expected) &&
           strcmp(json_object_get_string(member), expected) == 0;
}

/* json-c keeps the text of a double; non-finite values are strings. */
static void check_member(struct json_object *object, const char *key, const weir_sample *sample)
{
    struct json_object *value;
    FUZZ_CHECK(json_object_object_get_ex(object, key, &value));
    if (sample->kind == WEIR_KIND_DOUBLE && json_object_is_type(value, json_type_int))
        FUZZ_CHECK((double)json_object_get_int64(value) == sample->value.f64);
    else
        read_check_number(json_object_get_string(value), sample);
}

/* Parses exactly one line. Returns the next one. */
static const char *parse_line(const char *text, struct json_object **object)
{
    struct json_tokener *tokener = json_tokener_new();
    FUZZ_CHECK(tokener);
    const char *end = strchr(text, '\n');
    FUZZ_CHECK(end);
    *object = json_tokener_parse_ex(tokener, text, (int)(end - text));
    FUZZ_CHECK(*object && json_tokener_get_parse_end(tokener) == (size_t)(end - text));
    json_tokener_free(tokener);
    return end + 1;
}

static void check_json(const struct reader *reader, const struct written *written, const char *text, int first)
{
    (void)reader;
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        struct json_object *labels, *time, *object;
        char expected[READ_ROOM];
        text = parse_line(text, &object);
        FUZZ_CHECK(is_text(object, "group", written->group) && is_text(object, "name", written->name));
        FUZZ_CHECK(json_object_object_get_ex(object, "labels", &labels) &&
                   is_text(labels, written->key, written->value));
        bool has_note = i == 0 && *written->note;
        FUZZ_CHECK(has_note ? is_text(object, "metadata", written->note)
                            : !json_object_object_get_ex(object, "metadata", NULL));
        read_put_time(expected, written->samples[i].time_ns, 9);
        FUZZ_CHECK(json_object_object_get_ex(object, "timestamp", &time) &&
                   strcmp(json_object_get_string(time), expected) == 0);
        check_member(object, "value", &written->samples[i]);
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

static void check_ascii(const char *text)
{
    for (; *text; text++)
        FUZZ_CHECK((*text >= ' ' && *text < 0x7f) || *text == '\n');
}

static void check_bai(const struct reader *reader, const struct written *written, const char *text, int first)
{
    (void)reader;
    (void)first;
    check_ascii(text);
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        struct json_object *object;
        text = parse_line(text, &object);
        FUZZ_CHECK(json_object_object_length(object) == 1);
        check_member(object, written->name, &written->samples[i]);
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

static struct json_object *find_member(struct json_object *object, const char *key)
{
    struct json_object *member;
    FUZZ_CHECK(json_object_object_get_ex(object, key, &member));
    return member;
}

/* A value called labels is left out. */
static void check_bai_stdout(const struct reader *reader, const struct written *written, const char *text,
                             int first)
{
    bool is_written = strcmp(written->name, "labels") != 0;
    (void)reader;
    (void)first;
    check_ascii(text);
    for (int i = 0; i < WRITTEN_SAMPLES && is_written; i++) {
        struct json_object *object;
        text = parse_line(text, &object);
        FUZZ_CHECK(json_object_object_length(object) == 2);
        check_member(object, written->name, &written->samples[i]);
        FUZZ_CHECK(is_text(find_member(object, "labels"), written->key, written->value));
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

/* The date is parsed by the C library. */
static int64_t read_iso_time_us(struct json_object *member)
{
    struct tm time = {0};
    char *end = strptime(json_object_get_string(member), "%Y-%m-%dT%H:%M:%S", &time);
    FUZZ_CHECK(end && (*end == '\0' || (*end == '.' && strlen(end + 1) == 6)));
    int64_t of_second_us = *end ? strtoll(end + 1, &end, 10) : 0;
    FUZZ_CHECK(*end == '\0');
    return (int64_t)timegm(&time) * 1000000 + of_second_us;
}

static int64_t divide_down(int64_t number, int64_t unit)
{
    return number / unit - (number % unit < 0);
}

static void check_bai_document(const struct reader *reader, const struct written *written, const char *text,
                               int first)
{
    (void)reader;
    (void)first;
    check_ascii(text);
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        static const char *const members[] = {"timestamp", "metrics", "tracing"};
        struct json_object *object;
        int keys = 1;
        for (int j = 0; j < 3; j++)
            keys = strcmp(written->key, members[j]) == 0 ? 0 : keys;
        text = parse_line(text, &object);
        FUZZ_CHECK(json_object_object_length(object) == 3 + keys);
        FUZZ_CHECK(!keys || is_text(object, written->key, written->value));
        FUZZ_CHECK(json_object_object_length(find_member(object, "metrics")) == 1);
        check_member(find_member(object, "metrics"), written->name, &written->samples[i]);
        FUZZ_CHECK(read_iso_time_us(find_member(object, "timestamp")) ==
                   divide_down(written->samples[i].time_ns, 1000));
        FUZZ_CHECK(is_text(find_member(object, "tracing"), "service", "metrics-pusher"));
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

static void check_bai_record(const struct reader *reader, const struct written *written, const char *text,
                             int first)
{
    (void)reader;
    (void)first;
    check_ascii(text);
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        struct json_object *object;
        text = parse_line(text, &object);
        FUZZ_CHECK(json_object_object_length(object) == 4 && is_text(object, "name", written->name));
        check_member(object, "value", &written->samples[i]);
        FUZZ_CHECK(json_object_get_int64(find_member(object, "timestamp")) ==
                   divide_down(written->samples[i].time_ns, 1000000));
        FUZZ_CHECK(is_text(find_member(object, "labels"), written->key, written->value));
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

/* ---- csv ------------------------------------------------------------------------------------- */

/* RFC 4180, 2.4 to 2.7. Returns the position of the end of the field. */
static const char *read_field(const char *at, char *out)
{
    const char *limit = out + READ_ROOM - 1;
    bool quoted = *at == '"';
    at += quoted;
    for (; *at && out < limit; *out++ = *at++) {
        if (!quoted && strchr(",\r\n", *at))
            break;
        FUZZ_CHECK(quoted || *at != '"');
        if (quoted && *at == '"' && *++at != '"')
            break;
    }
    *out = '\0';
    FUZZ_CHECK(*at && strchr(",\r\n", *at));
    return at;
}

static void check_csv(const struct reader *reader, const struct written *written, const char *text, int first)
{
    const char *newline = reader_has(reader, "newline") ? "\n" : "\r\n";
    char field[READ_ROOM], time[READ_ROOM];
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        read_put_time(time, written->samples[i].time_ns, 9);
        text = read_field(text, field);
        FUZZ_CHECK(strcmp(field, time) == 0);
        text = read_field(read_skip(text, ","), field);
        FUZZ_CHECK(strcmp(field, written->group) == 0);
        text = read_field(read_skip(text, ","), field);
        FUZZ_CHECK(strcmp(field, written->name) == 0);
        text = read_field(read_skip(text, ","), field);
        read_check_number(field, &written->samples[i]);
        text = read_field(read_skip(text, ","), field);
        struct json_object *labels = json_tokener_parse(field);
        FUZZ_CHECK(labels && json_object_object_length(labels) == 1);
        FUZZ_CHECK(is_text(labels, written->key, written->value));
        json_object_put(labels);
        text = read_skip(text, newline);
    }
    FUZZ_CHECK(!*text);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *read_escape(const char *at, uint32_t *code_point)
{
    static const char letters[] = "n\nr\rt\t";
    const char *letter = strchr(letters, *at);
    if (*at != 'x' && *at != 'u') {
        *code_point = (unsigned char)(letter && (letter - letters) % 2 == 0 ? letter[1] : *at);
        return at + 1;
    }
    int digits = *at == 'x' ? 2 : 4;
    char number[8] = {0};
    memcpy(number, at + 1, (size_t)digits);
    *code_point = (uint32_t)strtoul(number, NULL, 16);
    return at + 1 + digits;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/* Reads the shown form of a text. Returns the position after it. */
static const char *read_shown(const char *at, const char *expected)
{
    while (*expected) {
        char shown[4];
        size_t length = 1;
        uint32_t code_point;
        FUZZ_CHECK((unsigned char)*at >= ' ');
        shown[0] = *at;
        if (*at++ == '\\') {
            at = read_escape(at, &code_point);
            length = put_utf8(shown, code_point);
        }
        FUZZ_CHECK(strncmp(expected, shown, length) == 0);
        expected += length;
    }
    return at;
}

static void check_text(const struct reader *reader, const struct written *written, const char *text, int first)
{
    char time[READ_ROOM], number[READ_ROOM];
    (void)reader;
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        read_put_time(time, written->samples[i].time_ns, 6);
        text = read_skip(read_skip(read_skip(text, "["), time), "][");
        text = read_skip(read_shown(text, written->group), "]: ");
        text = read_skip(read_shown(text, written->name), "=");
        text = read_copy_to(text, ' ', number);
        read_check_number(number, &written->samples[i]);
        text = read_skip(read_shown(read_skip(text, " {"), written->key), "=\"");
        text = read_skip(read_shown(text, written->value), "\"}");
        if (i == 0 && *written->note)
            text = read_skip(read_shown(read_skip(text, " metadata=\""), written->note), "\"");
        text = read_skip(text, "\n");
    }
    FUZZ_CHECK(!*text);
}

/* ---- elastic --------------------------------------------------------------------------------- */

/* Empty parts of a path became '_'. */
static bool is_field(const char *key, const char *name)
{
    for (;;) {
        size_t length = strcspn(name, "."), written = strcspn(key, ".");
        bool is_blank = strspn(name, " ") >= length;
        if (is_blank ? written != 1 || *key != '_' : written != length || strncmp(key, name, length) != 0)
            return false;
        if (!name[length] || !key[written])
            return !name[length] && !key[written];
        name += length + 1;
        key += written + 1;
    }
}

/* The only member of an object. */
static struct json_object *find_only(struct json_object *object, const char *name)
{
    FUZZ_CHECK(json_object_object_length(object) == 1);
    json_object_object_foreach(object, key, value)
    {
        FUZZ_CHECK(is_field(key, name));
        return value;
    }
    return NULL;
}

static void check_action(const struct reader *reader, struct json_object *action, int number)
{
    char id[READ_ROOM];
    struct json_object *about = find_member(action, reader_has(reader, "op_type") ? "index" : "create");
    const char *index = json_object_get_string(find_member(about, "_index"));
    snprintf(id, sizeof id, "0123456789abcdef0123456789abcdef-%d", number);
    FUZZ_CHECK(json_object_object_length(action) == 1 && json_object_object_length(about) == 2);
    FUZZ_CHECK(is_text(about, "_id", id) && *index && strlen(index) <= 255 && !strchr("-_+", *index));
    for (; *index; index++)
        FUZZ_CHECK((*index >= 'a' && *index <= 'z') || (*index >= '0' && *index <= '9') ||
                   strchr("._-", *index));
}

static void check_elastic(const struct reader *reader, const struct written *written, const char *text,
                          int first)
{
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        const weir_sample *sample = &written->samples[i];
        struct json_object *action, *object;
        if (sample->kind == WEIR_KIND_DOUBLE && !isfinite(sample->value.f64))
            continue;
        text = parse_line(text, &action);
        text = parse_line(text, &object);
        check_action(reader, action, i);
        FUZZ_CHECK(is_text(object, "group", written->group));
        FUZZ_CHECK(strcmp(json_object_get_string(find_only(find_member(object, "labels"), written->key)),
                          written->value) == 0);
        read_check_number(json_object_get_string(find_only(find_member(object, "metrics"), written->name)),
                          sample);
        FUZZ_CHECK(strlen(json_object_get_string(find_member(object, "@timestamp"))) == 30);
        bool has_note = i == 0 && *written->note;
        FUZZ_CHECK(has_note ? is_text(object, "metadata", written->note)
                            : !json_object_object_get_ex(object, "metadata", NULL));
        json_object_put(action);
        json_object_put(object);
    }
    FUZZ_CHECK(!*text);
}

/* ---- otlp ------------------------------------------------------------------------------------ */

static struct json_object *find_item(struct json_object *object, const char *key, size_t number)
{
    struct json_object *item = json_object_array_get_idx(find_member(object, key), number);
    FUZZ_CHECK(item);
    return item;
}

static void check_point(const struct written *written, struct json_object *point, const weir_sample *sample)
{
    char time[READ_ROOM];
    bool is_int = sample->kind == WEIR_KIND_INT;
    snprintf(time, sizeof time, "%lld", (long long)sample->time_ns);
    struct json_object *attribute = find_item(point, "attributes", 0);
    FUZZ_CHECK(is_text(attribute, "key", written->key));
    FUZZ_CHECK(is_text(find_member(attribute, "value"), "stringValue", written->value));
    FUZZ_CHECK(is_text(point, "timeUnixNano", time));
    read_check_number(json_object_get_string(find_member(point, is_int ? "asInt" : "asDouble")), sample);
}

/* Both samples are points of one metric. */
static void check_otlp(const struct reader *reader, const struct written *written, const char *text, int first)
{
    (void)reader;
    (void)first;
    char name[2 * READ_ROOM];
    size_t number = 0;
    if (!*text) {
        FUZZ_CHECK(written->samples[0].time_ns < 0 && written->samples[1].time_ns < 0);
        return;
    }
    struct json_object *whole = json_tokener_parse(text);
    FUZZ_CHECK(whole);
    struct json_object *scope = find_item(find_item(whole, "resourceMetrics", 0), "scopeMetrics", 0);
    struct json_object *metric = find_item(scope, "metrics", 0);
    snprintf(name, sizeof name, "%s.%s", written->group, written->name);
    FUZZ_CHECK(is_text(find_member(scope, "scope"), "name", written->group) && is_text(metric, "name", name));
    struct json_object *data = find_member(metric, written->instrument == WEIR_COUNTER ? "sum" : "gauge");
    for (int i = 0; i < WRITTEN_SAMPLES; i++)
        if (written->samples[i].time_ns >= 0)
            check_point(written, find_item(data, "dataPoints", number++), &written->samples[i]);
    FUZZ_CHECK(json_object_array_length(find_member(data, "dataPoints")) == number);
    json_object_put(whole);
}

/* ---- Table ----------------------------------------------------------------------------------- */

const struct reader readers[] = {
    {"text", NULL, NULL, check_text},
    {"json", NULL, NULL, check_json},
    {"bai", NULL, NULL, check_bai},
    {"bai", "style", "stdout", check_bai_stdout},
    {"bai", "style", "elasticsearch", check_bai_document},
    {"bai", "style", "kafka", check_bai_record},
    {"elastic", NULL, NULL, check_elastic},
    {"elastic", "index", "{group}-{name}-{label.k}", check_elastic},
    {"elastic", "op_type", "index", check_elastic},
    {"otlp", "encoding", "json", check_otlp},
    {"csv", NULL, NULL, check_csv},
    {"csv", "newline", "lf", check_csv},
    {"influx", NULL, NULL, servers_check_influx},
    {"influx", "integers", "true", servers_check_influx},
    {"influx", "temporality", "delta", servers_check_influx},
    {"influx", "name_separator", "_", servers_check_influx},
    {"prometheus", NULL, NULL, servers_check_prometheus},
    {"prometheus", "units", "as_is", servers_check_prometheus},
    {"openmetrics", NULL, NULL, servers_check_prometheus},
    {"graphite", NULL, NULL, servers_check_graphite},
    {"graphite", "tags", "true", servers_check_graphite},
    {"graphite", "temporality", "delta", servers_check_graphite},
    {"statsd", NULL, NULL, servers_check_statsd},
    {"statsd", "tags", "true", servers_check_statsd},
    {"statsd", "histograms", "h", servers_check_statsd},
    {"mlbench", "run_id", "run 1/\xc3\xbc&", servers_check_mlbench},
    {"mlbench", "pod_name", "pod+1=%", servers_check_mlbench},
    {"mlbench", "group", "true", servers_check_mlbench},
    {0},
};
