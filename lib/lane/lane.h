/* lane: the core's side of a handler: a bounded queue, retry and back-pressure state, and the counters. Users
 * hear "handler".
 *
 * The dispatcher offers samples, the lane's worker delivers them, the program's threads flush. Each call takes
 * the lane's lock; plugin code is never called under it. Time is an argument, so that tests can drive a lane
 * without a clock and without threads.
 *
 * A lane belongs to its handler's name and is never freed once it is in use: the counters continue when the
 * handler is replaced, or is configured again after it was removed.
 *
 * The rest of the interface: lane_config.h (configuring), lane_worker.h and lane_host.h (the worker thread and
 * the handler on it), lane_flush.h, lane_stop.h, lane_fork.h, lane_stats.h. struct wr_lane itself is private to
 * this folder. */
#ifndef WR_LANE_H
#define WR_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "lane/backpressure.h"
#include "producer/ticket.h"

struct wr_error;
struct wr_lane;
struct wr_lane_now;
struct wr_log;
struct wr_range;
struct wr_segment;
struct wr_summer;
struct wr_wakeup;
struct wr_deferred_log;

/* The common options, as numbers. */
struct wr_lane_settings {
    uint64_t queue_bytes;
    enum wr_overflow overflow;
    int64_t block_timeout_ns;
    uint32_t batch;
    uint64_t batch_bytes;
    int64_t linger_ns;
    int64_t retry_min_ns, retry_max_ns;
    bool sync;
    uint64_t spool_limit; /* bytes; 0: no spool */
    int64_t aggregate_ns; /* the interval of summaries; 0: it takes values */
    uint32_t aggregate_series, percentiles;
    bool ranks;       /* of histograms, too */
    bool opens_early; /* opened also when there is nothing to deliver */
};

/* An end reason (enum weir_drop) of a lane that accepts samples. */
enum { WR_LANE_LIVES = -1 };

/* name is copied. wakeup: sent when producers may continue, may be NULL. deferred_log: takes the messages of
 * threads that hold the round lock, may be NULL. Returns NULL if out of memory. */
struct wr_lane *wr_lane_new(const char *name, struct wr_log *log, struct wr_wakeup *wakeup,
                            struct wr_deferred_log *deferred_log);

/* Frees a lane that was never offered anything and has no handler. May be NULL. */
void wr_lane_free_unused(struct wr_lane *lane);

/* Valid until the process ends. */
const char *wr_lane_name(const struct wr_lane *lane);

/* ---- The list of a process's lanes ----------------------------------------------------------- */

/* The next older lane; NULL: this is the first that was made. Never changes once the lane is in the list, so
 * the list can be walked without a lock. */
struct wr_lane *wr_lane_next(const struct wr_lane *lane);

/* How many there are from this one on; NULL: none. */
size_t wr_lane_count(const struct wr_lane *lane);

/* Puts a new lane in front of a list, whose first lane is now `next`. */
void wr_lane_set_next(struct wr_lane *lane, struct wr_lane *next);

/* ---- [dispatcher's round] -------------------------------------------------------------------- */

/* Samples of whole events in a segment. */
struct wr_offer {
    struct wr_segment *segment;
    uint32_t first, count;
    uint32_t slot;           /* the lane's, in the segment's file */
    bool no_wait;            /* some of them are flagged WR_RING_NO_WAIT: added by weir's own threads */
    bool keep;               /* they are queued however full the lane is: further ones wait before they come */
    struct wr_ticket ticket; /* of a call that waits for the last of them */
    /* of the thread of that call, which may deliver them itself: gets what it has to; NULL: it may not */
    struct wr_lane_now *now;
};

/* Queues samples, or drops and counts them. Wakes the worker if it has something new to decide. Returns who has
 * to wait for this lane. */
enum wr_waiting wr_lane_offer(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns);

/* Takes the ids of `count` samples that reach the lane by another way than an offer, and returns the first;
 * with count 0: that of the next sample to be offered. */
struct wr_sample_id wr_lane_take_ids(struct wr_lane *lane, uint64_t count);

