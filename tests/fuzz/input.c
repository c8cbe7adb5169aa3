/* Input of `weir emit`: every record that the parser yields becomes one event, or as many as its sample rate
 * means, with the group and labels of the options where it has none, or is refused with a one-line message. The
 * first byte selects: bit 2: a default group, bit 4: a default label, the rest the parser. */

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/delivery.h"
#include "emit/input.h"
#include "emit/reading.h"
#include "emit/throttle.h"
#include "fuzz.h"
#include "registry/name.h"
#include "registry/registry.h"
#include "registry/stream.h"
#include "runtime/event.h"
#include "text/utf8.h"

enum { WITH_GROUP = 2, WITH_LABEL = 4, MOST_MESSAGES = 20 };

static weir_label default_label = {"host", "h"};
static const char default_group[] = "standard";

/* The expected results for the current input. */
static struct {
    struct record_defaults defaults;
    uint64_t lines, refused, left_out, values;
} expected;

/* The record that is being added. */
static struct {
    const struct wr_parse_record *is;
    uint32_t repeats; /* how often it is still to be added */
} current;

/* ---- Records --------------------------------------------------------------------------------- */

static bool has_key(const weir_label *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, key) == 0)
            return true;
    return false;
}

weir_stream *__real_record_stream(const struct record_defaults *defaults, const struct wr_parse_record *record);
weir_stream *__wrap_record_stream(const struct record_defaults *defaults, const struct wr_parse_record *record);

weir_stream *__wrap_record_stream(const struct record_defaults *defaults, const struct wr_parse_record *record)
{
    FUZZ_CHECK(!current.repeats);
    current.is = record;
    return __real_record_stream(defaults, record);
}

uint32_t __real_wr_repeats_choose(const struct wr_parse_record *record, uint32_t most, uint64_t *random,
                                  uint64_t *left_out);
uint32_t __wrap_wr_repeats_choose(const struct wr_parse_record *record, uint32_t most, uint64_t *random,
                                  uint64_t *left_out);

uint32_t __wrap_wr_repeats_choose(const struct wr_parse_record *record, uint32_t most, uint64_t *random,
                                  uint64_t *left_out)
{
    uint32_t repeats = __real_wr_repeats_choose(record, most, random, left_out);
    FUZZ_CHECK(repeats && repeats <= most && (repeats == 1 || record->sample_rate < 1));
    current.repeats = record->member ? 0 : repeats;
    expected.values += current.repeats * record->count;
    return repeats;
}

weir_stream *__wrap_weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count);

/* The labels of the record, and the default labels that it does not override. */
weir_stream *__wrap_weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count)
{
    static struct wr_group *stream_group;
    static struct weir_stream stream;
    const struct wr_parse_record *record = current.is;
    struct wr_error error;
    FUZZ_CHECK(strcmp(group, record->group ? record->group : default_group) == 0);
    FUZZ_CHECK(wr_name_check_group(group, &error));
    bool adds =
        expected.defaults.label_count && !has_key(record->labels, record->label_count, default_label.key);
    FUZZ_CHECK(count == record->label_count + adds);
    for (size_t i = 0; i < record->label_count; i++)
        FUZZ_CHECK(strcmp(labels[i].key, record->labels[i].key) == 0 &&
                   strcmp(labels[i].value, record->labels[i].value) == 0);
    FUZZ_CHECK(!adds || strcmp(labels[count - 1].key, default_label.key) == 0);
    if (!stream_group)
        stream_group = calloc(1, sizeof *stream_group + WR_NAME_LONGEST + 1);
    FUZZ_CHECK(stream_group);
    strcpy(stream_group->name, group);
    stream.group = stream_group;
    return &stream;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static double as_double(const weir_typed_value *value)
{
    return value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64;
}

/* Integers beyond 2^53 may be doubles, but are never changed otherwise. */
static void check_value(const weir_typed_value *added, const weir_typed_value *read)
{
    double one = as_double(added), other = as_double(read);
    FUZZ_CHECK(strcmp(added->name, read->name) == 0);
    FUZZ_CHECK(memcmp(&one, &other, sizeof one) == 0 || (one != one && other != other));
    if (added->number.kind == WEIR_KIND_INT)
        FUZZ_CHECK(read->number.kind == WEIR_KIND_INT && added->number.is.i64 == read->number.is.i64 &&
                   llabs(added->number.is.i64 / 2) >= 1LL << 52);
}

int __wrap_wr_event_add(struct weir_stream *stream, const struct wr_event *event);

int __wrap_wr_event_add(struct weir_stream *stream, const struct wr_event *event)
{
    const struct wr_parse_record *record = current.is;
    struct wr_error error;
    FUZZ_CHECK(stream && current.repeats && event->count == record->count && event->count);
    FUZZ_CHECK(event->metadata == record->metadata && event->cumulative == record->cumulative);
    FUZZ_CHECK(record->has_time ? *event->time_ns == record->time_ns : !event->time_ns);
    for (size_t i = 0; i < event->count; i++) {
        FUZZ_CHECK(wr_name_check(event->values[i].name, "name", &error));
        check_value(&event->values[i], &record->values[i]);
    }
    current.repeats--;
    return 0;
}

weir_metric *__wrap_weir_get_gauge(weir_stream *stream, const char *name);
int __wrap_weir_metric_change(weir_metric *gauge, double difference);

weir_metric *__wrap_weir_get_gauge(weir_stream *stream, const char *name)
{
    FUZZ_CHECK(stream && current.is->is_change && strcmp(name, current.is->values->name) == 0);
    return NULL;
}

int __wrap_weir_metric_change(weir_metric *gauge, double difference)
{
    FUZZ_CHECK(!gauge && current.repeats && difference == as_double(current.is->values));
    current.repeats--;
    return 0;
}

/* ---- Stubs ----------------------------------------------------------------------------------- */

int __wrap_weir_declare(weir_stream *stream, const char *name, const weir_metric_spec *spec);
int __wrap_weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help);
void __wrap_reading_catch_signals(void);

