/* Metrics that clients send: one as a form or JSON object, or many as lines of JSON. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dates.h"
#include "fields.h"
#include "mlbench.h"
#include "text/buffer.h"
#include "text/number.h"

enum { NAME_BYTES = 255, VALUE_BYTES = 64 << 10 };

struct metric {
    sqlite3_int64 run, pod; /* one of them is 0 */
    const char *name, *value, *metadata;
    int64_t date_us;
    bool is_cumulative;
};

/* ---- Owners ---------------------------------------------------------------------------------- */

static bool ask_id(const struct mlbench_call *call, sqlite3_stmt *statement, sqlite3_int64 *id)
{
    *id = statement && sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return mlbench_finish(call, statement);
}

static bool find_run(const struct mlbench_call *call, const char *text, sqlite3_int64 *run)
{
    sqlite3_int64 found = 0;
    char name[32];
    if (!mlbench_parse_id(text, run))
        return request_fail(call->request, MHD_HTTP_BAD_REQUEST, "run_id: \"%.40s\" is not the id of a run",
                            text);
    if (!ask_id(call, mlbench_prepare(call, "SELECT id FROM runs WHERE id = ?", "i", *run), &found))
        return false;
    if (found)
        return true;
    if (!call->mlbench->creates_runs)
        return request_fail(call->request, MHD_HTTP_NOT_FOUND, "Run not found");
    snprintf(name, sizeof name, "run-%lld", (long long)*run);
    return mlbench_finish(
        call,
        mlbench_prepare(call, "INSERT INTO runs (id, name, created_us, state) VALUES (?, ?, ?, 'started')",
                        "isi", *run, name, (sqlite3_int64)dates_now_us()));
}

/* The address that the call->request came from; "": it is not known. */
static void get_peer(const struct request *request, char *out, size_t room)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    const void *ip = NULL;
    if (address && address->sa_family == AF_INET)
        ip = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    else if (address && address->sa_family == AF_INET6)
        ip = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (!ip || !inet_ntop(address->sa_family, ip, out, (socklen_t)room))
        *out = '\0';
}

static bool find_pod(const struct mlbench_call *call, const char *name, sqlite3_int64 *pod)
{
    char ip[INET6_ADDRSTRLEN];
    get_peer(call->request, ip, sizeof ip);
    return mlbench_finish(call, mlbench_prepare(call, "INSERT OR IGNORE INTO pods (name, ip) VALUES (?, ?)",
                                                "ss", name, ip)) &&
           ask_id(call, mlbench_prepare(call, "SELECT id FROM pods WHERE name = ?", "s", name), pod);
}

/* ---- One ------------------------------------------------------------------------------------- */

static bool store(const struct mlbench_call *call, const struct metric *metric)
{
    const char *text = metric->run ? "INSERT INTO metrics (run_id, name, date_us, value, metadata, cumulative) "
                                     "VALUES (?, ?, ?, ?, ?, ?)"
                                   : "INSERT INTO metrics (pod_id, name, date_us, value, metadata, cumulative) "
                                     "VALUES (?, ?, ?, ?, ?, ?)";
    if (!mlbench_finish(call, mlbench_prepare(call, text, "isissi", metric->run ? metric->run : metric->pod,
                                              metric->name, (sqlite3_int64)metric->date_us, metric->value,
                                              metric->metadata, (sqlite3_int64)metric->is_cumulative)))
        return false;
    return !metric->run ||
           mlbench_finish(call, mlbench_prepare(call,
                                                "UPDATE runs SET state = 'started' WHERE id = ? AND state = "
                                                "'initialized'",
                                                "i", metric->run));
}

static bool check_length(struct request *request, const char *what, const char *text, size_t most)
{
    if (strlen(text) <= most)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST, "%s: it has %zu bytes; allowed: up to %zu", what,
                        strlen(text), most);
}

static bool set_date(struct request *request, struct metric *metric, const char *text)
{
    if (dates_parse(text, &metric->date_us))
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST,
                        "date: \"%.60s\" is not a date; allowed: like 2026-11-21T12:34:56.789012Z", text);
}

