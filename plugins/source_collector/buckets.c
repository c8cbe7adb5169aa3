#include "buckets.h"

#include <math.h>
#include <stdlib.h>

#include "json_text.h"
#include "summary/sketch.h"
#include "text/buffer.h"

bool buckets_init(struct buckets *buckets, const struct buckets_shape *shape)
{
    *buckets = (struct buckets){.shape = *shape, .previous = NAN};
    buckets->all = calloc(shape->count, sizeof *buckets->all);
    if (shape->has_percentiles)
        buckets->sketches = calloc(shape->count, sizeof *buckets->sketches);
    return buckets->all && (buckets->sketches || !shape->has_percentiles);
}

void buckets_fini(struct buckets *buckets)
{
    for (size_t i = 0; buckets->sketches && i < buckets->shape.count; i++)
        wr_sketch_fini(&buckets->sketches[i]);
    free(buckets->sketches);
    free(buckets->all);
    *buckets = (struct buckets){0};
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Returns the bucket's number, or `count`: it is outside. */
static size_t index_of(const struct buckets_shape *shape, int64_t time_ns)
{
    if (time_ns < shape->start_ns)
        return shape->count;
    uint64_t index = ((uint64_t)time_ns - (uint64_t)shape->start_ns) / (uint64_t)shape->step_ns;
    return index < shape->count ? (size_t)index : shape->count;
}

static void set_last(struct bucket *bucket, double value, int64_t time_ns, int64_t rank)
{
    if (bucket->finite &&
        (time_ns < bucket->last_ns || (time_ns == bucket->last_ns && rank < bucket->last_rank)))
        return;
    bucket->last = value;
    bucket->last_ns = time_ns;
    bucket->last_rank = rank;
}

bool buckets_take_totals(const struct buckets *buckets, int64_t first_ns, int64_t last_ns, bool has_rise)
{
    const struct buckets_shape *shape = &buckets->shape;
    size_t index = index_of(shape, first_ns);
    if (shape->has_percentiles || (shape->is_cumulative && !has_rise) || index != index_of(shape, last_ns))
        return false;
    return index < shape->count || last_ns < shape->start_ns;
}

static void add_rise(struct buckets *buckets, struct bucket *bucket, double first, double rise, double last)
{
    if (bucket && !isnan(buckets->previous))
        bucket->increase += chunk_rise(buckets->previous, first);
    if (bucket)
        bucket->increase += rise;
    buckets->previous = last;
}

void buckets_add_totals(struct buckets *buckets, const struct chunk_totals *totals, int64_t first_ns,
                        int64_t last_ns, int64_t rank)
{
    size_t index = index_of(&buckets->shape, first_ns);
    struct bucket *bucket = index < buckets->shape.count ? &buckets->all[index] : NULL;
    if (totals->finite && buckets->shape.is_cumulative)
        add_rise(buckets, bucket, totals->first, totals->rise, totals->last);
    if (!bucket)
        return;
    bucket->count += totals->count;
    if (!totals->finite)
        return;
    set_last(bucket, totals->last, last_ns, rank);
    bucket->min = bucket->finite && bucket->min < totals->min ? bucket->min : totals->min;
    bucket->max = bucket->finite && bucket->max > totals->max ? bucket->max : totals->max;
    bucket->sum += totals->sum;
    bucket->finite += totals->finite;
}

static void add_value(struct bucket *bucket, double value, int64_t time_ns, int64_t rank)
{
    set_last(bucket, value, time_ns, rank);
    bucket->min = bucket->finite && bucket->min < value ? bucket->min : value;
    bucket->max = bucket->finite && bucket->max > value ? bucket->max : value;
    bucket->sum += value;
    bucket->finite++;
}

void buckets_add(struct buckets *buckets, const struct chunk_point *points, size_t count, int64_t rank)
{
    for (size_t i = 0; i < count; i++) {
        double value = chunk_value(&points[i]);
        size_t index = index_of(&buckets->shape, points[i].time_ns);
        struct bucket *bucket = index < buckets->shape.count ? &buckets->all[index] : NULL;
        if (bucket)
            bucket->count++;
        if (!isfinite(value))
            continue;
        if (buckets->shape.is_cumulative && (bucket || points[i].time_ns < buckets->shape.start_ns))
            add_rise(buckets, bucket, value, 0, value);
        if (bucket)
            add_value(bucket, value, points[i].time_ns, rank);
        if (bucket && buckets->sketches)
            buckets->has_failed |= wr_sketch_add(&buckets->sketches[index], value) == WR_SKETCH_NO_MEMORY;
    }
}

/* ---- As JSON --------------------------------------------------------------------------------- */

static void put(struct wr_buffer *out, const char *name, double value)
{
    json_text_put_name(out, name);
    json_text_put_double(out, value);
}

static void put_members(struct wr_buffer *out, const struct bucket *bucket)
{
    double finite = (double)bucket->finite;
    json_text_put_name(out, "count");
    json_text_put_int(out, (int64_t)bucket->count);
    if (bucket->finite != bucket->count) {
        json_text_put_name(out, "finite");
        json_text_put_int(out, (int64_t)bucket->finite);
    }
    put(out, "sum", bucket->sum);
    put(out, "min", bucket->finite ? bucket->min : NAN);
    put(out, "max", bucket->finite ? bucket->max : NAN);
    put(out, "mean", bucket->finite ? bucket->sum / finite : NAN);
    put(out, "last", bucket->finite ? bucket->last : NAN);
}

static void put_increase(const struct buckets *buckets, const struct bucket *bucket, struct wr_buffer *out)
{
    if (buckets->shape.has_increase)
        put(out, "increase", buckets->shape.is_cumulative ? bucket->increase : bucket->sum);
}

void buckets_put(const struct buckets *buckets, size_t index, struct wr_buffer *out)
{
    const struct bucket *bucket = &buckets->all[index];
    const struct wr_sketch *sketch = buckets->sketches ? &buckets->sketches[index] : NULL;
    wr_buffer_put_text(out, "{\"t\":");
    json_text_put_time(out, buckets->shape.start_ns + (int64_t)index * buckets->shape.step_ns);
    put_members(out, bucket);
    if (sketch) {
        put(out, "p50", sketch->count ? wr_sketch_quantile(sketch, 0.5) : NAN);
        put(out, "p99", sketch->count ? wr_sketch_quantile(sketch, 0.99) : NAN);
    }
    put_increase(buckets, bucket, out);
    wr_buffer_put_char(out, '}');
}

void buckets_put_point(struct buckets *buckets, const struct chunk_point *point, struct wr_buffer *out)
{
    static const char *const names[] = {"sum", "min", "max", "mean", "last", "p50", "p99"};
    size_t count = sizeof names / sizeof *names - (buckets->sketches ? 0 : 2);
    double value = chunk_value(point);
    struct bucket bucket = {.sum = isfinite(value) ? value : 0};
    if (isfinite(value) && buckets->shape.is_cumulative)
        add_rise(buckets, &bucket, value, 0, value);
    wr_buffer_put_text(out, "{\"t\":");
    json_text_put_time(out, point->time_ns);
    wr_buffer_put_text(out, ",\"count\":1");
    for (size_t i = 0; i < count; i++) {
        json_text_put_name(out, names[i]);
        json_text_put_point(out, point);
    }
    put_increase(buckets, &bucket, out);
    wr_buffer_put_char(out, '}');
}
