#include "producer/unrouted.h"

enum { READS_MOST = 100 };

/* A reader loads turn, group, since, count, turn; the writer stores turn, the group's own counter, since,
 * group, turn. All are sequentially consistent except `count`: a reader that finds the same even turn twice has
 * read group and since of one run. It cannot see a `since` newer than its `count`: it loads `since` first, and
 * the writer had stored a `count` of at least that value before. */

void wr_unrouted_switch(struct wr_unrouted *unrouted, struct wr_group *group)
{
    struct wr_group *before = atomic_load_explicit(&unrouted->group, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&unrouted->count, memory_order_relaxed);
    uint64_t since = atomic_load_explicit(&unrouted->since, memory_order_relaxed);
    atomic_fetch_add(&unrouted->turn, 1);
    if (before)
        atomic_fetch_add(&before->unrouted, count - since);
    atomic_store(&unrouted->since, count);
    atomic_store(&unrouted->group, group);
    atomic_fetch_add(&unrouted->turn, 1);
}

struct wr_group *wr_unrouted_run(const struct wr_unrouted *unrouted, uint64_t *values)
{
    for (int i = 0; i < READS_MOST; i++) {
        uint64_t turn = atomic_load(&unrouted->turn);
        struct wr_group *group = atomic_load(&unrouted->group);
        uint64_t since = atomic_load(&unrouted->since);
        *values = wr_unrouted_total(unrouted) - since;
        if (turn % 2 == 0 && atomic_load(&unrouted->turn) == turn)
            return group;
    }
    *values = 0;
    return NULL;
}
