#include "range.h"

#include <stdlib.h>
#include <string.h>

#include "buckets.h"
#include "reader.h"
#include "text/buffer.h"

/* SORTED_MOST: values that are sorted at once, because chunks of a running total overlap. */
enum { SORTED_MOST = 4 << 20 };

#define SECOND INT64_C(1000000000)

/* ---- Buckets --------------------------------------------------------------------------------- */

static const int64_t nice_ns[] = {
    1000,          2000,          5000,           10000,          20000,          50000,
    100000,        200000,        500000,         1000000,        2000000,        5000000,
    10000000,      20000000,      50000000,       100000000,      200000000,      500000000,
    SECOND,        2 * SECOND,    5 * SECOND,     10 * SECOND,    15 * SECOND,    30 * SECOND,
    60 * SECOND,   120 * SECOND,  300 * SECOND,   600 * SECOND,   900 * SECOND,   1800 * SECOND,
    3600 * SECOND, 7200 * SECOND, 10800 * SECOND, 21600 * SECOND, 43200 * SECOND, 86400 * SECOND};

/* Days, doubled, above the list. */
static int64_t nice_step(int64_t least_ns)
{
    enum { NICE_COUNT = sizeof nice_ns / sizeof *nice_ns };
    for (size_t i = 0; i < NICE_COUNT; i++)
        if (nice_ns[i] >= least_ns)
            return nice_ns[i];
    int64_t step = nice_ns[NICE_COUNT - 1];
    while (step < least_ns)
        step *= 2;
    return step;
}

static int64_t round_down(int64_t time_ns, int64_t step_ns)
{
    int64_t rest = time_ns % step_ns;
    return time_ns - rest - (rest < 0 ? step_ns : 0);
}

void range_shape(struct buckets_shape *shape, int64_t from_ns, int64_t to_ns, size_t points)
{
    /* a time that does not begin with a bucket touches one more */
    int64_t parts = (int64_t)points - 1;
    shape->step_ns = nice_step((to_ns - from_ns) / parts + ((to_ns - from_ns) % parts > 0));
    shape->start_ns = round_down(from_ns, shape->step_ns);
    shape->count = (size_t)((to_ns - shape->start_ns - 1) / shape->step_ns + 1);
}

static int64_t end_of(const struct buckets_shape *shape)
{
    return shape->start_ns + (int64_t)shape->count * shape->step_ns;
}

/* ---- Reading into buckets -------------------------------------------------------------------- */

static int add_piece(struct reader *reader, const struct pieces *pieces, const struct piece *piece,
                     struct buckets *buckets)
{
    const struct chunk_point *points;
    size_t count;
    if (buckets_take_totals(buckets, piece->first_ns, piece->last_ns, piece->has_rise)) {
        buckets_add_totals(buckets, &piece->totals, piece->first_ns, piece->last_ns, piece->id);
        return SQLITE_OK;
    }
    int code = reader_get(reader, pieces, piece, &points, &count);
    if (!code)
        buckets_add(buckets, points, count, piece->id);
    return code;
}

/* Reads the values of some pieces, sorted by time; the caller frees them. SQLITE_NOMEM: also if they are more
 * than `most`. */
static int read_sorted(struct reader *reader, const struct pieces *pieces, size_t first, size_t end,
                       size_t most, struct chunk_point **all, size_t *total)
{
    const struct chunk_point *points;
    size_t count, room = 0;
    for (size_t i = first; i < end; i++)
        room += pieces->all[i].totals.count;
    *total = 0;
    *all = room <= most ? malloc((room + 1) * sizeof **all) : NULL;
    int code = *all ? SQLITE_OK : SQLITE_NOMEM;
    for (size_t i = first; !code && i < end; i++) {
        code = reader_get(reader, pieces, &pieces->all[i], &points, &count);
        if (!code && count <= room - *total) {
            memcpy(*all + *total, points, count * sizeof **all);
            *total += count;
        }
    }
    return code ? code : reader_sort(*all, *total);
}

/* Adds pieces whose times overlap in the order of their values' times. */
static int add_sorted(struct reader *reader, const struct pieces *pieces, size_t first, size_t end,
                      struct buckets *buckets)
{
    struct chunk_point *all;
    size_t total;
    int code = read_sorted(reader, pieces, first, end, SORTED_MOST, &all, &total);
    if (!code)
        buckets_add(buckets, all, total, 0);
    free(all);
    return code;
}

/* Only differences of running totals need the order of values. */
static int add_pieces(struct reader *reader, const struct pieces *pieces, struct buckets *buckets)
{
    bool needs_order = buckets->shape.is_cumulative;
    int code = reader_check(reader);
    if (needs_order && pieces->before.totals.count)
        buckets->previous = pieces->before.totals.last;
    for (size_t first = 0, end; !code && first < pieces->count; first = end) {
        int64_t last_ns = pieces->all[first].last_ns;
        for (end = first + 1; needs_order && end < pieces->count && pieces->all[end].first_ns < last_ns; end++)
            last_ns = pieces->all[end].last_ns > last_ns ? pieces->all[end].last_ns : last_ns;
        code = end == first + 1 ? add_piece(reader, pieces, &pieces->all[first], buckets)
                                : add_sorted(reader, pieces, first, end, buckets);
    }
    return !code && buckets->has_failed ? SQLITE_NOMEM : code;
}

