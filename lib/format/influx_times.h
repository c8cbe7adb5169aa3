/* influx_times: assigns times to values for a destination that keeps one value for each series and time.
 *
 * A time that is in use is raised, by as few nanoseconds as possible, so that no value replaces another. The
 * latest times in use are remembered, at least 65,536 of them: far more than threads that add to one series at
 * the same moment can have under way. Values that are offered again after a failure get the times that they had
 * before, so that a destination that has stored them already stores them only once.
 *
 * Not thread-safe. */
#ifndef WR_INFLUX_TIMES_H
#define WR_INFLUX_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Hashes of (key, time), in a table that is at most half full. 0: free. */
struct wr_influx_times_set {
    uint64_t *slots;
    uint32_t room, count;
};

/* All zeros: empty. */
struct wr_influx_times {
    struct wr_influx_times_set young, old; /* times in use; a full young set becomes the old one */
    uint64_t next;                         /* the first sequence number without a time */
    struct wr_influx_times_raised {
        uint64_t sequence;
        int64_t time_ns;
    } * raised; /* in order; only the values whose time is not their own */
    uint32_t raised_count, raised_room;
};

void wr_influx_times_fini(struct wr_influx_times *times);

/* Returns the first time from time_ns on, nearly always time_ns itself, that the key does not use. */
int64_t wr_influx_times_find(const struct wr_influx_times *times, uint64_t key, int64_t time_ns);

/* Marks a time as in use by the key. Returns false if out of memory. */
bool wr_influx_times_use(struct wr_influx_times *times, uint64_t key, int64_t time_ns);

/* Whether the value with this sequence number was given a time before. Sets *time_ns to it, if it is not the
 * value's own. */
bool wr_influx_times_recall(const struct wr_influx_times *times, uint64_t sequence, int64_t *time_ns);

/* Remembers a time that is not the value's own. Sequence numbers rise. Returns false if out of memory. */
bool wr_influx_times_raise(struct wr_influx_times *times, uint64_t sequence, int64_t time_ns);

/* All values before this sequence number have their times. */
void wr_influx_times_advance(struct wr_influx_times *times, uint64_t sequence);

/* The values to come have other sequence numbers: forgets those of all values, and keeps the times in use. */
void wr_influx_times_restart(struct wr_influx_times *times);

/* All values before this sequence number are settled: forgets them. */
void wr_influx_times_forget(struct wr_influx_times *times, uint64_t sequence);

#endif
