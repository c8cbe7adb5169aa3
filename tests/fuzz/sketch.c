/* Sketches: bytes are refused or read as a sketch, which is then written as the same bytes, whose quantiles
 * ascend within min and max, and which can be added to and merged. The bytes are also added as values: the
 * sketch that results is within its bounds, survives a round trip, and is what merging its halves makes; as
 * long as it is exact, the values are those of their ranks. */

#include "summary/sketch_code.h"
#include "text/buffer.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

static void check_sketch(const struct wr_sketch *sketch)
{
    double before = sketch->min;
    FUZZ_CHECK(sketch->entries <= WR_SKETCH_BINS && sketch->min <= sketch->max);
    FUZZ_CHECK(sketch->is_binned || sketch->entries <= WR_SKETCH_VALUES);
    for (double q = 0; q <= 1; q += 0.0625) {
        double value = wr_sketch_quantile(sketch, q);
        FUZZ_CHECK(value >= before && value <= sketch->max);
        before = value;
    }
}

static void check_code(const uint8_t *data, size_t size)
{
    struct wr_sketch sketch = {0}, copy = {0};
    struct wr_buffer out = {0};
    if (!wr_sketch_decode(&sketch, data, size, NULL))
        return;
    wr_sketch_encode(&sketch, &out);
    FUZZ_CHECK(out.length == size && memcmp(out.data, data, size) == 0);
    if (sketch.count) {
        check_sketch(&sketch);
        FUZZ_CHECK(wr_sketch_add(&sketch, sketch.max) == WR_SKETCH_OK);
        FUZZ_CHECK(wr_sketch_merge(&copy, &sketch) && copy.count == sketch.count);
        check_sketch(&copy);
    }
    wr_sketch_fini(&sketch);
    wr_sketch_fini(&copy);
    wr_buffer_fini(&out);
}

static int compare(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* values: `count` of them, which are sorted. */
static void check_ranks(const struct wr_sketch *sketch, double *values)
{
    qsort(values, sketch->count, sizeof *values, compare);
    FUZZ_CHECK(sketch->min == values[0] && sketch->max == values[sketch->count - 1]);
    for (uint64_t rank = 1; rank <= sketch->count && !sketch->is_binned; rank++)
        FUZZ_CHECK(wr_sketch_at_rank(sketch, rank) == values[rank - 1]);
}

static void check_equal(const struct wr_sketch *a, const struct wr_sketch *b)
{
    size_t size = a->is_binned ? sizeof *a->keys : sizeof *a->values;
    FUZZ_CHECK(a->count == b->count && a->entries == b->entries);
    FUZZ_CHECK(a->is_binned == b->is_binned && a->collapsed == b->collapsed);
    FUZZ_CHECK(!a->count || memcmp(a->keys, b->keys, a->entries * size) == 0);
    FUZZ_CHECK(!a->count || memcmp(a->counts, b->counts, a->entries * sizeof *a->counts) == 0);
}

static void check_merging(const struct wr_sketch *all, const struct wr_sketch halves[2])
{
    for (int first = 0; first < 2; first++) {
        struct wr_sketch merged = {0};
        FUZZ_CHECK(wr_sketch_merge(&merged, &halves[first]) && wr_sketch_merge(&merged, &halves[!first]));
        check_equal(&merged, all);
        wr_sketch_fini(&merged);
    }
}

static void check_values(const uint8_t *data, size_t size)
{
    struct wr_sketch sketch = {0}, halves[2] = {{0}};
    struct wr_buffer out = {0};
    size_t most = size / sizeof(double), count = 0;
    double *values = malloc((most + 1) * sizeof *values), value;
    for (size_t i = 0; values && i < most; i++) {
        memcpy(&value, data + i * sizeof value, sizeof value);
        if (wr_sketch_add(&sketch, value) != WR_SKETCH_OK) {
            FUZZ_CHECK(!isfinite(value));
            continue;
        }
        FUZZ_CHECK(wr_sketch_add(&halves[i >= most / 2], value) == WR_SKETCH_OK);
        values[count++] = value;
    }
    FUZZ_CHECK(sketch.count == count);
    if (count) {
        check_ranks(&sketch, values);
        check_sketch(&sketch);
    }
    check_merging(&sketch, halves);
    wr_sketch_encode(&sketch, &out);
    FUZZ_CHECK(out.length <= WR_SKETCH_CODE_MAX);
    check_code((const uint8_t *)out.data, out.length);
    free(values);
    wr_sketch_fini(&sketch);
    wr_sketch_fini(&halves[0]);
    wr_sketch_fini(&halves[1]);
    wr_buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_code(data, size);
    check_values(data, size);
    return 0;
}