int range_read(struct reader *reader, int64_t series, struct buckets *buckets)
{
    const struct buckets_shape *shape = &buckets->shape;
    struct pieces pieces;
    int code = reader_find(reader, series, shape->start_ns, end_of(shape), shape->is_cumulative, &pieces);
    if (!code)
        code = add_pieces(reader, &pieces, buckets);
    pieces_fini(&pieces);
    return code;
}

/* ---- Values as they are ---------------------------------------------------------------------- */

static bool is_within(const struct buckets_shape *shape, int64_t time_ns)
{
    return time_ns >= shape->start_ns && time_ns < end_of(shape);
}

static size_t count_within(const struct buckets_shape *shape, const struct chunk_point *points, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += is_within(shape, points[i].time_ns);
    return found;
}

static void put_each(struct buckets *buckets, const struct chunk_point *points, size_t count,
                     struct wr_buffer *out)
{
    bool is_first = true;
    wr_buffer_put_text(out, "\"raw\":true,\"points\":[");
    for (size_t i = 0; i < count; i++) {
        if (!is_within(&buckets->shape, points[i].time_ns)) {
            buckets_add(buckets, &points[i], 1, 0); /* it shows where a running total has been */
            continue;
        }
        if (!is_first)
            wr_buffer_put_char(out, ',');
        is_first = false;
        buckets_put_point(buckets, &points[i], out);
    }
    wr_buffer_put_char(out, ']');
}

static void put_buckets(const struct buckets *buckets, struct wr_buffer *out)
{
    bool is_first = true;
    wr_buffer_put_text(out, "\"raw\":false,\"points\":[");
    for (size_t i = 0; i < buckets->shape.count; i++) {
        if (!buckets->all[i].count)
            continue;
        if (!is_first)
            wr_buffer_put_char(out, ',');
        is_first = false;
        buckets_put(buckets, i, out);
    }
    wr_buffer_put_char(out, ']');
}

/* Whether there are so few values that reading all of them costs little, and they may be few enough. */
static bool may_be_few(const struct pieces *pieces, const struct buckets_shape *shape)
{
    enum { PARTS = 16 };
    uint64_t within = 0, all = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->all[i];
        all += piece->totals.count;
        if (is_within(shape, piece->first_ns) && is_within(shape, piece->last_ns))
            within += piece->totals.count;
    }
    return within <= shape->count && all <= shape->count + (uint64_t)PARTS * CHUNK_POINTS;
}

int range_put_points(const struct chunk_point *points, size_t count, const struct buckets_shape *shape,
                     struct wr_buffer *out)
{
    struct buckets buckets;
    int code = buckets_init(&buckets, shape) ? SQLITE_OK : SQLITE_NOMEM;
    if (!code && count_within(shape, points, count) <= shape->count)
        put_each(&buckets, points, count, out);
    else if (!code) {
        buckets_add(&buckets, points, count, 0);
        put_buckets(&buckets, out);
    }
    code = !code && buckets.has_failed ? SQLITE_NOMEM : code;
    buckets_fini(&buckets);
    return code;
}

/* The values are read at once, since they are few. */
static int put_few(struct reader *reader, const struct pieces *pieces, const struct buckets_shape *shape,
                   bool *are_few, struct wr_buffer *out)
{
    struct chunk_point *all;
    size_t count;
    struct buckets buckets = {0};
    int code = read_sorted(reader, pieces, 0, pieces->count, SIZE_MAX, &all, &count);
    *are_few = !code && count_within(shape, all, count) <= shape->count;
    if (*are_few) {
        code = buckets_init(&buckets, shape) ? SQLITE_OK : SQLITE_NOMEM;
        if (pieces->before.totals.count)
            buckets.previous = pieces->before.totals.last;
        if (!code)
            put_each(&buckets, all, count, out);
        buckets_fini(&buckets);
    }
    free(all);
    return code;
}

static int put_many(struct reader *reader, const struct pieces *pieces, const struct buckets_shape *shape,
                    struct wr_buffer *out)
{
    struct buckets buckets;
    int code = buckets_init(&buckets, shape) ? SQLITE_OK : SQLITE_NOMEM;
    if (!code)
        code = add_pieces(reader, pieces, &buckets);
    if (!code)
        put_buckets(&buckets, out);
    buckets_fini(&buckets);
    return code;
}

int range_put(struct reader *reader, int64_t series, const struct buckets_shape *shape, struct wr_buffer *out)
{
    struct pieces pieces;
    bool is_put = false;
    int code = reader_find(reader, series, shape->start_ns, end_of(shape), shape->is_cumulative, &pieces);
    if (!code && may_be_few(&pieces, shape))
        code = put_few(reader, &pieces, shape, &is_put, out);
    if (!code && !is_put)
        code = put_many(reader, &pieces, shape, out);
    pieces_fini(&pieces);
    return code;
}
