/* Metrics that clients read: of one owner, of all, or as an archive. */
#include <ctype.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dates.h"
#include "mlbench.h"
#include "text/array.h"
#include "text/escape.h"
#include "text/number.h"
#include "zip.h"

/* What the parameters of the query select. */
struct selection {
    sqlite3_int64 run, pod; /* one of them is 0 */
    int64_t first_us, last_us;
    const char *name; /* NULL: all */
    int64_t summarize, last_n;
};

struct value {
    int64_t date_us;
    char *text; /* owned */
    bool is_cumulative;
};

/* The values of one name. */
struct values {
    char *name; /* owned */
    struct value *all;
    uint32_t count, room;
};

struct results {
    struct values *names;
    uint32_t count, room;
    size_t bytes;
    bool has_failed; /* out of memory */
};

/* ---- Reading --------------------------------------------------------------------------------- */

static void free_values(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        free(values->all[i].text);
    free(values->all);
    free(values->name);
}

static void free_results(struct results *results)
{
    for (size_t i = 0; i < results->count; i++)
        free_values(&results->names[i]);
    free(results->names);
    *results = (struct results){0};
}

/* The names come one after the other. */
static struct values *values_of(struct results *results, const char *name)
{
    if (results->count && strcmp(results->names[results->count - 1].name, name) == 0)
        return &results->names[results->count - 1];
    struct values *names = wr_array_reserve(results->names, &results->room, results->count + 1, sizeof *names);
    if (!names)
        return NULL;
    results->names = names;
    names[results->count] = (struct values){.name = strdup(name)};
    return names[results->count].name ? &names[results->count++] : NULL;
}

static bool take_row(struct results *results, sqlite3_stmt *row)
{
    struct values *values = values_of(results, (const char *)sqlite3_column_text(row, 0));
    struct value *all =
        values ? wr_array_reserve(values->all, &values->room, values->count + 1, sizeof *all) : NULL;
    if (!all)
        return false;
    values->all = all;
    all[values->count] = (struct value){.date_us = sqlite3_column_int64(row, 1),
                                        .text = strdup((const char *)sqlite3_column_text(row, 2)),
                                        .is_cumulative = sqlite3_column_int(row, 3)};
    return all[values->count++].text;
}

static bool read_results(const struct mlbench_call *call, const struct selection *selection,
                         struct results *results)
{
    const char *text = selection->run
                           ? "SELECT name, date_us, value, cumulative FROM metrics WHERE run_id = ?1 AND "
                             "date_us BETWEEN ?2 AND ?3 AND (?4 IS NULL OR name = ?4) ORDER BY name, "
                             "date_us, id"
                           : "SELECT name, date_us, value, cumulative FROM metrics WHERE pod_id = ?1 AND "
                             "date_us BETWEEN ?2 AND ?3 AND (?4 IS NULL OR name = ?4) ORDER BY name, "
                             "date_us, id";
    sqlite3_stmt *statement =
        mlbench_prepare(call, text, "iiis", selection->run ? selection->run : selection->pod,
                        (sqlite3_int64)selection->first_us, (sqlite3_int64)selection->last_us, selection->name);
    *results = (struct results){0};
    while (statement && !results->has_failed && sqlite3_step(statement) == SQLITE_ROW &&
           mlbench_reserve(call->request, &results->bytes, statement))
        results->has_failed = !take_row(results, statement);
    bool is_read = mlbench_end(call, statement);
    if (is_read && results->has_failed)
        request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    if (is_read && !call->request->is_replied)
        return true;
    free_results(results);
    return false;
}

/* ---- Summarizing ----------------------------------------------------------------------------- */

/* With a decimal point in each locale of the program; also those that are not finite. */
static bool parse_number(const char *text, double *number)
{
    char *end;
    if (wr_number_read_double(text, number))
        return true;
    *number = strtod(text, &end);
    return *text && !*end && !isfinite(*number);
}

/* Copies the values that are numbers; their texts stay where they belong. Returns how many there are. */
static size_t pick_numbers(const struct values *values, struct value *numbers)
{
    size_t count = 0;
    double number;
    for (size_t i = 0; i < values->count; i++)
        if (parse_number(values->all[i].text, &number))
            numbers[count++] = values->all[i];
    return count;
}

/* Returns the mean as text, or NULL if out of memory. */
static char *format_mean(const struct value *values, size_t count)
{
    char text[WR_NUMBER_ROOM + 1];
    double sum = 0, number;
    for (size_t i = 0; i < count; i++)
        sum += parse_number(values[i].text, &number) ? number : 0;
    text[wr_number_put_repr(text, sum / (double)count)] = '\0';
    return strdup(text);
}

