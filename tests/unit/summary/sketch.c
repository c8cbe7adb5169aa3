#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/failing.h"
#include "summary/sketch_code.h"
#include "summary/sketch_internal.h"
#include "text/buffer.h"

/* ---- Values ---------------------------------------------------------------------------------- */

enum { VALUES = 1000000 };

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 < u < 1 */
static double draw_unit(void)
{
    return ((double)(draw() >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(void)
{
    return sqrt(-2 * log(draw_unit())) * cos(2 * M_PI * draw_unit());
}

static double uniform(uint32_t i)
{
    return (void)i, 5 + 10 * draw_unit();
}

static double normal(uint32_t i)
{
    return (void)i, 100 + 15 * draw_normal();
}

static double lognormal(uint32_t i)
{
    return (void)i, exp(3 + 2 * draw_normal());
}

static double exponential(uint32_t i)
{
    return (void)i, -12.5 * log(draw_unit());
}

static double pareto(uint32_t i)
{
    return (void)i, pow(draw_unit(), -1 / 1.1);
}

static double bimodal(uint32_t i)
{
    return i % 10 ? 2 + 0.1 * draw_normal() : 5000 + 300 * draw_normal();
}

static double constant(uint32_t i)
{
    return (void)i, 49.403;
}

static double integers(uint32_t i)
{
    return (void)i, (double)(draw() % 2000);
}

static double tiny(uint32_t i)
{
    return (void)i, 1e-300 * (1 + draw_unit());
}

static double huge(uint32_t i)
{
    return (void)i, 1e300 * (1 + draw_unit());
}

static double tiny_and_huge(uint32_t i)
{
    return i % 3 ? tiny(i) : huge(i);
}

static double negative(uint32_t i)
{
    return -lognormal(i);
}

static double mixed(uint32_t i)
{
    return i % 7 == 0 ? 0 : draw_normal() * 1000;
}

static double ascending(uint32_t i)
{
    return i + 1;
}

static double descending(uint32_t i)
{
    return (double)VALUES - i;
}

static const struct {
    const char *name;
    double (*at)(uint32_t i);
} distributions[] = {
    {"uniform", uniform},
    {"normal", normal},
    {"lognormal", lognormal},
    {"exponential", exponential},
    {"pareto", pareto},
    {"bimodal", bimodal},
    {"constant", constant},
    {"integers", integers},
    {"tiny", tiny},
    {"huge", huge},
    {"tiny and huge", tiny_and_huge},
    {"negative", negative},
    {"mixed", mixed},
    {"ascending", ascending},
    {"descending", descending},
};

static const double ranks[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill(struct wr_sketch *sketch, const double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(wr_sketch_add(sketch, values[i]), WR_SKETCH_OK);
}

/* ---- Accuracy -------------------------------------------------------------------------------- */

/* The index of the first value that at least the share q of all do not exceed. */
static uint64_t nearest_rank(double q, uint64_t count)
{
    uint64_t index = 0;
    while ((long double)(index + 1) / count < (long double)q - 1e-12L)
        index++;
    return index;
}

/* values: sorted */
static void check_quantiles(const struct wr_sketch *sketch, const double *values, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(ranks); i++) {
        double exact = values[nearest_rank(ranks[i], sketch->count)];
        double found = wr_sketch_quantile(sketch, ranks[i]);
        cr_assert(fabs(found - exact) <= 0.01 * fabs(exact), "%s: quantile %g is %.17g, not %.17g", name,
                  ranks[i], found, exact);
    }
}

static void check_totals(const struct wr_sketch *sketch, const double *values, const char *name)
{
    long double sum = 0, lost = 0, size = 0;
    for (uint32_t i = 0; i < VALUES; i++) { /* Kahan's */
        volatile long double corrected = values[i] - lost, next = sum + corrected, added = next - sum;
        lost = added - corrected;
        sum = next;
        size += fabsl((long double)values[i]);
    }
    double error = (double)fabsl(wr_sketch_sum(sketch) - sum);
    cr_assert(error <= (double)size * 1e-15, "%s: the sum is %.17g, not %.17Lg", name, wr_sketch_sum(sketch),
              sum);
    cr_assert(sketch->count == VALUES && sketch->min == values[0] && sketch->max == values[VALUES - 1], "%s",
              name);
    cr_assert_leq(sketch->entries, WR_SKETCH_BINS);
}

Test(sketch, quantiles_are_within_1_percent_for_each_distribution, .timeout = 600)
{
    double *values = malloc(VALUES * sizeof *values);
    for (size_t d = 0; d < COUNT_OF(distributions); d++) {
        struct wr_sketch sketch = {0};
        state = d;
        for (uint32_t i = 0; i < VALUES; i++)
            values[i] = distributions[d].at(i);
        fill(&sketch, values, VALUES);
        qsort(values, VALUES, sizeof *values, compare);
        check_quantiles(&sketch, values, distributions[d].name);
        check_totals(&sketch, values, distributions[d].name);
        cr_assert_not(sketch.collapsed, "%s", distributions[d].name);
        wr_sketch_fini(&sketch);
    }
    free(values);
}

/* Over the whole range of doubles, at the bounds of bins too. */
Test(sketch, no_value_differs_by_more_than_1_percent_from_the_value_of_its_bin)
{
    state = 7;
    for (uint32_t i = 0; i < VALUES; i++) {
        uint64_t bits = draw();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || fabs(value) < DBL_MIN)
            continue;
        int32_t key = wr_sketch_key(value);
        cr_assert(key >= -WR_SKETCH_KEY_MAX && key <= WR_SKETCH_KEY_MAX);
        cr_assert(fabs(wr_sketch_value(key) - value) <= 0.01 * fabs(value), "%.17g: key %d, %.17g", value, key,
                  wr_sketch_value(key));
    }
}

Test(sketch, keys_ascend_with_the_values)
{
    const double values[] = {-DBL_MAX, -1e300, -1, -DBL_MIN, -DBL_TRUE_MIN, 0,      DBL_TRUE_MIN,
                             DBL_MIN,  0.5,    1,  2,        1e300,         DBL_MAX};
    for (size_t i = 1; i < COUNT_OF(values); i++)
        cr_assert_lt(wr_sketch_key(values[i - 1]), wr_sketch_key(values[i]), "%g", values[i]);
    state = 8;
    for (uint32_t i = 0; i < VALUES; i++) {
        double value = exp(1400 * draw_unit() - 700);
        cr_assert_leq(wr_sketch_key(value), wr_sketch_key(nextafter(value, INFINITY)), "%.17g", value);
    }
}

Test(sketch, extreme_values_stay_within_min_and_max)
{
    struct wr_sketch sketch = {0};
    const double values[] = {DBL_MAX, -DBL_MAX, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0.0, -0.0, DBL_MIN};
    fill(&sketch, values, COUNT_OF(values));
    for (double q = 0; q <= 1; q += 0.01)
        cr_assert(fabs(wr_sketch_quantile(&sketch, q)) <= DBL_MAX);
    cr_assert(sketch.min == -DBL_MAX && sketch.max == DBL_MAX && sketch.count == 7);
    wr_sketch_fini(&sketch);
}

Test(sketch, values_that_are_not_finite_are_refused_and_change_nothing)
{
    struct wr_sketch sketch = {0};
    cr_assert_eq(wr_sketch_add(&sketch, 1), WR_SKETCH_OK);
    cr_assert_eq(wr_sketch_add(&sketch, INFINITY), WR_SKETCH_NOT_FINITE);
    cr_assert_eq(wr_sketch_add(&sketch, -INFINITY), WR_SKETCH_NOT_FINITE);
    cr_assert_eq(wr_sketch_add(&sketch, NAN), WR_SKETCH_NOT_FINITE);
    cr_assert(sketch.count == 1 && wr_sketch_sum(&sketch) == 1 && sketch.max == 1 && sketch.entries == 1);
    wr_sketch_fini(&sketch);
}

Test(sketch, the_sum_keeps_what_plain_addition_loses)
{
    struct wr_sketch sketch = {0};
    const double values[] = {1, 1e100, 1, -1e100};
    fill(&sketch, values, COUNT_OF(values));
    cr_assert_eq(wr_sketch_sum(&sketch), 2);
    wr_sketch_fini(&sketch);
}

Test(sketch, a_sum_beyond_a_double_is_infinite)
{
    struct wr_sketch sketch = {0};
    for (int i = 0; i < 4; i++)
        wr_sketch_add(&sketch, DBL_MAX);
    cr_assert(isinf(wr_sketch_sum(&sketch)) && sketch.count == 4 &&
              wr_sketch_quantile(&sketch, 0.5) == DBL_MAX);
    wr_sketch_fini(&sketch);
}

/* ---- Size ------------------------------------------------------------------------------------ */

Test(sketch, beyond_the_bound_the_lowest_bins_collapse_and_the_others_stay_accurate)
{
    struct wr_sketch sketch = {0};
    double *values = malloc(VALUES * sizeof *values);
    state = 9;
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = i % 10 ? 1 + draw_unit() : exp(1400 * draw_unit() - 700) * (i % 20 ? 1 : -1);
    fill(&sketch, values, VALUES);
    qsort(values, VALUES, sizeof *values, compare);
    cr_assert(sketch.collapsed);
    cr_assert_eq(sketch.entries, WR_SKETCH_BINS);
    cr_assert_leq((size_t)sketch.keys_room * sizeof *sketch.keys + sketch.counts_room * sizeof *sketch.counts,
                  WR_SKETCH_BYTES);
    const double *sorted = values;
    uint64_t above = VALUES - sketch.counts[0];
    for (uint64_t rank = VALUES - above; rank < VALUES; rank += 997) {
        double found = wr_sketch_quantile(&sketch, ((double)rank + 0.5) / VALUES);
        cr_assert(fabs(found - sorted[rank]) <= 0.01 * fabs(sorted[rank]), "rank %lu", (unsigned long)rank);
    }
    cr_assert(sketch.min == values[0] && sketch.max == values[VALUES - 1]);
    free(values);
    wr_sketch_fini(&sketch);
}

Test(sketch, failing_allocations_change_nothing)
{
    struct wr_sketch sketch = {0}, other = {0};
    failing_set(true);
    cr_assert_eq(wr_sketch_add(&sketch, 1), WR_SKETCH_NO_MEMORY);
    failing_set(false);
    cr_assert(sketch.count == 0 && sketch.entries == 0);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(wr_sketch_add(&sketch, pow(2, i)), WR_SKETCH_OK);
    wr_sketch_add(&other, 0.1);
    failing_set(true);
    cr_assert_not(wr_sketch_merge(&sketch, &other));
    failing_set(false);
    for (unsigned succeed = 0; succeed < 2; succeed++) {
        failing_after(succeed);
        cr_assert_eq(wr_sketch_add(&sketch, 0.1), WR_SKETCH_NO_MEMORY);
        cr_assert_eq(wr_sketch_add(&sketch, 1), WR_SKETCH_OK, "no new value");
        failing_set(false);
    }
    cr_assert(sketch.count == 66 && sketch.entries == 64 && sketch.min == 1);
    cr_assert(wr_sketch_merge(&sketch, &other) && sketch.count == 67 && sketch.min == 0.1);
    wr_sketch_fini(&sketch);
    wr_sketch_fini(&other);
}

Test(sketch, without_memory_values_stay_values)
{
    struct wr_sketch sketch = {0}, other = {0};
    for (int i = 0; i < WR_SKETCH_VALUES; i++) /* each in a bin of its own */
        cr_assert_eq(wr_sketch_add(&sketch, pow(1.05, i)), WR_SKETCH_OK);
    wr_sketch_add(&other, 0.5);
    for (unsigned succeed = 0; succeed < 2; succeed++) {
        failing_after(succeed);
        cr_assert_not(wr_sketch_merge(&sketch, &other));
        failing_set(false);
    }
    failing_set(true);
    cr_assert_eq(wr_sketch_add(&sketch, 0.5), WR_SKETCH_NO_MEMORY);
    cr_assert_eq(wr_sketch_add(&sketch, 1), WR_SKETCH_OK, "no new value");
    failing_set(false);
    cr_assert(!sketch.is_binned && sketch.count == WR_SKETCH_VALUES + 1);
    cr_assert_eq(wr_sketch_at_rank(&sketch, 100), pow(1.05, 98));
    cr_assert(wr_sketch_merge(&sketch, &other) && sketch.is_binned && sketch.count == WR_SKETCH_VALUES + 2);
    for (int i = 0; i < WR_SKETCH_VALUES; i++)
        cr_assert(wr_sketch_add(&other, 1000 + i) == WR_SKETCH_OK &&
                  other.is_binned == (i == WR_SKETCH_VALUES - 1));
    wr_sketch_fini(&sketch);
    wr_sketch_fini(&other);
}

/* ---- Exact values ---------------------------------------------------------------------------- */

enum { MULTISETS = 300, MOST = 2000 };

/* Their sums are exact in any order. Some lie side by side, some differ by little. */
static double draw_value(uint64_t kind)
{
    static const double some[] = {-1, 0, 1, 64, 0.5, -0.25};
    switch (kind % 4) {
    case 0: return (double)(draw() % 100);
    case 1: return (double)(draw() % 200) * 0.125 - 10;
    case 2: return 1 + (double)(draw() % 128) * 0x1p-30;
    default: return some[draw() % COUNT_OF(some)];
    }
}

/* Draws values, each of which comes up to 5 times, into `values`, sorted, and the sketch; returns their number.
 */
static uint32_t draw_multiset(struct wr_sketch *sketch, uint64_t kind, double *values)
{
    uint32_t most = (uint32_t)(draw() % (MOST - 5)), count = 0;
    while (count <= most) {
        double value = draw_value(kind);
        uint64_t times = draw() % 6;
        cr_assert_eq(wr_sketch_add_many(sketch, value, times), WR_SKETCH_OK);
        while (times--)
            values[count++] = value;
    }
    qsort(values, count, sizeof *values, compare);
    return count;
}

Test(sketch, of_few_distinct_values_each_rank_is_exact)
{
    static double values[MOST];
    for (uint64_t kind = 0; kind < MULTISETS; kind++) {
        struct wr_sketch sketch = {0};
        state = kind;
        uint32_t count = draw_multiset(&sketch, kind, values);
        cr_assert(sketch.count == count && !sketch.is_binned);
        for (uint32_t rank = 1; rank <= count; rank++) {
            cr_assert_eq(wr_sketch_at_rank(&sketch, rank), values[rank - 1]);
            cr_assert_eq(wr_sketch_quantile(&sketch, (double)rank / count), values[rank - 1]);
            cr_assert_eq(wr_sketch_quantile(&sketch, (rank - 0.5) / count), values[rank - 1]);
        }
        for (uint32_t i = 0; i <= 1000; i++)
            cr_assert_eq(wr_sketch_quantile(&sketch, i / 1000.0), values[nearest_rank(i / 1000.0, count)]);
        wr_sketch_fini(&sketch);
    }
}

Test(sketch, zeros_are_one_value_and_denormals_are_distinct)
{
    struct wr_sketch sketch = {0};
    const double values[] = {0.0, -0.0, DBL_TRUE_MIN, -DBL_TRUE_MIN, 2 * DBL_TRUE_MIN, DBL_MAX, -DBL_MAX};
    const double sorted[] = {-DBL_MAX, -DBL_TRUE_MIN, 0, 0, DBL_TRUE_MIN, 2 * DBL_TRUE_MIN, DBL_MAX};
    fill(&sketch, values, COUNT_OF(values));
    cr_assert_eq(sketch.entries, 6);
    for (uint32_t rank = 1; rank <= COUNT_OF(sorted); rank++) {
        double found = wr_sketch_at_rank(&sketch, rank);
        cr_assert(found == sorted[rank - 1] && (found != 0 || !signbit(found)));
    }
    wr_sketch_fini(&sketch);
}

Test(sketch, one_value_too_many_turns_it_into_bins_until_it_is_cleared)
{
    struct wr_sketch sketch = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = WR_SKETCH_VALUES; i > 0; i--)
            for (int times = 0; times < 3; times++)
                cr_assert_eq(wr_sketch_add(&sketch, i * 1.5), WR_SKETCH_OK);
        cr_assert(!sketch.is_binned && sketch.entries == WR_SKETCH_VALUES);
        cr_assert_eq(wr_sketch_quantile(&sketch, 0.5), WR_SKETCH_VALUES / 2 * 1.5);
        cr_assert_eq(wr_sketch_add(&sketch, 0.5), WR_SKETCH_OK);
        cr_assert(sketch.is_binned && sketch.count == 3 * WR_SKETCH_VALUES + 1 && sketch.min == 0.5);
        double found = wr_sketch_quantile(&sketch, 0.5), exact = WR_SKETCH_VALUES / 2 * 1.5;
        cr_assert(fabs(found - exact) <= 0.01 * exact, "%g", found);
        for (uint32_t i = 1; i < sketch.entries; i++)
            cr_assert_lt(sketch.keys[i - 1], sketch.keys[i]);
        wr_sketch_clear(&sketch);
        cr_assert(!sketch.is_binned && sketch.entries == 0);
    }
    wr_sketch_fini(&sketch);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static void check_equal(const struct wr_sketch *a, const struct wr_sketch *b)
{
    cr_assert(a->count == b->count && a->entries == b->entries);
    cr_assert(a->is_binned == b->is_binned && a->collapsed == b->collapsed);
    cr_assert(a->min == b->min && a->max == b->max);
    size_t size = a->is_binned ? sizeof *a->keys : sizeof *a->values;
    cr_assert_eq(memcmp(a->keys, b->keys, a->entries * size), 0);
    cr_assert_eq(memcmp(a->counts, b->counts, a->entries * sizeof *a->counts), 0);
}

/* spread: the range of exponents; with 1400 many bins collapse. */
static void add_random(struct wr_sketch *one, struct wr_sketch *all, double spread)
{
    uint64_t count = draw() % (draw() % 2 ? 4000 : 200);
    for (uint64_t i = 0; i < count; i++) {
        double value = exp(spread * (draw_unit() - 0.5)) * (draw() % 4 ? 1 : -1) * (double)(draw() % 50 != 0);
        wr_sketch_add(one, value);
        wr_sketch_add(all, value);
    }
}

static void merge_to(struct wr_sketch *to, const struct wr_sketch *a, const struct wr_sketch *b)
{
    cr_assert(wr_sketch_merge(to, a) && wr_sketch_merge(to, b));
}

Test(sketch, merging_is_associative_and_commutative_and_equals_adding)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct wr_sketch a = {0}, b = {0}, c = {0}, all = {0}, ab = {0}, bc = {0}, left = {0}, right = {0},
                         back = {0};
        double spread = seed % 2 ? 1400 : 20;
        state = seed;
        add_random(&a, &all, spread);
        add_random(&b, &all, spread);
        add_random(&c, &all, spread);
        merge_to(&ab, &a, &b);
        merge_to(&bc, &b, &c);
        merge_to(&left, &ab, &c);
        merge_to(&right, &a, &bc);
        merge_to(&back, &c, &b);
        cr_assert(wr_sketch_merge(&back, &a));
        check_equal(&left, &all);
        check_equal(&right, &all);
        check_equal(&back, &all);
        double size = fmax(fabs(all.min), fabs(all.max)) * (double)all.count;
        cr_assert(fabs(wr_sketch_sum(&left) - wr_sketch_sum(&all)) <= size * 1e-14);
        struct wr_sketch *sketches[] = {&a, &b, &c, &all, &ab, &bc, &left, &right, &back};
        for (size_t i = 0; i < COUNT_OF(sketches); i++)
            wr_sketch_fini(sketches[i]);
    }
}

