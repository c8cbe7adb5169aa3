/* Runs: the list, one, a new one, its state, and its end. */
#include <ctype.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dates.h"
#include "fields.h"
#include "mlbench.h"
#include "text/buffer.h"

#define COLUMNS "id, name, created_us, finished_us, state, job_id, num_workers, stdout, stderr"

/* ---- Reading --------------------------------------------------------------------------------- */

static struct json_object *date_or_null(sqlite3_stmt *row, int column)
{
    char text[DATES_ROOM];
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return NULL;
    return json_object_new_string(dates_format(text, sqlite3_column_int64(row, column), DATES_AS_NEEDED));
}

static struct json_object *text_of(sqlite3_stmt *row, int column)
{
    return json_object_new_string((const char *)sqlite3_column_text(row, column));
}

/* The lines of a text, each of which ends in a newline. */
static struct json_object *lines_of(sqlite3_stmt *row, int column)
{
    struct json_object *lines = json_object_new_array();
    const char *at = (const char *)sqlite3_column_text(row, column);
    for (const char *end; at && (end = strchr(at, '\n')); at = end + 1)
        json_object_array_add(lines, json_object_new_string_len(at, (int)(end - at)));
    return lines;
}

static struct json_object *read_run(sqlite3_stmt *row, bool has_output)
{
    struct json_object *run = json_object_new_object(), *metadata = json_object_new_object();
    json_object_object_add(run, "id", json_object_new_int64(sqlite3_column_int64(row, 0)));
    json_object_object_add(run, "name", text_of(row, 1));
    json_object_object_add(run, "created_at", date_or_null(row, 2));
    json_object_object_add(run, "finished_at", date_or_null(row, 3));
    json_object_object_add(run, "state", text_of(row, 4));
    json_object_object_add(run, "job_id", text_of(row, 5));
    if (has_output) {
        json_object_object_add(metadata, "stdout", lines_of(row, 7));
        json_object_object_add(metadata, "stderr", lines_of(row, 8));
    }
    json_object_object_add(run, "job_metadata", metadata);
    json_object_object_add(run, "num_workers", json_object_new_int64(sqlite3_column_int64(row, 6)));
    return run;
}

static void list(const struct mlbench_call *call)
{
    sqlite3_stmt *statement = mlbench_prepare(call, "SELECT " COLUMNS " FROM runs ORDER BY id", "");
    if (!statement)
        return;
    struct json_object *runs = json_object_new_array();
    while (sqlite3_step(statement) == SQLITE_ROW)
        json_object_array_add(runs, read_run(statement, false));
    if (mlbench_end(call, statement))
        request_reply(call->request, MHD_HTTP_OK, runs);
    else
        json_object_put(runs);
}

/* Replies with one run. */
static void show(const struct mlbench_call *call, sqlite3_int64 id, unsigned status, bool has_output)
{
    sqlite3_stmt *statement = mlbench_prepare(call, "SELECT " COLUMNS " FROM runs WHERE id = ?", "i", id);
    struct json_object *run =
        statement && sqlite3_step(statement) == SQLITE_ROW ? read_run(statement, has_output) : NULL;
    if (!mlbench_end(call, statement))
        json_object_put(run);
    else if (run)
        request_reply(call->request, status, run);
    else
        request_fail(call->request, MHD_HTTP_NOT_FOUND, "Run not found");
}

/* ---- A new one ------------------------------------------------------------------------------- */

/* What is stored of a new run. */
struct new_run {
    char name[101], cpu_limit[21];
    const char *image, *command, *backend;
    sqlite3_int64 num_workers, all_nodes, gpu, light;
};

static bool set_name(struct new_run *run, struct request *request, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length && i < sizeof run->name - 1; i++)
        run->name[i] = (char)tolower((unsigned char)name[i]);
    bool is_good = length && length < sizeof run->name &&
                   strspn(run->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length &&
                   run->name[0] != '-' && run->name[length - 1] != '-';
    if (!is_good)
        request_fail(request, MHD_HTTP_BAD_REQUEST,
                     "name: \"%.100s\" is not a name; allowed: up to 100 letters a-z, digits and -, with a "
                     "letter or digit at both ends",
                     name);
    return is_good;
}

static bool take_count(struct request *request, const char *name, const char *text, sqlite3_int64 *count)
{
    if (mlbench_parse_id(text, count) && *count <= 1000000)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST, "%s: \"%.40s\" is not a number; allowed: 1..1000000",
                        name, text);
}

