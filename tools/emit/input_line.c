#include "input_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/document.h"
#include "text/common.h"
#include "text/json.h"
#include "text/number.h"
#include "text/utf8.h"

enum { QUOTED_ROOM = 200 };

static bool refuse(struct input_line_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct input_line_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool locate(struct input_line_fault *fault, const char *text, size_t length, size_t offset)
{
    unsigned row;
    wr_json_locate(text, length, offset, &row, &fault->column);
    return false;
}

static const char *quote(char out[QUOTED_ROOM], const char *text)
{
    return wr_utf8_quote(out, QUOTED_ROOM, text, strlen(text));
}

void input_line_clear(struct input_line *line)
{
    wr_document_drop(line->document);
    line->document = NULL;
    line->count = line->label_count = 0;
    line->group = line->metadata = NULL;
    line->has_time = line->cumulative = false;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* A double, so that the values of a name have one type, except integers beyond 2^53: these keep all their
 * digits. */
static bool read_number(const char *text, struct wr_value *value)
{
    const int64_t last_double = INT64_C(1) << 53;
    int64_t integer;
    value->kind = WEIR_KIND_DOUBLE;
    if (!wr_number_parse_double(text, &value->is.f64))
        return false;
    if (wr_number_parse_int(text, &integer) && (integer > last_double || integer < -last_double))
        *value = (struct wr_value){WEIR_KIND_INT, {.i64 = integer}};
    return true;
}

/* Seconds since 1970 with up to nine decimals, without rounding. */
static bool read_time(const char *text, int64_t *time_ns)
{
    const char *digits = text + (*text == '-');
    size_t whole = strspn(digits, "0123456789");
    int64_t seconds = 0, rest_ns = 0;
    if (!whole || whole > 10)
        return false;
    for (size_t i = 0; i < whole; i++)
        seconds = seconds * 10 + (digits[i] - '0');
    const char *decimals = digits + whole;
    if (*decimals == '.')
        decimals++;
    if (decimals[strspn(decimals, "0123456789")] || seconds > INT64_MAX / WR_NS_PER_S - 1)
        return false;
    for (int64_t unit = WR_NS_PER_S / 10; unit && *decimals; unit /= 10)
        rest_ns += unit * (*decimals++ - '0');
    *time_ns = seconds * WR_NS_PER_S + rest_ns;
    if (*text == '-')
        *time_ns = -*time_ns;
    return true;
}

/* ---- name=value ------------------------------------------------------------------------------ */

bool input_line_add_word(struct input_line *line, char *word, struct input_line_fault *fault)
{
    struct wr_event_value *value = &line->values[line->count];
    char quoted[QUOTED_ROOM], name[QUOTED_ROOM];
    char *equals = strrchr(word, '=');
    if (!equals || equals == word)
        return refuse(fault, "%s is not a value (like name=12.5)", quote(quoted, word));
    if (line->count == INPUT_LINE_MAX_VALUES)
        return refuse(fault, "at most %d values are allowed", INPUT_LINE_MAX_VALUES);
    *equals = '\0';
    value->name = word;
    if (!read_number(equals + 1, &value->value))
        return refuse(fault, "%s: %s is not a number", quote(name, word), quote(quoted, equals + 1));
    line->count++;
    return true;
}

static bool parse_words(struct input_line *line, char *text, size_t length, struct input_line_fault *fault)
{
    static const char blanks[] = " \t";
    char *word = text + strspn(text, blanks);
    while (*word) {
        char *end = word + strcspn(word, blanks);
        char *next = end + strspn(end, blanks);
        *end = '\0';
        if (!input_line_add_word(line, word, fault))
            return locate(fault, text, length, (size_t)(word - text));
        word = next;
    }
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Errors of a document without a name begin with ":1:COLUMN: ". */
static bool refuse_document(struct input_line_fault *fault, const struct wr_error *error)
{
    int start = 0;
    fault->column = 0;
    sscanf(error->text, ":1:%u: %n", &fault->column, &start);
    return refuse(fault, "%s", error->text + start);
}

static bool read_value(const struct wr_node *node, struct wr_value *value, struct wr_error *error)
{
    static const struct {
        const char *name;
        double is;
    } specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    if (node->type == WR_NODE_NUMBER && read_number(node->text, value))
        return true;
    for (size_t i = 0; node->type == WR_NODE_STRING && i < WR_COUNT_OF(specials); i++) {
        if (strcmp(node->text, specials[i].name) == 0) {
            *value = (struct wr_value){WEIR_KIND_DOUBLE, {.f64 = specials[i].is}};
            return true;
        }
    }
    char shown[QUOTED_ROOM];
    wr_node_error(node, error, "%s is not a number%s", wr_node_show(node, shown, sizeof shown),
                  node->type == WR_NODE_STRING ? "; the only strings allowed are NaN, Infinity and -Infinity"
                                               : "");
    return false;
}

/* {"latency": 12.5, "errors": 1} */
static bool read_values(struct input_line *line, const struct wr_node *object, struct wr_error *error)
{
    for (const struct wr_node *member = object->first; member; member = member->next) {
        struct wr_event_value *value = &line->values[line->count];
        if (line->count == INPUT_LINE_MAX_VALUES) {
            wr_node_key_error(member, error, "at most %d values are allowed", INPUT_LINE_MAX_VALUES);
            return false;
        }
        value->name = member->key;
        if (!read_value(member, &value->value, error))
            return false;
        line->count++;
    }
    return true;
}

static bool read_text(const struct wr_node *node, const char **text, struct wr_error *error)
{
    *text = node->text;
    return wr_node_check_type(node, WR_NODE_STRING, error);
}

static bool read_labels(struct input_line *line, const struct wr_node *object, struct wr_error *error)
{
    if (!wr_node_check_type(object, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = object->first; member; member = member->next) {
        weir_label *label = &line->labels[line->label_count];
        if (line->label_count == INPUT_LINE_MAX_LABELS) {
            wr_node_key_error(member, error, "at most %d labels are allowed", INPUT_LINE_MAX_LABELS);
            return false;
        }
        label->key = member->key;
        if (!read_text(member, &label->value, error))
            return false;
        line->label_count++;
    }
    return true;
}

static bool read_timestamp(struct input_line *line, const struct wr_node *node, struct wr_error *error)
{
    char shown[QUOTED_ROOM];
    line->has_time = node->type == WR_NODE_NUMBER && read_time(node->text, &line->time_ns);
    if (!line->has_time)
        wr_node_error(node, error, "%s is not a time (seconds since 1970, like 1795219607.576198123)",
                      wr_node_show(node, shown, sizeof shown));
    return line->has_time;
}

static bool read_member(struct input_line *line, const struct wr_node *node, struct wr_error *error)
{
    const char *key = node->key;
    if (strcmp(key, "name") == 0)
        return read_text(node, &line->values->name, error);
    if (strcmp(key, "value") == 0) {
        line->count = 1;
        return read_value(node, &line->values->value, error);
    }
    if (strcmp(key, "timestamp") == 0)
        return read_timestamp(line, node, error);
    if (strcmp(key, "group") == 0)
        return read_text(node, &line->group, error);
    if (strcmp(key, "labels") == 0)
        return read_labels(line, node, error);
    if (strcmp(key, "metadata") == 0)
        return read_text(node, &line->metadata, error);
    if (strcmp(key, "cumulative") == 0) {
        line->cumulative = node->truth;
        return wr_node_check_type(node, WR_NODE_BOOL, error);
    }
    wr_node_key_error(node, error,
                      "unknown member; with \"name\" these are allowed: timestamp, group, name, value, labels, "
                      "cumulative, metadata");
    return false;
}

/* {"timestamp":1795219607.576198123,"group":"my_app","name":"latency","value":49.403,"labels":{"route":"/x"}}
 */
static bool read_record(struct input_line *line, const struct wr_node *object, struct wr_error *error)
{
    for (const struct wr_node *member = object->first; member; member = member->next)
        if (!read_member(line, member, error))
            return false;
    if (!line->count)
        wr_node_error(object, error, "the member \"value\" is missing");
    return line->count;
}

static bool parse_json(struct input_line *line, const char *text, size_t length, struct input_line_fault *fault)
{
    struct wr_error error = {0};
    line->document = wr_document_parse("", text, length, &error);
    if (!line->document)
        return refuse_document(fault, &error);
    const struct wr_node *root = line->document->root, *name = wr_node_member(root, "name");
    bool is_record = name && name->type == WR_NODE_STRING; /* a value called "name" is a number */
    bool read = wr_node_check_type(root, WR_NODE_OBJECT, &error) &&
                (is_record ? read_record : read_values)(line, root, &error);
    if (read && !line->count)
        wr_node_error(root, &error, "the object has no values");
    return (read && line->count) || refuse_document(fault, &error);
}

/* ---- A line ---------------------------------------------------------------------------------- */

static bool check_text(const char *text, size_t length, struct input_line_fault *fault)
{
    const char *nul = memchr(text, '\0', length);
    size_t offset = nul ? (size_t)(nul - text) : 0;
    if (!nul && wr_utf8_is_valid(text, length, &offset))
        return true;
    refuse(fault, "%s", nul ? "a NUL byte" : "invalid UTF-8");
    return locate(fault, text, length, offset);
}

bool input_line_parse(struct input_line *line, char *text, size_t length, struct input_line_fault *fault)
{
    const char *first = text + strspn(text, " \t");
    fault->column = 0;
    input_line_clear(line);
    if (!check_text(text, length, fault))
        return false;
    if (*first == '\0' || *first == '#')
        return true;
    return *first == '{' || *first == '[' ? parse_json(line, text, length, fault)
                                          : parse_words(line, text, length, fault);
}
