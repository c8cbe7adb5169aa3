#include "status/ledger.h"

#include <stdlib.h>

#include "os/clock.h"
#include "text/array.h"
#include "text/common.h"
#include "producer/ring.h"

static void add_ring(weir_stats *stats, const struct wr_producer *producer)
{
    const struct wr_ring *ring = &producer->ring;
    if (wr_producer_is_cold(producer)) /* in a forked child: what is there is not of this process */
        return;
    uint64_t unrouted = wr_unrouted_total(&producer->unrouted);
    uint64_t head = wr_ring_taken(ring), tail = wr_ring_published(ring);
    uint64_t summed = atomic_load_explicit(&producer->cells.values, memory_order_relaxed);
    stats->taken += head - ring->text_slots + unrouted + producer->cells.taken;
    stats->in_rings += wr_ring_count_samples(ring, head, tail) + summed - producer->cells.taken;
    stats->unrouted += unrouted;
}

/* So that the handlers' statistics have it, too. With a journal it would be written there each time. */
static void take_cells(struct wr_engine *engine)
{
    if (!engine->journal)
        wr_dispatcher_take_cells(&engine->dispatcher);
}

void wr_ledger_read(struct wr_engine *engine, weir_stats *stats)
{
    struct wr_visit visit;
    struct wr_producers *producers = engine->producers;
    *stats = (weir_stats){.size = sizeof *stats};
    wr_engine_enter(engine, &visit);
    wr_engine_take_late(engine);
    take_cells(engine);
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        add_ring(stats, producers->all[i]);
    const struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    if (shared)
        add_ring(stats, shared);
    stats->unrouted += engine->dispatcher.drain.unrouted;
    wr_engine_leave(&visit);
    stats->added = stats->taken + stats->in_rings;
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        stats->refused[i] = atomic_load_explicit(&producers->refused[i], memory_order_relaxed);
    stats->threads = count;
    stats->series = atomic_load_explicit(&engine->registry->count, memory_order_relaxed);
}

/* ---- Values without a handler ---------------------------------------------------------------- */

/* If out of memory it is incomplete. */
struct list {
    struct wr_ledger_unrouted *items;
    uint32_t count, room;
};

static void append(struct list *list, struct wr_group *group, uint64_t values)
{
    if (WR_ARRAY_HAS_ROOM(&list->items, &list->room, list->count + 1))
        list->items[list->count++] = (struct wr_ledger_unrouted){group, values};
}

static void append_run(struct list *list, const struct wr_producer *producer)
{
    uint64_t values;
    if (wr_producer_is_cold(producer))
        return;
    struct wr_group *group = wr_unrouted_run(&producer->unrouted, &values);
    if (!group || !values)
        return;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].group != group)
            continue;
        list->items[i].values += values;
        return;
    }
    append(list, group, values);
}

/* Reads the groups' counters before the runs in progress, so that no value is counted twice. */
struct wr_ledger_unrouted *wr_ledger_list_unrouted(struct wr_engine *engine, size_t *count)
{
    struct list list = {NULL, 0, 0};
    const struct wr_producers *producers = engine->producers;
    struct wr_group *group = atomic_load_explicit(&engine->registry->last_group, memory_order_acquire);
    for (; group; group = group->next) {
        uint64_t values = atomic_load(&group->unrouted);
        if (values)
            append(&list, group, values);
    }
    uint32_t threads = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < threads; i++)
        append_run(&list, producers->all[i]);
    const struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    if (shared)
        append_run(&list, shared);
    *count = list.count;
    return list.items;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* Holds the round lock, so that it is consistent with wr_ledger_read while no value is added. */
bool wr_ledger_read_handler(struct wr_engine *engine, const char *name, weir_handler_stats *stats)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    wr_engine_take_late(engine);
    take_cells(engine);
    struct wr_lane *lane = wr_engine_find_lane(engine, name);
    if (lane)
        wr_lane_stats_get(stats, lane, wr_clock_monotonic_ns());
    wr_engine_leave(&visit);
    return lane;
}

size_t wr_ledger_read_counters(struct wr_engine *engine, const char *name, struct wr_lane_counter *counters)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    struct wr_lane *lane = wr_engine_find_lane(engine, name);
    wr_engine_leave(&visit);
    return lane ? wr_lane_stats_get_counters(lane, counters) : 0;
}

const char *wr_ledger_handler_name(struct wr_engine *engine, size_t index)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    const struct wr_lane *lane = wr_engine_lane_at(engine, index);
    wr_engine_leave(&visit);
    return lane ? wr_lane_name(lane) : NULL;
}
