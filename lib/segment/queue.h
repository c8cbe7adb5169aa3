/* queue: what a lane still has to deliver, in order: ranges of segments, each holding one reference. Under the
 * lane's lock. */
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
    uint64_t
        sequence; /* the lane's position of its first sample, among all that it was given in this process */
    struct wr_sample_id id; /* of its first sample; the others follow without a gap */
    int64_t since_ns;       /* monotonic; when its first sample came */
};

/* All zeros: empty. */
struct wr_queue {
    struct wr_range *ranges; /* a circle */
    uint32_t first, count, room;
    uint64_t samples, bytes;
};

void wr_queue_fini(struct wr_queue *queue);

/* Appends a range, with a reference of its own; one that continues the last range, in the segment, in position
 * and in identity, is merged into it. Returns false if out of memory; the queue is unchanged then. */
bool wr_queue_push(struct wr_queue *queue, const struct wr_range *range);

static inline bool wr_queue_is_empty(const struct wr_queue *queue)
{
    return queue->count == 0;
}

/* The oldest range; only of a queue that is not empty. */
static inline struct wr_range *wr_queue_front(const struct wr_queue *queue)
{
    return &queue->ranges[queue->first];
}

/* Takes up to `most` samples and `most_bytes`, but at least one event, from the front; with their reference,
 * which the caller drops. */
struct wr_range wr_queue_take(struct wr_queue *queue, uint32_t most, uint64_t most_bytes);

/* Cuts whole events of up to `most` samples, but at least one event, off a range's front; the part cut off has
 * a reference of its own. */
struct wr_range wr_range_split(struct wr_range *range, uint32_t most);

/* Takes up to `most` samples and `most_bytes`, but at least one event, off the range's front, with a reference;
 * when nothing is left the range is empty, all zeros. */
struct wr_range wr_range_take(struct wr_range *range, uint32_t most, uint64_t most_bytes);

/* How many samples at a range's front, of whole events, weigh no more than `bytes`. */
uint32_t wr_range_count_fitting(const struct wr_range *range, uint64_t bytes);

/* The lane is done with samples at the range's front, for good. */
static inline void wr_range_settle(const struct wr_range *range, uint32_t samples)
{
    wr_segment_settle(range->segment, range->slot, range->first, samples);
}

/* Shortens a range by samples at its front that are done with; bytes follow. */
void wr_range_skip(struct wr_range *range, uint32_t samples);

#endif
