/* instants: hands out times so that no value takes the place of another: for destinations where two values of
 * one series and one time are one value. A time that was given already is raised, by as few nanoseconds as it
 * takes.
 *
 * What was given lately is remembered, not everything: the last 65,536 times at least. That is far more than
 * threads that add to one series at the same moment can have on their way. Not for sharing between threads. */
#ifndef WR_INSTANTS_H
#define WR_INSTANTS_H

#include <stdbool.h>
#include <stdint.h>

/* Hashes of (key, time), in a table that is at most half full. 0: free. */
struct wr_instants_set {
    uint64_t *slots;
    uint32_t room, count;
};

/* All zeros: nothing was given yet. A full young set becomes the old one. */
struct wr_instants {
    struct wr_instants_set young, old;
};

void wr_instants_fini(struct wr_instants *instants);

/* The first time from time_ns on (nearly always itself) that is free for a key. */
int64_t wr_instants_find(const struct wr_instants *instants, uint64_t key, int64_t time_ns);

/* Remembers that a time was given for a key; false without memory. */
bool wr_instants_take(struct wr_instants *instants, uint64_t key, int64_t time_ns);

#endif
