#include "source/source_marks.h"

#include <stdlib.h>
#include <string.h>

#include <weir/source.h>

#include "engine/engine.h"
#include "producer/producer.h"

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* Lanes are only added. What one drops before it is known here counts, but not what the first ones had dropped
 * before the source added anything. Returns false if out of memory. */
static bool learn_lanes(struct wr_source_marks *marks, struct wr_lane *first)
{
    size_t count = wr_lane_count(first), i = count;
    struct wr_lane_bound none = {0};
    if (count <= marks->lane_count)
        return true;
    struct wr_source_lane *lanes = realloc(marks->lanes, count * sizeof *lanes);
    if (!lanes)
        return false;
    marks->lanes = lanes;
    for (struct wr_lane *lane = first; i > marks->lane_count; lane = wr_lane_next(lane)) {
        lanes[--i] = (struct wr_source_lane){.lane = lane};
        if (!marks->is_known)
            wr_lane_bound_check(lane, &none, &lanes[i].dropped);
    }
    marks->lane_count = count;
    return true;
}

static void set_routed(struct wr_source_marks *marks, struct wr_dispatcher *dispatcher, struct wr_group *group)
{
    const struct wr_route *route = wr_router_route(dispatcher->drain.router, group);
    for (size_t i = 0; i < route->lane_count; i++)
        for (size_t k = 0; k < marks->lane_count; k++)
            if (marks->lanes[k].lane == route->lanes[i]->lane)
                marks->lanes[k].is_routed = true;
}

/* Caller holds the round lock: nothing is added to a lane that is not routed any more. */
static void leave_lanes(struct wr_source_marks *marks, uint64_t generation)
{
    bool is_unknown = marks->is_known && generation - marks->generation > 1;
    for (size_t i = 0; i < marks->lane_count; i++) {
        struct wr_source_lane *lane = &marks->lanes[i];
        if (lane->is_routed || is_unknown) {
            lane->was_routed = true;
            wr_lane_bound_take(lane->lane, &lane->left);
        }
        lane->is_routed = false;
    }
}

/* Caller holds the round lock. */
static void find_routes(struct wr_source_marks *marks, struct wr_engine *engine)
{
    uint64_t generation = atomic_load(&engine->generation);
    if (generation == marks->generation && marks->is_known)
        return;
    leave_lanes(marks, generation);
    for (uint32_t i = 0; i < marks->group_count; i++)
        set_routed(marks, &engine->dispatcher, marks->groups[i]);
    marks->generation = generation;
    marks->is_known = true;
}

/* Takes the round lock, with all lanes known. Returns false without it, if out of memory. */
static bool enter(struct wr_source_marks *marks, struct wr_engine *engine, struct wr_visit *visit)
{
    for (;;) {
        if (!learn_lanes(marks, wr_engine_lanes(engine)))
            return false;
        wr_engine_enter(engine, visit);
        if (wr_lane_count(engine->lanes) == marks->lane_count)
            break;
        wr_engine_leave(visit);
    }
    find_routes(marks, engine);
    return true;
}

static bool is_noted(const struct wr_source_marks *marks, const struct wr_group *group)
{
    for (uint32_t i = marks->group_count; i > 0; i--)
        if (marks->groups[i - 1] == group)
            return true;
    return false;
}

