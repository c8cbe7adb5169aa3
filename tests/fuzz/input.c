/* Input of `weir emit`: each line of standard input is parsed as by other readers (json-c, a regular expression
 * and strtod), or refused with a one-line message, and only accepted lines become events. The first byte
 * selects the kind of the rest:
 *
 *   1  arguments NAME=VALUE, one per line
 *   other  standard input; bit 2: a default group, bit 4: a default label */

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emit/delivery.h"
#include "emit/input.h"
#include "emit/lines.h"
#include "emit/input_line.h"
#include "emit/throttle.h"
#include "fuzz.h"
#include "registry/name.h"
#include "registry/stream.h"
#include "text/utf8.h"

enum { WORDS = 1, WITH_GROUP = 2, WITH_LABEL = 4, MOST_MESSAGES = 20 };

static const weir_label default_label = {"host", "h"};
static const char default_group[] = "standard";

/* The expected results for the current input. */
static struct {
    struct input_defaults defaults;
    const uint8_t *at, *end; /* of the unread lines */
    uint64_t lines, refused, values;
    const struct input_line *accepted; /* the accepted line that must become an event; or NULL */
} expected;

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool matches(const char *text, const char *pattern, regex_t *compiled, bool *done)
{
    if (!*done)
        FUZZ_CHECK(regcomp(compiled, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    *done = true;
    return regexec(compiled, text, 0, NULL, 0) == 0;
}

static bool is_decimal(const char *text)
{
    static regex_t compiled;
    static bool done;
    return matches(text, "^-?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$", &compiled, &done);
}

static bool is_integer(const char *text)
{
    static regex_t compiled;
    static bool done;
    return matches(text, "^-?[0-9]+$", &compiled, &done);
}

/* RFC 8259: an object of numbers whose names have no escapes. */
static bool is_object_of_numbers(const char *text)
{
#define PAIR "[ \t]*\"[^\"\\\x01-\x1f]+\"[ \t]*:[ \t]*-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?[ \t]*"
    static regex_t compiled;
    static bool done;
    return matches(text, "^[ \t]*[{]" PAIR "(," PAIR ")*[}][ \t]*$", &compiled, &done);
#undef PAIR
}

/* Integers beyond 2^53 have the kind INT; all other numbers are doubles. */
static bool find_number(const char *text, struct wr_value *value)
{
    const long long last_double = 1LL << 53;
    if (!is_decimal(text))
        return false;
    *value = (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = strtod(text, NULL)}};
    errno = 0;
    long long integer = strtoll(text, NULL, 10);
    if (is_integer(text) && errno == 0 && (integer > last_double || integer < -last_double))
        *value = (struct wr_value){WEIR_KIND_INT, {.i64 = integer}};
    return isfinite(strtod(text, NULL));
}

static bool is_same(const struct wr_value *a, const struct wr_value *b)
{
    return a->kind == b->kind && (memcmp(&a->is, &b->is, sizeof a->is) == 0 ||
                                  (a->kind == WEIR_KIND_DOUBLE && isnan(a->is.f64) && isnan(b->is.f64)));
}

/* ---- name=value ------------------------------------------------------------------------------ */

/* Whether the word is NAME=VALUE; splits it. */
static bool find_word(char *word, struct wr_event_value *value)
{
    char *equals = strrchr(word, '=');
    if (!equals || equals == word)
        return false;
    *equals = '\0';
    value->name = word;
    return find_number(equals + 1, &value->value);
}

static void check_words(char *line, const struct input_line *line_reader, bool taken)
{
    struct wr_event_value value;
    char *rest;
    size_t count = 0;
    bool good = true;
    for (char *word = strtok_r(line, " \t", &rest); word && good; word = strtok_r(NULL, " \t", &rest)) {
        good = count < INPUT_LINE_MAX_VALUES && find_word(word, &value);
        if (good && taken)
            FUZZ_CHECK(count < line_reader->count && strcmp(line_reader->values[count].name, value.name) == 0 &&
                       is_same(&line_reader->values[count].value, &value.value));
        count += good;
    }
    FUZZ_CHECK(taken == good);
    if (taken)
        FUZZ_CHECK(count == line_reader->count && !line_reader->group && !line_reader->label_count &&
                   !line_reader->has_time && !line_reader->metadata && !line_reader->cumulative);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns NULL if the text is not JSON. */
static struct json_object *parse_json(const char *line, size_t length)
{
    struct json_tokener *tokener = json_tokener_new();
    FUZZ_CHECK(tokener);
    struct json_object *object = json_tokener_parse_ex(tokener, line, (int)length + 1);
    if (json_tokener_get_error(tokener) != json_tokener_success) {
        json_object_put(object);
        object = NULL;
    }
    json_tokener_free(tokener);
    return object;
}

static bool is_text(struct json_object *object, const char *text)
{
    return json_object_is_type(object, json_type_string) &&
           (size_t)json_object_get_string_len(object) == strlen(text) &&
           strcmp(json_object_get_string(object), text) == 0;
}

/* json-c keeps the text of a double but not of an integer: beyond 64 bits it is truncated, and 0 loses its
 * sign. */
static void check_value(struct json_object *object, const struct wr_value *value)
{
    struct wr_value found = {WEIR_KIND_DOUBLE, {.f64 = NAN}};
    const char *text = json_object_get_string(object);
    if (json_object_is_type(object, json_type_string)) {
        FUZZ_CHECK(strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0);
        found.is.f64 = strtod(text, NULL);
    } else {
        FUZZ_CHECK(find_number(text, &found));
    }
    bool is_cut = json_object_is_type(object, json_type_int) &&
                  (!json_object_get_int64(object) || json_object_get_int64(object) == INT64_MIN ||
                   json_object_get_int64(object) == INT64_MAX);
    if (is_cut)
        FUZZ_CHECK(value->kind == WEIR_KIND_INT || value->is.f64 == 0 || fabs(value->is.f64) >= 0x1p63);
    else
        FUZZ_CHECK(is_same(value, &found));
}

static void check_time(struct json_object *object, int64_t time_ns)
{
    const char *text = json_object_get_string(object), *dot = strchr(text, '.');
    char decimals[] = "000000000";
    int64_t seconds = strtoll(text, NULL, 10);
    for (size_t i = 0; dot && i + 1 < sizeof decimals && dot[1 + i]; i++)
        decimals[i] = dot[1 + i];
    int64_t rest_ns = strtol(decimals, NULL, 10);
    FUZZ_CHECK(json_object_get_type(object) == json_type_double || json_object_is_type(object, json_type_int));
    FUZZ_CHECK(time_ns == seconds * 1000000000 + (*text == '-' ? -rest_ns : rest_ns));
}

static void check_labels(struct json_object *object, const struct input_line *line_reader)
{
    size_t count = 0;
    json_object_object_foreach(object, key, value)
    {
        FUZZ_CHECK(count < line_reader->label_count && strcmp(line_reader->labels[count].key, key) == 0);
        FUZZ_CHECK(is_text(value, line_reader->labels[count].value));
        count++;
    }
    FUZZ_CHECK(count == line_reader->label_count);
}

/* One value with its metadata, labels and time. */
static void check_record(struct json_object *object, const struct input_line *line_reader)
{
    struct json_object *member;
    FUZZ_CHECK(line_reader->count == 1);
    FUZZ_CHECK(json_object_object_get_ex(object, "name", &member) &&
               is_text(member, line_reader->values[0].name));
    FUZZ_CHECK(json_object_object_get_ex(object, "value", &member));
    check_value(member, &line_reader->values[0].value);
    bool found = json_object_object_get_ex(object, "group", &member);
    FUZZ_CHECK(found ? line_reader->group && is_text(member, line_reader->group) : !line_reader->group);
    found = json_object_object_get_ex(object, "metadata", &member);
    FUZZ_CHECK(found ? line_reader->metadata && is_text(member, line_reader->metadata)
                     : !line_reader->metadata);
    found = json_object_object_get_ex(object, "cumulative", &member);
    FUZZ_CHECK(line_reader->cumulative == (found && json_object_get_boolean(member)));
    FUZZ_CHECK(line_reader->has_time == json_object_object_get_ex(object, "timestamp", &member));
    if (line_reader->has_time)
        check_time(member, line_reader->time_ns);
    if (json_object_object_get_ex(object, "labels", &member))
        check_labels(member, line_reader);
    else
        FUZZ_CHECK(!line_reader->label_count);
}

static void check_values(struct json_object *object, const struct input_line *line_reader)
{
    size_t count = 0;
    json_object_object_foreach(object, key, value)
    {
        FUZZ_CHECK(count < line_reader->count && strcmp(line_reader->values[count].name, key) == 0);
        check_value(value, &line_reader->values[count++].value);
    }
    FUZZ_CHECK(count == line_reader->count && !line_reader->group && !line_reader->label_count &&
               !line_reader->has_time && !line_reader->metadata && !line_reader->cumulative);
}

/* Whether the line is certainly valid: finite numbers and different names. */
static bool is_plain(const char *line, size_t length)
{
    struct wr_value ignored;
    size_t keys = 0, quotes = 0;
    bool plain = true;
    if (!is_object_of_numbers(line))
        return false;
    struct json_object *object = parse_json(line, length);
    FUZZ_CHECK(json_object_is_type(object, json_type_object));
    json_object_object_foreach(object, key, value)
    {
        keys += *key != '\0';
        plain &= find_number(json_object_get_string(value), &ignored);
    }
    for (; *line; line++)
        quotes += *line == '"';
    json_object_put(object);
    return plain && keys <= INPUT_LINE_MAX_VALUES && quotes == 2 * keys;
}

static void check_json(const char *line, size_t length, const struct input_line *line_reader, bool taken)
{
    struct json_object *name;
    if (!taken) {
        FUZZ_CHECK(!is_plain(line, length));
        return;
    }
    FUZZ_CHECK(line_reader->count);
    struct json_object *object = parse_json(line, length);
    FUZZ_CHECK(json_object_is_type(object, json_type_object));
    if (json_object_object_get_ex(object, "name", &name) && json_object_is_type(name, json_type_string))
        check_record(object, line_reader);
    else
        check_values(object, line_reader);
    json_object_put(object);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Returns the next line of the input, which the caller frees. */
static char *take_line(size_t *length)
{
    static const char mark[] = "\xef\xbb\xbf";
    FUZZ_CHECK(expected.at < expected.end);
    const uint8_t *start = expected.at;
    const uint8_t *newline = memchr(start, '\n', (size_t)(expected.end - start));
    const uint8_t *end = newline ? newline : expected.end;
    expected.at = newline ? newline + 1 : end;
    if (end > start && end[-1] == '\r')
        end--;
    if (expected.lines++ == 0 && end - start >= 3 && memcmp(start, mark, 3) == 0)
        start += 3;
    *length = (size_t)(end - start);
    char *line = malloc(*length + 1);
    FUZZ_CHECK(line);
    memcpy(line, start, *length);
    line[*length] = '\0';
    return line;
}

static void check_line(char *line, size_t length, const struct input_line *line_reader, bool taken)
{
    const char *first = line + strspn(line, " \t");
    if (strlen(line) != length || !wr_utf8_is_valid(line, length, NULL))
        FUZZ_CHECK(!taken);
    else if (!*first || *first == '#')
        FUZZ_CHECK(taken && !line_reader->count);
    else if (*first == '{' || *first == '[')
        check_json(line, length, line_reader, taken);
    else
        check_words(line, line_reader, taken);
}

bool __real_input_line_parse(struct input_line *line_reader, char *line, size_t length,
                             struct input_line_fault *fault);
bool __wrap_input_line_parse(struct input_line *line_reader, char *line, size_t length,
                             struct input_line_fault *fault);

bool __wrap_input_line_parse(struct input_line *line_reader, char *line, size_t length,
                             struct input_line_fault *fault)
{
    size_t expected_length;
    char *copy = take_line(&expected_length);
    FUZZ_CHECK(length == expected_length && memcmp(line, copy, length + 1) == 0);
    bool taken = __real_input_line_parse(line_reader, line, length, fault);
    check_line(copy, length, line_reader, taken);
    FUZZ_CHECK(!expected.accepted); /* the line accepted before has become an event */
    expected.refused += !taken;
    expected.accepted = taken && line_reader->count ? line_reader : NULL;
    if (expected.accepted && !line_reader->group && !expected.defaults.group) {
        expected.refused++;
        expected.accepted = NULL;
    }
    FUZZ_CHECK(taken || *fault->text);
    free(copy);
    return taken;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static bool has_key(const weir_label *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, key) == 0)
            return true;
    return false;
}

weir_stream *__wrap_weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count);

/* The labels of the line, and the default labels that it does not override. */
weir_stream *__wrap_weir_get_stream_labeled(const char *group, const weir_label *labels, size_t count)
{
    static struct weir_stream stream;
    struct wr_error error;
    const struct input_line *line_reader = expected.accepted;
    FUZZ_CHECK(line_reader && strcmp(group, line_reader->group ? line_reader->group : default_group) == 0);
    FUZZ_CHECK(count >= line_reader->label_count &&
               memcmp(labels, line_reader->labels, line_reader->label_count * sizeof *labels) == 0);
    bool adds = expected.defaults.label_count &&
                !has_key(line_reader->labels, line_reader->label_count, default_label.key);
    FUZZ_CHECK(count == line_reader->label_count + adds);
    FUZZ_CHECK(!adds || strcmp(labels[count - 1].key, default_label.key) == 0);
    stream.refusal = wr_name_check_group(group, &error) ? 0 : error.code;
    if (stream.refusal) {
        expected.refused++;
        expected.accepted = NULL;
    }
    return &stream;
}

int __wrap_wr_event_add(struct weir_stream *stream, const struct wr_event *event);

/* Refuses the names that the core would refuse. */
int __wrap_wr_event_add(struct weir_stream *stream, const struct wr_event *event)
{
    const struct input_line *line_reader = expected.accepted;
    struct wr_error error;
    int refusal = 0;
    FUZZ_CHECK(line_reader && !stream->refusal);
    FUZZ_CHECK(event->values == line_reader->values && event->count == line_reader->count && event->count);
    FUZZ_CHECK(event->metadata == line_reader->metadata && event->cumulative == line_reader->cumulative);
    FUZZ_CHECK(line_reader->has_time ? *event->time_ns == line_reader->time_ns : !event->time_ns);
    for (size_t i = 0; i < event->count; i++)
        if (!wr_name_check(event->values[i].name, "name", &error))
            refusal = error.code;
    expected.accepted = NULL;
    if (refusal)
        expected.refused++;
    else
        expected.values += event->count;
    return refusal;
}

/* ---- Stubs ----------------------------------------------------------------------------------- */

void __wrap_lines_catch_signals(void);

void __wrap_lines_catch_signals(void)
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

/* ---- Whole inputs ---------------------------------------------------------------------------- */

/* One line per refused line, up to a limit, without control characters. */
static void check_messages(const char *text, size_t length)
{
    uint64_t lines = 0, most = expected.refused > MOST_MESSAGES ? MOST_MESSAGES + 1 : expected.refused;
    FUZZ_CHECK(wr_utf8_is_valid(text, length, NULL));
    for (size_t i = 0; i < length; i++) {
        lines += text[i] == '\n';
        FUZZ_CHECK((unsigned char)text[i] >= ' ' || text[i] == '\n' || isatty(STDERR_FILENO));
    }
    FUZZ_CHECK(lines == most);
}

static void read_input(const uint8_t *data, size_t size)
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
    expected.at = data;
    expected.end = data + size;
    stderr = messages;
    input_add_all(&expected.defaults, &counts);
    stderr = real_stderr;
    fclose(messages);
    FUZZ_CHECK(expected.at == expected.end && !expected.accepted && !counts.failed);
    FUZZ_CHECK(counts.lines == expected.lines && counts.values == expected.values &&
               counts.invalid == expected.refused);
    check_messages(text, length);
    free(text);
}

