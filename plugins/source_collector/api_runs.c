/* /api/v1/runs, a run's metrics, and /api/v1/markers. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api_call.h"
#include "api_range.h"
#include "json_text.h"
#include "range.h"
#include "text/number.h"
#include "text/array.h"

/* VALUES_MOST: posted values of one name, which are read at once. */
enum { METRICS_MOST = 100, VALUES_MOST = 2 << 20 };

#define HAS_RUN_LABEL                                                                                          \
    "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = 'run_id' AND value = CAST(?1 AS TEXT))"

static void put_us(struct wr_buffer *out, sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        wr_buffer_put_text(out, "null");
    else
        json_text_put_time(out, sqlite3_column_int64(row, column) * 1000);
}

static void put_column(struct wr_buffer *out, const char *name, sqlite3_stmt *row, int column)
{
    json_text_put_name(out, name);
    json_text_put_string(out, (const char *)sqlite3_column_text(row, column));
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Appends ,"name":[...] with the texts that the query finds for a run. */
static bool put_texts(struct api_call *call, const char *name, const char *text, int64_t run)
{
    sqlite3_stmt *statement = api_prepare(call, text, "i", run);
    bool is_first = true;
    json_text_put_name(&call->out, name);
    wr_buffer_put_char(&call->out, '[');
    while (statement && sqlite3_step(statement) == SQLITE_ROW) {
        wr_buffer_put_text(&call->out, is_first ? "" : ",");
        json_text_put_string(&call->out, (const char *)sqlite3_column_text(statement, 0));
        is_first = false;
    }
    wr_buffer_put_char(&call->out, ']');
    return api_finish(call, statement);
}

static bool put_run(struct api_call *call, sqlite3_stmt *row)
{
    struct wr_buffer *out = &call->out;
    int64_t run = sqlite3_column_int64(row, 0);
    wr_buffer_put_format(out, "{\"id\":%" PRId64, run);
    put_column(out, "name", row, 1);
    put_column(out, "state", row, 2);
    json_text_put_name(out, "created");
    put_us(out, row, 3);
    json_text_put_name(out, "finished");
    put_us(out, row, 4);
    put_column(out, "command", row, 5);
    bool is_good =
        put_texts(call, "pods", "SELECT name FROM pods WHERE run_id = ? ORDER BY id", run) &&
        put_texts(
            call, "metrics",
            "SELECT name FROM metrics WHERE run_id = ?1 UNION SELECT name FROM series WHERE " HAS_RUN_LABEL
            " ORDER BY 1",
            run);
    wr_buffer_put_char(out, '}');
    return is_good;
}

static bool fail_without_run(struct api_call *call)
{
    return request_fail(call->request, MHD_HTTP_NOT_FOUND, "there is no run %" PRId64, call->run);
}

bool api_runs(struct api_call *call)
{
    sqlite3_stmt *statement = api_prepare(call,
                                          "SELECT id, name, state, created_us, finished_us, command FROM runs "
                                          "WHERE ?1 = 0 OR id = ?1 ORDER BY id",
                                          "i", call->run);
    size_t count = 0;
    bool is_good = statement;
    if (!call->run)
        wr_buffer_put_text(&call->out, "{\"runs\":[");
    for (; is_good && sqlite3_step(statement) == SQLITE_ROW; count++) {
        wr_buffer_put_text(&call->out, count ? "," : "");
        is_good = put_run(call, statement);
    }
    if (!api_finish(call, statement) || !is_good)
        return false;
    if (call->run)
        return count || fail_without_run(call);
    wr_buffer_put_text(&call->out, "]}");
    return true;
}

/* ---- What a run's metrics are ---------------------------------------------------------------- */

/* A metric that was posted to the run (id 0), or a series with its id as label. */
struct run_metric {
    struct series_info info;
    struct chunk_point *points; /* posted: owned */
    size_t count;
};

struct run_metrics {
    struct run_metric *all;
    uint32_t count, room;
    int64_t from_ns, to_ns;
};

static struct run_metric *put_metric(struct run_metrics *metrics)
{
    struct run_metric *all = wr_array_reserve(metrics->all, &metrics->room, metrics->count + 1, sizeof *all);
    if (!all)
        return NULL;
    metrics->all = all;
    return &all[metrics->count++]; /* zeros */
}

static void free_metrics(struct run_metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        api_free_info(&metrics->all[i].info);
        free(metrics->all[i].points);
    }
    free(metrics->all);
}

/* A range has room in 64 bits, as that of a query, and so have its buckets: from 1896 to 2116. */
static int64_t limit(int64_t time_ns)
{
    static const int64_t least_ns = INT64_MIN / 4, most_ns = INT64_MAX / 2 - 1;
    return time_ns < least_ns ? least_ns : time_ns > most_ns ? most_ns : time_ns;
}