static bool set_cumulative(struct request *request, struct metric *metric, const char *text)
{
    static const char *const yes[] = {"True", "true", "t", "1"}, *const no[] = {"False", "false", "f", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        metric->is_cumulative = strcmp(text, yes[i]) == 0;
        if (metric->is_cumulative || strcmp(text, no[i]) == 0)
            return true;
    }
    return request_fail(request, MHD_HTTP_BAD_REQUEST,
                        "cumulative: \"%.40s\" is not allowed; allowed: True, False", text);
}

static bool set_fields(struct request *request, const struct fields *fields, struct metric *metric)
{
    const char *date, *cumulative;
    return (metric->name = fields_need(fields, request, "name")) &&
           (date = fields_need(fields, request, "date")) &&
           (metric->value = fields_need(fields, request, "value")) &&
           (metric->metadata = fields_need(fields, request, "metadata")) &&
           (cumulative = fields_need(fields, request, "cumulative")) && set_date(request, metric, date) &&
           set_cumulative(request, metric, cumulative) &&
           check_length(request, "name", metric->name, NAME_BYTES) &&
           check_length(request, "value", metric->value, VALUE_BYTES);
}

static void reply_one(struct request *request, const struct metric *metric)
{
    char date[DATES_ROOM];
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "name", json_object_new_string(metric->name));
    json_object_object_add(json, "value", json_object_new_string(metric->value));
    json_object_object_add(json, "date",
                           json_object_new_string(dates_format(date, metric->date_us, DATES_SIX)));
    json_object_object_add(json, "metadata", json_object_new_string(metric->metadata));
    json_object_object_add(json, "cumulative", json_object_new_boolean(metric->is_cumulative));
    request_reply(request, MHD_HTTP_CREATED, json);
}

/* The body of the real server's response. */
static void refuse_without_run(struct request *request)
{
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "status", json_object_new_string("Bad Request"));
    json_object_object_add(json, "message", json_object_new_string("Run ID has to be supplied"));
    json_object_object_add(json, "data", json_object_new_object());
    request_reply(request, MHD_HTTP_BAD_REQUEST, json);
}

static bool set_owner(const struct mlbench_call *call, const struct fields *fields, struct metric *metric)
{
    const char *run = fields_find(fields, "run_id"), *pod = fields_find(fields, "pod_name");
    if (run)
        return find_run(call, run, &metric->run);
    if (pod)
        return check_length(call->request, "pod_name", pod, 1000) && find_pod(call, pod, &metric->pod);
    refuse_without_run(call->request);
    return false;
}

/* ---- Many ------------------------------------------------------------------------------------ */

/* How lines become metrics. */
struct naming {
    bool is_full;                  /* else a metric has the name alone */
    const char *omit;              /* labels that a full name does not have, separated by commas */
    struct wr_buffer name, number; /* of the last line */
    char value[WR_NUMBER_ROOM + 1];
};

static bool is_omitted(const char *list, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = list; (at = strstr(at, key)); at++)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

/* GROUP.NAME{KEY=VALUE,...} */
static const char *make_name(struct naming *naming, struct json_object *line, const char *plain)
{
    struct wr_buffer *name = &naming->name;
    struct json_object *group = json_object_object_get(line, "group");
    struct json_object *labels = json_object_object_get(line, "labels");
    const char *before = "{";
    wr_buffer_clear(name);
    if (group)
        wr_buffer_put_format(name, "%s.", json_object_get_string(group));
    wr_buffer_put_text(name, plain);
    if (json_object_is_type(labels, json_type_object)) {
        json_object_object_foreach(labels, key, value)
        {
            if (is_omitted(naming->omit, key))
                continue;
            wr_buffer_put_format(name, "%s%s=%s", before, key, value ? json_object_get_string(value) : "");
            before = ",";
        }
    }
    if (*before == ',')
        wr_buffer_put_char(name, '}');
    return wr_buffer_text(name);
}

/* The number of the text that is too long for json-c, which makes the nearest one of 64 bits of it. There may
 * be one alone: it is the value, unless a member that does not matter has it. Returns NULL if out of memory or
 * if there are several. */
