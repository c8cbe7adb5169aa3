#include "lane/lane_ledger.h"

#include "lane/lane.h"
#include "registry/labels.h"
#include "spool/spool.h"

void wr_lane_ledger_init(struct wr_lane_ledger *ledger)
{
    ledger->next_id.origin = wr_origin_new();
    ledger->next_summary_id.origin = wr_origin_new();
}

void wr_lane_ledger_fini(struct wr_lane_ledger *ledger)
{
    wr_queue_fini(&ledger->queue);
    wr_lane_ledger_fetched(ledger, NULL);
    wr_sync_waiters_fini(&ledger->waiters);
}

/* ---- What there is --------------------------------------------------------------------------- */

uint64_t wr_lane_ledger_queued(const struct wr_lane_ledger *ledger)
{
    const struct wr_range *flight = wr_lane_ledger_flight(ledger);
    return ledger->queue.values + wr_range_values(&ledger->moving) + (flight ? wr_range_values(flight) : 0);
}

uint64_t wr_lane_ledger_done(const struct wr_lane_ledger *ledger)
{
    const struct wr_range *flight = wr_lane_ledger_flight(ledger);
    return ledger->position - ledger->queue.samples - ledger->moving.count - (flight ? flight->count : 0);
}

uint64_t wr_lane_ledger_front_in_memory(const struct wr_lane_ledger *ledger)
{
    if (wr_lane_ledger_flight(ledger))
        return wr_lane_ledger_flight(ledger)->position;
    if (ledger->moving.segment)
        return ledger->moving.position;
    return wr_queue_is_empty(&ledger->queue) ? ledger->position : wr_queue_front(&ledger->queue)->position;
}

uint64_t wr_lane_ledger_front(const struct wr_lane_ledger *ledger)
{
    uint64_t front = wr_lane_ledger_front_in_memory(ledger);
    return ledger->spooled.own && ledger->spooled.front < front ? ledger->spooled.front : front;
}

/* ---- What is dropped ------------------------------------------------------------------------- */

void wr_lane_ledger_complete(struct wr_lane_ledger *ledger, uint64_t position, int result)
{
    wr_sync_waiters_complete(&ledger->waiters, 0, position, result);
}

static void complete_range(struct wr_lane_ledger *ledger, const struct wr_range *range, int result)
{
    wr_sync_waiters_complete(&ledger->waiters, range->position, range->position + range->count, result);
}

int wr_lane_ledger_discard(struct wr_lane_ledger *ledger, const struct wr_range *range, enum weir_drop why)
{
    uint64_t values = wr_range_values(range);
    uint64_t left = why == WEIR_DROPPED_SHUTDOWN ? wr_segment_leave(range->segment, values) : 0;
    ledger->left_in_journal += left;
    if (left && left == values)
        return WEIR_ERR_SPOOLED;
    wr_range_settle(range, range->count);
    ledger->dropped[why] += values - left;
    return why == WEIR_DROPPED_FULL ? WEIR_ERR_FULL : WEIR_ERR_DROPPED;
}

void wr_lane_ledger_drop(struct wr_lane_ledger *ledger, const struct wr_range *range, enum weir_drop why)
{
    complete_range(ledger, range, wr_lane_ledger_discard(ledger, range, why));
}

static void drop_taken(struct wr_lane_ledger *ledger, const struct wr_range *range, enum weir_drop why)
{
    wr_lane_ledger_drop(ledger, range, why);
    wr_segment_drop(range->segment);
}

void wr_lane_ledger_drop_oldest(struct wr_lane_ledger *ledger, uint64_t bytes)
{
    struct wr_range range = wr_queue_take(&ledger->queue, UINT32_MAX, bytes);
    drop_taken(ledger, &range, WEIR_DROPPED_FULL);
}

/* The worker keeps the reference until the handler returns. The worker's state would be no criterion: it is
 * WAITING while the handler waits inside emit, and CALLING while it opens, when it has no samples. */
static void drop_flight(struct wr_lane_ledger *ledger, enum weir_drop why)
{
    struct wr_flight *flight = &ledger->flight;
    if (!wr_lane_ledger_flight(ledger))
        return;
    wr_lane_ledger_drop(ledger, &flight->range, why);
    flight->settled_early = flight->in_handler;
    if (!flight->in_handler)
        wr_lane_ledger_end_flight(ledger);
}

/* A thread that is writing the samples to disk keeps a reference of its own: it may return at any later time.
 */
static void drop_moving(struct wr_lane_ledger *ledger, enum weir_drop why, bool is_writing)
{
    struct wr_range moving = ledger->moving;
    ledger->moving = (struct wr_range){0};
    if (is_writing && moving.segment)
        wr_segment_hold(moving.segment);
    if (moving.segment)
        drop_taken(ledger, &moving, why);
}

/* The samples stay on disk. */
static void put_back_spooled(struct wr_lane_ledger *ledger)
{
    wr_lane_ledger_fetched(ledger, NULL);
    if (!ledger->flight.spooled)
        return;
    ledger->flight.settled_early = ledger->flight.in_handler;
    if (!ledger->flight.in_handler)
        wr_lane_ledger_end_flight(ledger);
}

