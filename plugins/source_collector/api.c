#include "api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/version.h>

#include "../gzip.h"
#include "../prometheus/accepts.h"
#include "../store/store_file.h"
#include "../system.h"
#include "api_call.h"
#include "json_text.h"
#include "text/hash.h"

#define FOLDER "/api/v1"

extern const char *const openapi_lines[]; /* pairs: the file's name, and a line */

static api_answer api_index, api_document;

/* A path below the folder; "*" is the id of a run. */
static const struct api_path {
    const char *path, *shown, *parameters;
    api_answer *respond;
} paths[] = {
    {"", "/api/v1/", "", api_index},
    {"/status", "/api/v1/status", "", NULL},
    {"/groups", "/api/v1/groups", "", api_groups},
    {"/series", "/api/v1/series", "group inside name label search ids limit after", api_series},
    {"/labels", "/api/v1/labels", "group inside name", api_labels},
    {"/range", "/api/v1/range", "series from to points percentiles", api_range},
    {"/events", "/api/v1/events", "series from to limit before", api_events},
    {"/top", "/api/v1/top", "group inside name by from to n", api_top},
    {"/markers", "/api/v1/markers", "from to", api_markers},
    {"/runs", "/api/v1/runs", "", api_runs},
    {"/runs/*", "/api/v1/runs/{id}", "", api_runs},
    {"/runs/*/metrics", "/api/v1/runs/{id}/metrics", "name from to points percentiles", api_run_metrics},
    {"/live", "/api/v1/live", "series group inside", api_live},
    {"/openapi", "/api/v1/openapi.json", "", api_document},
};

/* ---- Replies --------------------------------------------------------------------------------- */

static bool is_same_tag(const char *given, const char *tag)
{
    return given && (strcmp(given, "*") == 0 || strstr(given, tag + 2)); /* without W/ */
}

/* The body is compressed if the client takes it, and left out if the client has it. */
static void reply(struct request *request, struct wr_buffer *out)
{
    enum { WORTH_COMPRESSING = 1024 };
    char tag[24];
    uint64_t hash = wr_hash_bytes(out->length, out->data, out->length);
    snprintf(tag, sizeof tag, "W/\"%016" PRIx64 "\"", hash);
    bool is_known = is_same_tag(request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH), tag);
    bool is_packed = !is_known && out->length >= WORTH_COMPRESSING &&
                     accepts_gzip(request_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING)) && gzip_text(out);
    const struct request_field fields[] = {{MHD_HTTP_HEADER_ETAG, tag},
                                           {MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING},
                                           {is_packed ? MHD_HTTP_HEADER_CONTENT_ENCODING : NULL, "gzip"}};
    request_reply_fields(request, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, "application/json", out->data,
                         is_known ? 0 : out->length, fields, sizeof fields / sizeof *fields);
}

bool api_check(struct api_call *call, int code)
{
    if (!code)
        return true;
    if (call->request->is_replied)
        return false;
    if (code == SQLITE_INTERRUPT)
        return request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "the request takes longer than query_timeout (%" PRId64
                            " ms); ask for fewer series or a shorter time",
                            call->api->limit_ns / 1000000);
    if (code == SQLITE_NOMEM)
        return request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    return request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE, "the database: %s", sqlite3_errstr(code));
}

/* ---- Statements ------------------------------------------------------------------------------ */

sqlite3_stmt *api_prepare(struct api_call *call, const char *text, const char *types, ...)
{
    sqlite3_stmt *statement;
    va_list arguments;
    if (!api_check(call, sqlite3_prepare_v2(call->reader->db, text, -1, &statement, NULL)))
        return NULL;
    va_start(arguments, types);
    store_file_bind(statement, types, arguments);
    va_end(arguments);
    return statement;
}

bool api_finish(struct api_call *call, sqlite3_stmt *statement)
{
    int code = sqlite3_reset(statement);
    sqlite3_finalize(statement);
    return statement && api_check(call, code);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static char *copy_column(sqlite3_stmt *row, int column, bool *has_failed)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    char *copy = text ? strdup(text) : NULL;
    *has_failed |= text && !copy;
    return copy;
}

bool api_read_info(sqlite3_stmt *row, struct series_info *info)
{
    bool has_failed = false;
    *info = (struct series_info){.id = sqlite3_column_int64(row, 0),
                                 .group = copy_column(row, 1, &has_failed),
                                 .name = copy_column(row, 2, &has_failed),
                                 .labels = copy_column(row, 3, &has_failed),
                                 .is_cumulative = sqlite3_column_int(row, 4),
                                 .instrument = sqlite3_column_int(row, 5),
                                 .unit = copy_column(row, 6, &has_failed),
                                 .help = copy_column(row, 7, &has_failed)};
    return !has_failed;
}