static const char *take_long_number(struct naming *naming, const char *text)
{
    enum { LEAST_DIGITS = 19 };
    size_t found = 0;
    wr_buffer_clear(&naming->number);
    for (bool is_string = false; *text;) {
        size_t length = is_string ? 0 : strspn(text, "+-.0123456789eE");
        if (*text == '"')
            is_string = !is_string;
        bool is_integer = strspn(text + (*text == '-'), "0123456789") + (*text == '-') == length;
        if (length >= LEAST_DIGITS && is_integer && !found++)
            wr_buffer_put(&naming->number, text, length);
        text += *text == '\\' && text[1] ? 2 : length ? length : 1;
    }
    return found == 1 ? wr_buffer_text(&naming->number) : NULL;
}

/* Whether json-c may have changed an integer. */
static bool is_at_limit(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) &&
           (json_object_get_uint64(value) == UINT64_MAX || json_object_get_int64(value) == INT64_MIN);
}

static bool set_value(struct request *request, struct json_object *value, const char *text, size_t number,
                      struct naming *naming, struct metric *metric)
{
    if (json_object_is_type(value, json_type_double)) {
        naming->value[wr_number_put_repr(naming->value, json_object_get_double(value))] = '\0';
        metric->value = naming->value;
    } else
        metric->value = is_at_limit(value) ? take_long_number(naming, text) : json_object_get_string(value);
    if (metric->value)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST,
                        "line %zu: \"value\" has more digits than are kept; nothing was added", number);
}

/* Without a time: now. Nanoseconds have room for it, too. */
static bool set_time(struct request *request, struct json_object *line, size_t number, struct metric *metric)
{
    struct json_object *time = json_object_object_get(line, "timestamp");
    bool is_number = json_object_is_type(time, json_type_double) || json_object_is_type(time, json_type_int);
    double seconds = is_number ? json_object_get_double(time) : NAN;
    metric->date_us = time ? 0 : dates_now_us();
    if (fabs(seconds) < 9.2e9)
        metric->date_us = (int64_t)llround(seconds * 1e6);
    else if (time)
        request_fail(
            request, MHD_HTTP_BAD_REQUEST,
            "line %zu: \"timestamp\" is not a time; allowed: seconds since 1970, up to 9.2e9; nothing was "
            "added",
            number);
    return !request->is_replied;
}

/* The NUL of "\u0000" would end the text. */
static bool check_string(struct request *request, const char *name, struct json_object *text)
{
    return !json_object_is_type(text, json_type_string) ||
           fields_check_text(request, name, json_object_get_string(text),
                             (size_t)json_object_get_string_len(text));
}

static bool set_name(struct request *request, struct json_object *line, struct json_object *name,
                     struct naming *naming, struct metric *metric)
{
    metric->name = json_object_get_string(name);
    if (naming->is_full)
        metric->name = make_name(naming, line, metric->name);
    if (!metric->name)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    return metric->name;
}

/* A line of weir's format json: {"timestamp": 1.5, "name": "x", "value": 2, "metadata": "..."}. */
static bool set_line(struct request *request, struct json_object *line, const char *text, size_t number,
                     struct naming *naming, struct metric *metric)
{
    struct json_object *name, *value, *metadata = json_object_object_get(line, "metadata");
    if (!json_object_object_get_ex(line, "name", &name) || !json_object_object_get_ex(line, "value", &value) ||
        !json_object_is_type(name, json_type_string) || !value)
        return request_fail(request, MHD_HTTP_BAD_REQUEST,
                            "line %zu: \"name\" or \"value\" is missing; nothing was added", number);
    metric->is_cumulative = json_object_get_boolean(json_object_object_get(line, "cumulative"));
    metric->metadata = metadata ? json_object_get_string(metadata) : "";
    return check_string(request, "name", name) && check_string(request, "value", value) &&
           check_string(request, "metadata", metadata) && set_name(request, line, name, naming, metric) &&
           set_value(request, value, text, number, naming, metric) && set_time(request, line, number, metric) &&
           check_length(request, "name", metric->name, NAME_BYTES) &&
           check_length(request, "value", metric->value, VALUE_BYTES);
}

