/* cells: what is added to them is taken once, exactly, also while it is added. */
#include <criterion/criterion.h>
#include <float.h>
#include <pthread.h>

#include "producer/cells.h"

static struct wr_cells cells;

static void add(uint32_t series, double increment, int times)
{
    cr_assert(wr_cells_open(&cells, series));
    for (int i = 0; i < times; i++)
        cr_assert(wr_cells_add(&cells, series, increment));
}

/* What is taken of a series' cell; the cell has to be on the list. */
static struct wr_cell_taken take(uint32_t series)
{
    uint32_t at = atomic_load(&cells.first);
    while (at && at - 1 != series)
        at = wr_cells_find(&cells, at - 1)->next;
    cr_assert(at, "series %u", series);
    return wr_cell_take(&cells, wr_cells_find(&cells, series));
}

static void check_taken(uint32_t series, uint64_t values, double sum)
{
    struct wr_cell_taken taken = take(series);
    cr_assert_eq(taken.values, values, "series %u: %lu", series, taken.values);
    cr_assert_eq(taken.sum, sum, "series %u: %.17g", series, taken.sum);
}

Test(cells, each_series_has_one_and_the_list_has_all)
{
    static const uint32_t series[] = {0, 1, 1023, 1024, 1025, 3071, 3072, 100000, 1000000};
    enum { COUNT = sizeof series / sizeof *series };
    for (int i = 0; i < COUNT; i++)
        add(series[i], i + 0.5, i + 1);
    size_t open = 0;
    for (uint32_t at = atomic_load(&cells.first); at; at = wr_cells_find(&cells, at - 1)->next)
        open++;
    cr_assert_eq(open, COUNT);
    for (int i = 0; i < COUNT; i++)
        check_taken(series[i], (uint64_t)i + 1, (i + 0.5) * (i + 1));
    cr_assert_not(wr_cells_have_values(&cells));
}

/* A cell goes on through the ends of its series. */
Test(cells, small_increments_are_found_beside_a_large_one)
{
    add(7, 1e17, 1);
    check_taken(7, 1, 1e17);
    add(7, 1, 5);
    check_taken(7, 5, 5);
    add(7, 1, 1);
    check_taken(7, 1, 1);
}

Test(cells, an_increment_that_would_make_the_total_infinite_is_not_added)
{
    add(7, WR_CELLS_MOST, 1);
    cr_assert_not(wr_cells_are_full(&cells, 7, 1));
    cr_assert(wr_cells_are_full(&cells, 7, WR_CELLS_MOST));
    cr_assert_not(wr_cells_are_full(&cells, 8, WR_CELLS_MOST));
    cr_assert_not(wr_cells_add(&cells, 7, WR_CELLS_MOST));
    cr_assert_not(wr_cells_add(&cells, 7, INFINITY));
    add(7, 1, 1);
    check_taken(7, 2, WR_CELLS_MOST);
}

/* As if the thread had ended between the two counts. */
Test(cells, what_no_cell_counts_was_not_added)
{
    add(7, 2, 3);
    add(8, 2, 4);
    check_taken(7, 3, 6);
    atomic_fetch_add(&cells.values, 1);
    wr_cells_recount(&cells);
    cr_assert_eq(atomic_load(&cells.values), 7);
    check_taken(8, 4, 8);
    cr_assert_not(wr_cells_have_values(&cells));
}

Test(cells, what_was_taken_is_not_taken_again)
{
    add(7, 2, 3);
    cr_assert(wr_cells_have_values(&cells));
    check_taken(7, 3, 6);
    check_taken(7, 0, 0);
    add(7, 0.25, 1);
    check_taken(7, 1, 0.25);
    cr_assert_eq(cells.taken, 4);
    cr_assert_eq(atomic_load(&cells.values), 4);
}

Test(cells, small_increments_of_a_large_sum_are_not_lost)
{
    double sum = 0;
    add(0, 1e16, 1);
    sum += take(0).sum;
    add(0, 1, 1000);
    sum += take(0).sum;
    cr_assert_eq(sum, 1e16 + 1000, "%.17g", sum);
}

Test(cells, a_series_beyond_all_chunks_is_refused)
{
    cr_assert_not(wr_cells_open(&cells, UINT32_MAX - 1024));
}

/* ---- Histograms ------------------------------------------------------------------------------- */

static const double few[] = {1, 10};
static const weir_series with_few = {.buckets = few, .bucket_count = 2};

