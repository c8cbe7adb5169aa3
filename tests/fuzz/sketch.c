/* Sketches: bytes are refused or read as a sketch, which is then written as the same bytes, whose quantiles
 * ascend within min and max, and which can be added to and merged. The bytes are also added as values: the
 * sketch that results is within its bounds and survives a round trip. */

#include "summary/sketch_code.h"
#include "text/buffer.h"
#include "fuzz.h"

#include <math.h>

static void check_sketch(const struct wr_sketch *sketch)
{
    double before = sketch->min;
    FUZZ_CHECK(sketch->bins <= WR_SKETCH_BINS && sketch->min <= sketch->max);
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

static void check_values(const uint8_t *data, size_t size)
{
    struct wr_sketch sketch = {0};
    struct wr_buffer out = {0};
    double value, min = INFINITY, max = -INFINITY;
    uint64_t count = 0;
    for (; size >= sizeof value; data += sizeof value, size -= sizeof value) {
        memcpy(&value, data, sizeof value);
        if (wr_sketch_add(&sketch, value) != WR_SKETCH_OK) {
            FUZZ_CHECK(!isfinite(value));
            continue;
        }
        count++;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    FUZZ_CHECK(sketch.count == count);
    if (count) {
        FUZZ_CHECK(sketch.min == min && sketch.max == max);
        check_sketch(&sketch);
    }
    wr_sketch_encode(&sketch, &out);
    FUZZ_CHECK(out.length <= WR_SKETCH_CODE_MAX);
    check_code((const uint8_t *)out.data, out.length);
    wr_sketch_fini(&sketch);
    wr_buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_code(data, size);
    check_values(data, size);
    return 0;
}