static void widen(struct run_metrics *metrics, int64_t first_ns, int64_t last_ns)
{
    first_ns = limit(first_ns);
    last_ns = limit(last_ns);
    metrics->from_ns = first_ns < metrics->from_ns ? first_ns : metrics->from_ns;
    metrics->to_ns = last_ns >= metrics->to_ns ? last_ns + 1 : metrics->to_ns;
}

/* Texts that are no numbers are left out; a metric of such texts only is there, without points. */
static int take_value(struct run_metric *metric, uint32_t *room, sqlite3_stmt *row)
{
    double value;
    if (!wr_number_read_double((const char *)sqlite3_column_text(row, 2), &value))
        return SQLITE_OK;
    struct chunk_point *points =
        metric->count < VALUES_MOST
            ? wr_array_reserve(metric->points, room, (uint32_t)metric->count + 1, sizeof *points)
            : NULL;
    if (!points)
        return SQLITE_NOMEM;
    metric->points = points;
    points[metric->count++] =
        (struct chunk_point){.time_ns = sqlite3_column_int64(row, 1) * 1000, .value.f64 = value};
    return SQLITE_OK;
}

/* Rows: name, date_us, value, cumulative; sorted by name. */
static int take_posted(struct run_metrics *metrics, uint32_t *room, sqlite3_stmt *row)
{
    struct run_metric *metric = metrics->count ? &metrics->all[metrics->count - 1] : NULL;
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (!metric || strcmp(metric->info.name, name) != 0) {
        metric = put_metric(metrics);
        if (!metric || !(metric->info.name = strdup(name)))
            return SQLITE_NOMEM;
        *room = 0;
    }
    metric->info.is_cumulative |= sqlite3_column_int(row, 3) != 0;
    int code = take_value(metric, room, row);
    if (!code && metric->count)
        widen(metrics, metric->points[0].time_ns, metric->points[metric->count - 1].time_ns);
    return code;
}

static bool read_posted(struct api_call *call, struct run_metrics *metrics, const char *name)
{
    uint32_t room = 0;
    int code = SQLITE_OK;
    sqlite3_stmt *statement =
        api_prepare(call,
                    "SELECT name, date_us, value, cumulative FROM metrics WHERE run_id = ? AND "
                    "(?2 IS NULL OR name = ?2) ORDER BY name, date_us, id",
                    "is", call->run, name);
    while (statement && !code && sqlite3_step(statement) == SQLITE_ROW)
        code = take_posted(metrics, &room, statement);
    return api_finish(call, statement) && api_check(call, code);
}

static int take_series(struct api_call *call, struct run_metrics *metrics, sqlite3_stmt *row)
{
    struct pieces pieces;
    struct run_metric *metric = put_metric(metrics);
    if (!metric || !api_read_info(row, &metric->info))
        return SQLITE_NOMEM;
    int code = reader_find(call->reader, metric->info.id, INT64_MIN, INT64_MAX, false, &pieces);
    for (size_t i = 0; !code && i < pieces.count; i++)
        widen(metrics, pieces.all[i].first_ns, pieces.all[i].last_ns);
    pieces_fini(&pieces);
    return code;
}

static bool read_labelled(struct api_call *call, struct run_metrics *metrics, const char *name)
{
    int code = SQLITE_OK;
    sqlite3_stmt *statement = api_prepare(call,
                                          "SELECT " API_SERIES_COLUMNS " FROM series WHERE " HAS_RUN_LABEL
                                          " AND (?2 IS NULL OR name = ?2) ORDER BY group_name, name, id",
                                          "is", call->run, name);
    while (statement && !code && sqlite3_step(statement) == SQLITE_ROW)
        code = take_series(call, metrics, statement);
    return api_finish(call, statement) && api_check(call, code);
}

/* ---- A run's metrics as points --------------------------------------------------------------- */

static void put_head(struct wr_buffer *out, const struct series_info *info)
{
    wr_buffer_put_text(out, "{\"id\":");
    if (info->id)
        json_text_put_int(out, info->id);
    else
        wr_buffer_put_text(out, "null");
    json_text_put_name(out, "name");
    json_text_put_string(out, info->name);
    if (info->id) {
        json_text_put_name(out, "group");
        json_text_put_string(out, info->group);
        json_text_put_name(out, "labels");
        wr_buffer_put_text(out, info->labels);
    }
    wr_buffer_put_format(out, ",\"cumulative\":%s,", info->is_cumulative ? "true" : "false");
}

