#include "feed.h"

static void refuse_lost(struct wr_feed *feed)
{
    if (!feed->lost)
        return;
    for (size_t i = 0; i < feed->lane_count; i++)
        wr_lane_refuse(feed->lanes[i]->lane, feed->lost, WEIR_DROPPED_FULL);
    feed->lost = 0;
}

/* There is nothing to offer, though a call waits for it: its sample was lost. */
static void answer_lost(const struct wr_feed *feed, struct wr_ticket ticket)
{
    for (size_t i = 0; i < feed->lane_count; i++)
        if (feed->lanes[i]->sync)
            wr_ticket_answer(ticket, WEIR_ERR_MEMORY);
}

void wr_feed_offer(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns)
{
    static const struct wr_ticket nobody = {0};
    refuse_lost(feed);
    if (!feed->segment || feed->segment->count == feed->offered) {
        answer_lost(feed, ticket);
        return;
    }
    struct wr_offer offer = {
        .segment = feed->segment,
        .first = feed->offered,
        .count = feed->segment->count - feed->offered,
        .no_wait = feed->no_wait,
    };
    for (size_t i = 0; i < feed->lane_count; i++) {
        struct wr_feed_lane *lane = feed->lanes[i];
        offer.slot = (uint32_t)i;
        offer.ticket = lane->sync ? ticket : nobody;
        lane->full = wr_lane_offer(lane->lane, &offer, now_ns);
        lane->wanted = true;
    }
    feed->offered = feed->segment->count;
    feed->no_wait = false;
}

void wr_feed_seal(struct wr_feed *feed, int64_t now_ns)
{
    wr_feed_offer(feed, (struct wr_ticket){0}, now_ns);
    wr_segment_drop(feed->segment);
    feed->segment = NULL;
    feed->offered = 0;
}

weir_sample *wr_feed_reserve(struct wr_feed *feed, uint32_t samples, int64_t now_ns)
{
    if (feed->segment && feed->segment->room - feed->segment->count < samples)
        wr_feed_seal(feed, now_ns);
    if (!feed->segment)
        feed->segment = wr_segment_new(feed->pool, feed->segment_room);
    if (feed->segment)
        return feed->segment->samples + feed->segment->count;
    feed->lost += samples;
    return NULL;
}
