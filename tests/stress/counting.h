/* counting: a handler type for stress programs. It counts values and checks that those of each series are 0,
 * 1, 2, ... in this order. */
#ifndef COUNTING_H
#define COUNTING_H

#include <stdatomic.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/plain.h"

enum { COUNTING_SERIES = 64 };

static _Atomic uint64_t counting_count;
static _Atomic uint64_t counting_next[COUNTING_SERIES];  /* next expected value by series id */
static void (*counting_before)(const weir_batch *batch); /* called before a batch is checked; may be NULL */
static bool counting_allows_gaps;                        /* values may have been dropped */

static inline void *counting_create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &counting_count;
}

static inline void counting_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    if (counting_before)
        counting_before(batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_sample *sample = &batch->samples[i];
        PLAIN_CHECK(sample->series < COUNTING_SERIES);
        uint64_t value = (uint64_t)sample->value.i64;
        uint64_t next = atomic_load(&counting_next[sample->series]);
        PLAIN_CHECK(value == next || (counting_allows_gaps && value > next), "lost, twice, or out of order");
        atomic_store(&counting_next[sample->series], value + 1);
    }
    atomic_fetch_add(&counting_count, batch->count);
}

static inline void counting_destroy(void *self)
{
    (void)self;
}

static const weir_handler_type counting_type = {
    .size = sizeof counting_type,
    .abi = WEIR_ABI,
    .name = "counting",
    .summary = "counts values, for tests",
    .create = counting_create,
    .emit = counting_emit,
    .destroy = counting_destroy,
};

/* Registers it and routes all groups to it. options: of the handler, or NULL. */
static inline void counting_configure(const char *options)
{
    PLAIN_CHECK(weir_register_handler_type(&counting_type, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", options) == 0, "weir_configure failed");
}

#endif
