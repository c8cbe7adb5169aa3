/* /api/v1/range and /api/v1/live: the values of some series. */
#include "api_range.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/types.h>

#include "json_text.h"
#include "range.h"
#include "text/array.h"

/* POINTS_SKETCHED: sketches take up to 24 KiB each. */
enum { POINTS_LEAST = 10, POINTS_MOST = 5000, POINTS = 300, POINTS_TOGETHER = 200000, POINTS_SKETCHED = 1000 };

#define HOUR_NS (INT64_C(3600) * 1000000000)

/* ---- For others, too ------------------------------------------------------------------------- */

bool api_take_times(struct query *query, int64_t *from_ns, int64_t *to_ns)
{
    *to_ns = query->now_ns;
    if (!query_time(query, "to", to_ns))
        return false;
    *from_ns = *to_ns > HOUR_NS ? *to_ns - HOUR_NS : 0;
    if (!query_time(query, "from", from_ns))
        return false;
    return *from_ns < *to_ns || query_fail(query, "from", "it is not before \"to\"");
}

bool api_take_points(struct query *query, size_t series, bool has_percentiles, size_t *points)
{
    int64_t given = POINTS;
    if (!query_integer(query, "points", POINTS_LEAST, POINTS_MOST, &given))
        return false;
    *points = (size_t)given;
    if (has_percentiles && *points > POINTS_SKETCHED)
        *points = POINTS_SKETCHED;
    return *points * series <= POINTS_TOGETHER ||
           query_fail(query, "points", "%zu of each of %zu series are too many; allowed: %d together", *points,
                      series, POINTS_TOGETHER);
}

void api_set_kind(struct buckets_shape *shape, const struct series_info *info, bool all)
{
    shape->is_cumulative = info->is_cumulative;
    shape->has_increase = info->is_cumulative || info->instrument == WEIR_COUNTER;
    shape->has_percentiles = all || (info->instrument == WEIR_HISTOGRAM && !info->is_cumulative);
}

void api_put_shape(struct wr_buffer *out, const struct buckets_shape *shape)
{
    wr_buffer_put_text(out, "{\"from\":");
    json_text_put_time(out, shape->start_ns);
    json_text_put_name(out, "to");
    json_text_put_time(out, shape->start_ns + (int64_t)shape->count * shape->step_ns);
    json_text_put_name(out, "step");
    json_text_put_time(out, shape->step_ns);
    json_text_put_name(out, "series");
    wr_buffer_put_char(out, '[');
}

/* ---- Range ----------------------------------------------------------------------------------- */

struct range {
    int64_t ids[QUERY_IDS];
    size_t count;
    int64_t from_ns, to_ns;
    bool all_percentiles;
    struct series_info infos[QUERY_IDS];
    size_t info_count;
};

static bool find_infos(struct api_call *call, struct range *range)
{
    for (; range->info_count < range->count; range->info_count++)
        if (!api_find_info(call, range->ids[range->info_count], &range->infos[range->info_count]))
            return false;
    return true;
}

static bool has_percentiles(const struct range *range)
{
    struct buckets_shape shape = {0};
    for (size_t i = 0; i < range->info_count; i++) {
        api_set_kind(&shape, &range->infos[i], range->all_percentiles);
        if (shape.has_percentiles)
            return true;
    }
    return false;
}

static bool put_range(struct api_call *call, struct range *range)
{
    struct buckets_shape shape = {0};
    size_t points;
    if (!api_take_points(&call->query, range->count, has_percentiles(range), &points))
        return false;
    range_shape(&shape, range->from_ns, range->to_ns, points);
    api_put_shape(&call->out, &shape);
    for (size_t i = 0; i < range->count; i++) {
        wr_buffer_put_format(&call->out, "%s{\"id\":%" PRId64 ",", i ? "," : "", range->ids[i]);
        api_set_kind(&shape, &range->infos[i], range->all_percentiles);
        if (!api_check(call, range_put(call->reader, range->ids[i], &shape, &call->out)))
            return false;
        wr_buffer_put_char(&call->out, '}');
    }
    wr_buffer_put_text(&call->out, "]}");
    return true;
}

bool api_range(struct api_call *call)
{
    struct query *query = &call->query;
    struct range *range = calloc(1, sizeof *range);
    if (!range)
        return api_check(call, SQLITE_NOMEM);
    bool is_good = query_need(query, "series") && query_ids(query, "series", range->ids, &range->count) &&
                   api_take_times(query, &range->from_ns, &range->to_ns) &&
                   query_bool(query, "percentiles", &range->all_percentiles) && find_infos(call, range) &&
                   put_range(call, range);
    for (size_t i = 0; i < range->count; i++)
        api_free_info(&range->infos[i]);
    free(range);
    return is_good;
}

/* ---- Live ------------------------------------------------------------------------------------ */

static bool check_series(struct api_call *call, const int64_t *ids, size_t count)
{
    struct series_info info;
    for (size_t i = 0; i < count; i++) {
        if (!api_find_info(call, ids[i], &info))
            return false;
        api_free_info(&info);
    }
    return true;
}

/* The group's series; the caller frees *ids. */
static bool find_members(struct api_call *call, struct live_wish *wish, int64_t **ids)
{
    uint32_t room = 0;
    sqlite3_stmt *statement =
        api_prepare(call, "SELECT id FROM series WHERE " API_GROUP_CONDITION " ORDER BY id", "si", wish->group,
                    (int64_t)wish->is_inside);
    bool has_room = true;
    while (statement && has_room && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t *grown = wr_array_reserve(*ids, &room, (uint32_t)wish->count + 1, sizeof *grown);
        has_room = grown != NULL;
        *ids = grown ? grown : *ids;
        if (has_room)
            (*ids)[wish->count++] = sqlite3_column_int64(statement, 0);
    }
    wish->ids = *ids;
    return api_finish(call, statement) && (has_room || api_check(call, SQLITE_NOMEM));
}

static bool find_newest(struct api_call *call, int64_t *id)
{
    sqlite3_stmt *statement = api_prepare(call, "SELECT max(id) FROM series", "");
    if (statement && sqlite3_step(statement) == SQLITE_ROW)
        *id = sqlite3_column_int64(statement, 0);
    return api_finish(call, statement);
}

static bool listen_to(struct api_call *call, struct live_wish *wish)
{
    const char *last = request_header(call->request, "Last-Event-ID");
    if (last && strspn(last, "0123456789") == strlen(last) && strlen(last) < 19)
        wish->after = strtoll(last, NULL, 10);
    if (!find_newest(call, &wish->known_series))
        return false;
    if (strcmp(call->request->method, MHD_HTTP_METHOD_HEAD) == 0) {
        request_reply_fields(call->request, MHD_HTTP_OK, "text/event-stream", NULL, 0, NULL, 0);
        return true;
    }
    return live_listen(&call->api->live, call->reader, call->request, wish) ||
           request_fail(call->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                        "%d clients listen already, or out of memory", (int)call->api->live.count);
}

bool api_live(struct api_call *call)
{
    struct query *query = &call->query;
    int64_t given[QUERY_IDS], *members = NULL;
    struct live_wish wish = {.ids = given, .group = query_get(query, "group")};
    if (!query_bool(query, "inside", &wish.is_inside) || !query_ids(query, "series", given, &wish.count))
        return false;
    if (!wish.group == !wish.count)
        return query_fail(query, "series", "either it or \"group\" must be there");
    bool is_good = wish.group ? find_members(call, &wish, &members) : check_series(call, given, wish.count);
    is_good = is_good && listen_to(call, &wish);
    free(members);
    return is_good;
}
