#include "mlbench.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../store/store_file.h"

/* ---- Statements ------------------------------------------------------------------------------ */

static bool fail(const struct mlbench_call *call)
{
    const struct mlbench *mlbench = call->mlbench;
    if (call->request->is_replied)
        return false;
    if ((sqlite3_errcode(mlbench->db) & 0xff) != SQLITE_INTERRUPT)
        return request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "the database: %s",
                            sqlite3_errmsg(mlbench->db));
    return request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                        "the request takes longer than query_timeout (%" PRId64 " ms); ask for fewer values",
                        mlbench->limit_ns / 1000000);
}

bool mlbench_parse_id(const char *text, sqlite3_int64 *id)
{
    size_t length = strlen(text);
    *id = length && length <= 18 && strspn(text, "0123456789") == length ? strtoll(text, NULL, 10) : 0;
    return *id > 0;
}

sqlite3_stmt *mlbench_prepare(const struct mlbench_call *call, const char *text, const char *types, ...)
{
    sqlite3_stmt *statement;
    va_list arguments;
    if (sqlite3_prepare_v2(call->mlbench->db, text, -1, &statement, NULL) != SQLITE_OK) {
        fail(call);
        return NULL;
    }
    va_start(arguments, types);
    store_file_bind(statement, types, arguments);
    va_end(arguments);
    return statement;
}

bool mlbench_finish(const struct mlbench_call *call, sqlite3_stmt *statement)
{
    bool is_done = statement && store_file_step(statement) == SQLITE_OK;
    if (!is_done)
        fail(call);
    sqlite3_finalize(statement);
    return is_done;
}

bool mlbench_end(const struct mlbench_call *call, sqlite3_stmt *statement)
{
    bool is_done = statement && sqlite3_reset(statement) == SQLITE_OK;
    if (!is_done)
        fail(call);
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
    return request_fail(
        request, MHD_HTTP_SERVICE_UNAVAILABLE,
        "the response has more than %d bytes; ask for one run or pod, with metric_filter or since",
        MLBENCH_REPLY_MOST);
}

bool mlbench_run(const struct mlbench_call *call, const char *text)
{
    return store_file_run(call->mlbench->db, text) == SQLITE_OK || fail(call);
}

/* ---- Pods ------------------------------------------------------------------------------------ */

static void handle_pods(const struct mlbench_call *call)
{
    static const char *const names[] = {"name", "labels", "phase", "ip"};
    sqlite3_stmt *statement = mlbench_prepare(call, "SELECT name, labels, phase, ip FROM pods ORDER BY id", "");
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
    if (mlbench_end(call, statement))
        request_reply(call->request, MHD_HTTP_OK, pods);
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

static void handle_metrics(const struct mlbench_call *call, const char *owner)
{
    if (request_is(call->request, MHD_HTTP_METHOD_GET))
        mlbench_handle_metrics(call, owner);
    else if (!*owner && request_is(call->request, MHD_HTTP_METHOD_POST))
        mlbench_add_metrics(call);
    else
        request_refuse_method(call->request, *owner ? "GET" : "GET, POST");
}

bool mlbench_knows(const struct request *request)
{
    const char *pods = part_behind(request->path, "/api/pods");
    return part_behind(request->path, "/api/runs") || part_behind(request->path, "/api/metrics") ||
           (pods && !*pods);
}

void mlbench_handle(const struct mlbench *mlbench, struct request *request)
{
    const struct mlbench_call call = {mlbench, request};
    const char *part;
    if ((part = part_behind(request->path, "/api/runs")))
        mlbench_handle_runs(&call, part);
    else if ((part = part_behind(request->path, "/api/metrics")))
        handle_metrics(&call, part);
    else if (request_is(request, MHD_HTTP_METHOD_GET))
        handle_pods(&call);
    else
        request_refuse_method(request, "GET");
}
