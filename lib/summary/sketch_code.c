#include "summary/sketch_code.h"

#include <float.h>
#include <math.h>

#include "summary/bytes.h"
#include "summary/sketch_internal.h"
#include "text/array.h"
#include "text/buffer.h"
#include "text/error.h"

enum { SKETCH_VERSION = 1, FLAG_COLLAPSED = 1 };

/* ---- Writing --------------------------------------------------------------------------------- */

void wr_sketch_encode(const struct wr_sketch *sketch, struct wr_buffer *out)
{
    int32_t before = -WR_SKETCH_KEY_MAX;
    wr_bytes_put_number(out, SKETCH_VERSION);
    wr_bytes_put_number(out, sketch->collapsed ? FLAG_COLLAPSED : 0);
    wr_bytes_put_number(out, sketch->bins);
    if (!sketch->bins)
        return;
    wr_bytes_put_double(out, sketch->min);
    wr_bytes_put_double(out, sketch->max);
    wr_bytes_put_double(out, sketch->sum);
    wr_bytes_put_double(out, sketch->compensation);
    for (uint32_t i = 0; i < sketch->bins; i++) {
        wr_bytes_put_number(out, (uint64_t)(sketch->keys[i] - before));
        wr_bytes_put_number(out, sketch->counts[i]);
        before = sketch->keys[i];
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void get_head(struct wr_sketch *sketch, struct wr_bytes *input)
{
    sketch->min = wr_bytes_get_double(input);
    sketch->max = wr_bytes_get_double(input);
    sketch->sum = wr_bytes_get_double(input);
    sketch->compensation = wr_bytes_get_double(input);
    if (!isfinite(sketch->min) || !isfinite(sketch->max) || sketch->min > sketch->max)
        wr_bytes_refuse(input, "min and max are not finite, or not in this order");
    if (isnan(sketch->sum) || !isfinite(sketch->compensation))
        wr_bytes_refuse(input, "the sum is not a number");
}

static void get_bins(struct wr_sketch *sketch, struct wr_bytes *input)
{
    int64_t key = -WR_SKETCH_KEY_MAX;
    const int32_t lowest = wr_sketch_key(DBL_TRUE_MIN);
    for (uint32_t i = 0; i < sketch->bins && !input->wrong; i++) {
        uint64_t distance = wr_bytes_get_number(input), count = wr_bytes_get_number(input);
        if (distance > 2 * WR_SKETCH_KEY_MAX || (i && !distance))
            wr_bytes_refuse(input, "the keys do not ascend");
        key += (int64_t)(distance & UINT32_MAX);
        if (key > WR_SKETCH_KEY_MAX || (key && key < lowest && key > -lowest))
            wr_bytes_refuse(input, "a key that no value has");
        if (!count || sketch->count + count < count)
            wr_bytes_refuse(input, "a count of 0, or counts beyond 64 bits");
        sketch->keys[i] = (int32_t)key;
        sketch->counts[i] = count;
        sketch->count += count;
    }
}

/* The lowest and the highest bin are those of the smallest and largest value. */
static void check_extremes(const struct wr_sketch *sketch, struct wr_bytes *input)
{
    int32_t first = wr_sketch_key(sketch->min), last = wr_sketch_key(sketch->max);
    bool fits = sketch->collapsed ? first <= sketch->keys[0] : first == sketch->keys[0];
    if (!fits || last != sketch->keys[sketch->bins - 1])
        wr_bytes_refuse(input, "min and max do not fit the bins");
}

static void get_sketch(struct wr_sketch *sketch, struct wr_bytes *input)
{
    uint64_t version = wr_bytes_get_number(input);
    if (version != SKETCH_VERSION)
        wr_bytes_refuse(input, "its version is not 1");
    uint64_t flags = wr_bytes_get_number(input), bins = wr_bytes_get_number(input);
    if (bins > WR_SKETCH_BINS || flags > FLAG_COLLAPSED || (flags && bins != WR_SKETCH_BINS))
        wr_bytes_refuse(input, "unknown flags, or too many bins");
    if (input->wrong || !bins)
        return;
    sketch->collapsed = flags;
    get_head(sketch, input);
    void *keys = wr_array_reserve(NULL, &sketch->keys_room, (uint32_t)bins, sizeof *sketch->keys);
    void *counts = wr_array_reserve(NULL, &sketch->counts_room, (uint32_t)bins, sizeof *sketch->counts);
    sketch->keys = keys;
    sketch->counts = counts;
    if (!keys || !counts) {
        wr_bytes_refuse(input, "out of memory");
        return;
    }
    sketch->bins = (uint32_t)bins;
    get_bins(sketch, input);
    if (!input->wrong)
        check_extremes(sketch, input);
}

bool wr_sketch_decode(struct wr_sketch *sketch, const void *bytes, size_t length, struct wr_error *error)
{
    const unsigned char *begin = bytes;
    struct wr_bytes input = {begin, begin + length, NULL};
    get_sketch(sketch, &input);
    if (!input.wrong && input.at != input.end)
        wr_bytes_refuse(&input, "more bytes follow");
    if (!input.wrong)
        return true;
    wr_error_set(error, WEIR_ERR_ARGUMENT, "sketch, byte %zu: %s", (size_t)(input.at - begin), input.wrong);
    wr_sketch_fini(sketch);
    return false;
}