static void read_words(const uint8_t *data, size_t size)
{
    static struct input_line line_reader;
    struct input_line_fault fault;
    struct wr_event_value value;
    char *word, *copy;
    const uint8_t *end = data + size;
    while (data < end) {
        data = fuzz_take_line(data, end, &word);
        copy = strdup(word);
        size_t count = line_reader.count;
        bool good = find_word(copy, &value) && count < INPUT_LINE_MAX_VALUES;
        *fault.text = '\0';
        FUZZ_CHECK(input_line_add_word(&line_reader, word, &fault) == good &&
                   line_reader.count == count + good);
        FUZZ_CHECK(good == !*fault.text);
        if (good)
            FUZZ_CHECK(strcmp(line_reader.values[count].name, value.name) == 0 &&
                       is_same(&line_reader.values[count].value, &value.value));
        free(copy);
        free(word);
    }
    input_line_clear(&line_reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    memset(&expected, 0, sizeof expected);
    expected.defaults.group = data[0] & WITH_GROUP ? default_group : NULL;
    expected.defaults.labels = &default_label;
    expected.defaults.label_count = data[0] & WITH_LABEL ? 1 : 0;
    if (data[0] == WORDS)
        read_words(data + 1, size - 1);
    else
        read_input(data + 1, size - 1);
    return 0;
}
