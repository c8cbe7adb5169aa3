#include "report_document.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "parse/parser.h"
#include "statistics.h"
#include "text/utf8.h"

/* ---- Recognising ----------------------------------------------------------------------------- */

struct scan {
    const char *at, *end;
};

static char next_of(struct scan *scan)
{
    while (scan->at < scan->end && memchr(" \t\r\n", *scan->at, 4))
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool take(struct scan *scan, char c)
{
    bool is_there = next_of(scan) == c;
    scan->at += is_there;
    return is_there;
}

/* A string and a colon. Returns the string's bytes as they are written. */
static bool take_key(struct scan *scan, const char **key, size_t *length)
{
    if (!take(scan, '"'))
        return false;
    *key = scan->at;
    while (scan->at < scan->end && *scan->at != '"')
        scan->at += *scan->at == '\\' ? 2 : 1;
    *length = (size_t)(scan->at - *key);
    return scan->at < scan->end && take(scan, '"') && take(scan, ':');
}

static bool is_word(const char *key, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(key, word, length) == 0;
}

static bool is_part(const char *key, size_t length)
{
    return is_word(key, length, "figures") || is_word(key, length, "reports") ||
           is_word(key, length, "metrics");
}

static bool is_figure(const char *key, size_t length)
{
    for (size_t i = 0; i < NODE_FIGURES; i++)
        if (is_word(key, length, node_figure_table[i].name))
            return true;
    return false;
}

/* Lines of JSON are objects too, whose labels are texts, and which have no arrays. */
bool report_document_is(const char *bytes, size_t length)
{
    struct scan scan = {bytes, bytes + length};
    const char *key;
    size_t key_length;
    if (!take(&scan, '{') || !take_key(&scan, &key, &key_length))
        return false;
    if (take(&scan, '['))
        return next_of(&scan) == '{' || next_of(&scan) == ']';
    if (!take(&scan, '{') || !take_key(&scan, &key, &key_length))
        return false;
    char value = next_of(&scan);
    return is_part(key, key_length) ? value == '{' || value == '[' : is_figure(key, key_length) && value != '"';
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct place {
    const char *path, *node;
};

static bool refuse(const struct place *place, const char *what, const char *problem)
{
    command_fail("%s: node \"%s\": %s: %s", place->path, place->node, what, problem);
    return false;
}

/* A number, or null. */
static bool read_number(const struct place *place, struct json_object *object, const char *key, double *number)
{
    struct json_object *member;
    if (!json_object_object_get_ex(object, key, &member))
        return refuse(place, key, "is missing");
    if (member && !json_object_is_type(member, json_type_double) && !json_object_is_type(member, json_type_int))
        return refuse(place, key, "is neither a number nor null");
    *number = member ? json_object_get_double(member) : NAN;
    return !member || isfinite(*number) || refuse(place, key, "is not a finite number");
}

static bool read_reports(const struct place *place, struct json_object *array,
                         struct report_document_node *node)
{
    size_t count = json_object_array_length(array);
    node->reports = command_must(malloc((count + 1) * NODE_KEYS * sizeof *node->reports));
    for (node->count = 0; node->count < count; node->count++) {
        struct json_object *report = json_object_array_get_idx(array, node->count);
        if (!json_object_is_type(report, json_type_object))
            return refuse(place, "reports", "one of them is not an object");
        for (size_t i = 0; i < NODE_KEYS; i++)
            if (!read_number(place, report, node_key_names[i], &node->reports[node->count * NODE_KEYS + i]))
                return false;
    }
    return true;
}

static bool read_figures(const struct place *place, struct json_object *object,
                         struct report_document_node *node)
{
    for (size_t i = 0; i < NODE_FIGURES; i++)
        if (!read_number(place, object, node_figure_table[i].name, &node->figures[i]))
            return false;
    return true;
}

/* Such a file does not have the number of processors, so hours are not known. */
static void compute_figures(struct report_document_node *node)
{
    node_figures_compute(node->reports, node->count, NAN, NAN, node->figures);
}

static bool is_metric(struct json_object *metric)
{
    struct json_object *name, *points;
    return json_object_is_type(metric, json_type_object) && json_object_object_get_ex(metric, "name", &name) &&
           json_object_is_type(name, json_type_string) &&
           json_object_object_get_ex(metric, "points", &points) && json_object_is_type(points, json_type_array);
}

static bool read_metrics(const struct place *place, struct json_object *array,
                         struct report_document_node *node)
{
    for (size_t i = 0; i < json_object_array_length(array); i++)
        if (!is_metric(json_object_array_get_idx(array, i)))
            return refuse(place, "metrics", "one of them is not an object with name and points");
    node->metrics = json_object_get(array);
    return true;
}

/* An object with parts; each may be missing. */
static bool read_parts(const struct place *place, struct json_object *object, struct report_document_node *node)
{
    struct json_object *figures = NULL, *reports = NULL, *metrics = NULL;
    json_object_object_get_ex(object, "figures", &figures);
    json_object_object_get_ex(object, "reports", &reports);
    json_object_object_get_ex(object, "metrics", &metrics);
    if (!figures && !reports && !metrics)
        return read_figures(place, object, node);
    if (figures && !json_object_is_type(figures, json_type_object))
        return refuse(place, "figures", "is not an object");
    if ((reports && !json_object_is_type(reports, json_type_array)) ||
        (metrics && !json_object_is_type(metrics, json_type_array)))
        return refuse(place, reports ? "reports" : "metrics", "is not an array");
    if ((reports && !read_reports(place, reports, node)) || (metrics && !read_metrics(place, metrics, node)))
        return false;
    if (figures)
        return read_figures(place, figures, node);
    compute_figures(node);
    return true;
}

static bool read_node(const struct place *place, struct json_object *value, struct report_document_node *node)
{
    if (json_object_is_type(value, json_type_object))
        return read_parts(place, value, node);
    if (!json_object_is_type(value, json_type_array))
        return refuse(place, "its value", "is neither an array of reports nor an object");
    bool is_read = read_reports(place, value, node);
    if (is_read)
        compute_figures(node);
    return is_read;
}

static struct report_document_node *append(struct report_documents *documents, const struct place *place)
{
    documents->nodes =
        command_must(realloc(documents->nodes, (documents->count + 1) * sizeof *documents->nodes));
    struct report_document_node *node = &documents->nodes[documents->count++];
    *node = (struct report_document_node){.path = place->path, .name = command_must(strdup(place->node))};
    return node;
}

static struct json_object *read_json(const char *path, const char *bytes, size_t length)
{
    enum { BYTES_MOST = 1 << 30 };
    if (length > BYTES_MOST) {
        command_fail("%s: a report may have at most 1 GiB", path);
        return NULL;
    }
    size_t where;
    if (!wr_utf8_is_valid(bytes, length, &where)) {
        command_fail("%s: byte %zu of the report is not UTF-8", path, where);
        return NULL;
    }
    struct json_tokener *tokener = command_must(json_tokener_new());
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *root = json_tokener_parse_ex(tokener, bytes, (int)length);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    if (error != json_tokener_success)
        command_fail("%s: byte %zu of the report: %s", path, json_tokener_get_parse_end(tokener),
                     error == json_tokener_continue ? "the file ends too early"
                                                    : json_tokener_error_desc(error));
    json_tokener_free(tokener);
    return error == json_tokener_success ? root : NULL;
}

static bool read_nodes(struct report_documents *documents, const char *path, struct json_object *root)
{
    json_object_object_foreach(root, name, value)
    {
        const struct place place = {path, name};
        if (!read_node(&place, value, append(documents, &place)))
            return false;
    }
    return true;
}

bool report_document_read(struct report_documents *documents, const char *path, const char *bytes,
                          size_t length)
{
    size_t before = documents->count;
    struct json_object *root = read_json(path, bytes, length);
    bool is_read = root && read_nodes(documents, path, root);
    json_object_put(root);
    if (!is_read)
        report_documents_cut(documents, before);
    return is_read;
}

void report_documents_cut(struct report_documents *documents, size_t count)
{
    for (size_t i = count; i < documents->count; i++) {
        free(documents->nodes[i].name);
        free(documents->nodes[i].reports);
        json_object_put(documents->nodes[i].metrics);
    }
    documents->count = count;
    if (count)
        return;
    free(documents->nodes);
    documents->nodes = NULL;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

/* One value at its time, with the group and labels of the record. */
static void add_value(struct statistics *statistics, const struct wr_parse_record *identity, const char *name,
                      double time_s, double value)
{
    const weir_typed_value typed = {name, WEIR_DOUBLE(value)};
    struct wr_parse_record record = *identity;
    record.values = &typed;
    record.count = 1;
    record.has_time = fabs(time_s) < 9e9;
    record.time_ns = record.has_time ? (int64_t)(time_s * 1e9) : 0;
    statistics_add(statistics, &record, NULL);
}

static void add_reports(const struct report_document_node *node, struct statistics *statistics)
{
    const weir_label label = {"node", node->name};
    const struct wr_parse_record record = {.labels = &label, .label_count = 1};
    for (size_t i = 0; i < node->count; i++) {
        const double *report = node->reports + i * NODE_KEYS;
        for (size_t k = 0; k < NODE_TIME; k++)
            if (!isnan(report[k]))
                add_value(statistics, &record, node_key_names[k], report[NODE_TIME], report[k]);
    }
}

/* Returns how many there are; the last place is left for one more. */
static size_t list_own_labels(struct json_object *object, weir_label labels[WR_PARSER_LABELS])
{
    size_t count = 0;
    json_object_object_foreach(object, key, value)
    {
        if (count < WR_PARSER_LABELS - 1 && value)
            labels[count++] = (weir_label){key, json_object_get_string(value)};
    }
    return count;
}

/* Its own label "node" takes precedence. Returns how many there are. */
static size_t list_labels(const struct report_document_node *node, struct json_object *metric,
                          weir_label labels[WR_PARSER_LABELS])
{
    struct json_object *object;
    bool has_labels =
        json_object_object_get_ex(metric, "labels", &object) && json_object_is_type(object, json_type_object);
    size_t count = has_labels ? list_own_labels(object, labels) : 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, "node") == 0)
            return count;
    labels[count] = (weir_label){"node", node->name};
    return count + 1;
}

static double number_at(struct json_object *array, size_t i)
{
    struct json_object *number =
        json_object_is_type(array, json_type_array) ? json_object_array_get_idx(array, i) : NULL;
    return number ? json_object_get_double(number) : NAN;
}

/* Returns whether all its values were kept. */
static bool add_metric(const struct report_document_node *node, struct json_object *metric,
                       struct statistics *statistics)
{
    weir_label labels[WR_PARSER_LABELS];
    struct json_object *group = NULL, *name, *points, *count;
    json_object_object_get_ex(metric, "group", &group);
    json_object_object_get_ex(metric, "name", &name);
    json_object_object_get_ex(metric, "points", &points);
    const struct wr_parse_record record = {.group = group ? json_object_get_string(group) : NULL,
                                           .labels = labels,
                                           .label_count = list_labels(node, metric, labels)};
    size_t kept = json_object_array_length(points);
    for (size_t i = 0; i < kept; i++) {
        struct json_object *point = json_object_array_get_idx(points, i);
        add_value(statistics, &record, json_object_get_string(name), number_at(point, 0), number_at(point, 1));
    }
    return !json_object_object_get_ex(metric, "count", &count) || json_object_get_uint64(count) <= kept;
}

void report_document_add(const struct report_documents *documents, size_t first, struct statistics *statistics)
{
    size_t partial = 0;
    for (size_t i = first; i < documents->count; i++) {
        const struct report_document_node *node = &documents->nodes[i];
        add_reports(node, statistics);
        for (size_t k = 0; node->metrics && k < json_object_array_length(node->metrics); k++)
            partial += !add_metric(node, json_object_array_get_idx(node->metrics, k), statistics);
    }
    if (partial)
        command_fail(
            "%s: of %zu series a part of the values was kept, evenly spaced, and only those count here",
            documents->nodes[first].path, partial);
}
