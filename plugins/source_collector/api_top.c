/* /api/v1/top: series summed by the values of a label. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/types.h>

#include "api_call.h"
#include "api_range.h"
#include "json_text.h"
#include "range.h"
#include "text/array.h"

enum { TOP = 10, TOP_MOST = 1000 };

/* What the series with one value of the label amount to. */
struct part {
    char *value; /* owned */
    int64_t series;
    uint64_t count, finite;
    double sum, increase, max;
    bool has_increase;
};

struct top {
    int64_t from_ns, to_ns, n;
    const char *by;
    struct part *parts;
    uint32_t count, room;
};

/* ---- Adding up ------------------------------------------------------------------------------- */

/* Rows come sorted by the label's value. */
static struct part *part_of(struct top *top, const char *value)
{
    if (top->count && strcmp(top->parts[top->count - 1].value, value) == 0)
        return &top->parts[top->count - 1];
    struct part *parts = wr_array_reserve(top->parts, &top->room, top->count + 1, sizeof *parts);
    if (!parts)
        return NULL;
    top->parts = parts;
    top->parts[top->count] = (struct part){.value = strdup(value)};
    return top->parts[top->count].value ? &top->parts[top->count++] : NULL;
}

static void add_bucket(struct part *part, const struct buckets *buckets)
{
    const struct bucket *bucket = &buckets->all[0];
    const struct buckets_shape *shape = &buckets->shape;
    part->series++;
    part->count += bucket->count;
    part->has_increase |= shape->has_increase;
    if (shape->has_increase)
        part->increase += shape->is_cumulative ? bucket->increase : bucket->sum;
    if (!bucket->finite)
        return;
    part->max = part->finite && part->max > bucket->max ? part->max : bucket->max;
    part->finite += bucket->finite;
    part->sum += bucket->sum;
}

/* Rows: id, cumulative, instrument, the label's value. */
static int add_series(struct api_call *call, struct top *top, sqlite3_stmt *row)
{
    struct buckets buckets;
    struct buckets_shape shape = {.start_ns = top->from_ns, .step_ns = top->to_ns - top->from_ns, .count = 1};
    struct series_info info = {.is_cumulative = sqlite3_column_int(row, 1),
                               .instrument = sqlite3_column_int(row, 2)};
    struct part *part = part_of(top, (const char *)sqlite3_column_text(row, 3));
    if (!part)
        return SQLITE_NOMEM;
    api_set_kind(&shape, &info, false);
    shape.has_percentiles = false;
    int code = buckets_init(&buckets, &shape) ? SQLITE_OK : SQLITE_NOMEM;
    if (!code)
        code = range_read(call->reader, sqlite3_column_int64(row, 0), &buckets);
    if (!code && buckets.all[0].count)
        add_bucket(part, &buckets);
    buckets_fini(&buckets);
    return code;
}

/* ---- Replying -------------------------------------------------------------------------------- */

static double weight_of(const struct part *part)
{
    return part->has_increase ? part->increase : part->sum;
}

static int compare(const void *a, const void *b)
{
    double one = weight_of(a), other = weight_of(b);
    return (one < other) - (one > other);
}

static void put_number(struct wr_buffer *out, const char *name, double value)
{
    json_text_put_name(out, name);
    json_text_put_double(out, value);
}

static void put_part(struct wr_buffer *out, const struct part *part)
{
    wr_buffer_put_text(out, "{\"value\":");
    json_text_put_string(out, part->value);
    json_text_put_name(out, "count");
    json_text_put_int(out, (int64_t)part->count);
    put_number(out, "sum", part->sum);
    json_text_put_name(out, "increase");
    if (part->has_increase)
        json_text_put_double(out, part->increase);
    else
        wr_buffer_put_text(out, "null");
    put_number(out, "mean", part->finite ? part->sum / (double)part->finite : NAN);
    put_number(out, "max", part->finite ? part->max : NAN);
    json_text_put_name(out, "series");
    json_text_put_int(out, part->series);
    wr_buffer_put_char(out, '}');
}

static void put_top(struct wr_buffer *out, struct top *top)
{
    bool is_first = true;
    if (top->count)
        qsort(top->parts, top->count, sizeof *top->parts, compare);
    wr_buffer_put_text(out, "{\"by\":");
    json_text_put_string(out, top->by);
    wr_buffer_put_text(out, ",\"top\":[");
    for (size_t i = 0; i < top->count && top->n; i++) {
        if (!top->parts[i].series)
            continue;
        wr_buffer_put_text(out, is_first ? "" : ",");
        put_part(out, &top->parts[i]);
        is_first = false;
        top->n--;
    }
    wr_buffer_put_text(out, "]}");
}

static bool read_top(struct api_call *call, struct top *top, bool is_inside)
{
    int code = SQLITE_OK;
    sqlite3_stmt *statement = api_prepare(
        call,
        "SELECT series.id, cumulative, instrument, json_each.value FROM series, json_each(series.labels) WHERE "
        "(?1 IS "
        "NULL OR " API_GROUP_CONDITION ") AND (?3 IS NULL OR name = ?3) AND json_each.key = ?4 ORDER BY 4, 1",
        "siss", query_get(&call->query, "group"), (int64_t)is_inside, query_get(&call->query, "name"), top->by);
    while (statement && !code && sqlite3_step(statement) == SQLITE_ROW)
        code = add_series(call, top, statement);
    return api_finish(call, statement) && api_check(call, code);
}

bool api_top(struct api_call *call)
{
    struct query *query = &call->query;
    struct top top = {.n = TOP, .by = query_get(query, "by")};
    bool is_inside = false;
    bool is_good = query_need(query, "by") && query_bool(query, "inside", &is_inside) &&
                   query_integer(query, "n", 1, TOP_MOST, &top.n) &&
                   api_take_times(query, &top.from_ns, &top.to_ns) && read_top(call, &top, is_inside);
    if (is_good)
        put_top(&call->out, &top);
    for (size_t i = 0; i < top.count; i++)
        free(top.parts[i].value);
    free(top.parts);
    return is_good;
}