int __wrap_weir_declare(weir_stream *stream, const char *name, const weir_metric_spec *spec)
{
    FUZZ_CHECK(stream && name && spec->instrument);
    return 0;
}

int __wrap_weir_describe(weir_stream *stream, const char *name, const char *unit, const char *help)
{
    FUZZ_CHECK(stream && name && (unit || help));
    return 0;
}

void __wrap_reading_catch_signals(void)
{
}

bool throttle_reserve(struct throttle *throttle, const char *group, uint64_t bytes)
{
    (void)throttle;
    FUZZ_CHECK(group && bytes);
    return true;
}

uint64_t delivery_queued(void)
{
    return 0;
}

bool delivery_has_ended(void)
{
    return false;
}

/* ---- What is expected ------------------------------------------------------------------------ */

static bool count_record(void *context, const struct wr_parse_record *record)
{
    (void)context;
    expected.refused += record->member || (!record->group && !expected.defaults.group);
    return true;
}

static void count_fault(void *context, const struct wr_parse_fault *fault)
{
    (void)context;
    if (fault->is_value)
        expected.left_out++;
    else
        expected.refused++;
}

static void expect(const struct wr_parser_type *type, const uint8_t *data, size_t size)
{
    const struct wr_parser_sink sink = {count_record, count_fault, NULL};
    const struct wr_parser_options options = {.split = expected.defaults.group ? WR_PARSER_SPLIT_NONE
                                                                               : WR_PARSER_SPLIT_LAST};
    struct wr_parser *parser = wr_parser_new(type, &options, &sink);
    size_t used;
    FUZZ_CHECK(parser && wr_parser_put(parser, data, size, &used) && wr_parser_end(parser));
    expected.lines = wr_parser_lines(parser);
    wr_parser_free(parser);
}

/* One line per fault, up to a limit, without control characters. */
static void check_messages(const char *text, size_t length)
{
    uint64_t lines = 0, faults = expected.refused + expected.left_out;
    uint64_t most = faults > MOST_MESSAGES ? MOST_MESSAGES + 1 : faults;
    FUZZ_CHECK(wr_utf8_is_valid(text, length, NULL));
    for (size_t i = 0; i < length; i++) {
        lines += text[i] == '\n';
        FUZZ_CHECK((unsigned char)text[i] >= ' ' || text[i] == '\n' || isatty(STDERR_FILENO));
    }
    FUZZ_CHECK(lines == most);
}

static void read_input(const struct wr_parser_type *type, const uint8_t *data, size_t size)
{
    static int file = -1;
    struct input_counts counts;
    char *text = NULL;
    size_t length = 0;
    FILE *real_stderr = stderr, *messages = open_memstream(&text, &length);
    if (file < 0)
        file = memfd_create("input", MFD_CLOEXEC);
    FUZZ_CHECK(messages && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    FUZZ_CHECK(lseek(file, 0, SEEK_SET) == 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    stderr = messages;
    input_add_all(type, NULL, &expected.defaults, &counts);
    stderr = real_stderr;
    fclose(messages);
    FUZZ_CHECK(!current.repeats && !counts.failed && counts.lines == expected.lines &&
               counts.values == expected.values && counts.invalid == expected.refused &&
               counts.left_out == expected.left_out);
    check_messages(text, length);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t types = 0;
    if (size == 0)
        return 0;
    while (wr_parser_type_at(types))
        types++;
    const struct wr_parser_type *type = wr_parser_type_at((size_t)(data[0] >> 3) % types);
    memset(&expected, 0, sizeof expected);
    expected.defaults.group = data[0] & WITH_GROUP ? default_group : NULL;
    expected.defaults.labels = &default_label;
    expected.defaults.label_count = data[0] & WITH_LABEL ? 1 : 0;
    expect(type, data + 1, size - 1);
    read_input(type, data + 1, size - 1);
    return 0;
}
