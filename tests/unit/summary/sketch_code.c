#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/failing.h"
#include "summary/bytes.h"
#include "summary/sketch_code.h"
#include "text/buffer.h"
#include "text/error.h"

static void check_round_trip(const struct wr_sketch *sketch)
{
    struct wr_error error;
    struct wr_sketch back = {0};
    struct wr_buffer first = {0}, second = {0};
    wr_sketch_encode(sketch, &first);
    cr_assert(!first.failed && first.length <= WR_SKETCH_CODE_MAX);
    cr_assert(wr_sketch_decode(&back, first.data, first.length, &error), "%s", error.text);
    wr_sketch_encode(&back, &second);
    cr_assert(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    cr_assert(back.count == sketch->count && back.collapsed == sketch->collapsed);
    cr_assert(back.is_binned == sketch->is_binned &&
              (!back.count || (back.min == sketch->min && back.max == sketch->max)));
    cr_assert_eq(wr_sketch_sum(&back), wr_sketch_sum(sketch));
    for (double q = 0; back.count && q <= 1; q += 0.125)
        cr_assert_eq(wr_sketch_quantile(&back, q), wr_sketch_quantile(sketch, q));
    if (back.count)
        cr_assert_eq(wr_sketch_add(&back, back.min), WR_SKETCH_OK);
    wr_sketch_fini(&back);
    wr_buffer_fini(&first);
    wr_buffer_fini(&second);
}

Test(sketch_code, sketches_of_all_sizes_survive_a_round_trip)
{
    struct wr_sketch sketch = {0};
    check_round_trip(&sketch);
    for (int i = 0; i < 5000; i++) {
        wr_sketch_add(&sketch, i == 0 ? 0 : exp(i % 1400 - 700) * (i % 3 ? 1 : -1));
        if (i < 5 || i % 500 == 0 || (i >= WR_SKETCH_VALUES - 2 && i <= WR_SKETCH_VALUES + 1))
            check_round_trip(&sketch);
        cr_assert_eq(sketch.is_binned, i >= WR_SKETCH_VALUES);
    }
    for (int i = 0; i < 3000; i++)
        wr_sketch_add(&sketch, pow(1.03, i));
    cr_assert(sketch.collapsed);
    check_round_trip(&sketch);
    wr_sketch_fini(&sketch);
}

Test(sketch_code, the_largest_counts_survive_a_round_trip)
{
    struct wr_sketch sketch = {0};
    wr_sketch_add(&sketch, 1);
    for (int i = 0; i < 63; i++)
        cr_assert(wr_sketch_merge(&sketch, &sketch));
    cr_assert_eq(sketch.count, UINT64_C(1) << 63);
    check_round_trip(&sketch);
    wr_sketch_fini(&sketch);
}

static void check_recorded(const struct wr_sketch *sketch, const unsigned char *expected, size_t length)
{
    struct wr_buffer out = {0};
    wr_sketch_encode(sketch, &out);
    cr_assert_eq(out.length, length);
    cr_assert_eq(memcmp(out.data, expected, length), 0);
    wr_buffer_fini(&out);
}

Test(sketch_code, version_1_of_values_is_recorded)
{
    struct wr_sketch sketch = {0};
    const unsigned char expected[] = {1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0,    0,    0, 0,
                                      0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,    0, 0, 0, 0, 0xf0, 0x3f, 2};
    wr_sketch_add(&sketch, 1);
    wr_sketch_add(&sketch, 0);
    wr_sketch_add(&sketch, 1);
    check_recorded(&sketch, expected, sizeof expected);
    wr_sketch_fini(&sketch);
    check_recorded(&sketch, (const unsigned char[]){1, 0, 0}, 3);
}

/* As earlier versions of the library made them of few values, too. */
static const unsigned char bins[] = {1, 0, 2,    0,    0, 0,    0,    0, 0, 0,    0,    0,    0, 0, 0,
                                     0, 0, 0xf0, 0x3f, 0, 0,    0,    0, 0, 0,    0x00, 0x40, 0, 0, 0,
                                     0, 0, 0,    0,    0, 0xc8, 0xd9, 4, 1, 0xd4, 0xa9, 2,    2};

Test(sketch_code, version_1_of_bins_is_recorded)
{
    struct wr_sketch sketch = {0}, more = {0};
    cr_assert(wr_sketch_decode(&sketch, bins, sizeof bins, NULL));
    cr_assert(sketch.is_binned && sketch.count == 3 && sketch.max == 1 && wr_sketch_sum(&sketch) == 2);
    check_recorded(&sketch, bins, sizeof bins);
    wr_sketch_add(&more, 1);
    cr_assert(wr_sketch_merge(&more, &sketch) && more.is_binned && more.count == 4 && more.entries == 2);
    check_round_trip(&more);
    wr_sketch_fini(&more);
    wr_sketch_fini(&sketch);
}

/* The sketch of two values, which the tests below damage: as such, or as bins. */
static struct wr_buffer make_code(bool is_binned)
{
    struct wr_sketch sketch = {.is_binned = is_binned}, values = {0};
    struct wr_buffer out = {0};
    wr_sketch_add(&values, 1);
    wr_sketch_add(&values, 1000);
    cr_assert(wr_sketch_merge(&sketch, &values));
    wr_sketch_encode(&sketch, &out);
    wr_sketch_fini(&values);
    wr_sketch_fini(&sketch);
    return out;
}

static void check_refused(const void *bytes, size_t length, const char *words)
{
    struct wr_error error = {0};
    struct wr_sketch sketch = {0};
    cr_assert_not(wr_sketch_decode(&sketch, bytes, length, &error));
    cr_assert(strstr(error.text, words), "%s", error.text);
    cr_assert(sketch.count == 0 && !sketch.keys && !sketch.counts);
}

Test(sketch_code, a_text_that_is_cut_or_too_long_is_refused)
{
    for (int is_binned = 0; is_binned < 2; is_binned++) {
        struct wr_buffer code = make_code(is_binned);
        for (size_t length = 0; length < code.length; length++)
            check_refused(code.data, length, "sketch, byte");
        wr_buffer_put_char(&code, 0);
        check_refused(code.data, code.length, "more bytes follow");
        wr_buffer_fini(&code);
    }
}

struct damage {
    size_t at;
    unsigned char byte;
    const char *words;
};

static void check_damages(bool is_binned, const struct damage *damages, size_t count)
{
    struct wr_buffer code = make_code(is_binned);
    unsigned char *bytes = (unsigned char *)code.data;
    for (size_t i = 0; i < count; i++) {
        unsigned char before = bytes[damages[i].at];
        bytes[damages[i].at] = damages[i].byte;
        check_refused(bytes, code.length, damages[i].words);
        bytes[damages[i].at] = before;
    }
    wr_buffer_fini(&code);
}

Test(sketch_code, hostile_bytes_are_refused)
{
    static const struct damage value_damages[] = {
        {0, 2, "its version is not 1"}, {1, 0, "not in this order"}, {1, 1, "unknown flags"},
        {1, 3, "unknown flags"},        {1, 4, "unknown flags"},     {2, 0, "a wrong number of values"},
        {2, 1, "more bytes follow"},    {2, 3, "it ends too early"}, {27, 0, "a count of 0"},
        {36, 0, "a count of 0"},
    };
    static const struct damage bin_damages[] = {
        {0, 2, "its version is not 1"},  {1, 1, "unknown flags"},           {1, 2, "a count of 0"},
        {1, 3, "unknown flags"},         {2, 3, "it ends too early"},       {10, 0x7f, "not finite"},
        {18, 0xc0, "not in this order"}, {35, 0x81, "do not fit the bins"}, {38, 0, "a count of 0"},
    };
    check_damages(false, value_damages, sizeof value_damages / sizeof *value_damages);
    check_damages(true, bin_damages, sizeof bin_damages / sizeof *bin_damages);
    const unsigned char long_number[] = {0x81, 0x00},
                        huge_number[] = {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
                        many_bins[] = {1, 0, 0x81, 0x10}, many_values[] = {1, 2, 0x81, 0x02};
    check_refused(long_number, sizeof long_number, "more bytes than it needs");
    check_refused(huge_number, sizeof huge_number, "beyond 64 bits");
    check_refused(many_bins, sizeof many_bins, "a wrong number of values or bins");
    check_refused(many_values, sizeof many_values, "a wrong number of values or bins");
}

Test(sketch_code, values_that_adding_cannot_make_are_refused)
{
    static const struct {
        double sum, compensation, values[2];
        uint64_t counts[2];
        const char *words; /* NULL: it is read */
    } cases[] = {
        {0, 0, {-1, 1}, {1, UINT64_MAX - 1}, NULL},
        {INFINITY, 0, {-DBL_MAX, DBL_TRUE_MIN}, {1, 1}, NULL},
        {NAN, 0, {-1, 1}, {1, 1}, "the sum is not a number"},
        {0, INFINITY, {-1, 1}, {1, 1}, "the sum is not a number"},
        {0, 0, {1, 1}, {1, 1}, "the values do not ascend"},
        {0, 0, {1, -1}, {1, 1}, "the values do not ascend"},
        {0, 0, {-1, -0.0}, {1, 1}, "not finite, or -0"},
        {0, 0, {-0.0, 0}, {1, 1}, "not finite, or -0"},
        {0, 0, {-INFINITY, 1}, {1, 1}, "not finite, or -0"},
        {0, 0, {1, INFINITY}, {1, 1}, "not finite, or -0"},
        {0, 0, {NAN, 1}, {1, 1}, "not finite, or -0"},
        {0, 0, {1, NAN}, {1, 1}, "not finite, or -0"},
        {0, 0, {-1, 1}, {0, 1}, "a count of 0"},
        {0, 0, {-1, 1}, {1, 0}, "a count of 0"},
        {0, 0, {-1, 1}, {1, UINT64_MAX}, "counts beyond 64 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wr_buffer code = {0};
        struct wr_sketch sketch = {0};
        wr_buffer_put(&code, "\1\2\2", 3);
        wr_bytes_put_double(&code, cases[i].sum);
        wr_bytes_put_double(&code, cases[i].compensation);
        for (size_t value = 0; value < 2; value++) {
            wr_bytes_put_double(&code, cases[i].values[value]);
            wr_bytes_put_number(&code, cases[i].counts[value]);
        }
        if (cases[i].words) {
            check_refused(code.data, code.length, cases[i].words);
        } else {
            cr_assert(wr_sketch_decode(&sketch, code.data, code.length, NULL));
            check_round_trip(&sketch);
        }
        wr_sketch_fini(&sketch);
        wr_buffer_fini(&code);
    }
}

Test(sketch_code, each_single_damaged_byte_is_refused_or_read_as_a_sound_sketch)
{
    for (int is_binned = 0; is_binned < 2; is_binned++) {
        struct wr_buffer code = make_code(is_binned);
        for (size_t at = 0; at < code.length; at++)
            for (int flip = 1; flip < 256; flip++) {
                struct wr_sketch sketch = {0};
                code.data[at] = (char)(code.data[at] ^ flip);
                if (wr_sketch_decode(&sketch, code.data, code.length, NULL))
                    check_round_trip(&sketch);
                wr_sketch_fini(&sketch);
                code.data[at] = (char)(code.data[at] ^ flip);
            }
        wr_buffer_fini(&code);
    }
}

Test(sketch_code, without_memory_nothing_is_read)
{
    for (int is_binned = 0; is_binned < 2; is_binned++) {
        struct wr_buffer code = make_code(is_binned);
        for (unsigned succeed = 0; succeed < 2; succeed++) {
            failing_after(succeed);
            check_refused(code.data, code.length, "out of memory");
            failing_set(false);
        }
        wr_buffer_fini(&code);
    }
}
