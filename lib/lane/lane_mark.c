#include "lane/lane_mark.h"

#include "lane/lane_internal.h"

void wr_lane_bound_take(struct wr_lane *lane, struct wr_lane_bound *bound)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    *bound = (struct wr_lane_bound){
        .position = lane->ledger.position,
        .summary = lane->ledger.next_summary_id.sequence,
        .is_taken = true,
        .sums = lane->ledger.summing,
    };
    wr_lane_unlock_from_program(lane, &signals);
}

/* Whether the interval that was open has no summaries yet. */
static bool is_summing(const struct wr_lane *lane, struct wr_lane_bound *bound)
{
    if (!bound->sums)
        return false;
    if (lane->ledger.summing && lane->ledger.next_summary_id.sequence == bound->summary)
        return true;
    bound->sums = false;
    bound->position = lane->ledger.position;
    return false;
}

static bool is_kept(const struct wr_range *range, uint64_t position)
{
    const struct wr_segment *segment = range->segment;
    return !segment || range->position >= position || segment->file || segment->is_kept;
}

/* Whether all of it that is in memory is in the journal's files as well. */
static bool is_in_journal(const struct wr_lane *lane, uint64_t position)
{
    const struct wr_range *flight = wr_lane_ledger_flight(&lane->ledger);
    const struct wr_queue *queue = &lane->ledger.queue;
    if ((flight && !is_kept(flight, position)) || !is_kept(&lane->ledger.moving, position))
        return false;
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wr_range *range = wr_queue_at(queue, i);
        if (range->position >= position)
            return true;
        if (!is_kept(range, position))
            return false;
    }
    return true;
}

static enum wr_lane_standing find_standing(const struct wr_lane *lane, struct wr_lane_bound *bound)
{
    bool sums = is_summing(lane, bound);
    if (sums && lane->ledger.summing_in_memory)
        return WR_LANE_PENDING;
    if (wr_lane_ledger_front(&lane->ledger) >= bound->position)
        return sums || lane->ledger.left_in_journal ? WR_LANE_STORED : WR_LANE_SETTLED;
    if (wr_lane_ledger_front_in_memory(&lane->ledger) >= bound->position)
        return WR_LANE_STORED;
    return is_in_journal(lane, bound->position) ? WR_LANE_STORED : WR_LANE_PENDING;
}

enum wr_lane_standing wr_lane_bound_check(struct wr_lane *lane, struct wr_lane_bound *bound, uint64_t *dropped)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    enum wr_lane_standing standing = bound->is_taken ? find_standing(lane, bound) : WR_LANE_SETTLED;
    *dropped = wr_losses_sum(lane->ledger.dropped);
    wr_lane_unlock_from_program(lane, &signals);
    return standing;
}

/* It has no worker, and nothing in memory; what it has left in a journal has ids. */
static bool has_left(const struct wr_lane *lane, const struct wr_lane_bound *bound)
{
    return !wr_lane_thread_runs(&lane->worker) && !bound->sums && !lane->ledger.left_in_journal &&
           wr_lane_ledger_front_in_memory(&lane->ledger) >= bound->position;
}

/* What the thread has of the disk has the ids of the time when it was read, and may be of another process, with
 * positions of its own. The handler may still read a batch that was settled without it, and a spooler what was
 * dropped meanwhile. */
static bool is_in_hand(const struct wr_lane *lane)
{
    const struct wr_flight *flight = &lane->ledger.flight;
    return (flight->range.segment && (flight->spooled || flight->settled_early)) ||
           lane->ledger.fetched.range.segment || lane->spool_state.busy;
}

bool wr_lane_bound_is_past(struct wr_lane *lane, struct wr_lane_bound *bound)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    bool is_past = find_standing(lane, bound) == WR_LANE_SETTLED || has_left(lane, bound);
    is_past = is_past && !is_in_hand(lane);
    wr_lane_unlock_from_program(lane, &signals);
    return is_past;
}
