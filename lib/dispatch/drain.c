#include "dispatch/drain.h"

#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"
#include "journal/journal.h"
#include "producer/instrument.h"

enum {
    GIVE_BACK = 512,          /* slots that are returned to a writer at a time */
    SLIGHT_STEP_NS = 1000000, /* a thread's time that goes back by less is held; more is a step of the clock */
};

/* ---- Events ---------------------------------------------------------------------------------- */

struct event {
    struct wr_mapper_event slots;
    struct wr_ring *ring; /* that they are in; NULL: none */
    uint32_t samples;
    uint32_t text_bytes; /* of its metadata, with their NULs */
    uint16_t flags;      /* of all its samples together */
    int64_t time_ns;     /* for all feeds */
};

static struct event measure(struct wr_ring *ring, uint64_t at)
{
    struct event event = {.slots = {.slots = ring->slots, .mask = ring->size - 1, .at = at, .end = at},
                          .ring = ring};
    const weir_sample *sample;
    do {
        sample = wr_ring_slot(ring, event.slots.end);
        event.flags |= sample->flags;
        if (sample->flags & WR_RING_TEXT) {
            event.slots.end += wr_ring_text_slots(sample->note);
            event.text_bytes += sample->note + 1;
        }
        event.slots.end++;
        event.samples++;
    } while (sample->flags & WEIR_SAMPLE_MORE);
    return event;
}

/* ---- The journal ----------------------------------------------------------------------------- */

void wr_drain_commit(struct wr_drain *drain, struct wr_ring *ring, uint64_t position)
{
    struct wr_journal *journal = drain->pool.journal;
    if (!journal)
        return;
    for (size_t i = 0; i < drain->router->feed_count; i++)
        wr_feed_put_down(&drain->router->feeds[i]);
    if (ring)
        wr_versioned_put(&wr_ring_block(ring)->taken, wr_journal_round(journal), position);
    wr_journal_commit(journal);
}

static void make_room_in(struct wr_drain *drain, const struct event *event, const struct wr_branch *branch,
                         int64_t now_ns)
{
    for (size_t i = 0; i < branch->feed_count; i++) {
        struct wr_feed *feed = branch->feeds[i];
        if (!feed->segment || wr_segment_has_room(feed->segment, event->samples, event->text_bytes))
            continue;
        wr_drain_commit(drain, event->ring, event->slots.at);
        wr_feed_seal(feed, now_ns);
    }
}

/* Before any of an event is copied to feeds: what full segments have is committed and offered. In the midst of
 * it a commit would leave the event in the ring too. A branch that maps gets no more than the event has. */
static void make_room(struct wr_drain *drain, const struct event *event, const struct wr_route *route,
                      int64_t now_ns)
{
    if (!drain->pool.journal)
        return;
    make_room_in(drain, event, &route->plain, now_ns);
    for (size_t i = 0; i < route->mapped_count; i++)
        make_room_in(drain, event, &route->mapped[i], now_ns);
}

bool wr_drain_renew(struct wr_drain *drain, struct wr_producer *producer)
{
    struct wr_journal *journal = drain->pool.journal;
    struct wr_ring *ring = &producer->ring;
    if (!journal)
        return true;
    if (wr_ring_taken(ring) != wr_ring_position(ring))
        return false;
    struct wr_ring_block *block = wr_producer_is_in_journal(producer)
                                      ? NULL
                                      : wr_journal_ring(journal, ring->size, wr_clock_monotonic_ns());
    if (block)
        wr_ring_move(ring, block);
    wr_drain_cells(drain, &producer->cells);
    wr_cells_move(&producer->cells);
    return true;
}

void wr_drain_make_cells(struct wr_drain *drain, struct wr_producer *producer)
{
    struct wr_cells *cells = &producer->cells;
    struct wr_journal *journal = drain->pool.journal;
    wr_cells_use(cells,
                 journal ? wr_journal_cells(journal, wr_cells_wanted(cells), wr_clock_monotonic_ns()) : NULL);
}

