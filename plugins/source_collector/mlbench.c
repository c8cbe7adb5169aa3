#include "mlbench.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../store/store_file.h"
#include "reader.h"

/* ---- Statements ------------------------------------------------------------------------------ */

static void fail(const struct mlbench *mlbench, struct request *request)
{
    if (request->is_replied)
        return;
    if ((sqlite3_errcode(mlbench->db) & 0xff) == SQLITE_INTERRUPT)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                     "the request takes longer than query_timeout (%" PRId64 " ms); ask for fewer values",
                     mlbench->limit_ns / 1000000);
    else
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the database: %s", sqlite3_errmsg(mlbench->db));
}

bool mlbench_parse_id(const char *text, sqlite3_int64 *id)
{
    size_t length = strlen(text);
    *id = length && length <= 18 && strspn(text, "0123456789") == length ? strtoll(text, NULL, 10) : 0;
    return *id > 0;
}

sqlite3_stmt *mlbench_prepare(const struct mlbench *mlbench, struct request *request, const char *text,
                              const char *types, ...)
{
    sqlite3_stmt *statement;
    va_list arguments;
    if (sqlite3_prepare_v2(mlbench->db, text, -1, &statement, NULL) != SQLITE_OK) {
        fail(mlbench, request);
        return NULL;
    }
    va_start(arguments, types);
    for (int i = 0; types[i]; i++) {
        if (types[i] == 'i')
            sqlite3_bind_int64(statement, i + 1, va_arg(arguments, sqlite3_int64));
        else
            sqlite3_bind_text(statement, i + 1, va_arg(arguments, const char *), -1, SQLITE_STATIC);
    }
    va_end(arguments);
    return statement;
}

bool mlbench_finish(const struct mlbench *mlbench, struct request *request, sqlite3_stmt *statement)
{
    bool is_done = statement && store_file_step(statement) == SQLITE_OK;
    if (!is_done)
        fail(mlbench, request);
    sqlite3_finalize(statement);
    return is_done;
}

bool mlbench_end(const struct mlbench *mlbench, struct request *request, sqlite3_stmt *statement)
{
    bool is_done = statement && sqlite3_reset(statement) == SQLITE_OK;
    if (!is_done)
        fail(mlbench, request);
    sqlite3_finalize(statement);
    return is_done;
}

bool mlbench_reserve(struct request *request, size_t *bytes, sqlite3_stmt *row)
{
    enum { ROW_BYTES = 100 };
    *bytes += ROW_BYTES;
    for (int i = 0; i < sqlite3_column_count(row); i++)
        *bytes += (size_t)sqlite3_column_bytes(row, i);
    if (*bytes <= MLBENCH_REPLY_MOST)
        return true;
    request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                 "the response has more than %d bytes; ask for one run or pod, with metric_filter or since",
                 MLBENCH_REPLY_MOST);
    return false;
}

bool mlbench_run(const struct mlbench *mlbench, struct request *request, const char *text)
{
    if (store_file_run(mlbench->db, text) == SQLITE_OK)
        return true;
    fail(mlbench, request);
    return false;
}

/* ---- Pods ------------------------------------------------------------------------------------ */

void mlbench_handle_pods(const struct mlbench *mlbench, struct request *request)
{
    static const char *const names[] = {"name", "labels", "phase", "ip"};
    sqlite3_stmt *statement =
        mlbench_prepare(mlbench, request, "SELECT name, labels, phase, ip FROM pods ORDER BY id", "");
    if (!statement)
        return;
    struct json_object *pods = json_object_new_array();
    while (sqlite3_step(statement) == SQLITE_ROW) {
        struct json_object *pod = json_object_new_object();
        for (int i = 0; i < 4; i++)
            json_object_object_add(pod, names[i],
                                   json_object_new_string((const char *)sqlite3_column_text(statement, i)));
        json_object_array_add(pods, pod);
    }
    if (mlbench_end(mlbench, request, statement))
        request_reply(request, MHD_HTTP_OK, pods);
    else
        json_object_put(pods);
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* Returns what follows the folder: "" or the part behind its slash; NULL: another path. */
static const char *part_behind(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    const char *part = path[length] ? path + length + 1 : path + length;
    return strchr(part, '/') ? NULL : part;
}

static void refuse_method(struct request *request, const char *allowed)
{
    request_fail(request, MHD_HTTP_METHOD_NOT_ALLOWED, "the method \"%.20s\" is not allowed; allowed: %s",
                 request->method, allowed);
}

static void handle_metrics(const struct mlbench *mlbench, struct request *request, const char *owner)
{
    if (request_is(request, MHD_HTTP_METHOD_GET))
        mlbench_handle_metrics(mlbench, request, owner);
    else if (!*owner && request_is(request, MHD_HTTP_METHOD_POST))
        mlbench_add_metrics(mlbench, request);
    else
        refuse_method(request, *owner ? "GET" : "GET, POST");
}

bool mlbench_knows(const struct request *request)
{
    const char *pods = part_behind(request->path, "/api/pods");
    return part_behind(request->path, "/api/runs") || part_behind(request->path, "/api/metrics") ||
           (pods && !*pods);
}

static bool find_and_handle(const struct mlbench *mlbench, struct request *request)
{
    const char *part;
    if ((part = part_behind(request->path, "/api/runs")))
        mlbench_handle_runs(mlbench, request, part);
    else if ((part = part_behind(request->path, "/api/metrics")))
        handle_metrics(mlbench, request, part);
    else if ((part = part_behind(request->path, "/api/pods")) && !*part) {
        if (request_is(request, MHD_HTTP_METHOD_GET))
            mlbench_handle_pods(mlbench, request);
        else
            refuse_method(request, "GET");
    } else
        return false;
    return true;
}

static int is_too_late(void *ctx)
{
    const int64_t *deadline_ns = ctx;
    return reader_monotonic_ns() > *deadline_ns;
}

bool mlbench_handle(const struct mlbench *mlbench, struct request *request)
{
    enum { STEPS_BETWEEN_CHECKS = 2000 };
    int64_t deadline_ns = reader_monotonic_ns() + mlbench->limit_ns;
    if (request_is(request, MHD_HTTP_METHOD_GET))
        sqlite3_progress_handler(mlbench->db, STEPS_BETWEEN_CHECKS, is_too_late, &deadline_ns);
    bool is_handled = find_and_handle(mlbench, request);
    sqlite3_progress_handler(mlbench->db, 0, NULL, NULL);
    return is_handled;
}