static bool set_image(struct new_run *run, struct request *request, const struct fields *fields)
{
    run->image = fields_need(fields, request, "image_name");
    run->command = "";
    if (!run->image)
        return false;
    bool is_custom = strcmp(run->image, "custom_image") == 0;
    if (is_custom && !((run->image = fields_need(fields, request, "custom_image_name")) &&
                       (run->command = fields_need(fields, request, "custom_image_command")) &&
                       fields_need(fields, request, "gpu_enabled")))
        return false;
    run->gpu = fields_is_true(fields, "gpu_enabled");
    if (*run->image)
        return true;
    return request_fail(request, MHD_HTTP_BAD_REQUEST, "image_name: must not be empty");
}

static bool set_backend(struct new_run *run, struct request *request, const struct fields *fields)
{
    run->backend = fields_need(fields, request, "backend");
    if (!run->backend)
        return false;
    run->all_nodes = strcasecmp(run->backend, "mpi") != 0;
    if (strcasecmp(run->backend, "custom_backend") != 0)
        return true;
    run->backend = fields_need(fields, request, "custom_backend");
    run->all_nodes = fields_is_true(fields, "run_all_nodes");
    return run->backend && fields_need(fields, request, "run_all_nodes");
}

static bool set_all(struct new_run *run, struct request *request, const struct fields *fields)
{
    sqlite3_int64 cpus = 12;
    const char *name = fields_need(fields, request, "name");
    if (!name || !set_name(run, request, name))
        return false;
    const char *workers = fields_need(fields, request, "num_workers");
    if (!workers || !take_count(request, "num_workers", workers, &run->num_workers))
        return false;
    const char *given = fields_find(fields, "num_cpus");
    if (given && !take_count(request, "num_cpus", given, &cpus))
        return false;
    snprintf(run->cpu_limit, sizeof run->cpu_limit, given ? "%lld.0m" : "%lldm", (long long)cpus * 1000);
    run->light = fields_is_true(fields, "light_target");
    return set_image(run, request, fields) && set_backend(run, request, fields) &&
           fields_need(fields, request, "light_target");
}

static void create(const struct mlbench_call *call)
{
    struct fields fields;
    struct new_run run = {0};
    if (!fields_read(&fields, call->request))
        return;
    if (set_all(&run, call->request, &fields)) {
        sqlite3_stmt *statement = mlbench_prepare(
            call,
            "INSERT INTO runs (name, created_us, state, num_workers, cpu_limit, image, command, backend, "
            "all_nodes, gpu, light) VALUES (?, ?, 'initialized', ?, ?, ?, ?, lower(?), ?, ?, ?)",
            "siissssiii", run.name, (sqlite3_int64)dates_now_us(), run.num_workers, run.cpu_limit, run.image,
            run.command, run.backend, run.all_nodes, run.gpu, run.light);
        if (mlbench_finish(call, statement))
            show(call, sqlite3_last_insert_rowid(call->mlbench->db), MHD_HTTP_CREATED, false);
    }
    fields_fini(&fields);
}

/* ---- Its state and its end ------------------------------------------------------------------- */

/* Of each of a run's outputs, in bytes: each call->request writes it anew. */
enum { OUTPUT_MOST = 8 << 20 };

static bool put_before(const struct mlbench_call *call, sqlite3_int64 id, const char *query,
                       struct wr_buffer *output)
{
    sqlite3_stmt *statement = mlbench_prepare(call, query, "i", id);
    const char *before = statement && sqlite3_step(statement) == SQLITE_ROW
                             ? (const char *)sqlite3_column_text(statement, 0)
                             : NULL;
    if (before)
        wr_buffer_put_text(output, before);
    return mlbench_finish(call, statement);
}

/* The first lines that are not kept are left out; of a line that is longer alone its end is kept. */
static const char *latest_of(struct wr_buffer *output)
{
    const char *text = wr_buffer_text(output);
    if (!text || output->length <= OUTPUT_MOST)
        return text;
    text += output->length - OUTPUT_MOST;
    const char *next = strchr(text, '\n');
    if (next && next[1])
        return next + 1;
    while (((unsigned char)*text & 0xc0) == 0x80) /* within a character */
        text++;
    return text;
}

static bool put_lines(struct request *request, struct json_object *lines, const char *name,
                      struct wr_buffer *output)
{
    for (size_t i = 0; i < json_object_array_length(lines); i++) {
        struct json_object *line = json_object_array_get_idx(lines, i);
        const char *text = line ? json_object_get_string(line) : "";
        size_t length = json_object_is_type(line, json_type_string) ? (size_t)json_object_get_string_len(line)
                                                                    : strlen(text);
        if (!fields_check_text(request, name, text, length))
            return false;
        wr_buffer_put(output, text, length);
        wr_buffer_put_char(output, '\n');
    }
    return true;
}

