/* /api/v1/events: values as they came, the newest first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_call.h"
#include "api_range.h"
#include "json_text.h"
#include "text/array.h"

enum { EVENTS = 1000, EVENTS_MOST = 10000, SKIPPED_MOST = 1000000 };

struct event {
    int64_t series;
    size_t rank; /* of values with one time, the later one has the higher rank */
    struct chunk_point point;
};

struct events {
    int64_t ids[QUERY_IDS];
    size_t id_count;
    int64_t from_ns, to_ns; /* to_ns: the end of the microsecond of the place where it goes on */
    int64_t limit, skipped; /* skipped: so many of the newest were on the pages before */
    struct event *all;
    uint32_t count, room;
};

/* ---- Reading --------------------------------------------------------------------------------- */

static bool put_event(struct events *events, struct event event)
{
    struct event *all = wr_array_reserve(events->all, &events->room, events->count + 1, sizeof *all);
    if (!all)
        return false;
    events->all = all;
    all[events->count++] = event;
    return true;
}

static int by_end(const void *a, const void *b)
{
    const struct piece *one = a, *other = b;
    if (one->last_ns != other->last_ns)
        return one->last_ns > other->last_ns ? -1 : 1;
    return (one->id < other->id) - (one->id > other->id);
}

/* How many of the values found since `first` are as new as a time, or newer. */
static size_t count_newer(const struct events *events, size_t first, int64_t time_ns)
{
    size_t count = 0;
    for (size_t i = first; i < events->count; i++)
        count += events->all[i].point.time_ns > time_ns;
    return count;
}

static int take_piece(struct reader *reader, struct events *events, int64_t series, const struct pieces *pieces,
                      const struct piece *piece)
{
    const struct chunk_point *points;
    size_t count;
    int code = reader_get(reader, pieces, piece, &points, &count);
    /* chunks of one series are told apart by their ids, which are in the order in which they were made */
    size_t rank = piece->id == INT64_MAX ? SIZE_MAX / 2 : (size_t)piece->id * CHUNK_POINTS;
    for (size_t i = 0; !code && i < count; i++) {
        const struct event event = {series, rank + i, points[i]};
        if (points[i].time_ns >= events->from_ns && points[i].time_ns < events->to_ns &&
            !put_event(events, event))
            code = SQLITE_NOMEM;
    }
    return code;
}

/* Reads pieces, those that end last first, until there are enough values that none of the others can be newer.
 */
static int read_series(struct reader *reader, struct events *events, int64_t series)
{
    const size_t wanted = (size_t)(events->limit + events->skipped) + 1, first = events->count;
    struct pieces pieces;
    int code = reader_find(reader, series, events->from_ns, events->to_ns, false, &pieces);
    if (!code && pieces.count)
        qsort(pieces.all, pieces.count, sizeof *pieces.all, by_end);
    for (size_t i = 0; !code && i < pieces.count; i++) {
        if (events->count - first >= wanted && count_newer(events, first, pieces.all[i].last_ns) >= wanted)
            break;
        code = take_piece(reader, events, series, &pieces, &pieces.all[i]);
    }
    pieces_fini(&pieces);
    return code ? code : reader_check(reader);
}

/* The newest first; of equal times by series, the latest first. */
static int by_time(const void *a, const void *b)
{
    const struct event *one = a, *other = b;
    int64_t one_us = json_text_us(one->point.time_ns), other_us = json_text_us(other->point.time_ns);
    if (one_us != other_us)
        return one_us > other_us ? -1 : 1;
    if (one->series != other->series)
        return one->series < other->series ? -1 : 1;
    if (one->point.time_ns != other->point.time_ns)
        return one->point.time_ns > other->point.time_ns ? -1 : 1;
    return (one->rank < other->rank) - (one->rank > other->rank);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static bool is_same_value(sqlite3_stmt *row, int column, const struct chunk_point *point)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return true; /* NaN */
    return sqlite3_column_double(row, column) == chunk_value(point);
}

/* How many events before this one, as they came, have the same series, time and value. */
static size_t count_equal_before(const struct events *events, size_t index, size_t end)
{
    const struct event *event = &events->all[index];
    size_t count = 0;
    for (size_t i = index + 1; i < end && events->all[i].series == event->series &&
                               events->all[i].point.time_ns == event->point.time_ns;
         i++)
        count += chunk_value(&events->all[i].point) == chunk_value(&event->point);
    return count;
}

/* Notes have the time and the value of what they belong to. Of equal ones, the first note is that of the first
 * value. */
