#include "ledger.h"

#include "clock.h"
#include "common.h"
#include "ring.h"

static void add_ring(weir_stats *stats, const struct wr_producer *producer)
{
    const struct wr_ring *ring = &producer->ring;
    uint64_t unrouted = atomic_load_explicit(&producer->unrouted, memory_order_relaxed);
    uint64_t head = wr_ring_taken(ring), tail = wr_ring_published(ring);
    stats->taken += head - ring->text_slots + unrouted;
    stats->in_rings += wr_ring_count_samples(ring, head, tail);
    stats->unrouted += unrouted;
}

void wr_ledger_read(struct wr_engine *engine, weir_stats *stats)
{
    struct wr_visit visit;
    struct wr_producers *producers = engine->producers;
    *stats = (weir_stats){.size = sizeof *stats};
    wr_engine_enter(engine, &visit);
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        add_ring(stats, producers->all[i]);
    const struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    if (shared)
        add_ring(stats, shared);
    stats->unrouted += engine->dispatcher.taking.unrouted;
    wr_engine_leave(&visit);
    stats->added = stats->taken + stats->in_rings;
    for (int i = 0; i < WEIR_REFUSALS; i++)
        stats->refused[i] = atomic_load_explicit(&producers->refused[i], memory_order_relaxed);
    stats->threads = count;
    stats->series = atomic_load_explicit(&engine->registry->count, memory_order_relaxed);
}

/* With the round held, so that it goes with a snapshot of the process taken at the same time of rest. */
bool wr_ledger_read_handler(struct wr_engine *engine, const char *name, weir_handler_stats *stats)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    struct wr_lane *lane = wr_engine_find_lane(engine, name);
    if (lane)
        wr_lane_read_stats(lane, stats, wr_clock_monotonic_ns());
    wr_engine_leave(&visit);
    return lane;
}