static void check_bytes(const struct wr_sketch *sketch, const struct wr_buffer *expected)
{
    struct wr_buffer bytes = {0};
    wr_sketch_encode(sketch, &bytes);
    cr_assert(bytes.length == expected->length && memcmp(bytes.data, expected->data, bytes.length) == 0);
    wr_buffer_fini(&bytes);
}

/* Merges four in a random order, in pairs or one after the other. */
static void merge_all(struct wr_sketch *to, const struct wr_sketch parts[4])
{
    struct wr_sketch second = {0};
    uint64_t first = draw() % 4, step = draw() % 2 * 2 + 1;
    bool in_pairs = draw() % 2;
    for (uint64_t i = 0; i < 4; i++)
        cr_assert(wr_sketch_merge(in_pairs && i >= 2 ? &second : to, &parts[(first + i * step) % 4]));
    cr_assert(wr_sketch_merge(to, &second));
    wr_sketch_fini(&second);
}

/* Some of both parts and whole have too many values to stay exact. */
Test(sketch, merging_few_values_in_any_order_gives_the_same_bytes)
{
    static double values[MOST];
    uint32_t exact = 0, binned = 0;
    for (uint64_t kind = 0; kind < MULTISETS; kind++) {
        struct wr_sketch parts[4] = {{0}}, all = {0};
        struct wr_buffer bytes = {0};
        state = kind;
        for (size_t i = 0; i < 4; i++) {
            uint32_t count = draw_multiset(&parts[i], kind % 8 < 4 ? kind : draw(), values);
            while (count--)
                wr_sketch_add(&all, values[count]);
        }
        wr_sketch_encode(&all, &bytes);
        exact += !all.is_binned;
        binned += all.is_binned;
        for (int round = 0; round < 8; round++) {
            struct wr_sketch merged = {0};
            merge_all(&merged, parts);
            check_bytes(&merged, &bytes);
            wr_sketch_fini(&merged);
        }
        for (size_t i = 0; i < 4; i++)
            wr_sketch_fini(&parts[i]);
        wr_sketch_fini(&all);
        wr_buffer_fini(&bytes);
    }
    cr_assert(exact > MULTISETS / 10 && binned > MULTISETS / 10, "%u and %u", exact, binned);
}