static bool put_metrics(struct api_call *call, const struct run_metrics *metrics, bool all_percentiles)
{
    struct buckets_shape shape = {0};
    size_t points;
    if (!api_take_points(&call->query, metrics->count, true, &points))
        return false;
    range_shape(&shape, metrics->from_ns, metrics->to_ns, points);
    api_put_shape(&call->out, &shape);
    for (size_t i = 0; i < metrics->count; i++) {
        const struct run_metric *metric = &metrics->all[i];
        wr_buffer_put_text(&call->out, i ? "," : "");
        api_set_kind(&shape, &metric->info, all_percentiles);
        put_head(&call->out, &metric->info);
        int code = metric->info.id ? range_put(call->reader, metric->info.id, &shape, &call->out)
                                   : range_put_points(metric->points, metric->count, &shape, &call->out);
        if (!api_check(call, code))
            return false;
        wr_buffer_put_char(&call->out, '}');
    }
    wr_buffer_put_text(&call->out, "]}");
    return true;
}

/* By default from the first value to the last one, of those that are numbers. */
static bool take_times(struct query *query, struct run_metrics *metrics)
{
    if (metrics->from_ns >= metrics->to_ns) { /* there is none */
        metrics->to_ns = query->now_ns;
        metrics->from_ns = query->now_ns - 1;
    }
    if (!query_time(query, "from", &metrics->from_ns) || !query_time(query, "to", &metrics->to_ns))
        return false;
    return metrics->from_ns < metrics->to_ns || query_fail(query, "from", "it is not before \"to\"");
}

static bool check_run(struct api_call *call)
{
    sqlite3_stmt *statement = api_prepare(call, "SELECT 1 FROM runs WHERE id = ?", "i", call->run);
    bool is_there = statement && sqlite3_step(statement) == SQLITE_ROW;
    return api_finish(call, statement) && (is_there || fail_without_run(call));
}

bool api_run_metrics(struct api_call *call)
{
    struct query *query = &call->query;
    struct run_metrics metrics = {.from_ns = INT64_MAX, .to_ns = INT64_MIN};
    const char *name = query_get(query, "name");
    bool all_percentiles = false;
    bool is_good = query_bool(query, "percentiles", &all_percentiles) && check_run(call) &&
                   read_posted(call, &metrics, name) && read_labelled(call, &metrics, name);
    if (is_good && metrics.count > METRICS_MOST && !name)
        is_good = query_fail(query, "name", "the run has %u metrics; without a name allowed: up to %d",
                             metrics.count, METRICS_MOST);
    is_good = is_good && take_times(query, &metrics) && put_metrics(call, &metrics, all_percentiles);
    free_metrics(&metrics);
    return is_good;
}

/* ---- Markers --------------------------------------------------------------------------------- */

/* Rows: time in us, kind, the run's id or NULL, text. A process that begins to write to the file has a new
 * origin; the first one of a file is no restart. */
static const char markers[] = "SELECT created_us AS us, 'run_started', id, name FROM runs UNION ALL "
                              "SELECT finished_us, iif(state = 'failed', 'run_failed', 'run_finished'), id, "
                              "name FROM runs WHERE finished_us IS "
                              "NOT NULL UNION ALL "
                              "SELECT since_us, 'restart', NULL, 'another process began to store values' FROM "
                              "origins WHERE since_us > (SELECT "
                              "min(since_us) FROM origins) UNION ALL "
                              "SELECT at_us, kind, NULL, text FROM marks";

bool api_markers(struct api_call *call)
{
    enum { MARKERS_MOST = 1000 };
    struct wr_buffer sql = {0}, *out = &call->out;
    int64_t from_ns, to_ns;
    if (!api_take_times(&call->query, &from_ns, &to_ns))
        return false;
    wr_buffer_put_format(
        &sql,
        "SELECT * FROM (SELECT * FROM (%s) WHERE us >= ? AND us < ? ORDER BY us DESC LIMIT %d) "
        "ORDER BY us",
        markers, MARKERS_MOST);
    const char *text = wr_buffer_text(&sql);
    sqlite3_stmt *statement =
        api_prepare(call, text ? text : "", "ii", json_text_us(from_ns), json_text_us(to_ns - 1) + 1);
    wr_buffer_put_text(out, "{\"markers\":[");
    for (bool is_first = true; statement && sqlite3_step(statement) == SQLITE_ROW; is_first = false) {
        wr_buffer_put_text(out, is_first ? "{\"t\":" : ",{\"t\":");
        put_us(out, statement, 0);
        put_column(out, "kind", statement, 1);
        put_column(out, "text", statement, 3);
        if (sqlite3_column_type(statement, 2) != SQLITE_NULL) {
            json_text_put_name(out, "run");
            json_text_put_int(out, sqlite3_column_int64(statement, 2));
        }
        wr_buffer_put_char(out, '}');
    }
    wr_buffer_put_text(out, "]}");
    wr_buffer_fini(&sql);
    return api_finish(call, statement);
}
