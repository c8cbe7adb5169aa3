#include "dispatch/feed.h"

#include "journal/journal.h"
#include "lane/lane_now.h"
#include "os/pages.h"

/* More than the longest metadata. */
enum { TEXT_BYTES = 64 * 1024 };

static void count_left_out(struct wr_feed *feed)
{
    const struct wr_lane_left_out *left_out = &feed->left_out;
    if (!left_out->filtered && !left_out->unrepresentable && !left_out->lost)
        return;
    for (size_t i = 0; i < feed->lane_count; i++)
        wr_lane_leave_out(feed->lanes[i]->lane, left_out);
    feed->left_out = (struct wr_lane_left_out){0};
}

/* A call waits for a sample that does not reach the lanes. */
static void complete_call(const struct wr_feed *feed, struct wr_ticket ticket, int result)
{
    for (size_t i = 0; i < feed->lane_count; i++)
        if (feed->lanes[i]->sync)
            wr_ticket_complete(ticket, result);
}

/* ---- Summing --------------------------------------------------------------------------------- */

static bool count_arrived(struct wr_feed_lane *lane, enum wr_summed summed, uint64_t values)
{
    switch (summed) {
    case WR_SUMMED: lane->arrivals.summed += values; return true;
    case WR_SUMMED_BEYOND_LIMIT: lane->arrivals.beyond_limit += values; return false;
    case WR_SUMMED_NO_MEMORY: lane->arrivals.no_memory += values; return false;
    default: lane->arrivals.unrepresentable += values; return false;
    }
}

bool wr_feed_sum(struct wr_feed_lane *lane, const weir_sample *sample)
{
    return count_arrived(lane, wr_summer_add(lane->summer, &lane->summing, sample), 1);
}

void wr_feed_sum_taken(struct wr_feed_lane *lane, uint32_t series, const struct wr_cell_taken *taken)
{
    count_arrived(lane, wr_summer_add_taken(lane->summer, &lane->summing, series, taken), taken->values);
}

/* Of a segment, which may have summaries of cells. */
static bool sum_sample(struct wr_feed_lane *lane, const struct wr_segment *segment, const weir_sample *sample)
{
    if (sample->kind != WEIR_KIND_SUMMARY)
        return wr_feed_sum(lane, sample);
    const char *text = wr_segment_texts(segment)[sample->note];
    return count_arrived(lane, wr_summer_add_summary(lane->summer, &lane->summing, sample->series, text),
                         wr_sample_values(sample));
}

void wr_feed_sum_range(struct wr_feed_lane *lane, struct wr_segment *segment, uint32_t slot, uint32_t first,
                       uint32_t count)
{
    struct wr_input input = {.segment = segment, .first = first, .count = count, .slot = slot};
    for (uint32_t i = first; i < first + count; i++) {
        if (sum_sample(lane, segment, &segment->samples[i]))
            input.values += wr_sample_values(&segment->samples[i]);
        else
            wr_segment_settle(segment, slot, i, 1);
    }
    if (!segment->file)
        return;
    bool is_kept = wr_summer_keep(lane->summer, &input);
    *(is_kept ? &lane->arrivals.kept : &lane->arrivals.not_kept) += input.values;
}

/* Values that arrived after the lane's end. At the end of the process those in a journal stay there. */
static void discard_interval(struct wr_feed_lane *lane, int ending)
{
    wr_lane_discard_sums(lane->lane, wr_summer_discard(lane->summer, ending == WEIR_DROPPED_SHUTDOWN));
}

void wr_feed_count_sums(struct wr_feed_lane *lane, int64_t now_ns)
{
    const struct wr_lane_arrivals *arrivals = &lane->arrivals;
    if (!arrivals->summed && !arrivals->beyond_limit && !arrivals->no_memory && !arrivals->unrepresentable &&
        !arrivals->filtered)
        return;
    lane->arrivals.now_ns = now_ns;
    lane->wanted = true; /* its worker is there when the handler is removed, which ends the interval */
    int ending = wr_lane_sum(lane->lane, arrivals);
    if (ending != WR_LANE_LIVES)
        discard_interval(lane, ending);
    lane->arrivals = (struct wr_lane_arrivals){0};
}

/* ---- Offering -------------------------------------------------------------------------------- */

