/* The packed points of the handler store: what comes out is what went in, whatever the values. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "../../../plugins/store/chunk.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 11 ^ state << 20;
}

static void check(const struct chunk_point *points, size_t count)
{
    static struct chunk_point read[CHUNK_POINTS];
    static uint8_t bytes[CHUNK_BYTES_MOST];
    cr_assert_eq(chunk_fit(points, count), count);
    size_t length = chunk_pack(points, count, bytes);
    cr_assert_leq(length, sizeof bytes);
    cr_assert_eq(chunk_unpack(bytes, length, read), count);
    for (size_t i = 0; i < count; i++) {
        double expected = chunk_value(&points[i]), found = chunk_value(&read[i]);
        cr_assert_eq(read[i].time_ns, points[i].time_ns);
        cr_assert(memcmp(&expected, &found, sizeof found) == 0, "%zu: %g is not %g", i, found, expected);
        if (read[i].is_int)
            cr_assert_eq(read[i].value.i64, points[i].value.i64);
    }
    for (size_t cut = 0; cut < length; cut += 1 + length / 50)
        cr_assert_eq(chunk_unpack(bytes, cut, read), 0, "a part is no chunk");
}

static struct chunk_point number(int64_t time_ns, double value)
{
    return (struct chunk_point){.time_ns = time_ns, .value.f64 = value};
}

static struct chunk_point integer(int64_t time_ns, int64_t value)
{
    return (struct chunk_point){.time_ns = time_ns, .is_int = true, .value.i64 = value};
}

Test(chunk, one_point_of_each_kind)
{
    const double doubles[] = {0, -0.0, 1, 0.1, NAN, -NAN, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308};
    const int64_t ints[] = {0, 1, -1, INT64_MAX, INT64_MIN}, times[] = {0, 1, INT64_MAX, INT64_MIN};
    for (size_t t = 0; t < 4; t++) {
        for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
            check((const struct chunk_point[]){number(times[t], doubles[i])}, 1);
        for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
            check((const struct chunk_point[]){integer(times[t], ints[i])}, 1);
    }
}

Test(chunk, extreme_times_and_numbers_beside_each_other)
{
    check((const struct chunk_point[]){number(INT64_MIN, 1), number(INT64_MAX, 2)}, 2);
    check((const struct chunk_point[]){integer(-5, INT64_MIN), integer(-5, INT64_MAX), integer(7, INT64_MIN)},
          3);
    check((const struct chunk_point[]){number(0, INFINITY), number(0, NAN), number(0, -0.0), number(9, 5e-324)},
          4);
}

Test(chunk, random_walks_of_all_lengths)
{
    static struct chunk_point points[CHUNK_POINTS];
    for (size_t count = 1; count <= CHUNK_POINTS; count += 1 + count / 3) {
        for (int what = 0; what < 4; what++) {
            int64_t time_ns = (int64_t)draw();
            for (size_t i = 0; i < count; i++) {
                time_ns +=
                    time_ns < INT64_MAX / 2 ? (int64_t)(draw() % 3 * 1000 * (what & 1 ? 1 : draw() % 1000)) : 0;
                uint64_t bits = draw();
                points[i] = what < 2 ? number(time_ns, 0) : integer(time_ns, (int64_t)(bits >> bits % 64));
                if (what < 2)
                    memcpy(&points[i].value, &bits, sizeof bits);
            }
            check(points, count);
        }
    }
}

Test(chunk, ints_and_doubles_share_a_chunk_if_nothing_is_lost)
{
    const int64_t exact = INT64_C(1) << 53;
    check((const struct chunk_point[]){integer(1, exact), number(2, 0.5), integer(3, -exact)}, 3);
    const struct chunk_point wide[] = {integer(1, 1), number(2, 0.5), integer(3, exact + 1), integer(4, 2)};
    cr_assert_eq(chunk_fit(wide, 4), 2);
    cr_assert_eq(chunk_fit(wide + 2, 2), 2);
    const struct chunk_point later[] = {integer(1, exact + 1), number(2, 0.5)};
    cr_assert_eq(chunk_fit(later, 2), 1);
}

Test(chunk, regular_times_and_repeated_values_take_little_room)
{
    static struct chunk_point points[CHUNK_POINTS];
    static uint8_t bytes[CHUNK_BYTES_MOST];
    for (size_t i = 0; i < CHUNK_POINTS; i++)
        points[i] = number(INT64_C(1700000000000000000) + (int64_t)i * 1000000000, 49.5);
    cr_assert_lt(chunk_pack(points, CHUNK_POINTS, bytes), 3 * CHUNK_POINTS);
}

Test(chunk, totals_are_of_finite_values)
{
    struct chunk_totals totals = {.min = NAN, .max = NAN, .last = NAN};
    const double values[] = {3, NAN, -1, INFINITY};
    for (size_t i = 0; i < 4; i++)
        chunk_count(&totals, values[i]);
    cr_assert(totals.count == 4 && totals.finite == 2 && totals.sum == 2 && totals.min == -1 &&
              totals.max == 3 && totals.last == -1);
}

Test(chunk, what_is_no_chunk_is_refused)
{
    static struct chunk_point points[CHUNK_POINTS];
    uint8_t bytes[64];
    for (int round = 0; round < 200000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)draw();
        bytes[0] = 1, bytes[1] &= 1, bytes[2] &= 63;
        cr_assert_leq(chunk_unpack(bytes, draw() % sizeof bytes, points), 63);
    }
}
