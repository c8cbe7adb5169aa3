#include "input_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "config/document.h"
#include "text/number.h"
#include "text/json.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

static bool refuse(struct input_line_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct input_line_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->words, sizeof fault->words, format, arguments);
    va_end(arguments);
    return false;
}

static bool locate(struct input_line_fault *fault, const char *line, size_t length, size_t offset)
{
    unsigned row;
    wr_json_locate(line, length, offset, &row, &fault->column);
    return false;
}

void input_line_clear(struct input_line *line_reader)
{
    wr_document_drop(line_reader->document);
    line_reader->document = NULL;
    line_reader->count = line_reader->label_count = 0;
    line_reader->group = line_reader->metadata = NULL;
    line_reader->timed = line_reader->cumulative = false;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* An integer beyond those that doubles hold one by one keeps all its digits; any other number is a double, so
 * that a name's values are of one kind. */
static bool read_number(const char *text, struct wr_intake_value *value)
{
    const int64_t last_double = INT64_C(1) << 53;
    int64_t integer;
    value->kind = WEIR_KIND_DOUBLE;
    if (!wr_number_parse_double(text, &value->is.f64))
        return false;
    if (wr_number_parse_int(text, &integer) && (integer > last_double || integer < -last_double))
        *value = (struct wr_intake_value){WEIR_KIND_INT, {.i64 = integer}};
    return true;
}

/* Seconds since 1970 with up to nine decimals, exactly; false: it is no such number. */
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

bool input_line_add_word(struct input_line *line_reader, char *word, struct input_line_fault *fault)
{
    struct wr_event_value *value = &line_reader->values[line_reader->count];
    char shown[SHOWN_ROOM], name[SHOWN_ROOM];
    char *equals = strrchr(word, '=');
    if (!equals || equals == word)
        return refuse(fault, "%s is not a value; it looks like name=12.5",
                      wr_utf8_quote(shown, sizeof shown, word, strlen(word)));
    if (line_reader->count == READING_MOST_VALUES)
        return refuse(fault, "at most %d values", READING_MOST_VALUES);
    *equals = '\0';
    value->name = word;
    if (!read_number(equals + 1, &value->value))
        return refuse(fault, "%s: %s is not a number", wr_utf8_quote(name, sizeof name, word, strlen(word)),
                      wr_utf8_quote(shown, sizeof shown, equals + 1, strlen(equals + 1)));
    line_reader->count++;
    return true;
}

static bool take_words(struct input_line *line_reader, char *line, size_t length,
                       struct input_line_fault *fault)
{
    static const char blanks[] = " \t";
    char *word = line + strspn(line, blanks);
    while (*word) {
        char *end = word + strcspn(word, blanks);
        char *next = end + strspn(end, blanks);
        *end = '\0';
        if (!input_line_add_word(line_reader, word, fault))
            return locate(fault, line, length, (size_t)(word - line));
        word = next;
    }
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The errors of a document without a name begin with ":1:COLUMN: ". */
static bool refuse_document(struct input_line_fault *fault, const struct wr_error *error)
{
    int words = 0;
    fault->column = 0;
    sscanf(error->text, ":1:%u: %n", &fault->column, &words);
    return refuse(fault, "%s", error->text + words);
}

static bool read_value(const struct wr_node *node, struct wr_intake_value *value, struct wr_error *error)
{
    static const struct {
        const char *name;
        double is;
    } specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    if (node->type == WR_NODE_NUMBER && read_number(node->text, value))
        return true;
    for (size_t i = 0; node->type == WR_NODE_STRING && i < WR_COUNT_OF(specials); i++) {
        if (strcmp(node->text, specials[i].name) == 0) {
            *value = (struct wr_intake_value){WEIR_KIND_DOUBLE, {.f64 = specials[i].is}};
            return true;
        }
    }
    char shown[SHOWN_ROOM];
    wr_node_error(node, error, "%s is not a number%s", wr_node_show(node, shown, sizeof shown),
                  node->type == WR_NODE_STRING ? "; as strings only NaN, Infinity and -Infinity are allowed"
                                               : "");
    return false;
}

/* {"latency": 12.5, "errors": 1} */
static bool take_values(struct input_line *line_reader, const struct wr_node *object, struct wr_error *error)
{
    for (const struct wr_node *member = object->first; member; member = member->next) {
        struct wr_event_value *value = &line_reader->values[line_reader->count];
        if (line_reader->count == READING_MOST_VALUES) {
            wr_node_key_error(member, error, "at most %d values", READING_MOST_VALUES);
            return false;
        }
        value->name = member->key;
        if (!read_value(member, &value->value, error))
            return false;
        line_reader->count++;
    }
    return true;
}

static bool take_text(const struct wr_node *node, const char **text, struct wr_error *error)
{
    *text = node->text;
    return wr_node_check_type(node, WR_NODE_STRING, error);
}

static bool take_labels(struct input_line *line_reader, const struct wr_node *object, struct wr_error *error)
{
    if (!wr_node_check_type(object, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = object->first; member; member = member->next) {
        weir_label *label = &line_reader->labels[line_reader->label_count];
        if (line_reader->label_count == READING_MOST_LABELS) {
            wr_node_key_error(member, error, "at most %d labels", READING_MOST_LABELS);
            return false;
        }
        label->key = member->key;
        if (!take_text(member, &label->value, error))
            return false;
        line_reader->label_count++;
    }
    return true;
}

static bool take_time(struct input_line *line_reader, const struct wr_node *node, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    line_reader->timed = node->type == WR_NODE_NUMBER && read_time(node->text, &line_reader->time_ns);
    if (!line_reader->timed)
        wr_node_error(node, error, "%s is not a time; it is seconds since 1970, like 1795219607.576198123",
                      wr_node_show(node, shown, sizeof shown));
    return line_reader->timed;
}

static bool take_member(struct input_line *line_reader, const struct wr_node *node, struct wr_error *error)
{
    const char *key = node->key;
    if (strcmp(key, "name") == 0)
        return take_text(node, &line_reader->values->name, error);
    if (strcmp(key, "value") == 0) {
        line_reader->count = 1;
        return read_value(node, &line_reader->values->value, error);
    }
    if (strcmp(key, "timestamp") == 0)
        return take_time(line_reader, node, error);
    if (strcmp(key, "group") == 0)
        return take_text(node, &line_reader->group, error);
    if (strcmp(key, "labels") == 0)
        return take_labels(line_reader, node, error);
    if (strcmp(key, "metadata") == 0)
        return take_text(node, &line_reader->metadata, error);
    if (strcmp(key, "cumulative") == 0) {
        line_reader->cumulative = node->truth;
        return wr_node_check_type(node, WR_NODE_BOOL, error);
    }
    wr_node_key_error(
        node, error,
        "unknown member beside \"name\"; allowed: timestamp, group, name, value, labels, cumulative, "
        "metadata");
    return false;
}

/* {"timestamp":1795219607.576198123,"group":"my_app","name":"latency","value":49.403,"labels":{"route":"/x"}}
 */
static bool take_record(struct input_line *line_reader, const struct wr_node *object, struct wr_error *error)
{
    for (const struct wr_node *member = object->first; member; member = member->next)
        if (!take_member(line_reader, member, error))
            return false;
    if (!line_reader->count)
        wr_node_error(object, error, "the member \"value\" is missing beside \"name\"");
    return line_reader->count;
}

static bool take_json(struct input_line *line_reader, const char *line, size_t length,
                      struct input_line_fault *fault)
{
    struct wr_error error = {0};
    line_reader->document = wr_document_parse("", line, length, &error);
    if (!line_reader->document)
        return refuse_document(fault, &error);
    const struct wr_node *root = line_reader->document->root, *name = wr_node_member(root, "name");
    bool is_record = name && name->type == WR_NODE_STRING; /* no value is a text, unless it is not a number */
    bool taken = wr_node_check_type(root, WR_NODE_OBJECT, &error) &&
                 (is_record ? take_record : take_values)(line_reader, root, &error);
    if (taken && !line_reader->count)
        wr_node_error(root, &error, "there is no value in it");
    return (taken && line_reader->count) || refuse_document(fault, &error);
}

/* ---- A line ---------------------------------------------------------------------------------- */

static bool check_text(const char *line, size_t length, struct input_line_fault *fault)
{
    const char *nul = memchr(line, '\0', length);
    size_t where = nul ? (size_t)(nul - line) : 0;
    if (!nul && wr_utf8_is_valid(line, length, &where))
        return true;
    refuse(fault, "%s", nul ? "a NUL byte" : "invalid UTF-8");
    return locate(fault, line, length, where);
}

bool input_line_take_line(struct input_line *line_reader, char *line, size_t length,
                          struct input_line_fault *fault)
{
    const char *first = line + strspn(line, " \t");
    fault->column = 0;
    input_line_clear(line_reader);
    if (!check_text(line, length, fault))
        return false;
    if (*first == '\0' || *first == '#')
        return true;
    return *first == '{' || *first == '[' ? take_json(line_reader, line, length, fault)
                                          : take_words(line_reader, line, length, fault);
}