void wr_source_marks_note_group(struct wr_source_marks *marks, struct wr_engine *engine, struct wr_group *group)
{
    struct wr_visit visit;
    if (marks->has_more_groups || is_noted(marks, group))
        return;
    /* without memory as with too many groups: all lanes are concerned */
    marks->has_more_groups = marks->group_count == WR_MARK_GROUPS || !enter(marks, engine, &visit);
    if (marks->has_more_groups)
        return;
    marks->groups[marks->group_count++] = group;
    set_routed(marks, &engine->dispatcher, group);
    wr_engine_leave(&visit);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

void wr_source_marks_note_repeat(struct wr_source_marks *marks, uint64_t number)
{
    marks->all_until = number;
}

static bool has_repeat(const struct wr_source_marks *marks)
{
    return marks->settled < marks->all_until;
}

/* The bounds are those of this moment, although more may have been added since: later, but never too early. */
static void set_bounds(struct wr_source_marks *marks, struct wr_source_mark *mark, struct wr_lane_bound *bounds)
{
    for (size_t i = 0; i < marks->lane_count; i++) {
        struct wr_source_lane *lane = &marks->lanes[i];
        if (lane->is_routed || marks->has_more_groups || has_repeat(marks))
            wr_lane_bound_take(lane->lane, &bounds[i]);
        else if (lane->was_routed)
            bounds[i] = lane->left;
    }
    mark->bounds = bounds;
    mark->bound_count = marks->lane_count;
}

/* Once a round has taken everything before the mark. Taking the round lock waits until this round has offered
 * it to the lanes. What is sent again may be in a ring of another thread: a round here takes it. */
static void try_bounds(struct wr_source_marks *marks, struct wr_engine *engine, struct wr_source_mark *mark)
{
    struct wr_visit visit;
    /* pairs with the store in wr_ring_give_back */
    if (atomic_load(&wr_producer_mine->ring.head) < mark->tail)
        return;
    int64_t next_ns;
    size_t room = wr_lane_count(wr_engine_lanes(engine)) + 1;
    struct wr_lane_bound *bounds = calloc(room, sizeof *bounds);
    if (!bounds || !enter(marks, engine, &visit)) {
        free(bounds);
        return;
    }
    if (has_repeat(marks))
        wr_dispatcher_round(&engine->dispatcher, &next_ns);
    bool fits = marks->lane_count <= room; /* else another time */
    if (fits)
        set_bounds(marks, mark, bounds);
    wr_engine_leave(&visit);
    if (!fits)
        free(bounds);
}

/* Whether a lane concerned has dropped something since this was asked last: then all marks so far are answered
 * so. */
static void note_drops(struct wr_source_marks *marks, uint64_t added)
{
    uint64_t dropped;
    for (size_t i = 0; i < marks->lane_count; i++) {
        struct wr_source_lane *lane = &marks->lanes[i];
        if (!lane->is_routed && !lane->was_routed && !marks->has_more_groups)
            continue;
        if (wr_lane_bound_check(lane->lane, &lane->left, &dropped) == WR_LANE_SETTLED)
            lane->was_routed = false;
        if (dropped > lane->dropped)
            marks->dropped_until = added;
        lane->dropped = dropped;
    }
}

static enum wr_lane_standing check(struct wr_source_marks *marks, struct wr_source_mark *mark)
{
    enum wr_lane_standing least = WR_LANE_SETTLED;
    uint64_t dropped;
    for (size_t i = 0; i < mark->bound_count; i++) {
        enum wr_lane_standing one = wr_lane_bound_check(marks->lanes[i].lane, &mark->bounds[i], &dropped);
        if (one < least)
            least = one;
    }
    return mark->bounds ? least : WR_LANE_PENDING;
}

/* A mark is settled, and all before it. */
static void forget(struct wr_source_marks *marks, const struct wr_source_mark *mark)
{
    uint32_t count = (uint32_t)(mark - marks->pending) + 1;
    marks->settled = mark->number;
    for (uint32_t i = 0; i < count; i++)
        free(marks->pending[i].bounds);
    marks->pending_count -= count;
    memmove(marks->pending, marks->pending + count, marks->pending_count * sizeof *marks->pending);
}

/* note_drops comes after the check that has found the mark settled: what that has found to be dropped is
 * counted by then. */
static void settle(struct wr_source_marks *marks, const struct wr_source_mark *mark, uint64_t added)
{
    note_drops(marks, added);
    forget(marks, mark);
}

/* Forgets the oldest ones that are settled. Those that nobody asks for any more would keep their places for
 * ever otherwise. */
static void forget_settled(struct wr_source_marks *marks, struct wr_engine *engine, uint64_t added)
{
    while (marks->pending_count) {
        if (!marks->pending[0].bounds)
            try_bounds(marks, engine, &marks->pending[0]);
        if (check(marks, &marks->pending[0]) != WR_LANE_SETTLED)
            return;
        settle(marks, &marks->pending[0], added);
    }
}

/* The oldest one that is not before the number. If there are too many, this one takes the place of the latest
 * one, which is settled later then. It is not put off for ever: the others keep their places, so that they are
 * settled, and leave room. */
static struct wr_source_mark *find(struct wr_source_marks *marks, struct wr_engine *engine, uint64_t number,
                                   uint64_t added)
{
    uint32_t i = 0;
    while (i < marks->pending_count && marks->pending[i].number < number)
        i++;
    if (i < marks->pending_count)
        return &marks->pending[i];
    if (i == WR_MARKS_PENDING)
        forget_settled(marks, engine, added);
    i = marks->pending_count;
    if (i == WR_MARKS_PENDING)
        free(marks->pending[--i].bounds);
    else
        marks->pending_count++;
    marks->pending[i] =
        (struct wr_source_mark){.number = number, .tail = wr_ring_position(&wr_producer_mine->ring)};
    return &marks->pending[i];
}

static int report(const struct wr_source_marks *marks, uint64_t number)
{
    return number && number <= marks->dropped_until ? WEIR_MARK_DROPPED : WEIR_MARK_DELIVERED;
}

int wr_source_marks_ask(struct wr_source_marks *marks, struct wr_engine *engine, uint64_t number,
                        uint64_t added)
{
    if (number > added)
        number = added;
    if (number <= marks->settled)
        return report(marks, number);
    struct wr_source_mark *mark = find(marks, engine, number, added);
    if (!mark->bounds)
        try_bounds(marks, engine, mark);
    enum wr_lane_standing standing = check(marks, mark);
    if (standing != WR_LANE_SETTLED)
        return standing == WR_LANE_STORED ? WEIR_MARK_STORED : WEIR_MARK_PENDING;
    settle(marks, mark, added);
    return report(marks, number);
}

void wr_source_marks_fini(struct wr_source_marks *marks)
{
    for (uint32_t i = 0; i < marks->pending_count; i++)
        free(marks->pending[i].bounds);
    free(marks->lanes);
}
