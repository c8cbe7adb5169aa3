#include "summary/sketch_code.h"

#include <float.h>
#include <math.h>

#include "summary/bytes.h"
#include "summary/sketch_internal.h"
#include "text/buffer.h"
#include "text/error.h"

enum { SKETCH_VERSION = 1, FLAG_COLLAPSED = 1, FLAG_VALUES = 2 };

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_values(const struct wr_sketch *sketch, struct wr_buffer *out)
{
    wr_bytes_put_double(out, sketch->sum);
    wr_bytes_put_double(out, sketch->compensation);
    for (uint32_t i = 0; i < sketch->entries; i++) {
        wr_bytes_put_double(out, sketch->values[i]);
        wr_bytes_put_number(out, sketch->counts[i]);
    }
}

static void put_bins(const struct wr_sketch *sketch, struct wr_buffer *out)
{
    int32_t before = -WR_SKETCH_KEY_MAX;
    wr_bytes_put_double(out, sketch->min);
    wr_bytes_put_double(out, sketch->max);
    wr_bytes_put_double(out, sketch->sum);
    wr_bytes_put_double(out, sketch->compensation);
    for (uint32_t i = 0; i < sketch->entries; i++) {
        wr_bytes_put_number(out, (uint64_t)(sketch->keys[i] - before));
        wr_bytes_put_number(out, sketch->counts[i]);
        before = sketch->keys[i];
    }
}

void wr_sketch_encode(const struct wr_sketch *sketch, struct wr_buffer *out)
{
    bool has_values = sketch->entries && !sketch->is_binned;
    wr_bytes_put_number(out, SKETCH_VERSION);
    wr_bytes_put_number(out, has_values ? FLAG_VALUES : sketch->collapsed ? FLAG_COLLAPSED : 0);
    wr_bytes_put_number(out, sketch->entries);
    if (has_values)
        put_values(sketch, out);
    else if (sketch->entries)
        put_bins(sketch, out);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void get_sum(struct wr_sketch *sketch, struct wr_bytes *input)
{
    sketch->sum = wr_bytes_get_double(input);
    sketch->compensation = wr_bytes_get_double(input);
    if (isnan(sketch->sum) || !isfinite(sketch->compensation))
        wr_bytes_refuse(input, "the sum is not a number");
}

static void get_extremes(struct wr_sketch *sketch, struct wr_bytes *input)
{
    sketch->min = wr_bytes_get_double(input);
    sketch->max = wr_bytes_get_double(input);
    if (!isfinite(sketch->min) || !isfinite(sketch->max) || sketch->min > sketch->max)
        wr_bytes_refuse(input, "min and max are not finite, or not in this order");
}

static void get_count(struct wr_sketch *sketch, uint32_t entry, struct wr_bytes *input)
{
    uint64_t count = wr_bytes_get_number(input);
    if (!count || sketch->count + count < count)
        wr_bytes_refuse(input, "a count of 0, or counts beyond 64 bits");
    sketch->counts[entry] = count;
    sketch->count += count;
}

static void get_values(struct wr_sketch *sketch, struct wr_bytes *input)
{
    for (uint32_t i = 0; i < sketch->entries && !input->wrong; i++) {
        double value = wr_bytes_get_double(input);
        if (!isfinite(value) || (value == 0 && signbit(value)))
            wr_bytes_refuse(input, "a value that is not finite, or -0");
        if (i && value <= sketch->values[i - 1])
            wr_bytes_refuse(input, "the values do not ascend");
        sketch->values[i] = value;
        get_count(sketch, i, input);
    }
    sketch->min = sketch->values[0];
    sketch->max = sketch->values[sketch->entries - 1];
}

static void get_bins(struct wr_sketch *sketch, struct wr_bytes *input)
{
    int64_t key = -WR_SKETCH_KEY_MAX;
    const int32_t lowest = wr_sketch_key(DBL_TRUE_MIN);
    for (uint32_t i = 0; i < sketch->entries && !input->wrong; i++) {
        uint64_t distance = wr_bytes_get_number(input);
        if (distance > 2 * WR_SKETCH_KEY_MAX || (i && !distance))
            wr_bytes_refuse(input, "the keys do not ascend");
        key += (int64_t)(distance & UINT32_MAX);
        if (key > WR_SKETCH_KEY_MAX || (key && key < lowest && key > -lowest))
            wr_bytes_refuse(input, "a key that no value has");
        sketch->keys[i] = (int32_t)key;
        get_count(sketch, i, input);
    }
}

/* The lowest and the highest bin are those of the smallest and largest value. */
static void check_extremes(const struct wr_sketch *sketch, struct wr_bytes *input)
{
    int32_t first = wr_sketch_key(sketch->min), last = wr_sketch_key(sketch->max);
    bool fits = sketch->collapsed ? first <= sketch->keys[0] : first == sketch->keys[0];
    if (!fits || last != sketch->keys[sketch->entries - 1])
        wr_bytes_refuse(input, "min and max do not fit the bins");
}

/* Makes room for `entries` values or bins. */
static void make_room(struct wr_sketch *sketch, uint32_t entries, struct wr_bytes *input)
{
    uint32_t keys = sketch->is_binned ? entries : entries * WR_SKETCH_KEYS_OF_VALUE;
    if (!wr_sketch_reserve(sketch, keys, entries))
        wr_bytes_refuse(input, "out of memory");
    else
        sketch->entries = entries;
}

static bool are_flags(uint64_t flags, uint64_t entries)
{
    switch (flags) {
    case 0: return entries <= WR_SKETCH_BINS;
    case FLAG_COLLAPSED: return entries == WR_SKETCH_BINS;
    case FLAG_VALUES: return entries && entries <= WR_SKETCH_VALUES;
    default: return false;
    }
}

static void get_sketch(struct wr_sketch *sketch, struct wr_bytes *input)
{
    uint64_t version = wr_bytes_get_number(input);
    if (version != SKETCH_VERSION)
        wr_bytes_refuse(input, "its version is not 1");
    uint64_t flags = wr_bytes_get_number(input), entries = wr_bytes_get_number(input);
    if (!are_flags(flags, entries))
        wr_bytes_refuse(input, "unknown flags, or a wrong number of values or bins");
    if (input->wrong || !entries)
        return;
    sketch->is_binned = flags != FLAG_VALUES;
    sketch->collapsed = flags == FLAG_COLLAPSED;
    if (sketch->is_binned)
        get_extremes(sketch, input);
    get_sum(sketch, input);
    make_room(sketch, (uint32_t)entries, input);
    if (input->wrong)
        return;
    if (!sketch->is_binned) {
        get_values(sketch, input);
        return;
    }
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