/* Their identities are used up: in a journal the samples have them. */
static void sum_offer(struct wr_feed_lane *lane, const struct wr_offer *offer, int64_t now_ns)
{
    wr_lane_take_ids(lane->lane, offer->count);
    wr_feed_sum_range(lane, offer->segment, offer->slot, offer->first, offer->count);
    wr_feed_count_sums(lane, now_ns);
}

void wr_feed_offer(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns)
{
    wr_feed_offer_now(feed, ticket, NULL, now_ns);
}

/* At most one of the lanes leaves its part to the calling thread. */
void wr_feed_offer_now(struct wr_feed *feed, struct wr_ticket ticket, struct wr_lane_now *now, int64_t now_ns)
{
    static const struct wr_ticket no_ticket = {0};
    count_left_out(feed);
    if (!feed->segment || feed->segment->count == feed->offered) {
        complete_call(feed, ticket, WEIR_ERR_MEMORY);
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
        offer.now = lane->sync && now && !now->lane ? now : NULL;
        offer.keep = lane->keeps;
        if (lane->summer) {
            sum_offer(lane, &offer, now_ns);
            continue;
        }
        lane->waiting = wr_lane_offer(lane->lane, &offer, now_ns);
        lane->wanted = true;
    }
    feed->offered = feed->segment->count;
    feed->no_wait = false;
}

void wr_feed_pass_over(struct wr_feed *feed, struct wr_ticket ticket, int64_t now_ns)
{
    wr_feed_offer(feed, (struct wr_ticket){0}, now_ns);
    complete_call(feed, ticket, feed->passed_over_result);
}

void wr_feed_seal(struct wr_feed *feed, int64_t now_ns)
{
    if (feed->pool->journal) /* a full one may be offered before it is committed: see spread in drain.c */
        wr_feed_put_down(feed);
    wr_feed_offer(feed, (struct wr_ticket){0}, now_ns);
    wr_segment_drop(feed->segment);
    feed->segment = NULL;
    feed->offered = feed->committed = 0;
}

void wr_feed_add_taken(struct wr_feed *feed, const weir_sample *summary, const char *text, size_t length,
                       int64_t now_ns)
{
    uint64_t values = wr_sample_values(summary);
    weir_sample *to = wr_feed_reserve(feed, 1, length + 1, now_ns);
    uint32_t note = to && length ? wr_segment_add_note(feed->segment, text, length) : 0;
    if (!note) {
        feed->left_out.lost += to ? values : values - 1;
        return;
    }
    *to = *summary;
    to->note = note;
    feed->segment->summaries = feed->segment->other_kinds = true;
    wr_feed_added(feed, 1);
}

/* ---- Segments of a journal ------------------------------------------------------------------- */

static struct wr_segment_file *make_file(const struct wr_feed *feed, int64_t now_ns)
{
    const char **names = wr_pages_get((feed->lane_count + 1) * sizeof *names);
    for (size_t i = 0; names && i < feed->lane_count; i++)
        names[i] = wr_lane_name(feed->lanes[i]->lane);
    const struct wr_segment_shape shape = {feed->segment_room, TEXT_BYTES, (uint32_t)feed->lane_count, names};
    struct wr_segment_file *file = names ? wr_journal_segment(feed->pool->journal, &shape, now_ns) : NULL;
    wr_pages_put(names);
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
        segment = file ? wr_segment_adopt_file(feed->pool, file, true) : NULL;
    }
    if (!segment)
        return NULL;
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
    if (!segment || segment->count == feed->committed)
        return;
    feed->committed = segment->count;
    if (segment->file)
        wr_versioned_put(&segment->file->head->committed, wr_journal_round(feed->pool->journal),
                         segment->count);
    else
        wr_journal_let_out(feed->pool->journal);
}

weir_sample *wr_feed_reserve(struct wr_feed *feed, uint32_t samples, size_t text_bytes, int64_t now_ns)
{
    if (feed->segment && !wr_segment_has_room(feed->segment, samples, text_bytes))
        wr_feed_seal(feed, now_ns);
    if (!feed->segment)
        start_segment(feed, now_ns);
    if (feed->segment)
        return feed->segment->samples + feed->segment->count;
    feed->left_out.lost += samples;
    return NULL;
}