/* ---- Copying --------------------------------------------------------------------------------- */

/* Consecutive pairs of the timeline may disagree by some nanoseconds, and so may the timeline and the wall
 * clock when settings.clock changes; a thread's time does not run backwards because of that. A time that the
 * program set is not changed. */
static int64_t stamp(const struct wr_drain *drain, struct wr_ring *ring, const weir_sample *sample)
{
    int64_t time_ns = sample->time_ns;
    if (WR_LIKELY(sample->flags & WR_RING_TICKS))
        time_ns = wr_timeline_wall_ns(&drain->timeline, (uint64_t)time_ns);
    else if (!(sample->flags & WR_RING_WALL))
        return time_ns;
    else if (!time_ns) { /* the handlers only summed when the call began; with a journal perhaps still */
        int64_t since_ns = drain->pool.journal ? drain->round_ns : drain->switched_ns;
        time_ns = since_ns > ring->last_ns ? since_ns : ring->last_ns;
    }
    if (WR_UNLIKELY(drain->still_ns != WR_DRAIN_REAL_TIME))
        return drain->still_ns;
    if (time_ns < ring->last_ns && ring->last_ns - time_ns < SLIGHT_STEP_NS)
        return ring->last_ns;
    ring->last_ns = time_ns;
    return time_ns;
}

/* Metadata is in the slots behind the sample, and may wrap around the ring's end. */
static uint32_t take_text(struct wr_drain *drain, const struct wr_ring *ring, uint64_t at, uint32_t length,
                          struct wr_segment *segment)
{
    for (uint32_t done = 0; done < length; at++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(drain->text + done, wr_ring_slot(ring, at), part);
        done += part;
    }
    return wr_segment_add_note(segment, drain->text, length);
}

static void copy_event(struct wr_drain *drain, const struct event *event, const struct wr_feed *feed,
                       weir_sample *to)
{
    for (uint64_t at = event->slots.at; at < event->slots.end; at++, to++) {
        const weir_sample *from = wr_ring_slot(event->ring, at);
        *to = *from;
        to->flags = from->flags & (uint16_t)(~WR_RING_FLAGS | WR_RING_NO_WAIT);
        to->reserved = 0;
        to->time_ns = event->time_ns;
        if (from->flags & WR_RING_TEXT) {
            to->note = take_text(drain, event->ring, at + 1, from->note, feed->segment);
            at += wr_ring_text_slots(from->note);
        }
    }
}

/* One sample without special flags, to one feed: by far the most frequent case. */
static inline void copy_plain(struct wr_drain *drain, struct wr_ring *ring, const weir_sample *from,
                              weir_sample *to)
{
    *to = *from;
    to->flags = from->flags & WEIR_SAMPLE_CUMULATIVE;
    to->time_ns = stamp(drain, ring, from);
}

static void offer_now(struct wr_drain *drain, const struct wr_branch *branch, struct wr_ticket ticket,
                      int64_t now_ns)
{
    for (size_t i = 0; i < branch->summed_count; i++) /* before the call can return */
        wr_feed_count_sums(branch->summed[i], now_ns);
    for (size_t i = 0; i < branch->feed_count; i++) {
        if (branch->feeds[i]->passed_over)
            wr_feed_pass_over(branch->feeds[i], ticket, now_ns);
        else
            wr_feed_offer_now(branch->feeds[i], ticket, drain->now, now_ns);
        branch->feeds[i]->passed_over = false;
    }
}

/* The ticket's number comes with the sample: the producer's may already be that of a later call, if the call of
 * this sample has timed out. */
static void settle_ticket(struct wr_drain *drain, struct wr_producer *producer, const struct event *event,
                          struct wr_route *route, int64_t now_ns)
{
    struct wr_ticket ticket = {&producer->ticket, wr_ring_slot(event->ring, event->slots.at)->reserved};
    wr_ticket_expect(ticket, route->sync_lanes);
    wr_drain_commit(drain, event->ring, event->slots.end);
    offer_now(drain, &route->plain, ticket, now_ns);
    for (size_t i = 0; i < route->mapped_count; i++)
        offer_now(drain, &route->mapped[i], ticket, now_ns);
}

