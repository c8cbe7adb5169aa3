/* twin: a number that many others have to change together with, as if by one store.
 *
 * It is kept twice, each time with the number of the round that it belongs to. What is put for a coming round
 * takes the place of the older of both, and counts for nothing until that round has been committed, by one
 * store of its number elsewhere. So whoever reads twins with the number of the last committed round finds all
 * of them as they were at that time, wherever the writer was when its process died.
 *
 * A process that is killed stops between two instructions, and what it has stored by then is there: only the
 * compiler has to be kept from changing the order of stores. */
#ifndef WR_VERSIONED_H
#define WR_VERSIONED_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeros: 0, before the first round. */
struct wr_versioned {
    struct wr_versioned_half {
        _Atomic uint64_t round;
        _Atomic uint64_t value;
    } halves[2];
};

/* The half that counts when `round` is the last one that was committed; -1: there is none, as there cannot be.
 */
static inline int wr_versioned_find(const struct wr_versioned *twin, uint64_t round)
{
    uint64_t first = atomic_load_explicit(&twin->halves[0].round, memory_order_relaxed);
    uint64_t second = atomic_load_explicit(&twin->halves[1].round, memory_order_relaxed);
    if (first > round)
        return second > round ? -1 : 1;
    return second > round || second <= first ? 0 : 1;
}

/* Puts a value for the round that comes after `round`, which is the last one that was committed. */
static inline void wr_versioned_put(struct wr_versioned *twin, uint64_t round, uint64_t value)
{
    struct wr_versioned_half *half = &twin->halves[wr_versioned_find(twin, round) == 0];
    atomic_store_explicit(&half->round, UINT64_MAX, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&half->value, value, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&half->round, round + 1, memory_order_relaxed);
}

/* The value when `round` is the last one that was committed; 0: it was never put. */
static inline uint64_t wr_versioned_get(const struct wr_versioned *twin, uint64_t round)
{
    int half = wr_versioned_find(twin, round);
    return half < 0 ? 0 : atomic_load_explicit(&twin->halves[half].value, memory_order_relaxed);
}

/* Forgets what was put for a round that was never committed, so that a later round of its number does not bring
 * it to life: what counts takes its place. */
static inline void wr_versioned_settle(struct wr_versioned *twin, uint64_t round)
{
    uint64_t value = wr_versioned_get(twin, round);
    for (int i = 0; i < 2; i++) {
        if (atomic_load_explicit(&twin->halves[i].round, memory_order_relaxed) <= round)
            continue;
        atomic_store_explicit(&twin->halves[i].value, value, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&twin->halves[i].round, 0, memory_order_relaxed);
    }
}

/* Sets it to a value that counts whatever was committed. Only for memory that nobody would read yet. */
static inline void wr_versioned_set(struct wr_versioned *twin, uint64_t value)
{
    atomic_store_explicit(&twin->halves[1].round, 0, memory_order_relaxed);
    atomic_store_explicit(&twin->halves[1].value, value, memory_order_relaxed);
    atomic_store_explicit(&twin->halves[0].round, 0, memory_order_relaxed);
    atomic_store_explicit(&twin->halves[0].value, value, memory_order_relaxed);
}

#endif
