#include "status.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../output.h"
#include "../store/store_file.h"
#include "json_text.h"
#include "problems.h"
#include "text/buffer.h"

/* ---- The process ----------------------------------------------------------------------------- */

struct json_object *status_read(const struct status *status)
{
    char *text = status->service ? status->service->read(status->host) : NULL;
    struct json_object *process = text ? json_tokener_parse(text) : NULL;
    if (text)
        status->service->release(text);
    return process;
}

/* Moves members. */
static void move(struct json_object *to, struct json_object *from, const char *const *keys)
{
    for (; *keys; keys++)
        json_object_object_add(to, *keys, json_object_get(json_object_object_get(from, *keys)));
}

static const char *state_of(struct json_object *handler)
{
    static const char *const states[] = {"ended", "failing", "stalled", "full", "open"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (json_object_get_boolean(json_object_object_get(handler, states[i])))
            return states[i];
    return "closed";
}

static void add_handlers(struct json_object *reply, struct json_object *process, struct problems *problems)
{
    static const char *const names[] = {"name", "type", NULL};
    static const char *const counts[] = {"offered", "recovered", "delivered", "dropped", "queued",
                                         "spooled", "summing",   "retries",   NULL};
    struct json_object *given = json_object_object_get(process, "handlers"), *array = json_object_new_array();
    json_object_object_add(reply, "handlers", array);
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        struct json_object *from = json_object_array_get_idx(given, i), *to = json_object_new_object();
        move(to, from, names);
        json_object_object_add(to, "state", json_object_new_string(state_of(from)));
        move(to, from, counts);
        json_object_object_add(to, "problem", json_object_new_string(problems_of_handler(problems, from)));
        json_object_array_add(array, to);
    }
}

static void add_senders(struct json_object *array, struct json_object *source, struct problems *problems)
{
    static const char *const keys[] = {"name",    "state", "processes", "added",   "recovered", "delivered",
                                       "waiting", "lost",  "received",  "repeats", "missing",   NULL};
    struct json_object *given = json_object_object_get(source, "senders");
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        struct json_object *from = json_object_array_get_idx(given, i), *to = json_object_new_object();
        const char *state = json_object_get_string(json_object_object_get(from, "state"));
        json_object_object_add(to, "source", json_object_get(json_object_object_get(source, "name")));
        move(to, from, keys);
        json_object_object_add(to, "at_least",
                               json_object_new_boolean(state && strcmp(state, "vanished") == 0));
        json_object_object_add(to, "problem", json_object_new_string(problems_of_sender(problems, from)));
        json_object_array_add(array, to);
    }
}

static void add_sources(struct json_object *reply, struct json_object *process, struct problems *problems)
{
    static const char *const keys[] = {"name",  "type",    "state", "lines", "bad_lines",
                                       "added", "refused", "lost",  NULL};
    struct json_object *given = json_object_object_get(process, "sources"), *array = json_object_new_array();
    struct json_object *senders = json_object_new_array();
    json_object_object_add(reply, "sources", array);
    json_object_object_add(reply, "senders", senders);
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        struct json_object *from = json_object_array_get_idx(given, i), *to = json_object_new_object();
        move(to, from, keys);
        json_object_object_add(to, "problem", json_object_new_string(problems_of_source(problems, from)));
        json_object_array_add(array, to);
        add_senders(senders, from, problems);
    }
}

/* ---- The store ------------------------------------------------------------------------------- */

static int64_t size_of(const char *path, const char *ending)
{
    char name[4096];
    struct stat status;
    bool is_there =
        snprintf(name, sizeof name, "%s%s", path, ending) < (int)sizeof name && stat(name, &status) == 0;
    return is_there ? status.st_size : 0;
}

/* 0: there are no values. */
static int64_t ask(const struct status *status, const char *query)
{
    int64_t number = 0;
    if (status->db)
        store_file_ask_number(status->db, query, &number);
    return number;
}

/* Counting reads all rows of chunks: it takes at most a twentieth of the time. */
static void refresh(struct status *status)
{
    enum { LEAST_MS = 1000, SHARE = 20 };
    struct store_figures *figures = &status->figures;
    int64_t now_ms = wr_output_now_ms(), rest_ms = SHARE * figures->took_ms;
    if (figures->taken_ms && now_ms - figures->taken_ms < (rest_ms > LEAST_MS ? rest_ms : LEAST_MS))
        return;
    figures->series = ask(status, "SELECT count(*) FROM series");
    figures->values =
        ask(status, "SELECT ifnull((SELECT sum(count) FROM chunks), 0) + (SELECT count(*) FROM tail)");
    figures->first_ns =
        ask(status, "SELECT min(at) FROM (SELECT min(first_ns) AS at FROM chunks UNION ALL SELECT "
                    "min(time_ns) FROM tail)");
    figures->last_ns =
        ask(status, "SELECT max(at) FROM (SELECT max(last_ns) AS at FROM chunks UNION ALL SELECT "
                    "max(time_ns) FROM tail)");
    figures->taken_ms = wr_output_now_ms();
    figures->took_ms = figures->taken_ms - now_ms;
}

static struct json_object *make_time(int64_t ns)
{
    struct wr_buffer text = {0};
    json_text_put_time(&text, ns);
    const char *seconds = wr_buffer_text(&text);
    struct json_object *time = seconds ? json_object_new_double_s((double)ns / 1e9, seconds) : NULL;
    wr_buffer_fini(&text);
    return time;
}