static void measure(const weir_series *view, double value)
{
    if (!wr_cells_add_to_buckets(&cells, 3, view, value)) {
        cr_assert(wr_cells_open_buckets(&cells, 3, view));
        cr_assert(wr_cells_add_to_buckets(&cells, 3, view, value));
    }
}

static struct wr_cell_buckets *buckets_of(uint32_t series)
{
    return atomic_load(&wr_cells_place(&cells, series)->buckets);
}

static void check_buckets(const uint64_t expected[3], double sum, double min, double max)
{
    uint64_t room[WR_BUCKETS_MOST];
    struct wr_cell_taken taken = wr_cell_take_buckets(&cells, buckets_of(3), room);
    cr_assert_eq(taken.buckets, room);
    cr_assert_eq(taken.bucket_count, 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(room[i], expected[i], "bucket %d: %lu", i, room[i]);
    cr_assert_eq(taken.values, expected[0] + expected[1] + expected[2]);
    cr_assert_eq(taken.sum, sum, "%.17g", taken.sum);
    cr_assert_eq(taken.min, min, "%g", taken.min);
    cr_assert_eq(taken.max, max, "%g", taken.max);
}

Test(cells, a_histogram_has_buckets_and_extremes_of_what_came_since)
{
    for (int i = -5; i <= 20; i++)
        measure(&with_few, i);
    check_buckets((const uint64_t[]){7, 9, 10}, 195, -5, 20);
    measure(&with_few, 4);
    measure(&with_few, 3);
    check_buckets((const uint64_t[]){0, 2, 0}, 7, 3, 4);
    cr_assert_not(wr_cells_have_values(&cells));
    cr_assert_eq(cells.taken, 28);
    uint64_t room[WR_BUCKETS_MOST];
    cr_assert_eq(wr_cell_take_buckets(&cells, buckets_of(3), room).values, 0);
    measure(&with_few, 1e300);
    check_buckets((const uint64_t[]){0, 0, 1}, 1e300, 1e300, 1e300);
}

Test(cells, small_values_of_a_histogram_beside_a_large_one_are_not_lost)
{
    measure(&with_few, 1e16);
    for (int i = 0; i < 1000; i++)
        measure(&with_few, 1);
    measure(&with_few, -1e16);
    check_buckets((const uint64_t[]){1001, 0, 1}, 1000, -1e16, 1e16);
}

Test(cells, after_a_large_value_the_sums_of_small_ones_are_exact)
{
    measure(&with_few, 1e20);
    check_buckets((const uint64_t[]){0, 0, 1}, 1e20, 1e20, 1e20);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 1000; i++)
            measure(&with_few, 1);
        check_buckets((const uint64_t[]){1000, 0, 0}, 1000, 1, 1);
    }
}

/* As if the reader came between the extremes and the number of a value. */
Test(cells, extremes_of_an_earlier_reading_are_put_into_their_buckets)
{
    measure(&with_few, 7);
    measure(&with_few, 100);
    check_buckets((const uint64_t[]){0, 1, 1}, 107, 7, 100);
    measure(&with_few, 0.5);
    atomic_store(&buckets_of(3)->min, INFINITY);
    atomic_store(&buckets_of(3)->max, -INFINITY);
    check_buckets((const uint64_t[]){1, 0, 0}, 0.5, 1, 1);
}

Test(cells, a_histogram_whose_sum_would_be_infinite_refuses)
{
    measure(&with_few, WR_CELLS_MOST);
    cr_assert_not(wr_cells_add_to_buckets(&cells, 3, &with_few, WR_CELLS_MOST));
    check_buckets((const uint64_t[]){0, 0, 1}, WR_CELLS_MOST, WR_CELLS_MOST, WR_CELLS_MOST);
}

/* What was added under other bounds stays apart; bounds that return are those of before. */
Test(cells, other_bounds_are_other_buckets)
{
    static const double others[] = {1, 11};
    static const double same[] = {1, 10};
    const weir_series with_others = {.buckets = others, .bucket_count = 2};
    const weir_series with_same = {.buckets = same, .bucket_count = 2};
    measure(&with_few, 5);
    struct wr_cell_buckets *first = buckets_of(3);
    measure(&with_others, 6);
    cr_assert_neq(buckets_of(3), first);
    cr_assert_eq(buckets_of(3)->older, first);
    for (int i = 0; i < 100; i++) {
        measure(&with_same, 7);
        measure(&with_others, 6);
        measure(&with_few, 5);
    }
    cr_assert_eq(buckets_of(3)->older, first);
    cr_assert_null(first->older);
    check_buckets((const uint64_t[]){0, 101, 0}, 606, 6, 6);
    uint64_t room[WR_BUCKETS_MOST];
    cr_assert_eq(wr_cell_take_buckets(&cells, first, room).values, 201);
}