/* The samples were added before their group had lost its route. */
static void count_unrouted(struct wr_drain *drain, uint32_t series, uint64_t samples)
{
    drain->unrouted += samples;
    atomic_fetch_add(&wr_registry_series(drain->registry, series)->stream->group->unrouted, samples);
}

static void sum(const weir_sample *sample, const struct wr_branch *branch)
{
    for (size_t i = 0; i < branch->summed_count; i++)
        wr_feed_sum(branch->summed[i], sample);
}

/* Metadata is not kept. */
static void sum_event(const struct event *event, const struct wr_branch *branch)
{
    for (uint64_t at = event->slots.at; at < event->slots.end; at++) {
        const weir_sample *sample = wr_ring_slot(event->ring, at);
        sum(sample, branch);
        if (sample->flags & WR_RING_TEXT)
            at += wr_ring_text_slots(sample->note);
    }
}

static void take_plain_event(struct wr_drain *drain, const struct event *event, const struct wr_branch *branch,
                             int64_t now_ns)
{
    if (branch->summed_count)
        sum_event(event, branch);
    for (size_t i = 0; i < branch->feed_count; i++) {
        struct wr_feed *feed = branch->feeds[i];
        weir_sample *to = wr_feed_reserve(feed, event->samples, event->text_bytes, now_ns);
        if (!to)
            continue;
        copy_event(drain, event, feed, to);
        wr_feed_added(feed, event->samples);
        feed->no_wait |= (event->flags & WR_RING_NO_WAIT) != 0;
    }
}

/* ---- Mapped events --------------------------------------------------------------------------- */

static const weir_sample *slot_of(const struct event *event, const struct wr_mapped *item)
{
    return &event->slots.slots[(event->slots.at + item->offset) & event->slots.mask];
}

/* sync: a call waits for the event, which offer_now settles next. */
static void count_left_out(const struct wr_mapping *mapping, const struct wr_branch *branch, bool sync)
{
    for (size_t i = 0; i < branch->summed_count; i++) {
        struct wr_lane_arrivals *arrivals = &branch->summed[i]->arrivals;
        arrivals->filtered += mapping->filtered;
        arrivals->unrepresentable += mapping->unrepresentable;
        arrivals->no_memory += mapping->lost;
    }
    for (size_t i = 0; i < branch->feed_count; i++) {
        struct wr_feed *feed = branch->feeds[i];
        feed->left_out.filtered += mapping->filtered;
        feed->left_out.unrepresentable += mapping->unrepresentable;
        feed->left_out.lost += mapping->lost;
        feed->passed_over = sync && !mapping->passed && !mapping->lost;
        feed->passed_over_result = mapping->unrepresentable ? WEIR_ERR_DROPPED : 0;
    }
}

/* What is left of an event is one event. */
static void copy_mapped(struct wr_drain *drain, const struct event *event, const struct wr_mapper *mapper,
                        struct wr_segment *segment, weir_sample *to)
{
    enum { KEPT = (uint16_t)(~WR_RING_FLAGS & ~WEIR_SAMPLE_MORE) | WR_RING_NO_WAIT };
    const struct wr_mapping *mapping = &drain->mapping;
    for (uint32_t i = 0; i < mapping->passed; i++, to++) {
        const struct wr_mapped *item = &mapping->items[i];
        const weir_sample *from = slot_of(event, item);
        *to = *from;
        to->flags = from->flags & KEPT;
        to->flags |= i + 1 < mapping->passed ? WEIR_SAMPLE_MORE : 0;
        to->reserved = 0;
        to->time_ns = event->time_ns;
        wr_mapper_apply(mapper, item, to);
        if (event->ring && from->flags & WR_RING_TEXT)
            to->note = take_text(drain, event->ring, event->slots.at + item->offset + 1, from->note, segment);
    }
}