void wr_lane_ledger_drop_all(struct wr_lane_ledger *ledger, enum weir_drop why, bool is_writing)
{
    drop_flight(ledger, why);
    drop_moving(ledger, why, is_writing);
    put_back_spooled(ledger);
    while (!wr_queue_is_empty(&ledger->queue)) {
        struct wr_range range = wr_queue_take(&ledger->queue, UINT32_MAX, UINT64_MAX);
        drop_taken(ledger, &range, why);
    }
    wr_lane_ledger_complete(ledger, UINT64_MAX, WEIR_ERR_DROPPED);
}

/* ---- What comes ------------------------------------------------------------------------------ */

void wr_lane_ledger_drop_unqueued(struct wr_lane_ledger *ledger, const struct wr_range *range)
{
    wr_lane_ledger_discard(ledger, range, WEIR_DROPPED_FULL);
    complete_range(ledger, range, WEIR_ERR_MEMORY);
}

bool wr_lane_ledger_recover(struct wr_lane_ledger *ledger, struct wr_range *range)
{
    range->position = ledger->position;
    if (!wr_queue_push(&ledger->queue, range))
        return false;
    ledger->recovered += wr_range_values(range);
    ledger->position += range->count;
    return true;
}

void wr_lane_ledger_pass(struct wr_lane_ledger *ledger, bool recovered, enum weir_drop why, uint64_t count)
{
    *(recovered ? &ledger->recovered : &ledger->offered) += count;
    ledger->dropped[why] += count;
}

void wr_lane_ledger_sum(struct wr_lane_ledger *ledger, const struct wr_lane_arrivals *arrivals)
{
    wr_lane_ledger_pass(ledger, false, WEIR_DROPPED_LIMIT, arrivals->beyond_limit);
    wr_lane_ledger_pass(ledger, false, WEIR_DROPPED_FULL, arrivals->no_memory);
    wr_lane_ledger_pass(ledger, false, WEIR_DROPPED_FILTERED, arrivals->filtered);
    wr_lane_ledger_pass(ledger, false, WEIR_DROPPED_UNREPRESENTABLE, arrivals->unrepresentable);
    ledger->offered += arrivals->summed - arrivals->recovered;
    ledger->recovered += arrivals->recovered;
    ledger->summing += arrivals->summed;
    ledger->summing_in_memory += arrivals->summed - arrivals->kept;
}

void wr_lane_ledger_discard_sums(struct wr_lane_ledger *ledger, enum weir_drop why, uint64_t left)
{
    ledger->left_in_journal += left;
    ledger->dropped[why] += ledger->summing - left;
    ledger->summing = ledger->summing_in_memory = 0;
}

void wr_lane_ledger_offer_sums(struct wr_lane_ledger *ledger, struct wr_range *range)
{
    range->position = ledger->position;
    range->id = ledger->next_summary_id;
    range->segment->is_kept = !ledger->summing_in_memory;
    ledger->summing -= wr_range_values(range);
    ledger->summing_in_memory = 0;
    ledger->position += range->count;
    ledger->next_summary_id.sequence += range->count;
}

/* ---- What is on disk ------------------------------------------------------------------------- */

/* What is left of the values of damaged summaries when nothing else is on disk. */
static void drop_rest_if_empty(struct wr_lane_ledger *ledger)
{
    struct wr_spooled *spooled = &ledger->spooled;
    if (spooled->samples)
        return;
    ledger->dropped[WEIR_DROPPED_CORRUPT] += spooled->values;
    spooled->values = 0;
}

/* Samples that were fetched are settled. next: the position behind them. */
static void settle_spooled(struct wr_lane_ledger *ledger, uint32_t samples, uint64_t values, uint64_t next)
{
    struct wr_spooled *spooled = &ledger->spooled;
    spooled->samples -= samples;
    spooled->values -= values;
    if (ledger->fetched.own) {
        spooled->own -= samples;
        spooled->front = next;
    }
    drop_rest_if_empty(ledger);
}

static void take_flight(struct wr_lane_ledger *ledger)
{
    struct wr_flight *flight = &ledger->flight;
    ledger->moving = flight->range;
    if (!flight->in_handler) {
        *flight = (struct wr_flight){0};
        return;
    }
    wr_segment_hold(flight->range.segment);
    flight->settled_early = true;
}

void wr_lane_ledger_move(struct wr_lane_ledger *ledger, bool also_in_handler, uint64_t most_bytes)
{
    if (ledger->moving.segment)
        return;
    if (wr_lane_ledger_flight(ledger) && (!ledger->flight.in_handler || also_in_handler))
        take_flight(ledger);
    else
        ledger->moving = wr_queue_take(&ledger->queue, UINT32_MAX, most_bytes);
}

