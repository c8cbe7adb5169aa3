/* raised: which values, by their sequence, were given another time than their own. Values that are offered
 * again after a failure get the same times again, so that a destination that had them already notices nothing.
 * Not for sharing between threads. */
#ifndef WR_RAISED_H
#define WR_RAISED_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: no value has been given a time. */
struct wr_raised {
    uint64_t next; /* the first sequence that was not given a time yet */
    struct wr_raised_time {
        uint64_t sequence;
        int64_t time_ns;
    } * times; /* in order; only of those whose time is not their own */
    uint32_t count, room;
};

void wr_raised_fini(struct wr_raised *raised);

/* Forgets what is in front of a sequence: it is settled. */
void wr_raised_forget(struct wr_raised *raised, uint64_t sequence);

/* Whether a value was given a time before: puts it into *time_ns, if it is not what stands there, its own. */
bool wr_raised_recall(const struct wr_raised *raised, uint64_t sequence, int64_t *time_ns);

/* Remembers a time that is not the value's own; sequences rise. false without memory. */
bool wr_raised_add(struct wr_raised *raised, uint64_t sequence, int64_t time_ns);

/* All values in front of a sequence have been given their times. */
void wr_raised_advance(struct wr_raised *raised, uint64_t sequence);

#endif
