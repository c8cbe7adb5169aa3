/* unrouted: counts the values of groups without a route.
 *
 * The calling path has one counter per thread, for all groups, and the group of its latest values: a run. The
 * length of a run is added to the group's own counter when the thread adds to another group, so threads that
 * add to the same group do not write to the same cache line. */
#ifndef WR_UNROUTED_H
#define WR_UNROUTED_H

#include <stdatomic.h>
#include <stdint.h>

#include "text/common.h"
#include "registry/registry.h"

/* Written by one thread only. All zeros: ready, as in a forked child. */
struct wr_unrouted {
    _Atomic uint64_t count; /* of all groups */
    _Atomic uint64_t turn;  /* odd: `group` and `since` are being changed */
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

/* [any thread] The present run: its group and length. Returns NULL if there is none, or if the thread changes
 * groups faster than they can be read. A reader that reads the groups' own counters before the runs never
 * counts a value twice, but may miss those added to a group meanwhile; the sums are exact when no thread adds.
 */
struct wr_group *wr_unrouted_run(const struct wr_unrouted *unrouted, uint64_t *values);

#endif