void api_free_info(struct series_info *info)
{
    free(info->group);
    free(info->name);
    free(info->labels);
    free(info->unit);
    free(info->help);
    *info = (struct series_info){0};
}

bool api_find_info(struct api_call *call, int64_t id, struct series_info *info)
{
    *info = (struct series_info){0};
    sqlite3_stmt *statement =
        api_prepare(call, "SELECT " API_SERIES_COLUMNS " FROM series WHERE id = ?", "i", id);
    bool is_found = statement && sqlite3_step(statement) == SQLITE_ROW, is_read = is_found;
    if (is_found)
        is_read = api_read_info(statement, info);
    if (!api_finish(call, statement))
        return false;
    if (is_read)
        return true;
    if (is_found)
        return api_check(call, SQLITE_NOMEM);
    return request_fail(call->request, MHD_HTTP_NOT_FOUND, "there is no series %" PRId64, id);
}

/* ---- What there is --------------------------------------------------------------------------- */

static bool api_index(struct api_call *call)
{
    struct wr_buffer *out = &call->out;
    wr_buffer_put_text(out, "{\"version\":");
    json_text_put_string(out, WEIR_VERSION);
    wr_buffer_put_text(out, ",\"api\":1,\"paths\":[");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (i)
            wr_buffer_put_char(out, ',');
        json_text_put_string(out, paths[i].shown);
    }
    wr_buffer_put_text(out, "]}");
    return true;
}

static bool api_document(struct api_call *call)
{
    for (const char *const *line = openapi_lines; *line; line += 2) {
        wr_buffer_put_text(&call->out, line[1]);
        wr_buffer_put_char(&call->out, '\n');
    }
    return true;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Whether a path is of a pattern; sets *run if that has one. */
static bool is_path(const char *pattern, const char *path, int64_t *run)
{
    enum { DIGITS = 18 };
    const char *star = strchr(pattern, '*');
    size_t length = star ? (size_t)(star - pattern) : 0;
    if (!star)
        return strcmp(pattern, path) == 0;
    size_t digits = strncmp(pattern, path, length) == 0 ? strspn(path + length, "0123456789") : 0;
    if (!digits || digits > DIGITS || strcmp(path + length + digits, star + 1) != 0)
        return false;
    *run = strtoll(path + length, NULL, 10);
    return *run > 0;
}

static const struct api_path *find_path(const char *path, int64_t *run)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (is_path(paths[i].path, path, run))
            return &paths[i];
    return NULL;
}

static enum MHD_Result take_parameter(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                      const char *value, size_t length)
{
    (void)kind;
    return query_add(ctx, name, name_length, value ? value : "", value ? length : 0) ? MHD_YES : MHD_NO;
}

static bool read_query(struct api_call *call, const char *allowed)
{
    call->query.allowed = allowed;
    call->query.now_ns = wr_system_clock_ns(CLOCK_REALTIME);
    MHD_get_connection_values_n(call->request->connection, MHD_GET_ARGUMENT_KIND, take_parameter, &call->query);
    return !*call->query.problem;
}

static void respond(struct api_call *call, const struct api_path *path)
{
    struct request *request = call->request;
    bool is_good = api_check(call, reader_begin(call->reader, call->api->limit_ns)) && path->respond(call);
    reader_end(call->reader);
    if (!is_good && !request->is_replied)
        request_fail(request, MHD_HTTP_BAD_REQUEST, "%s", call->query.problem);
    else if (is_good && call->out.failed)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    else if (is_good && !request->is_replied)
        reply(request, &call->out);
}

static void handle(struct api *api, struct request *request, const struct api_path *path, int64_t run)
{
    struct api_call call = {.api = api, .reader = &api->reader, .request = request, .run = run};
    if (!read_query(&call, path->parameters))
        request_fail(request, MHD_HTTP_BAD_REQUEST, "%s", call.query.problem);
    else if (!api->reader.db)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s: %s", api->path, api->problem);
    else
        respond(&call, path);
    wr_buffer_fini(&call.out);
}

bool api_handle(struct api *api, struct request *request)
{
    size_t length = strlen(FOLDER);
    int64_t run = 0;
    if (strncmp(request->path, FOLDER, length) != 0 || (request->path[length] && request->path[length] != '/'))
        return false;
    const struct api_path *path = find_path(request->path + length, &run);
    if (path && !path->respond)
        return false;
    if (!path)
        request_fail(request, MHD_HTTP_NOT_FOUND, "there is nothing here; " FOLDER "/ lists the paths");
    else if (!request_is(request, MHD_HTTP_METHOD_GET))
        request_refuse_method(request, "GET, HEAD");
    else
        handle(api, request, path, run);
    return true;
}
