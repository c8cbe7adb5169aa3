/* versioned: numbers in mapped files that change together, as if by one store.
 *
 * Each number is stored twice, with the round that it belongs to. A value for the next round overwrites the
 * older of both, and takes effect when that round is committed, by one store of the round's number elsewhere. A
 * reader that uses the last committed round finds all numbers as of that commit, wherever the writer was when
 * its process died.
 *
 * A killed process stops between two instructions, and the files have all stores before that: only the compiler
 * must be kept from reordering them. */
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

/* Returns the half that is in effect if `round` is the last committed one; -1: none, in a damaged file only. */
static inline int wr_versioned_find(const struct wr_versioned *number, uint64_t round)
{
    uint64_t first = atomic_load_explicit(&number->halves[0].round, memory_order_relaxed);
    uint64_t second = atomic_load_explicit(&number->halves[1].round, memory_order_relaxed);
    if (first > round)
        return second > round ? -1 : 1;
    return second > round || second <= first ? 0 : 1;
}

/* Stores the value for the round after `round`, which is the last committed one. */
static inline void wr_versioned_put(struct wr_versioned *number, uint64_t round, uint64_t value)
{
    struct wr_versioned_half *half = &number->halves[wr_versioned_find(number, round) == 0];
    atomic_store_explicit(&half->round, UINT64_MAX, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&half->value, value, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&half->round, round + 1, memory_order_relaxed);
}

/* Returns the value if `round` is the last committed one; 0 if none was ever stored. */
static inline uint64_t wr_versioned_get(const struct wr_versioned *number, uint64_t round)
{
    int half = wr_versioned_find(number, round);
    return half < 0 ? 0 : atomic_load_explicit(&number->halves[half].value, memory_order_relaxed);
}

/* Overwrites a value for a round that was never committed with the one in effect: a later round of the same
 * number would commit it. */
static inline void wr_versioned_settle(struct wr_versioned *number, uint64_t round)
{
    uint64_t value = wr_versioned_get(number, round);
    for (int i = 0; i < 2; i++) {
        if (atomic_load_explicit(&number->halves[i].round, memory_order_relaxed) <= round)
            continue;
        atomic_store_explicit(&number->halves[i].value, value, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&number->halves[i].round, 0, memory_order_relaxed);
    }
}

/* Sets the value for all rounds. Only for a file that is not in use. */
static inline void wr_versioned_set(struct wr_versioned *number, uint64_t value)
{
    atomic_store_explicit(&number->halves[1].round, 0, memory_order_relaxed);
    atomic_store_explicit(&number->halves[1].value, value, memory_order_relaxed);
    atomic_store_explicit(&number->halves[0].round, 0, memory_order_relaxed);
    atomic_store_explicit(&number->halves[0].value, value, memory_order_relaxed);
}

#endif