static void put_metadata(struct api_call *call, sqlite3_stmt *statement, const struct events *events,
                         size_t index)
{
    const struct event *event = &events->all[index];
    sqlite3_bind_int64(statement, 1, event->series);
    sqlite3_bind_int64(statement, 2, event->point.time_ns);
    size_t skipped =
        sqlite3_step(statement) == SQLITE_ROW ? count_equal_before(events, index, events->count) : 0;
    for (bool has_row = sqlite3_data_count(statement) > 0; has_row;
         has_row = sqlite3_step(statement) == SQLITE_ROW) {
        if (!is_same_value(statement, 1, &event->point) || skipped--)
            continue;
        json_text_put_name(&call->out, "metadata");
        json_text_put_string(&call->out, (const char *)sqlite3_column_text(statement, 0));
        break;
    }
    sqlite3_reset(statement);
}

/* ---- Replying -------------------------------------------------------------------------------- */

/* Where the next page begins: the time of the last event, and how many with that time were there. */
static void put_next(struct wr_buffer *out, const struct events *events, size_t end)
{
    int64_t last_us = json_text_us(events->all[end - 1].point.time_ns);
    size_t count = 0;
    for (size_t i = end; i > 0 && json_text_us(events->all[i - 1].point.time_ns) == last_us; i--)
        count++;
    wr_buffer_put_char(out, '"');
    json_text_put_time(out, events->all[end - 1].point.time_ns);
    wr_buffer_put_format(out, "/%zu\"", count);
}

static bool put_events(struct api_call *call, const struct events *events)
{
    struct wr_buffer *out = &call->out;
    size_t start = (size_t)events->skipped < events->count ? (size_t)events->skipped : events->count;
    size_t end = events->count - start > (size_t)events->limit ? start + (size_t)events->limit : events->count;
    sqlite3_stmt *notes =
        api_prepare(call, "SELECT text, value FROM notes WHERE series = ? AND time_ns = ? ORDER BY id", "");
    if (!notes)
        return false;
    wr_buffer_put_text(out, "{\"events\":[");
    for (size_t i = start; i < end; i++) {
        wr_buffer_put_text(out, i > start ? ",{\"t\":" : "{\"t\":");
        json_text_put_time(out, events->all[i].point.time_ns);
        wr_buffer_put_format(out, ",\"series\":%" PRId64 ",\"value\":", events->all[i].series);
        json_text_put_point(out, &events->all[i].point);
        put_metadata(call, notes, events, i);
        wr_buffer_put_char(out, '}');
    }
    bool has_more = end < events->count;
    wr_buffer_put_format(out, "],\"more\":%s,\"next\":", has_more ? "true" : "false");
    if (has_more)
        put_next(out, events, end);
    else
        wr_buffer_put_text(out, "null");
    wr_buffer_put_char(out, '}');
    return api_finish(call, notes);
}

static bool read_events(struct api_call *call, struct events *events)
{
    struct series_info info;
    for (size_t i = 0; i < events->id_count; i++) {
        if (!api_find_info(call, events->ids[i], &info))
            return false;
        api_free_info(&info);
        if (!api_check(call, read_series(call->reader, events, events->ids[i])))
            return false;
    }
    if (events->count)
        qsort(events->all, events->count, sizeof *events->all, by_time);
    return put_events(call, events);
}

/* A page goes on within the microsecond of "before", the times that responses have. */
static bool take_place(struct query *query, struct events *events)
{
    int64_t before_ns = 0;
    if (!query_place(query, "before", &before_ns, &events->skipped))
        return false;
    if (events->skipped > SKIPPED_MOST)
        return query_fail(query, "before", "too many values have this time; allowed: %d", SKIPPED_MOST);
    if (!query_get(query, "before"))
        return true;
    before_ns = json_text_us(before_ns) * 1000;
    if (strchr(query_get(query, "before"), '/'))
        before_ns += 1000;
    events->to_ns = before_ns < events->to_ns ? before_ns : events->to_ns;
    return true;
}

bool api_events(struct api_call *call)
{
    struct query *query = &call->query;
    struct events events = {.limit = EVENTS};
    bool is_good = query_need(query, "series") && query_ids(query, "series", events.ids, &events.id_count) &&
                   api_take_times(query, &events.from_ns, &events.to_ns) &&
                   query_integer(query, "limit", 1, EVENTS_MOST, &events.limit) && take_place(query, &events) &&
                   read_events(call, &events);
    free(events.all);
    return is_good;
}