/* Values that have arrived for a lane that takes summaries, since the last call. */
struct wr_lane_arrivals {
    uint64_t summed;          /* they are in the open interval now */
    uint64_t beyond_limit;    /* dropped: their series are more than aggregate_series */
    uint64_t no_memory;       /* dropped as WEIR_DROPPED_FULL */
    uint64_t unrepresentable; /* dropped: not a number, infinite, or a negative increment */
    uint64_t filtered;        /* dropped: a route leaves them out */
    uint64_t recovered;       /* of all these, how many come from the journal of an earlier process */
    uint64_t kept;            /* of those summed, how many are in a journal as well */
    uint64_t not_kept;        /* of those summed, how many were in a journal, but had to leave it */
    int64_t now_ns;
};

/* Counts them. Returns WR_LANE_LIVES, or an end reason (enum weir_drop): then the caller discards the whole
 * open interval. */
int wr_lane_sum(struct wr_lane *lane, const struct wr_lane_arrivals *arrivals);

/* The open interval of a lane that has come to its end was discarded. left: how many of its values stay in the
 * journal. */
void wr_lane_discard_sums(struct wr_lane *lane, uint64_t left);

/* Whether the queue has room for an interval, or the lane has ended and drops it. If not, the interval stays
 * open, and the next one is added to it. */
bool wr_lane_takes_summaries(struct wr_lane *lane);

/* Queues the summaries of an interval, which is all of the segment, however full the queue is. */
void wr_lane_offer_summaries(struct wr_lane *lane, struct wr_segment *segment, int64_t now_ns);

/* What sums the values of a lane that takes summaries; NULL: nothing has yet. It is set once, by a thread that
 * configures, and stays as long as the lane. Returns the one that was set first. [any thread] */
struct wr_summer *wr_lane_summer(const struct wr_lane *lane);
struct wr_summer *wr_lane_set_summer(struct wr_lane *lane, struct wr_summer *summer);

/* Counts values that do not get here. They get no identities. recovered: they come from the journal of an
 * earlier process. */
struct wr_lane_left_out {
    uint64_t filtered, unrepresentable; /* by a route */
    uint64_t lost;                      /* there was no memory for them */
    bool recovered;
};
void wr_lane_leave_out(struct wr_lane *lane, const struct wr_lane_left_out *left_out);

/* Applies the end of block_timeout and of the deadline for stopping. Lowers *next_ns to the time of the next
 * check. Returns who has to wait for this lane. */
enum wr_waiting wr_lane_check(struct wr_lane *lane, int64_t now_ns, int64_t *next_ns);

/* Queues samples of an earlier process, however full the lane is. The lane sets bytes, sequence and since_ns of
 * the range and takes a reference to its segment. *waiting: who has to wait for this lane. Returns
 * false if the lane has come to its end or is out of memory; the samples are not counted then. */
bool wr_lane_recover(struct wr_lane *lane, struct wr_range *range, int64_t now_ns, enum wr_waiting *waiting);

/* Settles samples of an earlier process that are damaged, and counts them as recovered and dropped. */
void wr_lane_drop_corrupt(struct wr_lane *lane, const struct wr_range *range);

/* ---- [any thread] ---------------------------------------------------------------------------- */

/* What synchronous calls wait for: how many samples are settled or on disk so far, and for how long without
 * progress a call waits. With signals blocked. */
struct wr_lane_progress {
    uint64_t settled;
    int64_t timeout_ns;
    bool is_awaited; /* such calls wait at this moment */
};
struct wr_lane_progress wr_lane_get_progress(struct wr_lane *lane);

/* Sets the error with the handler's message if `result` is the code that its last outcome led to. Returns
 * whether it is. */
bool wr_lane_describe_error(struct wr_lane *lane, int result, struct wr_error *error);

/* Has the handler reopen its files, at once. With signals blocked. */
void wr_lane_request_reload(struct wr_lane *lane);

/* Waits until at most `most` bytes are queued, or deadline_ns. Returns how many are queued. May return early.
 */
uint64_t wr_lane_wait_queued(struct wr_lane *lane, uint64_t most, int64_t deadline_ns);

#endif
