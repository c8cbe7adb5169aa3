#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/failing.h"
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
        if (i < 5 || i % 500 == 0)
            check_round_trip(&sketch);
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

Test(sketch_code, version_1_is_recorded)
{
    struct wr_sketch sketch = {0};
    struct wr_buffer out = {0};
    const unsigned char expected[] = {1, 0, 2,    0,    0, 0,    0,    0, 0, 0,    0,    0,    0, 0, 0,
                                      0, 0, 0xf0, 0x3f, 0, 0,    0,    0, 0, 0,    0x00, 0x40, 0, 0, 0,
                                      0, 0, 0,    0,    0, 0xc8, 0xd9, 4, 1, 0xd4, 0xa9, 2,    2};
    wr_sketch_add(&sketch, 1);
    wr_sketch_add(&sketch, 0);
    wr_sketch_add(&sketch, 1);
    wr_sketch_encode(&sketch, &out);
    cr_assert_eq(out.length, sizeof expected);
    cr_assert_eq(memcmp(out.data, expected, sizeof expected), 0);
    wr_sketch_fini(&sketch);
    wr_buffer_fini(&out);
}

/* The sketch of two values, which the tests below damage. */
static struct wr_buffer make_code(void)
{
    struct wr_sketch sketch = {0};
    struct wr_buffer out = {0};
    wr_sketch_add(&sketch, 1);
    wr_sketch_add(&sketch, 1000);
    wr_sketch_encode(&sketch, &out);
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
    struct wr_buffer code = make_code();
    for (size_t length = 0; length < code.length; length++)
        check_refused(code.data, length, "sketch, byte");
    wr_buffer_put_char(&code, 0);
    check_refused(code.data, code.length, "more bytes follow");
    wr_buffer_fini(&code);
}

Test(sketch_code, hostile_bytes_are_refused)
{
    struct wr_buffer code = make_code();
    unsigned char *bytes = (unsigned char *)code.data;
    const struct {
        size_t at;
        unsigned char byte;
        const char *words;
    } cases[] = {
        {0, 2, "its version is not 1"},
        {1, 1, "unknown flags"},
        {1, 2, "unknown flags"},
        {2, 3, "it ends too early"},
        {10, 0x7f, "not finite"},
        {18, 0xc0, "not in this order"},
        {26, 0x7f, ""},
        {35, 0x81, "do not fit the bins"},
        {38, 0, "a count of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char before = bytes[cases[i].at];
        bytes[cases[i].at] = cases[i].byte;
        if (*cases[i].words)
            check_refused(bytes, code.length, cases[i].words);
        bytes[cases[i].at] = before;
    }
    const unsigned char long_number[] = {0x81, 0x00},
                        huge_number[] = {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
                        many[] = {1, 0, 0x81, 0x10};
    check_refused(long_number, sizeof long_number, "more bytes than it needs");
    check_refused(huge_number, sizeof huge_number, "beyond 64 bits");
    check_refused(many, sizeof many, "too many bins");
    wr_buffer_fini(&code);
}

Test(sketch_code, each_single_damaged_byte_is_refused_or_read_as_a_sound_sketch)
{
    struct wr_buffer code = make_code();
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

Test(sketch_code, without_memory_nothing_is_read)
{
    struct wr_buffer code = make_code();
    for (unsigned succeed = 0; succeed < 2; succeed++) {
        failing_after(succeed);
        check_refused(code.data, code.length, "out of memory");
        failing_set(false);
    }
    wr_buffer_fini(&code);
}
