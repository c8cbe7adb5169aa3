#include "unheard.h"

enum { LOOKS_MOST = 100 };

/* Reader: turn, group, since, count, turn; writer: turn, the group's own counter, since, group, turn. All
 * sequentially consistent but for `count`: a reader that finds the same even turn twice has read group and
 * since of one run. It cannot see a `since` that is newer than its `count`, since it reads `since` first, and
 * the thread had counted up to there before it stored that. */

void wr_unheard_switch(struct wr_unheard *unheard, struct wr_group *group)
{
    struct wr_group *before = atomic_load_explicit(&unheard->group, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&unheard->count, memory_order_relaxed);
    uint64_t since = atomic_load_explicit(&unheard->since, memory_order_relaxed);
    atomic_fetch_add(&unheard->turn, 1);
    if (before)
        atomic_fetch_add(&before->unheard, count - since);
    atomic_store(&unheard->since, count);
    atomic_store(&unheard->group, group);
    atomic_fetch_add(&unheard->turn, 1);
}

struct wr_group *wr_unheard_run(const struct wr_unheard *unheard, uint64_t *values)
{
    for (int i = 0; i < LOOKS_MOST; i++) {
        uint64_t turn = atomic_load(&unheard->turn);
        struct wr_group *group = atomic_load(&unheard->group);
        uint64_t since = atomic_load(&unheard->since);
        *values = wr_unheard_total(unheard) - since;
        if (turn % 2 == 0 && atomic_load(&unheard->turn) == turn)
            return group;
    }
    *values = 0;
    return NULL;
}
