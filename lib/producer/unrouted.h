/* unrouted: how many values of each group nobody listened to.
 *
 * The calling path has one counter a thread, for all groups, and knows besides which group its latest values
 * were of: a run. Only where a run ends, because the thread goes on with another group, is its length added to
 * the group, so threads that add to one such group do not write to one place. */
#ifndef WR_UNROUTED_H
#define WR_UNROUTED_H

#include <stdatomic.h>
#include <stdint.h>

#include "text/common.h"
#include "registry/registry.h"

/* Of one thread, which alone writes it. All zeros: ready, as a forked child finds it. */
struct wr_unrouted {
    _Atomic uint64_t count; /* of all groups */
    _Atomic uint64_t turn;  /* odd: the next two are being changed */
    _Atomic(struct wr_group *) group;
    _Atomic uint64_t since; /* the count when the run of `group` began */
};

/* [producer] Ends the present run and begins one of another group. */
void wr_unrouted_switch(struct wr_unrouted *unrouted, struct wr_group *group);

/* [producer] Counts values of a group. */
static inline void wr_unrouted_count(struct wr_unrouted *unrouted, struct wr_group *group, uint64_t values)
{
    if (WR_UNLIKELY(atomic_load_explicit(&unrouted->group, memory_order_relaxed) != group))
        wr_unrouted_switch(unrouted, group);
    uint64_t count = atomic_load_explicit(&unrouted->count, memory_order_relaxed);
    atomic_store_explicit(&unrouted->count, count + values, memory_order_relaxed);
}

/* [any thread] All that the thread has counted. */
static inline uint64_t wr_unrouted_total(const struct wr_unrouted *unrouted)
{
    return atomic_load_explicit(&unrouted->count, memory_order_relaxed);
}

/* [any thread] The present run: its group and length. NULL: there is none, or the thread changes groups faster
 * than one can look. Whoever reads the groups' own counters before their runs never counts a value twice, but
 * misses what goes from one to the other meanwhile; at rest the sums are exact. */
struct wr_group *wr_unrouted_run(const struct wr_unrouted *unrouted, uint64_t *values);

#endif