static void sum_mapped(const struct wr_mapping *mapping, const struct event *event,
                       const struct wr_branch *branch)
{
    for (uint32_t i = 0; i < mapping->passed; i++) {
        weir_sample sample = *slot_of(event, &mapping->items[i]);
        wr_mapper_apply(branch->mapper, &mapping->items[i], &sample);
        sum(&sample, branch);
    }
}

/* drain->mapping says what passes. */
static void add_mapped(struct wr_drain *drain, const struct event *event, const struct wr_branch *branch,
                       int64_t now_ns)
{
    const struct wr_mapping *mapping = &drain->mapping;
    for (size_t i = 0; mapping->passed && i < branch->feed_count; i++) {
        struct wr_feed *feed = branch->feeds[i];
        weir_sample *to = wr_feed_reserve(feed, mapping->passed, mapping->text_bytes, now_ns);
        if (!to)
            continue;
        copy_mapped(drain, event, branch->mapper, feed->segment, to);
        wr_feed_added(feed, mapping->passed);
        feed->no_wait |= (event->flags & WR_RING_NO_WAIT) != 0;
    }
    if (branch->summed_count)
        sum_mapped(mapping, event, branch);
}

WR_NEVER_INLINE static void take_mapped_event(struct wr_drain *drain, const struct event *event,
                                              const struct wr_branch *branch, int64_t now_ns)
{
    wr_mapper_event(branch->mapper, &event->slots, &drain->mapping);
    count_left_out(&drain->mapping, branch, event->flags & WR_RING_SYNC);
    add_mapped(drain, event, branch, now_ns);
}

/* ---- What is in no ring ---------------------------------------------------------------------- */

/* to_sums: also to the feeds of lanes that sum. */
static void add_unmapped(const weir_sample *sample, const struct wr_branch *branch, bool to_sums,
                         int64_t now_ns)
{
    for (size_t i = 0; i < branch->feed_count; i++) {
        if (branch->feeds[i]->sums && !to_sums)
            continue;
        weir_sample *to = wr_feed_reserve(branch->feeds[i], 1, 0, now_ns);
        if (!to)
            continue;
        *to = *sample;
        wr_feed_added(branch->feeds[i], 1);
    }
}

/* Except for the handlers that sum it as it is; those that are in feeds only if to_sums. */
static void add_unsummed(struct wr_drain *drain, const weir_sample *sample, const struct wr_route *route,
                         bool to_sums)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    const struct event event = {.slots = {.slots = sample, .mask = UINT64_MAX, .end = 1},
                                .time_ns = sample->time_ns};
    add_unmapped(sample, &route->plain, to_sums, now_ns);
    for (size_t i = 0; i < route->mapped_count; i++)
        take_mapped_event(drain, &event, &route->mapped[i], now_ns);
}

void wr_drain_add(struct wr_drain *drain, const weir_sample *sample)
{
    const struct wr_route *route = wr_router_series_route(drain->router, drain->registry, sample->series);
    sum(sample, &route->plain);
    add_unsummed(drain, sample, route, true);
}

static int64_t wall_ns(const struct wr_drain *drain)
{
    return drain->still_ns == WR_DRAIN_REAL_TIME ? wr_clock_wall_ns() : drain->still_ns;
}

/* What was added to a cell while its group's route changed, to one that does not only sum: as many values, of
 * equal size, since only their number and sum are known for sure; of a gauge, its level. With a journal they
 * may fill segments, which are offered then, before they are committed with the cell: if the process dies
 * between the two, the next one delivers them again. */
static void spread(struct wr_drain *drain, uint32_t series, const struct wr_cell_taken *taken,
                   const struct wr_route *route)
{
    weir_sample sample = {
        .series = series,
        .kind = WEIR_KIND_DOUBLE,
        .time_ns = wall_ns(drain),
        .value.f64 = taken->sum / (double)taken->values,
    };
    double level;
    if (wr_instrument_read_level(wr_registry_series(drain->registry, series), &level))
        sample.value.f64 = level;
    for (uint64_t i = 0; i < taken->values; i++)
        add_unsummed(drain, &sample, route, false);
}