static void free_texts(struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(values[i].text);
}

/* Replaces the first values by means of so many numbers each, at the first one's date. Returns false if out of
 * memory. */
static bool put_means(struct values *values, const struct value *numbers, size_t groups, size_t factor)
{
    struct value *means = calloc(groups + 1, sizeof *means);
    size_t made = 0;
    if (!means)
        return false;
    for (bool is_good = true; is_good && made < groups; made += is_good) {
        means[made] = numbers[made * factor];
        is_good = (means[made].text = format_mean(&numbers[made * factor], factor));
    }
    if (made < groups) {
        free_texts(means, made);
        free(means);
        return false;
    }
    free_texts(values->all, values->count);
    free(values->all);
    values->all = means;
    values->count = (uint32_t)made;
    values->room = (uint32_t)groups + 1;
    return true;
}

/* Full groups of numbers become their mean; the rest is dropped. Returns false if out of memory. */
static bool summarize(struct values *values, int64_t most)
{
    if (most <= 0 || values->count <= (size_t)most)
        return true;
    struct value *numbers = calloc(values->count, sizeof *numbers);
    if (!numbers)
        return false;
    size_t factor = (values->count + (size_t)most - 1) / (size_t)most, count = pick_numbers(values, numbers);
    bool is_good = !count || put_means(values, numbers, count / factor, factor);
    free(numbers);
    return is_good;
}

/* The last n; a negative n leaves out the first ones. 0: all. */
static void keep_last(struct values *values, int64_t n)
{
    size_t dropped = 0;
    if (n > 0 && values->count > (size_t)n)
        dropped = values->count - (size_t)n;
    else if (n < 0)
        dropped = (size_t)-n < values->count ? (size_t)-n : values->count;
    free_texts(values->all, dropped);
    if (dropped)
        memmove(values->all, values->all + dropped, (values->count - dropped) * sizeof *values->all);
    values->count -= (uint32_t)dropped;
}

/* ---- As JSON --------------------------------------------------------------------------------- */

static struct json_object *value_json(const struct value *value)
{
    char date[DATES_ROOM];
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "date",
                           json_object_new_string(dates_format(date, value->date_us, DATES_AS_NEEDED)));
    json_object_object_add(json, "value", json_object_new_string(value->text));
    json_object_object_add(json, "cumulative", json_object_new_boolean(value->is_cumulative));
    return json;
}

static void reply_results(struct request *request, struct results *results, const struct selection *selection)
{
    struct json_object *all = json_object_new_object();
    for (size_t i = 0; i < results->count; i++) {
        struct values *values = &results->names[i];
        struct json_object *list = json_object_new_array();
        results->has_failed |= !summarize(values, selection->summarize);
        keep_last(values, selection->last_n);
        for (size_t j = 0; !results->has_failed && j < values->count; j++)
            json_object_array_add(list, value_json(&values->all[j]));
        if (values->count)
            json_object_object_add(all, values->name, list);
        else
            json_object_put(list);
    }
    if (!results->has_failed) {
        request_reply(request, MHD_HTTP_OK, all);
        return;
    }
    json_object_put(all);
    request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
}

/* ---- As an archive --------------------------------------------------------------------------- */

static void put_values(struct wr_buffer *out, const struct values *values)
{
    char date[DATES_ROOM];
    wr_buffer_put_text(out, "[");
    for (size_t i = 0; i < values->count; i++) {
        wr_buffer_put_format(out, "%s\n    {\n        \"date\": \"%s\",\n        \"value\": ", i ? "," : "",
                             dates_format(date, values->all[i].date_us, DATES_MS));
        wr_escape_json_ascii(out, values->all[i].text);
        wr_buffer_put_format(out, ",\n        \"cumulative\": %s\n    }",
                             values->all[i].is_cumulative ? "true" : "false");
    }
    wr_buffer_put_text(out, values->count ? "\n]" : "]");
}

/* PREFIX_METRIC.json; a slash would make it a folder. */
static void add_file(struct zip *zip, const char *prefix, const struct values *values)
{
    struct wr_buffer name = {0}, out = {0};
    wr_buffer_put_format(&name, "%s_%s.json", prefix, values->name);
    for (size_t i = 0; i < name.length; i++)
        if (name.data[i] == '/' || name.data[i] == '\\')
            name.data[i] = '_';
    put_values(&out, values);
    const char *text = wr_buffer_text(&name);
    zip->has_failed |= !text || out.failed;
    if (text && !out.failed)
        zip_add(zip, text, out.data, out.length);
    wr_buffer_fini(&name);
    wr_buffer_fini(&out);
}

