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
    struct wr_cell *cell = atomic_load(&cells.first);
    while (cell && cell->series != series)
        cell = cell->next;
    cr_assert(cell, "series %u", series);
    return wr_cell_take(&cells, cell);
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
    for (const struct wr_cell *cell = atomic_load(&cells.first); cell; cell = cell->next)
        open++;
    cr_assert_eq(open, COUNT);
    for (int i = 0; i < COUNT; i++)
        check_taken(series[i], (uint64_t)i + 1, (i + 0.5) * (i + 1));
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

Test(cells, a_sum_that_would_be_infinite_is_refused_and_stays)
{
    add(0, DBL_MAX, 1);
    cr_assert_not(wr_cells_add(&cells, 0, DBL_MAX));
    cr_assert_not(wr_cells_add(&cells, 0, INFINITY));
    add(0, 0, 1);
    check_taken(0, 2, DBL_MAX);
}

Test(cells, a_series_beyond_all_chunks_is_refused)
{
    cr_assert_not(wr_cells_open(&cells, UINT32_MAX - 1024));
}

enum { SERIES = 50, INCREMENTS = 400000 };

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
        for (struct wr_cell *cell = atomic_load(&cells.first); cell; cell = cell->next) {
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
