/* collector: at most a given number of rows out of any number, evenly spaced over all of them.
 *
 * It keeps every row until it is full. Then every second one is dropped, and from then on only every second
 * (fourth, eighth, ...) row is kept: those with the numbers 0, stride, 2 * stride and so on, without a gap.
 * Once it was full it holds more than half of its limit. Not thread-safe. */
#ifndef WEIR_PLUGINS_COLLECTOR_H
#define WEIR_PLUGINS_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collector {
    size_t width; /* numbers of a row */
    size_t most;  /* rows, even */
    double *rows;
    size_t count, room; /* rows */
    uint64_t offered;   /* how many rows there were */
    uint64_t stride;    /* every stride-th of them is kept */
};

/* most: at least 1; an odd number is rounded up. Allocates nothing. */
void collector_init(struct collector *collector, size_t width, size_t most);
void collector_fini(struct collector *collector);

/* Returns false if out of memory; then nothing has changed. */
bool collector_offer(struct collector *collector, const double *row);

static inline const double *collector_row(const struct collector *collector, size_t i)
{
    return collector->rows + i * collector->width;
}

#endif
