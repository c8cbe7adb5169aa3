/* instrument: values of series with an instrument: which ones are allowed, and the level of a gauge. */
#ifndef WR_INSTRUMENT_H
#define WR_INSTRUMENT_H

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "producer/cells.h"
#include "registry/registry.h"

static inline double wr_value_double(weir_number value)
{
    return value.kind == WEIR_KIND_INT ? (double)value.is.i64 : value.is.f64;
}

/* Whether the instrument takes the value: a counter increments of at least 0 that fit a cell, a histogram
 * finite values, a gauge any. */
static inline bool wr_instrument_accepts(uint8_t instrument, weir_number value)
{
    double number = wr_value_double(value);
    switch (instrument) {
    case WEIR_COUNTER: return number >= 0 && number <= WR_CELLS_MOST; /* neither is true of NaN */
    case WEIR_HISTOGRAM: return isfinite(number);
    default: return true;
    }
}

/* The level of a gauge; NULL: the series is no gauge. */
static inline _Atomic uint64_t *wr_instrument_level(const struct weir_metric *metric)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    return ((const struct wr_view *)view)->level;
}

/* Sets *level if that of the gauge is a finite number. Returns false if it is not, was never set, or the series
 * is no gauge. */
static inline bool wr_instrument_read_level(const struct weir_metric *metric, double *level)
{
    const _Atomic uint64_t *stored = wr_instrument_level(metric);
    double read;
    if (!stored)
        return false;
    uint64_t bits = atomic_load_explicit(stored, memory_order_relaxed);
    memcpy(&read, &bits, sizeof read);
    if (!isfinite(read)) /* so is WR_LEVEL_UNKNOWN */
        return false;
    *level = read;
    return true;
}

/* Records the level of a gauge, for later changes of it. */
static inline void wr_instrument_set_level(const struct weir_metric *metric, double level)
{
    _Atomic uint64_t *stored = wr_instrument_level(metric);
    uint64_t bits;
    memcpy(&bits, &level, sizeof bits);
    if (stored)
        atomic_store_explicit(stored, bits, memory_order_relaxed);
}

/* Why a change is refused. */
#define WR_INSTRUMENT_NOT_FINITE "the level of the gauge would not be a finite number"

/* Moves the level of a gauge, from 0 if it was never set. *level: where it is then. Returns false if it would
 * not be finite there: then it stays. Concurrent changes all count; relaxed, since the level is the only thing
 * that they share. */
static inline bool wr_instrument_change_level(_Atomic uint64_t *stored, double change, double *level)
{
    uint64_t before = atomic_load_explicit(stored, memory_order_relaxed), after;
    do {
        double old = 0;
        if (before != WR_LEVEL_UNKNOWN)
            memcpy(&old, &before, sizeof old);
        *level = old + change;
        if (!isfinite(*level)) {
            *level = old;
            return false;
        }
        memcpy(&after, level, sizeof after);
    } while (!atomic_compare_exchange_weak_explicit(stored, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

#endif
