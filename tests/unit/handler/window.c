/* The values of several intervals: for how long they are there, and that each summary counts once. */
#include <criterion/criterion.h>

#include "handler/window.h"

enum { LENGTH = 40, STEP = LENGTH / 4, BEGIN = 1000 * LENGTH, SERIES = 7 };

static struct wr_windows windows;
static struct wr_sample_id next;
static uint64_t serial = 1; /* of the series */

static void set_up(void)
{
    windows.length_ns = LENGTH;
    next = (struct wr_sample_id){wr_origin_new(), 100};
}

static void tear_down(void)
{
    wr_windows_fini(&windows);
}

TestSuite(window, .init = set_up, .fini = tear_down);

/* A summary with one value; 0: with none. Returns what its window has. */
static struct wr_sketch add_with(uint32_t series, const struct wr_sample_id *id, int64_t end_ns, double value)
{
    struct wr_sketch interval = {0};
    cr_assert(value == 0 || wr_sketch_add(&interval, value) == WR_SKETCH_OK);
    const weir_series view = {.size = sizeof view, .id = series, .serial = serial};
    const struct wr_sketch *all = wr_windows_add(&windows, &view, id, end_ns, &interval);
    cr_assert_not_null(all);
    struct wr_sketch seen = {.count = all->count, .min = all->min, .max = all->max};
    wr_sketch_fini(&interval);
    return seen;
}

static struct wr_sketch add(int64_t end_ns, double value)
{
    struct wr_sketch seen = add_with(SERIES, &next, end_ns, value);
    next.sequence++;
    return seen;
}

static void expect(struct wr_sketch seen, uint64_t count, double min, double max)
{
    cr_assert_eq(seen.count, count, "%llu values", (unsigned long long)seen.count);
    cr_assert(!count || (seen.min == min && seen.max == max), "%g to %g", seen.min, seen.max);
}

Test(window, without_a_length_it_is_the_interval)
{
    windows.length_ns = 0;
    add(BEGIN, 9);
    expect(add(BEGIN + 1, 1), 1, 1, 1);
    cr_assert_eq(windows.count, 0);
}

Test(window, values_are_there_for_its_length_and_at_most_a_quarter_more)
{
    for (int64_t offset = 0; offset < STEP; offset++) {
        int64_t begin = BEGIN + offset;
        wr_windows_fini(&windows);
        windows.length_ns = LENGTH;
        expect(add(begin, 1000), 1, 1000, 1000);
        for (int64_t passed = 1; passed <= LENGTH; passed++)
            cr_assert_eq(add(begin + passed, 1).max, 1000);
        cr_assert_eq(add(begin + LENGTH + STEP, 1).max, 1);
    }
}

Test(window, an_interval_without_values_has_those_of_the_others)
{
    expect(add(BEGIN, 0), 0, 0, 0);
    cr_assert_eq(windows.count, 0, "nothing is kept for it");
    expect(add(BEGIN + 1, 5), 1, 5, 5);
    expect(add(BEGIN + STEP, 0), 1, 5, 5);
    expect(add(BEGIN + LENGTH, 0), 1, 5, 5);
    expect(add(BEGIN + LENGTH + STEP, 0), 0, 0, 0);
}

Test(window, a_second_try_adds_nothing)
{
    const struct wr_sample_id first = next;
    add(BEGIN, 5);
    add(BEGIN + 1, 7);
    for (int i = 0; i < 3; i++) {
        expect(add_with(SERIES, &first, BEGIN, 5), 2, 5, 7);
        expect(add_with(SERIES, &(struct wr_sample_id){first.origin, first.sequence + 1}, BEGIN + 1, 7), 2, 5,
               7);
    }
    expect(add(BEGIN + 2, 6), 3, 5, 7);
}

Test(window, a_second_try_of_what_was_empty_finds_no_later_values)
{
    const struct wr_sample_id first = next;
    expect(add(BEGIN, 0), 0, 0, 0);
    add(BEGIN + 1, 7);
    expect(add_with(SERIES, &first, BEGIN, 0), 0, 0, 0);

    const struct wr_sample_id later = next;
    expect(add(BEGIN + 2 * LENGTH, 0), 0, 0, 0);
    add(BEGIN + 2 * LENGTH + 1, 8);
    expect(add_with(SERIES, &later, BEGIN + 2 * LENGTH, 0), 0, 0, 0);
}

Test(window, a_clock_that_is_set_back_a_little_loses_nothing)
{
    add(BEGIN, 5);
    expect(add(BEGIN - LENGTH, 6), 2, 5, 6);
    expect(add(BEGIN + 1, 7), 3, 5, 7);
}

Test(window, a_clock_that_is_set_far_back_begins_it_anew)
{
    add(BEGIN, 5);
    expect(add(BEGIN - 10 * LENGTH, 6), 1, 6, 6);
    expect(add(BEGIN - 10 * LENGTH + 1, 7), 2, 6, 7);
}

Test(window, a_clock_near_its_beginning_is_no_matter)
{
    windows.length_ns = 4 * STEP;
    add(-1000, 5);
    expect(add(0, 6), 2, 5, 6);
    for (int64_t step = 1; step <= 4; step++)
        cr_assert_eq(add(step * STEP, 7).min, 5);
    expect(add(5 * STEP, 7), 5, 7, 7);
    expect(add(100 * LENGTH, 8), 1, 8, 8);
    expect(add(0, 9), 1, 9, 9);
    expect(add(INT64_MAX, 10), 1, 10, 10);
    expect(add(INT64_MIN, 11), 1, 11, 11);
}

Test(window, summaries_of_another_process_begin_anew)
{
    add(BEGIN, 5);
    next.origin = wr_origin_new();
    expect(add(BEGIN + 1, 7), 1, 7, 7);
    expect(add(BEGIN + 2, 8), 2, 7, 8);
}

Test(window, series_have_windows_of_their_own)
{
    for (uint32_t series = 0; series < 100; series++) {
        expect(add_with(series, &next, BEGIN, series + 1), 1, series + 1, series + 1);
        next.sequence++;
    }
    wr_windows_forget(&windows, 3);
    wr_windows_forget(&windows, 3);
    wr_windows_forget(&windows, 1000);
    cr_assert_eq(windows.count, 99);
    for (uint32_t series = 0; series < 100; series++) {
        expect(add_with(series, &next, BEGIN, 1000), series == 3 ? 1 : 2, series == 3 ? 1000 : series + 1,
               1000);
        next.sequence++;
    }
}

Test(window, another_series_with_the_id_begins_anew)
{
    add(BEGIN, 5);
    serial++;
    expect(add(BEGIN + 1, 7), 1, 7, 7);
    expect(add(BEGIN + 2, 8), 2, 7, 8);
    cr_assert_eq(windows.count, 1);
}

Test(window, those_without_summaries_are_freed)
{
    for (uint32_t series = 0; series < 10; series++) {
        add_with(series, &next, BEGIN, 1);
        next.sequence++;
    }
    add(BEGIN + 3 * LENGTH, 1);
    cr_assert_eq(windows.count, 1);
}