void wr_lane_ledger_moved(struct wr_lane_ledger *ledger)
{
    struct wr_spooled *spooled = &ledger->spooled;
    struct wr_range moved = ledger->moving;
    ledger->moving = (struct wr_range){0};
    wr_range_settle(&moved, moved.count);
    if (!spooled->own || moved.position < spooled->front)
        spooled->front = moved.position;
    spooled->samples += moved.count;
    spooled->values += wr_range_values(&moved);
    spooled->own += moved.count;
    complete_range(ledger, &moved, WEIR_ERR_SPOOLED);
    wr_segment_drop(moved.segment);
}

/* What was in flight is older than what was moved while the handler had it. */
void wr_lane_ledger_not_moved(struct wr_lane_ledger *ledger)
{
    const struct wr_spooled *spooled = &ledger->spooled;
    if (ledger->flight.range.segment || !spooled->own || ledger->moving.position >= spooled->front)
        return;
    ledger->flight.range = ledger->moving;
    ledger->moving = (struct wr_range){0};
}

void wr_lane_ledger_found(struct wr_lane_ledger *ledger, uint64_t samples, uint64_t values)
{
    ledger->spooled.samples += samples;
    ledger->spooled.values += values;
    ledger->recovered += values;
}

void wr_lane_ledger_lose(struct wr_lane_ledger *ledger, enum weir_drop why, const struct wr_spool_count *lost)
{
    ledger->dropped[why] += lost->values;
    ledger->spooled.samples -= lost->samples;
    ledger->spooled.values -= lost->values;
    ledger->spooled.own -= lost->own;
    drop_rest_if_empty(ledger);
}

void wr_lane_ledger_fetched(struct wr_lane_ledger *ledger, const struct wr_fetched *fetched)
{
    wr_segment_drop(ledger->fetched.range.segment);
    wr_labels_drop(ledger->fetched.labels);
    ledger->fetched = fetched ? *fetched : (struct wr_fetched){0};
}

/* ---- What is delivered ----------------------------------------------------------------------- */

static struct wr_range take_next(struct wr_lane_ledger *ledger, uint32_t most, uint64_t most_bytes)
{
    if (ledger->fetched.range.segment)
        return wr_range_take(&ledger->fetched.range, most, most_bytes);
    if (ledger->moving.segment)
        return wr_range_take(&ledger->moving, most, most_bytes);
    return wr_queue_take(&ledger->queue, most, most_bytes);
}

void wr_lane_ledger_load(struct wr_lane_ledger *ledger, uint32_t most, uint64_t most_bytes)
{
    ledger->flight.spooled = ledger->fetched.range.segment != NULL;
    ledger->flight.range = take_next(ledger, most, most_bytes);
}

/* The values of the summaries that have no room; each is an event of its own. */
static uint64_t count_no_room(const struct wr_range *range)
{
    uint64_t values = 0;
    for (uint32_t i = range->first; i < range->first + range->count; i++)
        if (range->segment->samples[i].flags & WR_SAMPLE_NO_ROOM)
            values += (uint64_t)range->segment->samples[i].value.i64;
    return values;
}

struct wr_lane_dropped wr_lane_ledger_drop_next(struct wr_lane_ledger *ledger, uint32_t count)
{
    bool spooled = ledger->fetched.range.segment;
    struct wr_range range = take_next(ledger, count, UINT64_MAX);
    const struct wr_lane_dropped dropped = {
        .samples = range.count,
        .values = wr_range_values(&range),
        .no_room = count_no_room(&range),
        .end = range.position + range.count,
    };
    wr_range_settle(&range, range.count);
    ledger->dropped[WEIR_DROPPED_LIMIT] += dropped.no_room;
    ledger->dropped[WEIR_DROPPED_UNREPRESENTABLE] += dropped.values - dropped.no_room;
    if (spooled)
        settle_spooled(ledger, dropped.samples, dropped.values, dropped.end);
    wr_segment_drop(range.segment);
    return dropped;
}

/* How many values `count` samples of the flight are. A handler reports how many it lost, not which: of
 * summaries, which are of any number of values, the last ones are taken for these. */
static uint64_t values_of(const struct wr_range *flight, uint32_t first, uint32_t count)
{
    return flight->segment ? wr_segment_values(flight->segment, flight->first + first, count) : count;
}

uint64_t wr_lane_ledger_settle(struct wr_lane_ledger *ledger, uint32_t done, uint32_t rejected,
                               uint32_t omitted)
{
    struct wr_range *flight = &ledger->flight.range;
    uint64_t values = values_of(flight, 0, done);
    uint64_t lost = values_of(flight, done - rejected, rejected);
    uint64_t left_out = values_of(flight, done - rejected - omitted, omitted);
    ledger->dropped[WEIR_DROPPED_REJECTED] += lost;
    ledger->dropped[WEIR_DROPPED_UNREPRESENTABLE] += left_out;
    ledger->delivered += values - lost - left_out;
    wr_range_settle(flight, done);
    wr_range_skip(flight, done);
    if (ledger->flight.spooled)
        settle_spooled(ledger, done, values, flight->position);
    return values;
}

void wr_lane_ledger_end_flight(struct wr_lane_ledger *ledger)
{
    wr_segment_drop(ledger->flight.range.segment);
    ledger->flight = (struct wr_flight){0};
}
