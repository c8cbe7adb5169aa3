/* typed: values of series with an instrument: which ones are allowed, and the level of a gauge. */
#ifndef WR_TYPED_H
#define WR_TYPED_H

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "registry/registry.h"

/* A value of either kind, as it is stored in a sample. */
struct wr_value {
    uint16_t kind; /* enum weir_kind */
    union {
        double f64;
        int64_t i64;
    } is;
};

static inline double wr_typed_double(struct wr_value value)
{
    return value.kind == WEIR_KIND_INT ? (double)value.is.i64 : value.is.f64;
}

/* Whether the instrument takes the value: a counter finite increments of at least 0, a histogram finite values,
 * a gauge any. */
static inline bool wr_typed_accepts(uint8_t instrument, struct wr_value value)
{
    double number = wr_typed_double(value);
    switch (instrument) {
    case WEIR_COUNTER: return number >= 0 && number <= DBL_MAX; /* neither is true of NaN */
    case WEIR_HISTOGRAM: return isfinite(number);
    default: return true;
    }
}

/* The level of a gauge; NULL: the series is no gauge. */
static inline _Atomic uint64_t *wr_typed_level(const struct weir_metric *metric)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    return ((const struct wr_view *)view)->level;
}

/* Records the level of a gauge, for later changes of it. */
static inline void wr_typed_set_level(const struct weir_metric *metric, double level)
{
    _Atomic uint64_t *stored = wr_typed_level(metric);
    uint64_t bits;
    memcpy(&bits, &level, sizeof bits);
    if (stored)
        atomic_store_explicit(stored, bits, memory_order_relaxed);
}

/* Moves the level of a gauge, and returns the new one. Concurrent changes all count; relaxed, since the level
 * is the only thing that they share. */
static inline double wr_typed_change_level(_Atomic uint64_t *stored, double change)
{
    uint64_t before = atomic_load_explicit(stored, memory_order_relaxed), after;
    double level;
    do {
        memcpy(&level, &before, sizeof level);
        level += change;
        memcpy(&after, &level, sizeof after);
    } while (!atomic_compare_exchange_weak_explicit(stored, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
    return level;
}

#endif
