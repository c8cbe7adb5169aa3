#include "dispatch/feed.h"

#include <stdlib.h>

#include "journal/journal.h"

/* More than the longest metadata. */
enum { TEXT_BYTES = 64 * 1024 };

static void refuse_lost(struct wr_feed *feed)
{
    if (!feed->lost)
        return;
    for (size_t i = 0; i < feed->lane_count; i++)
        wr_lane_refuse(feed->lanes[i]->lane, feed->lost, WEIR_DROPPED_FULL);
    feed->lost = 0;
}

/* A call waits for a sample that was lost. */
static void fail_lost_call(const struct wr_feed *feed, struct wr_ticket ticket)
{
    for (size_t i = 0; i < feed->lane_count; i++)
        if (feed->lanes[i]->sync)
            wr_ticket_complete(ticket, WEIR_ERR_MEMORY);
}

void wr_feed_offer(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns)
{
    static const struct wr_ticket no_ticket = {0};
    refuse_lost(feed);
    if (!feed->segment || feed->segment->count == feed->offered) {
        fail_lost_call(feed, ticket);
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
        offer.ticket = lane->sync ? ticket : no_ticket;
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
    feed->offered = feed->committed = 0;
}

/* ---- Segments of a journal ------------------------------------------------------------------- */

static struct wr_segment_file *make_file(const struct wr_feed *feed, int64_t now_ns)
{
    const char **names = calloc(feed->lane_count + 1, sizeof *names);
    for (size_t i = 0; names && i < feed->lane_count; i++)
        names[i] = wr_lane_name(feed->lanes[i]->lane);
    const struct wr_segment_shape shape = {feed->segment_room, TEXT_BYTES, (uint32_t)feed->lane_count, names};
    struct wr_segment_file *file = names ? wr_journal_segment(feed->pool->journal, &shape, now_ns) : NULL;
    free(names);
    return file;
}

/* Returns NULL without disk space or memory. */
static struct wr_segment *start_in_journal(struct wr_feed *feed, int64_t now_ns)
{
    struct wr_journal *journal = feed->pool->journal;
    if (!feed->number)
        feed->number = wr_journal_feed(journal);
    struct wr_segment *segment = wr_segment_reuse(feed->pool, feed->number);
    if (!segment) {
        struct wr_segment_file *file = make_file(feed, now_ns);
        segment = file ? wr_segment_of_file(feed->pool, file, true) : NULL;
    }
    if (!segment)
        return NULL;
    refuse_lost(feed); /* before the segment is numbered: what was lost has identities too */
    for (size_t i = 0; i < feed->lane_count; i++)
        segment->file->ids[i] = wr_lane_take_ids(feed->lanes[i]->lane, 0);
    wr_journal_begin(journal, segment->file, feed->number);
    return segment;
}

static void start_segment(struct wr_feed *feed, int64_t now_ns)
{
    if (feed->pool->journal)
        feed->segment = start_in_journal(feed, now_ns);
    if (!feed->segment)
        feed->segment = wr_segment_new(feed->pool, feed->segment_room);
}

void wr_feed_put_down(struct wr_feed *feed)
{
    const struct wr_segment *segment = feed->segment;
    if (!segment || !segment->file || segment->count == feed->committed)
        return;
    feed->committed = segment->count;
    wr_versioned_put(&segment->file->head->committed, wr_journal_round(feed->pool->journal), segment->count);
}

weir_sample *wr_feed_reserve(struct wr_feed *feed, uint32_t samples, size_t text_bytes, int64_t now_ns)
{
    if (feed->segment && !wr_segment_has_room(feed->segment, samples, text_bytes))
        wr_feed_seal(feed, now_ns);
    if (!feed->segment)
        start_segment(feed, now_ns);
    if (feed->segment)
        return feed->segment->samples + feed->segment->count;
    feed->lost += samples;
    return NULL;
}
