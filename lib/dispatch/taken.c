#include "dispatch/taken.h"

#include <weir/types.h>

#include "text/buffer.h"

size_t wr_taken_write_summary(struct wr_taken *taken, const struct wr_summary *summary)
{
    struct wr_buffer scratch = {.data = taken->bytes, .room = sizeof taken->bytes, .fixed = true};
    return wr_summary_write(summary, &scratch, taken->text);
}

/* Sets the shares to what is known of the values of a histogram: the smallest, the largest, and of each other
 * one its bucket, so that it is taken for the bound of that. */
static void share_out(struct wr_taken *taken, const struct wr_cell_taken *from)
{
    uint64_t smallest = from->values > 1, left = from->values - 1 - smallest;
    struct wr_taken_share *shares = taken->shares;
    size_t count = 0;
    shares[count++] = (struct wr_taken_share){from->max, 1};
    if (smallest)
        shares[count++] = (struct wr_taken_share){from->min, smallest};
    for (size_t i = 0; left; i++) {
        uint64_t values = from->buckets[i] - (from->buckets[i] ? smallest : 0);
        smallest = from->buckets[i] ? 0 : smallest;
        values = values < left ? values : left; /* the largest one is in the last bucket */
        double bound = i + 1 < from->bucket_count ? from->bounds[i] : from->max;
        bound = bound < from->min ? from->min : bound;
        bound = bound > from->max ? from->max : bound;
        if (values)
            shares[count++] = (struct wr_taken_share){bound, values};
        left -= values;
    }
    taken->share_count = count;
}

static bool add_shares(struct wr_taken *taken)
{
    for (size_t i = 0; i < taken->share_count; i++)
        if (wr_sketch_add_many(&taken->sketch, taken->shares[i].value, taken->shares[i].count) != WR_SKETCH_OK)
            return false;
    return true;
}

/* The smallest and the largest value of a counter's increments are not known. */
bool wr_taken_summarise(struct wr_taken *taken, const struct wr_cell_taken *from, int64_t time_ns,
                        struct wr_summary *summary)
{
    *summary = (struct wr_summary){
        .kind = from->buckets ? WEIR_HISTOGRAM : WEIR_COUNTER,
        .start_ns = time_ns,
        .end_ns = time_ns,
        .since_ns = time_ns,
        .count = from->values,
        .sum = from->sum,
        .last = from->buckets ? from->max : from->sum / (double)from->values,
        .total_count = from->values,
        .total_sum = from->sum,
        .bucket_count = from->bucket_count,
        .bounds_check = from->bounds_check,
        .buckets = from->buckets,
        .total_buckets = from->buckets,
    };
    taken->share_count = 0;
    if (from->buckets)
        share_out(taken, from);
    bool is_sketched = add_shares(taken);
    if (is_sketched)
        summary->sketch = taken->sketch;
    else
        wr_sketch_clear(&taken->sketch);
    return is_sketched;
}

size_t wr_taken_write(struct wr_taken *taken, const struct wr_cell_taken *from, int64_t time_ns)
{
    struct wr_summary summary;
    if (!wr_taken_summarise(taken, from, time_ns, &summary))
        return 0;
    size_t length = wr_taken_write_summary(taken, &summary);
    wr_sketch_clear(&taken->sketch);
    return length;
}
