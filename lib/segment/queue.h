/* queue: what a lane has to deliver, in order: ranges of segments, with one reference each. [lane lock] */
#ifndef WR_QUEUE_H
#define WR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/origin.h"
#include "segment/segment.h"

struct wr_range {
    struct wr_segment *segment; /* NULL: no range */
    uint32_t first, count;
    uint32_t slot; /* the lane's, in the segment's file */
    uint64_t bytes;
    uint64_t position;      /* of its first sample, among all that the lane was given in this process */
    struct wr_sample_id id; /* of its first sample; the others follow without a gap */
    int64_t since_ns;       /* when its first sample was queued; monotonic */
};

/* All zeros: empty. */
struct wr_queue {
    struct wr_range *ranges; /* a circle */
    uint32_t first, count, room;
    uint64_t samples, values, bytes; /* of all ranges */
};

void wr_queue_fini(struct wr_queue *queue);

/* Appends a range, with a reference of its own; one that continues the last range, in the segment, in position
 * and in identity, is merged into it. Returns false if out of memory; the queue is unchanged then. */
bool wr_queue_push(struct wr_queue *queue, const struct wr_range *range);

static inline bool wr_queue_is_empty(const struct wr_queue *queue)
{
    return queue->count == 0;
}

/* The range at a place of the queue, from 0 for the oldest. */
static inline struct wr_range *wr_queue_at(const struct wr_queue *queue, uint32_t place)
{
    return &queue->ranges[(queue->first + place) % queue->room];
}

/* The oldest range; only of a queue that is not empty. */
static inline struct wr_range *wr_queue_front(const struct wr_queue *queue)
{
    return &queue->ranges[queue->first];
}

/* Takes up to `most` samples and `most_bytes`, but at least one event, from the front. The caller drops the
 * range's reference. */
struct wr_range wr_queue_take(struct wr_queue *queue, uint32_t most, uint64_t most_bytes);

/* Splits whole events of up to `most` samples, but at least one event, off the range's front, and returns them
 * with a reference of their own. */
struct wr_range wr_range_split(struct wr_range *range, uint32_t most);

/* The same, bounded by `most_bytes` too. A range of which nothing is left becomes all zeros, and its reference
 * is dropped. */
struct wr_range wr_range_take(struct wr_range *range, uint32_t most, uint64_t most_bytes);

/* Returns how many samples of whole events at the range's front take at most this many bytes. */
uint32_t wr_range_count_fitting(const struct wr_range *range, uint64_t bytes);

/* Marks samples at the range's front as delivered or dropped. */
static inline void wr_range_settle(const struct wr_range *range, uint32_t samples)
{
    wr_segment_settle(range->segment, range->slot, range->first, samples);
}

/* How many values the range's samples are; 0 if it has no segment. */
static inline uint64_t wr_range_values(const struct wr_range *range)
{
    return range->segment ? wr_segment_values(range->segment, range->first, range->count) : 0;
}

/* Removes samples from the front of a range. */
void wr_range_skip(struct wr_range *range, uint32_t samples);

#endif