Test(cells, a_value_is_in_the_first_bucket_whose_bound_is_not_below_it)
{
    double bounds[WR_BUCKETS_MOST - 1];
    for (size_t count = 0; count < WR_BUCKETS_MOST; count++) {
        for (size_t i = 0; i < count; i++)
            bounds[i] = (double)i;
        for (size_t i = 0; i < count; i++) {
            cr_assert_eq(wr_buckets_find(bounds, count, (double)i), i, "%zu of %zu", i, count);
            cr_assert_eq(wr_buckets_find(bounds, count, (double)i + 0.5), i + 1, "%zu of %zu", i, count);
        }
        cr_assert_eq(wr_buckets_find(bounds, count, -1), 0);
    }
}

/* ---- A reader beside the writer --------------------------------------------------------------- */

enum { SERIES = 50, INCREMENTS = 400000 };

static void *measure_all(void *argument)
{
    for (int i = 0; i < INCREMENTS; i++) {
        double value = i % 21;
        if (!wr_cells_add_to_buckets(&cells, 3, &with_few, value) &&
            (!wr_cells_open_buckets(&cells, 3, &with_few) ||
             !wr_cells_add_to_buckets(&cells, 3, &with_few, value)))
            return argument;
    }
    return NULL;
}

/* Each value once, and never more than was added; extremes that came. */
Test(cells, a_reader_beside_the_writer_of_a_histogram_takes_each_value_once)
{
    pthread_t writer;
    uint64_t values = 0, highest = 0, room[WR_BUCKETS_MOST];
    double sum = 0, min = INFINITY, max = -INFINITY;
    cr_assert_eq(pthread_create(&writer, NULL, measure_all, &cells), 0);
    while (values < INCREMENTS) {
        uint32_t at = atomic_load(&cells.first);
        struct wr_cell_buckets *buckets = at ? atomic_load(&wr_cells_find(&cells, at - 1)->buckets) : NULL;
        if (!buckets)
            continue;
        struct wr_cell_taken taken = wr_cell_take_buckets(&cells, buckets, room);
        cr_assert_leq(cells.taken, atomic_load(&cells.values));
        if (!taken.values)
            continue;
        values += taken.values;
        sum += taken.sum;
        highest += room[2];
        cr_assert(taken.min >= 0 && taken.min <= taken.max && taken.max <= 20, "%g, %g", taken.min, taken.max);
        min = taken.min < min ? taken.min : min;
        max = taken.max > max ? taken.max : max;
    }
    void *failed;
    pthread_join(writer, &failed);
    cr_assert_null(failed);
    uint64_t expected = 0;
    double total = 0;
    for (int i = 0; i < INCREMENTS; i++) {
        expected += i % 21 > 10;
        total += i % 21;
    }
    cr_assert_eq(values, INCREMENTS);
    cr_assert_eq(sum, total);
    cr_assert_eq(highest, expected);
    cr_assert(min == 0 && max == 20, "%g, %g", min, max);
}

static void *write_all(void *argument)
{
    for (int i = 0; i < INCREMENTS; i++) {
        uint32_t series = (uint32_t)(i % SERIES) * 100;
        if (!wr_cells_add(&cells, series, 1) &&
            (!wr_cells_open(&cells, series) || !wr_cells_add(&cells, series, 1)))
            return argument;
    }
    return NULL;
}

/* The number never exceeds the increments that were found, nor what was added. */
Test(cells, a_reader_beside_the_writer_takes_each_value_once)
{
    pthread_t writer;
    uint64_t values = 0;
    double sum = 0;
    cr_assert_eq(pthread_create(&writer, NULL, write_all, &cells), 0);
    while (values < INCREMENTS) {
        double before = sum;
        struct wr_cell *cell;
        for (uint32_t at = atomic_load(&cells.first); at; at = cell->next) {
            cell = wr_cells_find(&cells, at - 1);
            struct wr_cell_taken taken = wr_cell_take(&cells, cell);
            values += taken.values;
            sum += taken.sum;
        }
        cr_assert_leq(cells.taken, atomic_load(&cells.values));
        cr_assert(sum >= (double)values && sum >= before && sum <= INCREMENTS, "%g of %lu", sum, values);
    }
    void *failed;
    pthread_join(writer, &failed);
    cr_assert_null(failed);
    cr_assert_eq(values, INCREMENTS);
    cr_assert_eq(sum, INCREMENTS);
}
