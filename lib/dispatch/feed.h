/* feed: lanes that get exactly the same records, and the segment that these are being written to.
 *
 * [dispatcher's round] Each feed gets its records once, in the order of the rings; each of its lanes is offered
 * them as ranges. */
#ifndef WR_FEED_H
#define WR_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane.h"
#include "producer/ring.h"
#include "segment/segment.h"

/* A lane, and what the dispatcher knows of it. */
struct wr_feed_lane {
    struct wr_lane *lane;
    bool sync;
    bool full;              /* producers have to wait for it */
    bool wanted, started;   /* it was offered something, or may have something on disk; it has a worker */
    int64_t start_again_ns; /* no further try to start its worker before this */
};

struct wr_feed {
    struct wr_feed_lane **lanes;
    size_t lane_count;
    uint32_t segment_room;
    struct wr_segment_pool *pool;
    struct wr_segment *segment; /* NULL: the next record needs a new one */
    uint32_t offered;           /* how much of it the lanes know */
    bool no_wait;               /* some of what they do not know was added by weir's own threads */
    uint64_t lost;              /* samples for which there was no memory */
    uint32_t number;            /* in the journal; 0: none so far */
    uint32_t committed;         /* how much of the segment is */
};

/* Whether there is room for one more event in the segment; text_bytes: of its metadata, with their NULs. */
static inline bool wr_feed_has_room(const struct wr_feed *feed, uint32_t samples, size_t text_bytes)
{
    return feed->segment && wr_segment_has_room(feed->segment, samples, text_bytes);
}

/* Room for one more event of so many samples; NULL: no memory, and the samples are counted as lost. The caller
 * fills the slots, and then calls wr_feed_added. Where there was no room in the segment, all of that is
 * offered: with a journal it must have been committed. */
weir_sample *wr_feed_reserve(struct wr_feed *feed, uint32_t samples, size_t text_bytes, int64_t now_ns);

/* Puts down for the journal's next round how much of the segment there is. */
void wr_feed_put_down(struct wr_feed *feed);

static inline void wr_feed_added(struct wr_feed *feed, uint32_t samples)
{
    feed->segment->count += samples;
}

/* Offers the lanes what they do not know yet; with a journal it must have been committed. ticket: of a call
 * that waits for the last of it; its desk NULL: none does. */
void wr_feed_offer(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns);

/* Offers everything, and gives up the segment. */
void wr_feed_seal(struct wr_feed *feed, int64_t now_ns);

#endif