/* A spike shows, however few values there are. */
Test(sketch, quantiles_of_few_values_are_those_of_the_nearest_rank)
{
    static const double shares[] = {0.01, 0.07, 0.1, 0.29, 0.5, 0.57, 0.9, 0.95, 0.99, 0.999};
    for (uint64_t count = 1; count <= 200; count++) {
        struct wr_sketch sketch = {0};
        for (uint64_t i = 0; i < count; i++)
            wr_sketch_add(&sketch, 1000 + (double)i * 1000);
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
            double exact = 1000 + (double)nearest_rank(shares[i], count) * 1000;
            double found = wr_sketch_quantile(&sketch, shares[i]);
            cr_assert(found == exact, "%g of %lu: %g, not %g", shares[i], (unsigned long)count, found, exact);
        }
        cr_assert(count >= 100 || wr_sketch_quantile(&sketch, 0.99) == sketch.max);
        wr_sketch_fini(&sketch);
    }
}

Test(sketch, a_sketch_merged_with_itself_has_each_value_twice)
{
    static const int numbers[] = {100, 1000};
    for (size_t n = 0; n < COUNT_OF(numbers); n++) {
        struct wr_sketch sketch = {0};
        int number = numbers[n];
        for (int i = 1; i <= number; i++)
            wr_sketch_add(&sketch, i);
        cr_assert(wr_sketch_merge(&sketch, &sketch));
        cr_assert(sketch.count == 2 * (uint64_t)number && sketch.max == number && sketch.is_binned == (n == 1));
        cr_assert_eq(wr_sketch_sum(&sketch), number * (number + 1));
        cr_assert(fabs(wr_sketch_quantile(&sketch, 0.5) - number / 2) <= (n ? 0.01 * number / 2 : 0));
        wr_sketch_fini(&sketch);
    }
}

Test(sketch, merging_an_empty_sketch_changes_nothing)
{
    struct wr_sketch sketch = {0}, none = {0};
    cr_assert(wr_sketch_merge(&none, &none) && none.count == 0);
    wr_sketch_add(&sketch, 3);
    cr_assert(wr_sketch_merge(&sketch, &none) && sketch.count == 1);
    cr_assert(wr_sketch_merge(&none, &sketch) && none.count == 1 && none.min == 3);
    wr_sketch_fini(&sketch);
    wr_sketch_fini(&none);
}