static void add_store(struct json_object *reply, struct status *status)
{
    const struct store_figures *figures = &status->figures;
    struct json_object *store = json_object_new_object();
    refresh(status);
    json_object_object_add(store, "path", json_object_new_string(status->path));
    json_object_object_add(store, "size_bytes",
                           json_object_new_int64(size_of(status->path, "") + size_of(status->path, "-wal")));
    json_object_object_add(store, "values", json_object_new_int64(figures->values));
    json_object_object_add(store, "series", json_object_new_int64(figures->series));
    json_object_object_add(store, "first", figures->first_ns ? make_time(figures->first_ns) : NULL);
    json_object_object_add(store, "last", figures->last_ns ? make_time(figures->last_ns) : NULL);
    json_object_object_add(reply, "store", store);
}

/* ---- Problems -------------------------------------------------------------------------------- */

static void collect(struct json_object *process, struct problems *problems)
{
    struct json_object *unused = json_object_new_object();
    add_handlers(unused, process, problems);
    add_sources(unused, process, problems);
    problems_of_process(problems, process);
    json_object_put(unused);
}

/* ---- Whether it is ready --------------------------------------------------------------------- */

/* Another connection that writes at the moment shows that it can be written, too. */
static bool can_write(const struct status *status)
{
    sqlite3_busy_timeout(status->db, 0);
    int code = store_file_run(status->db, "BEGIN IMMEDIATE") & 0xff;
    if (code == SQLITE_OK)
        store_file_run(status->db, "ROLLBACK");
    sqlite3_busy_timeout(status->db, (int)status->busy_ms);
    return code == SQLITE_OK || code == SQLITE_BUSY;
}

static void check_writable(const struct status *status, struct problems *problems)
{
    if (!status->db)
        problems_add(problems, PROBLEM_FAILS, 0, "store", "it cannot be opened: %.300s", status->problem);
    else if (!can_write(status))
        problems_add(problems, PROBLEM_FAILS, 0, "store", "it cannot be written: %.300s",
                     sqlite3_errmsg(status->db));
}

/* Returns why not, or "". What was lost or refused before does not count. */
static void find_obstacle(const struct status *status, struct json_object *process, char *out, size_t room)
{
    struct problems problems = {0};
    struct json_object *sources = json_object_object_get(process, "sources");
    collect(process, &problems);
    check_writable(status, &problems);
    *out = '\0';
    for (size_t i = 0; i < problems.count && !*out; i++)
        if (problems.items[i].rank >= PROBLEM_FAILS)
            snprintf(out, room, "%s: %s", problems.items[i].where, problems.items[i].text);
    for (size_t i = 0; i < json_object_array_length(sources) && !*out; i++) {
        struct json_object *source = json_object_array_get_idx(sources, i);
        const char *state = json_object_get_string(json_object_object_get(source, "state"));
        if (state && strcmp(state, "starting") == 0)
            snprintf(out, room, "source %s: it starts",
                     json_object_get_string(json_object_object_get(source, "name")));
    }
    json_object_put(problems_take(&problems));
}

/* ---- Requests -------------------------------------------------------------------------------- */

static struct json_object *make_status(struct status *status, struct json_object *process)
{
    static const char *const keys[] = {"pid", "program", "config", "added", NULL};
    struct problems problems = {0};
    struct json_object *reply = json_object_new_object();
    int64_t now_ns = wr_system_clock_ns(CLOCK_REALTIME);
    double up_s = json_object_get_double(json_object_object_get(process, "up_s"));
    json_object_object_add(reply, "version", json_object_get(json_object_object_get(process, "weir")));
    move(reply, process, keys);
    json_object_object_add(reply, "started", make_time(now_ns - (int64_t)(up_s * 1e9)));
    json_object_object_add(reply, "now", make_time(now_ns));
    add_store(reply, status);
    add_handlers(reply, process, &problems);
    add_sources(reply, process, &problems);
    problems_of_process(&problems, process);
    check_writable(status, &problems);
    json_object_object_add(reply, "problems", problems_take(&problems));
    return reply;
}

static void reply_ready(const struct status *status, struct request *request, struct json_object *process)
{
    char obstacle[800];
    find_obstacle(status, process, obstacle, sizeof obstacle);
    if (*obstacle)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", obstacle);
    else
        request_reply_bytes(request, MHD_HTTP_OK, "text/plain", "ready\n", 6, NULL);
}

static void reply_of_process(struct status *status, struct request *request)
{
    struct json_object *process = status_read(status);
    if (!status->service)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "this weir is older than the plugin");
    else if (!process)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    else if (strcmp(request->path, "/readyz") == 0)
        reply_ready(status, request, process);
    else
        request_reply(request, MHD_HTTP_OK, make_status(status, process));
    json_object_put(process);
}

bool status_handle(struct status *status, struct request *request)
{
    bool is_health = strcmp(request->path, "/healthz") == 0;
    if (!is_health && strcmp(request->path, "/readyz") != 0 && strcmp(request->path, "/api/v1/status") != 0)
        return false;
    if (!request_is(request, MHD_HTTP_METHOD_GET))
        request_refuse_method(request, "GET");
    else if (is_health)
        request_reply_bytes(request, MHD_HTTP_OK, "text/plain", "ok\n", 3, NULL);
    else
        reply_of_process(status, request);
    return true;
}

char *status_problems(const struct status *status)
{
    struct problems problems = {0};
    struct json_object *process = status_read(status);
    if (!process)
        return NULL;
    collect(process, &problems);
    check_writable(status, &problems);
    struct json_object *array = problems_take(&problems);
    const char *text =
        json_object_to_json_string_ext(array, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *copy = array && text ? strdup(text) : NULL;
    json_object_put(array);
    json_object_put(process);
    return copy;
}