/* Appends the lines of an array. Returns false after it has replied to the request. */
static bool append_lines(const struct mlbench_call *call, sqlite3_int64 id, struct json_object *lines,
                         const char *name, const char *query, const char *update)
{
    struct wr_buffer output = {0};
    if (!lines)
        return true;
    if (!json_object_is_type(lines, json_type_array))
        return request_fail(call->request, MHD_HTTP_BAD_REQUEST, "%s: must be an array of lines", name);
    bool is_good = put_before(call, id, query, &output) && put_lines(call->request, lines, name, &output);
    const char *text = is_good ? latest_of(&output) : NULL;
    if (is_good && !text)
        request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    is_good = text && mlbench_finish(call, mlbench_prepare(call, update, "si", text, id));
    wr_buffer_fini(&output);
    return is_good;
}

static bool set_state(const struct mlbench_call *call, sqlite3_int64 id, struct json_object *given)
{
    if (!given)
        return true;
    const char *state = json_object_get_string(given);
    bool is_end = strcmp(state, "finished") == 0 || strcmp(state, "failed") == 0;
    if (!is_end && strcmp(state, "started") != 0)
        return request_fail(call->request, MHD_HTTP_BAD_REQUEST,
                            "state: \"%.40s\" is not allowed; allowed: started, finished, failed", state);
    return mlbench_finish(call,
                          mlbench_prepare(call,
                                          "UPDATE runs SET state = ?1, finished_us = CASE WHEN ?1 = 'started' "
                                          "THEN NULL ELSE ?2 END WHERE id = ?3",
                                          "sii", state, (sqlite3_int64)dates_now_us(), id));
}

static void change(const struct mlbench_call *call, sqlite3_int64 id)
{
    struct json_object *given = json_tokener_parse(call->request->body.data ? call->request->body.data : "");
    if (!json_object_is_type(given, json_type_object)) {
        request_fail(call->request, MHD_HTTP_BAD_REQUEST, "the body is not a JSON object");
        json_object_put(given);
        return;
    }
    bool is_changed =
        mlbench_run(call, "BEGIN IMMEDIATE") && set_state(call, id, json_object_object_get(given, "state")) &&
        append_lines(call, id, json_object_object_get(given, "stdout"), "stdout",
                     "SELECT stdout FROM runs WHERE id = ?", "UPDATE runs SET stdout = ? WHERE id = ?") &&
        append_lines(call, id, json_object_object_get(given, "stderr"), "stderr",
                     "SELECT stderr FROM runs WHERE id = ?", "UPDATE runs SET stderr = ? WHERE id = ?");
    if (is_changed && mlbench_run(call, "COMMIT"))
        show(call, id, MHD_HTTP_OK, true);
    else if (!sqlite3_get_autocommit(call->mlbench->db))
        sqlite3_exec(call->mlbench->db, "ROLLBACK", NULL, NULL, NULL);
    json_object_put(given);
}

static void delete_run(const struct mlbench_call *call, sqlite3_int64 id)
{
    if (!mlbench_finish(call, mlbench_prepare(call, "DELETE FROM runs WHERE id = ?", "i", id)))
        return;
    if (sqlite3_changes(call->mlbench->db))
        request_reply_fields(call->request, MHD_HTTP_NO_CONTENT, NULL, NULL, 0, NULL, 0);
    else
        request_fail(call->request, MHD_HTTP_NOT_FOUND, "Run not found");
}

void mlbench_handle_runs(const struct mlbench_call *call, const char *id)
{
    sqlite3_int64 number = 0;
    if (*id && !mlbench_parse_id(id, &number))
        request_fail(call->request, MHD_HTTP_NOT_FOUND, "Run not found");
    else if (!*id && request_is(call->request, MHD_HTTP_METHOD_GET))
        list(call);
    else if (!*id && request_is(call->request, MHD_HTTP_METHOD_POST))
        create(call);
    else if (*id && request_is(call->request, MHD_HTTP_METHOD_GET))
        show(call, number, MHD_HTTP_OK, true);
    else if (*id && request_is(call->request, MHD_HTTP_METHOD_PATCH))
        change(call, number);
    else if (*id && request_is(call->request, MHD_HTTP_METHOD_DELETE))
        delete_run(call, number);
    else
        request_refuse_method(call->request, *id ? "GET, PATCH, DELETE" : "GET, POST");
}
