/* room: a ring of a few slots that is full most of the time: the writer sleeps until there is space, and the
 * reader frees the slots in changing portions. A writer that is not woken sleeps forever. */

#include <pthread.h>
#include <sched.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "dispatch/dispatcher.h"
#include "text/error.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"

enum { SLOTS = 8, SECONDS = 2 };

static struct wr_registry registry;
static struct wr_producers producers;
static struct wr_dispatcher dispatcher;
static const struct wr_worker_env worker_env = {.registry = &registry};
static _Atomic bool done;
static uint64_t waits;

/* Writes an event of one or two slots, the maximum for such a ring. */
static void write_one(struct wr_producer *producer, const struct weir_metric *metric, uint32_t samples)
{
    struct wr_ring *ring = &producer->ring;
    while (!wr_ring_find_room(ring, samples)) {
        waits++;
        wr_dispatcher_wait_room(&dispatcher, producer, samples, WR_NEVER);
    }
    uint64_t position = wr_ring_position(ring);
    for (uint32_t i = 0; i < samples; i++)
        *wr_ring_slot(ring, position + i) = (weir_sample){
            .series = metric->series,
            .flags = i + 1 < samples ? WEIR_SAMPLE_MORE : 0,
        };
    wr_ring_publish(ring, position + samples);
    wr_dispatcher_wake(&dispatcher, producer);
}

static void *write_many(void *argument)
{
    struct wr_error error;
    uint64_t random = 1, written = 0;
    struct wr_producer *producer = wr_producers_attach(&producers);
    const struct weir_metric *metric =
        wr_series_get(&registry, wr_stream_get(&registry, "g", NULL, 0, &error), "n", 0, &error);
    int64_t end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    (void)argument;
    wr_ring_init(&producer->ring, wr_ring_block(&producer->ring), SLOTS);
    while (wr_clock_monotonic_ns() < end_ns)
        for (int i = 0; i < 100; i++) {
            uint32_t samples = 1 + plain_draw(&random, SLOTS / WR_RING_QUARTERS);
            write_one(producer, metric, samples);
            written += samples;
        }
    atomic_store(&done, true);
    return (void *)(uintptr_t)written;
}

static struct wr_lane *find_no_lane(void *ctx, const char *handler, struct wr_lane_settings *settings)
{
    (void)ctx;
    (void)handler;
    (void)settings;
    return NULL;
}

int main(void)
{
    pthread_t writer;
    void *written;
    uint64_t taken = 0;
    int64_t next_ns;
    plain_hang_no_longer_than(60);
    PLAIN_CHECK(wr_registry_init(&registry) && wr_producers_init(&producers));
    wr_dispatcher_init(&dispatcher, &registry, &worker_env);
    struct wr_config *config = wr_config_new(); /* without routes: values are only counted */
    dispatcher.drain.router = wr_router_new(config, &dispatcher.drain.pool, false, find_no_lane, NULL, NULL);
    wr_config_drop(config);
    PLAIN_CHECK(pthread_create(&writer, NULL, write_many, NULL) == 0);
    for (bool last = false; !last;) {
        last = atomic_load(&done);
        wr_dispatcher_visit(&dispatcher);
        taken += wr_dispatcher_round(&dispatcher, &next_ns);
        wr_dispatcher_leave(&dispatcher);
    }
    pthread_join(writer, &written);
    PLAIN_CHECK(taken == (uintptr_t)written && dispatcher.drain.unrouted == taken);
    wr_router_free(dispatcher.drain.router, 0);
    printf("%llu values, %llu waits\n", (unsigned long long)taken, (unsigned long long)waits);
    return 0;
}