static void add_results(struct zip *zip, const char *prefix, struct results *results,
                        const struct selection *selection)
{
    for (size_t i = 0; i < results->count; i++) {
        struct values *values = &results->names[i];
        bool is_result = selection->run && strstr(values->name, "TaskResult");
        if (is_result && strcmp(values->name, "TaskResult @ 0") == 0 && values->count == 1)
            zip_add(zip, "official_result.txt", values->all[0].text, strlen(values->all[0].text));
        if (is_result)
            continue;
        zip->has_failed |= !summarize(values, selection->summarize);
        keep_last(values, selection->last_n);
        if (!zip->has_failed && values->count)
            add_file(zip, prefix, values);
    }
}

/* The pods that took part in a run. */
static bool add_pods(const struct mlbench_call *call, struct zip *zip, const struct selection *selection)
{
    sqlite3_stmt *statement =
        mlbench_prepare(call, "SELECT id, name FROM pods WHERE run_id = ? ORDER BY id", "i", selection->run);
    bool is_good = true;
    while (is_good && statement && sqlite3_step(statement) == SQLITE_ROW) {
        struct selection pod_selection = *selection;
        struct results results;
        pod_selection.run = 0;
        pod_selection.pod = sqlite3_column_int64(statement, 0);
        is_good = read_results(call, &pod_selection, &results);
        if (is_good)
            add_results(zip, (const char *)sqlite3_column_text(statement, 1), &results, &pod_selection);
        free_results(&results);
    }
    return mlbench_end(call, statement) && is_good;
}

/* ASCII letters, digits, _ . -, and none of the last two at the ends. */
static void make_file_name(char *out, size_t room, const char *name)
{
    char safe[128];
    size_t length = 0;
    for (; *name && length + 1 < sizeof safe; name++) {
        char c = *name == ' ' ? '_' : *name;
        bool is_end = !length && (c == '.' || c == '_');
        if ((isalnum((unsigned char)c) && (unsigned char)c < 0x80) || strchr("_.-", c))
            if (!is_end)
                safe[length++] = c;
    }
    while (length && (safe[length - 1] == '.' || safe[length - 1] == '_'))
        length--;
    safe[length] = '\0';
    snprintf(out, room, "metrics_%s.zip", safe);
}

static void reply_archive(const struct mlbench_call *call, struct results *results,
                          const struct selection *selection, const char *owner)
{
    char name[160];
    struct zip zip = {0};
    add_results(&zip, "result", results, selection);
    if (!selection->run || add_pods(call, &zip, selection)) {
        make_file_name(name, sizeof name, owner);
        if (zip_finish(&zip))
            request_reply_bytes(call->request, MHD_HTTP_OK, "application/octet-stream", zip.data.data,
                                zip.data.length, name);
        else
            request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory, or more than 2 GiB");
    }
    zip_fini(&zip);
}

/* ---- One owner ------------------------------------------------------------------------------- */

static bool take_integer(struct request *request, const char *name, int64_t *number)
{
    char *end;
    const char *text = request_parameter(request, name);
    if (!text)
        return true;
    *number = strtoll(text, &end, 10);
    if (*text && !*end && *number > -1000000000 && *number < 1000000000)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST, "%s: \"%.40s\" is not a whole number", name, text);
}

static bool select_by_query(struct request *request, struct selection *selection)
{
    const char *since = request_parameter(request, "since");
    selection->name = request_parameter(request, "metric_filter");
    if (since && *since && !dates_parse(since, &selection->first_us))
        return request_fail(request, MHD_HTTP_BAD_REQUEST,
                            "since: \"%.60s\" is not a date; allowed: like 2026-11-21T12:34:56.789012Z", since);
    return take_integer(request, "summarize", &selection->summarize) &&
           take_integer(request, "last_n", &selection->last_n);
}

/* Finds the run or pod. Returns its name, which the caller frees with sqlite3_free; NULL: the request
 * has its response. The run's times are limits of an archive. */
static char *find_owner(const struct mlbench_call *call, const char *owner, struct selection *selection,
                        int64_t *begin_us, int64_t *end_us)
{
    const char *type = request_parameter(call->request, "metric_type");
    bool is_pod = !type || strcmp(type, "pod") == 0;
    sqlite3_int64 run = 0;
    if (!is_pod && !mlbench_parse_id(owner, &run)) {
        request_fail(call->request, MHD_HTTP_NOT_FOUND, "Run not found");
        return NULL;
    }
    sqlite3_stmt *statement =
        is_pod ? mlbench_prepare(call, "SELECT id, name, NULL, NULL FROM pods WHERE name = ?", "s", owner)
               : mlbench_prepare(call, "SELECT id, name, created_us, finished_us FROM runs WHERE id = ?", "i",
                                 run);
    char *name = NULL;
    if (statement && sqlite3_step(statement) == SQLITE_ROW) {
        *(is_pod ? &selection->pod : &selection->run) = sqlite3_column_int64(statement, 0);
        name = sqlite3_mprintf("%s", sqlite3_column_text(statement, 1));
        if (!is_pod)
            *begin_us = sqlite3_column_int64(statement, 2);
        if (sqlite3_column_type(statement, 3) != SQLITE_NULL)
            *end_us = sqlite3_column_int64(statement, 3);
    }
    if (mlbench_end(call, statement) && !name)
        request_fail(call->request, MHD_HTTP_NOT_FOUND, is_pod ? "Pod not found" : "Run not found");
    return name;
}