/* Returns NULL unless the whole text is one object. */
static struct json_object *parse_line(const char *text)
{
    size_t length = strlen(text);
    struct json_tokener *tokener = length < INT_MAX ? json_tokener_new() : NULL;
    struct json_object *line = tokener ? json_tokener_parse_ex(tokener, text, (int)length) : NULL;
    size_t end = tokener ? json_tokener_get_parse_end(tokener) : 0;
    bool is_object = json_object_is_type(line, json_type_object) && end + strspn(text + end, " \t\r") == length;
    if (tokener)
        json_tokener_free(tokener);
    if (is_object)
        return line;
    json_object_put(line);
    return NULL;
}

static bool add_line(const struct mlbench_call *call, const char *text, size_t number, struct naming *naming,
                     struct metric *metric)
{
    char name[40];
    snprintf(name, sizeof name, "line %zu", number);
    if (!fields_check_text(call->request, name, text, strlen(text)))
        return false;
    struct json_object *line = parse_line(text);
    bool is_added = false;
    if (!line)
        request_fail(call->request, MHD_HTTP_BAD_REQUEST,
                     "line %zu: it is not a JSON object; nothing was added", number);
    else if (set_line(call->request, line, text, number, naming, metric))
        is_added = store(call, metric);
    json_object_put(line);
    return is_added;
}

static bool add_lines(const struct mlbench_call *call, struct naming *naming, struct metric *metric,
                      size_t *count)
{
    size_t number = 0;
    for (char *rest = call->request->body.data, *line; rest && (line = strsep(&rest, "\n"));) {
        number++;
        if (!*line)
            continue;
        if (!add_line(call, line, number, naming, metric))
            return false;
        (*count)++;
    }
    return true;
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* Ends the transaction. Returns whether everything is stored. */
static bool end(const struct mlbench_call *call, bool is_good)
{
    if (is_good && mlbench_run(call, "COMMIT"))
        return true;
    if (!sqlite3_get_autocommit(call->mlbench->db))
        sqlite3_exec(call->mlbench->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

static bool set_naming(struct naming *naming, struct request *request)
{
    const char *names = request_parameter(request, "names"), *omit = request_parameter(request, "omit");
    naming->is_full = names && strcmp(names, "full") == 0;
    naming->omit = omit ? omit : "";
    if (!names || naming->is_full || strcmp(names, "plain") == 0)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST, "names: \"%.40s\" is not allowed; allowed: plain, full",
                        names);
}

static void add_many(const struct mlbench_call *call)
{
    struct metric metric = {0};
    size_t count = 0;
    struct naming naming = {0};
    const char *run = request_parameter(call->request, "run_id");
    if (!run) {
        refuse_without_run(call->request);
        return;
    }
    if (call->request->body.data && memchr(call->request->body.data, '\0', call->request->body.length)) {
        request_fail(call->request, MHD_HTTP_BAD_REQUEST, "the body has a NUL byte");
        return;
    }
    if (!set_naming(&naming, call->request) || !mlbench_run(call, "BEGIN IMMEDIATE"))
        return;
    bool is_good = find_run(call, run, &metric.run) && add_lines(call, &naming, &metric, &count);
    wr_buffer_fini(&naming.name);
    wr_buffer_fini(&naming.number);
    if (!end(call, is_good))
        return;
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "added", json_object_new_int64((int64_t)count));
    request_reply(call->request, MHD_HTTP_CREATED, json);
}

static void add_one(const struct mlbench_call *call)
{
    struct fields fields;
    struct metric metric = {0};
    if (!fields_read(&fields, call->request))
        return;
    if (mlbench_run(call, "BEGIN IMMEDIATE")) {
        bool is_good = set_owner(call, &fields, &metric) && set_fields(call->request, &fields, &metric) &&
                       store(call, &metric);
        if (end(call, is_good))
            reply_one(call->request, &metric);
    }
    fields_fini(&fields);
}

void mlbench_add_metrics(const struct mlbench_call *call)
{
    if (request_has_type(call->request, "application/x-ndjson"))
        add_many(call);
    else
        add_one(call);
}
