/* The collector of the report handler: it stays bounded, and what it keeps is evenly spaced. */
#include <criterion/criterion.h>

#include "../../../plugins/report/collector.h"

static const size_t limits[] = {2, 10, 11, 1000};

/* The rows are the numbers 0, stride, 2 * stride, ... of those that were offered. */
static void check(const struct collector *collector, uint64_t offered, size_t most)
{
    cr_assert_leq(collector->count, most);
    cr_assert_leq(collector->room, most);
    cr_assert_eq(collector->offered, offered);
    cr_assert_eq(collector->count, (offered + collector->stride - 1) / collector->stride);
    if (collector->stride > 1)
        cr_assert_gt(2 * collector->count, most, "more than half of the limit once it was full");
    for (size_t i = 0; i < collector->count; i++) {
        const double *row = collector_row(collector, i);
        cr_assert_eq(row[0], (double)(i * collector->stride));
        cr_assert_eq(row[1], -row[0]);
    }
}

Test(collector, it_stays_bounded_and_evenly_spaced_over_100000_reports)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct collector collector;
        size_t most = limits[i] + limits[i] % 2;
        collector_init(&collector, 2, limits[i]);
        for (uint64_t number = 0; number < 100000; number++) {
            cr_assert(collector_offer(&collector, (const double[]){(double)number, -(double)number}));
            if (number < 5000 || number % 997 == 0)
                check(&collector, number + 1, most);
        }
        check(&collector, 100000, most);
        collector_fini(&collector);
    }
}

Test(collector, until_it_is_full_it_keeps_every_row)
{
    struct collector collector;
    collector_init(&collector, 1, 9);
    for (int i = 0; i < 10; i++)
        cr_assert(collector_offer(&collector, &(double){i}));
    cr_assert_eq(collector.count, 10);
    cr_assert_eq(collector.stride, 1);
    cr_assert(collector_offer(&collector, &(double){10}));
    cr_assert_eq(collector.count, 6, "0, 2, 4, 6, 8, 10");
    cr_assert_eq(*collector_row(&collector, 5), 10);
    collector_fini(&collector);
}