static bool wants_archive(const struct request *request)
{
    const char *format = request_parameter(request, "format");
    const char *accept = request_header(request, MHD_HTTP_HEADER_ACCEPT);
    return format ? strcmp(format, "zip") == 0 : accept && strcmp(accept, "application/octet-stream") == 0;
}

static void handle_owner(const struct mlbench_call *call, const char *owner)
{
    struct selection selection = {.first_us = INT64_MIN, .last_us = INT64_MAX};
    int64_t begin_us = INT64_MIN, end_us = INT64_MAX;
    struct results results;
    if (!select_by_query(call->request, &selection))
        return;
    char *name = find_owner(call, owner, &selection, &begin_us, &end_us);
    if (!name)
        return;
    bool is_archive = wants_archive(call->request);
    if (is_archive) {
        selection.first_us = selection.first_us > begin_us ? selection.first_us : begin_us;
        selection.last_us = end_us;
    }
    if (read_results(call, &selection, &results)) {
        if (is_archive)
            reply_archive(call, &results, &selection, name);
        else
            reply_results(call->request, &results, &selection);
        free_results(&results);
    }
    sqlite3_free(name);
}

/* ---- All ------------------------------------------------------------------------------------- */

static struct json_object *whole_json(sqlite3_stmt *row)
{
    static const char *const names[] = {"name", "value", "date", "metadata"};
    char date[DATES_ROOM];
    struct json_object *json = json_object_new_object();
    for (int i = 0; i < 4; i++) {
        const char *text = i == 2 ? dates_format(date, sqlite3_column_int64(row, 3), DATES_SIX)
                                  : (const char *)sqlite3_column_text(row, i + 1);
        json_object_object_add(json, names[i], json_object_new_string(text));
    }
    json_object_object_add(json, "cumulative", json_object_new_boolean(sqlite3_column_int(row, 5)));
    return json;
}

/* The member of that name, which is made if it is missing. */
static struct json_object *member(struct json_object *parent, const char *name,
                                  struct json_object *(*make)(void))
{
    struct json_object *found;
    if (!json_object_object_get_ex(parent, name, &found))
        json_object_object_add(parent, name, found = make());
    return found;
}

/* Rows: owner, name, value, date, metadata, cumulative. NULL: the request has its response. */
static struct json_object *read_all(const struct mlbench_call *call, const char *text)
{
    sqlite3_stmt *statement = mlbench_prepare(call, text, "");
    struct json_object *owners = json_object_new_object();
    size_t bytes = 0;
    while (statement && sqlite3_step(statement) == SQLITE_ROW &&
           mlbench_reserve(call->request, &bytes, statement)) {
        struct json_object *names =
            member(owners, (const char *)sqlite3_column_text(statement, 0), json_object_new_object);
        json_object_array_add(
            member(names, (const char *)sqlite3_column_text(statement, 1), json_object_new_array),
            whole_json(statement));
    }
    if (mlbench_end(call, statement) && !call->request->is_replied)
        return owners;
    json_object_put(owners);
    return NULL;
}

static void handle_all(const struct mlbench_call *call)
{
    struct json_object *pods =
        read_all(call, "SELECT pods.name, metrics.name, value, date_us, metadata, cumulative FROM "
                       "metrics JOIN pods ON pods.id = pod_id ORDER BY date_us, metrics.id");
    struct json_object *runs =
        pods ? read_all(call,
                        "SELECT runs.name, metrics.name, value, date_us, metadata, cumulative FROM metrics "
                        "JOIN runs ON runs.id = metrics.run_id ORDER BY date_us, metrics.id")
             : NULL;
    if (!runs) {
        json_object_put(pods);
        return;
    }
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "pod_metrics", pods);
    json_object_object_add(json, "run_metrics", runs);
    request_reply(call->request, MHD_HTTP_OK, json);
}

void mlbench_handle_metrics(const struct mlbench_call *call, const char *owner)
{
    if (*owner)
        handle_owner(call, owner);
    else
        handle_all(call);
}