/* With a journal the lanes that sum are in feeds, and get a summary. Rooms are made first: until the cell is
 * kept, in the same round, nothing is committed. */
static void sum_in_feeds(struct wr_drain *drain, uint32_t series, const struct wr_cell_taken *taken,
                         const struct wr_branch *branch)
{
    int64_t now_ns = wr_clock_monotonic_ns(), time_ns = wall_ns(drain);
    const weir_sample summary = {
        .series = series, .kind = WEIR_KIND_SUMMARY, .time_ns = time_ns, .value.i64 = (int64_t)taken->values};
    size_t length = wr_taken_write(&drain->taken, taken, time_ns);
    const struct event event = {.samples = 1, .text_bytes = (uint32_t)length + 1};
    if (drain->pool.journal)
        make_room_in(drain, &event, branch, now_ns);
    for (size_t i = 0; i < branch->feed_count; i++)
        if (branch->feeds[i]->sums)
            wr_feed_add_taken(branch->feeds[i], &summary, drain->taken.text, length, now_ns);
}

static uint64_t hand_out(struct wr_drain *drain, uint32_t series, const struct wr_cell_taken *taken)
{
    if (!taken->values)
        return 0;
    const struct wr_route *route = wr_router_series_route(drain->router, drain->registry, series);
    if (!route->lane_count)
        count_unrouted(drain, series, taken->values);
    if (route->plain.feed_count && drain->router->journaled) /* before the others: it may commit */
        sum_in_feeds(drain, series, taken, &route->plain);
    if (route->lane_count && !route->only_sums)
        spread(drain, series, taken, route);
    for (size_t i = 0; i < route->plain.summed_count; i++)
        wr_feed_sum_taken(route->plain.summed[i], series, taken);
    return taken->values;
}

static inline uint64_t take_cell(struct wr_drain *drain, struct wr_cells *cells, struct wr_cell *cell,
                                 uint32_t series)
{
    uint64_t room[WR_BUCKETS_MOST];
    const struct wr_journal *journal = cells->is_kept ? drain->pool.journal : NULL;
    struct wr_cell_taken taken = wr_cell_take(cells, cell);
    uint64_t values = hand_out(drain, series, &taken);
    if (taken.values && journal)
        wr_cells_keep(cells, series, cell, wr_journal_round(journal));
    /* acquire: pairs with the release in wr_cells_open_buckets */
    struct wr_cell_buckets *buckets = atomic_load_explicit(&cell->buckets, memory_order_acquire);
    for (; buckets; buckets = buckets->older) {
        taken = wr_cell_take_buckets(cells, buckets, room);
        values += hand_out(drain, series, &taken);
        if (taken.values && journal)
            wr_cells_keep_buckets(buckets, wr_journal_round(journal));
    }
    return values;
}

uint64_t wr_drain_cells(struct wr_drain *drain, struct wr_cells *cells)
{
    uint64_t values = 0;
    /* acquire: pairs with the release in wr_cells_open */
    struct wr_cell *cell;
    for (uint32_t next = atomic_load_explicit(&cells->first, memory_order_acquire); next; next = cell->next) {
        cell = wr_cells_find(cells, next - 1);
        values += take_cell(drain, cells, cell, next - 1);
    }
    if (values)
        wr_drain_commit(drain, NULL, 0);
    return values;
}

uint64_t wr_drain_cell(struct wr_drain *drain, struct wr_cells *cells, uint32_t series)
{
    struct wr_cell *cell = wr_cells_find(cells, series);
    uint64_t values = cell ? take_cell(drain, cells, cell, series) : 0;
    if (values)
        wr_drain_commit(drain, NULL, 0);
    return values;
}

/* ---- Rings ----------------------------------------------------------------------------------- */

