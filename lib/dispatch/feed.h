/* feed: lanes that receive exactly the same samples, and the segment that these are written to. Each feed
 * receives its samples once, in the order of the rings, and offers them to each of its lanes as ranges.
 * [dispatcher's round] */
#ifndef WR_FEED_H
#define WR_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/summer.h"
#include "lane/lane.h"
#include "producer/ring.h"
#include "segment/segment.h"

/* A lane, and the dispatcher's state of it. */
struct wr_feed_lane {
    struct wr_lane *lane;
    struct wr_feed *feed;             /* that it is in; NULL: its samples are summed as they are taken */
    struct wr_summer *summer;         /* what makes them; else NULL */
    struct wr_summing summing;        /* its settings */
    struct wr_lane_arrivals arrivals; /* that the lane has not counted yet */
    bool sync;
    enum wr_waiting waiting; /* who has to wait for it */
    bool was_full;           /* it had no room at the last check */
    bool keeps; /* what it is offered in this round is queued however full it is: see wr_route_expect_sources */
    bool wanted, started;   /* it needs a worker: samples were offered or may be on disk, or it opens early; it
                             has one */
    int64_t start_again_ns; /* no attempt to start its worker before this */
};

/* Adds a sample to the lane's open interval, or counts it as dropped. Returns whether it is in the interval. */
bool wr_feed_sum(struct wr_feed_lane *lane, const weir_sample *sample);

/* The same for what was taken of a thread's cell. */
void wr_feed_sum_taken(struct wr_feed_lane *lane, uint32_t series, const struct wr_cell_taken *taken);

/* Counts in the lane what was added since the last call. An interval whose lane has come to its end is
 * discarded. */
void wr_feed_count_sums(struct wr_feed_lane *lane, int64_t now_ns);

/* As wr_feed_sum, for samples of a segment with a file, that stay in it until their summaries are settled.
 * slot: the lane's in the file. */
void wr_feed_sum_range(struct wr_feed_lane *lane, struct wr_segment *segment, uint32_t slot, uint32_t first,
                       uint32_t count);

struct wr_feed {
    struct wr_feed_lane **lanes;
    size_t lane_count;
    uint32_t segment_room;
    struct wr_segment_pool *pool;
    struct wr_segment *segment;       /* NULL: the next sample needs a new one */
    uint32_t offered;                 /* how many of its samples were offered */
    bool passed_over;                 /* its routes leave out all of the event that a call waits for */
    int passed_over_result;           /* of that call */
    bool sums;                        /* all of its lanes take summaries */
    bool no_wait;                     /* some of those not offered yet were added by weir's own threads */
    struct wr_lane_left_out left_out; /* not counted by the lanes yet */
    uint32_t number;                  /* in the journal; 0: none so far */
    uint32_t committed;               /* how many samples of the segment are committed */
};

/* Returns slots for one more event, which the caller fills, and then calls wr_feed_added. text_bytes: of its
 * metadata, with NULs. A full segment is offered first; with a journal it must have been committed. Returns
 * NULL if out of memory; the samples are counted as lost. */
weir_sample *wr_feed_reserve(struct wr_feed *feed, uint32_t samples, size_t text_bytes, int64_t now_ns);

/* Adds the summary of what was taken of a cell. text: see taken.h; length 0: there was no memory for it. With a
 * journal there must be room for it, or the segment committed. */
void wr_feed_add_taken(struct wr_feed *feed, const weir_sample *summary, const char *text, size_t length,
                       int64_t now_ns);

/* Adds the segment's present count to the journal's next round. */
void wr_feed_put_down(struct wr_feed *feed);

static inline void wr_feed_added(struct wr_feed *feed, uint32_t samples)
{
    feed->segment->count += samples;
}

/* Offers to the lanes what was not offered yet; with a journal it must have been committed. ticket: of a call
 * that waits for the last sample of it; state NULL: none. */
void wr_feed_offer(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns);

/* The same for the calling thread's own call: now gets what that thread is to deliver; NULL: nothing. */
void wr_feed_offer_now(struct wr_feed *feed, struct wr_ticket ticket, struct wr_lane_now *now, int64_t now_ns);

/* The same for an event that the routes leave out: the call does not wait for these lanes. */
void wr_feed_pass_over(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns);

/* Offers everything, and releases the segment. */
void wr_feed_seal(struct wr_feed *feed, int64_t now_ns);

#endif