static bool has_feed(const struct wr_route *route)
{
    bool has = route->plain.feed_count;
    for (size_t i = 0; !has && i < route->mapped_count; i++)
        has = route->mapped[i].feed_count;
    return has;
}

static void take_event(struct wr_drain *drain, struct wr_producer *producer, struct event *event,
                       struct wr_route *route, int64_t now_ns)
{
    const weir_sample *first = wr_ring_slot(event->ring, event->slots.at);
    if (has_feed(route))
        event->time_ns = stamp(drain, event->ring, first);
    if (!route->lane_count)
        count_unrouted(drain, first->series, event->samples);
    make_room(drain, event, route, now_ns);
    take_plain_event(drain, event, &route->plain, now_ns);
    for (size_t i = 0; i < route->mapped_count; i++)
        take_mapped_event(drain, event, &route->mapped[i], now_ns);
    if (event->flags & WR_RING_SYNC)
        settle_ticket(drain, producer, event, route, now_ns);
}

/* The slot for a sample that does not fit the segment. */
WR_NEVER_INLINE static weir_sample *start_segment(struct wr_drain *drain, struct wr_ring *ring, uint64_t at,
                                                  struct wr_feed *feed, int64_t now_ns)
{
    wr_drain_commit(drain, ring, at);
    return wr_feed_reserve(feed, 1, 0, now_ns);
}

/* The same, with room for it. */
static inline void take_plain(struct wr_drain *drain, struct wr_ring *ring, uint64_t at, struct wr_feed *feed,
                              int64_t now_ns)
{
    const struct wr_segment *segment = feed->segment;
    bool has_room = segment && segment->count < segment->room;
    weir_sample *to =
        WR_LIKELY(has_room) ? &segment->samples[segment->count] : start_segment(drain, ring, at, feed, now_ns);
    if (WR_UNLIKELY(!to))
        return;
    copy_plain(drain, ring, wr_ring_slot(ring, at), to);
    wr_feed_added(feed, 1);
}

static void give_back(struct wr_drain *drain, struct wr_ring *ring, uint64_t position)
{
    wr_drain_commit(drain, ring, position);
    if (!wr_ring_give_back(ring, position))
        return;
    atomic_fetch_add_explicit(&ring->room, 1, memory_order_release);
    wr_futex_wake(&ring->room, 1);
}

uint64_t wr_drain_ring(struct wr_drain *drain, struct wr_producer *producer, uint64_t tail, int64_t now_ns)
{
    enum { SPECIAL = WEIR_SAMPLE_MORE | WR_RING_TEXT | WR_RING_SYNC | WR_RING_NO_WAIT };
    struct wr_ring *ring = &producer->ring;
    uint64_t head = wr_ring_taken(ring), samples = 0, given = head;
    uint32_t series = 0;
    struct wr_route *route = NULL;
    bool is_source = atomic_load_explicit(&producer->is_source, memory_order_relaxed);
    while (head < tail) {
        const weir_sample *sample = wr_ring_slot(ring, head);
        if (!route || sample->series != series) {
            series = sample->series;
            route = wr_router_series_route(drain->router, drain->registry, series);
            if (is_source)
                wr_route_expect_sources(route);
        }
        if (!(sample->flags & SPECIAL) && route->only_feed) {
            take_plain(drain, ring, head, route->only_feed, now_ns);
            samples++;
            head++;
        } else if (!(sample->flags & SPECIAL) && route->only_sums && route->plain.summed_count) {
            sum(sample, &route->plain);
            samples++;
            head++;
        } else {
            struct event event = measure(ring, head);
            take_event(drain, producer, &event, route, now_ns);
            ring->text_slots += event.slots.end - event.slots.at - event.samples;
            samples += event.samples;
            head = event.slots.end;
        }
        if (head - given >= GIVE_BACK)
            give_back(drain, ring, given = head);
    }
    if (head != given)
        give_back(drain, ring, head);
    return samples;
}
