#include "dispatch_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "journal/journal.h"
#include "ledger.h"
#include "config/config_read.h"
#include "producer/ring.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "lane/lane_stats.h"

enum { QUEUE_SAMPLES = 1000 };

static struct dispatch_fixture the_fixture;
static uint64_t written; /* up to this position */

struct dispatch_fixture *fixture_open(void)
{
    struct dispatch_fixture *fixture = &the_fixture;
    cr_assert(wr_registry_init(&fixture->registry) && wr_producers_init(&fixture->producers));
    fixture->producer = wr_producers_attach(&fixture->producers);
    cr_assert(fixture->producer);
    fixture->worker_env = (struct wr_worker_env){.registry = &fixture->registry};
    wr_dispatcher_init(&fixture->dispatcher, &fixture->registry, &fixture->worker_env);
    fixture->settings = (struct wr_lane_settings){
        .queue_bytes = QUEUE_SAMPLES * sizeof(weir_sample),
        .overflow = WR_OVERFLOW_BLOCK,
        .block_timeout_ns = WR_NS_PER_S,
        .batch = 5000,
        .batch_bytes = 1024 * 1024,
        .retry_min_ns = 500 * WR_NS_PER_MS,
        .retry_max_ns = 30 * WR_NS_PER_S,
    };
    written = wr_ring_position(&fixture->producer->ring);
    return fixture;
}

void fixture_close(struct dispatch_fixture *fixture)
{
    wr_router_free(fixture->dispatcher.drain.router, wr_clock_monotonic_ns());
    for (size_t i = 0; i < fixture->lane_count; i++) {
        fixture_drop(fixture->lanes[i]);
        wr_lane_free_unused(fixture->lanes[i]);
    }
    wr_segment_pool_set(&fixture->dispatcher.drain.pool, 0);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

struct wr_journal *fixture_start_journal(struct dispatch_fixture *fixture, const char *place,
                                         uint32_t segment_room)
{
    struct wr_drain *drain = &fixture->dispatcher.drain;
    struct wr_journal *journal =
        wr_journal_start(place, &fixture->registry, &fixture->dispatcher.deferred_log, &fixture->error);
    if (!journal)
        return NULL;
    drain->pool.journal = journal;
    wr_drain_renew(drain, fixture->producer);
    for (size_t i = 0; segment_room && i < drain->router->feed_count; i++)
        drain->router->feeds[i].segment_room = segment_room;
    return journal;
}

struct wr_lane *fixture_lane(struct dispatch_fixture *fixture, const char *name)
{
    for (size_t i = 0; i < fixture->lane_count; i++)
        if (strcmp(fixture->lanes[i]->name, name) == 0)
            return fixture->lanes[i];
    return NULL;
}

static struct wr_lane *make_lane(struct dispatch_fixture *fixture, const char *name)
{
    cr_assert_lt(fixture->lane_count, FIXTURE_LANES);
    struct wr_lane *lane =
        wr_lane_new(name, &fixture->log, &fixture->dispatcher.wakeup, &fixture->dispatcher.deferred_log);
    cr_assert(lane);
    wr_lane_set(lane, &fixture->settings, 0);
    if (fixture->settings.aggregate_ns)
        wr_lane_set_summer(lane, wr_summer_new(&fixture->registry));
    fixture->lanes[fixture->lane_count++] = lane;
    return lane;
}

static struct wr_lane *find_lane(void *ctx, const char *handler, struct wr_lane_settings *settings)
{
    struct wr_lane *lane = fixture_lane(ctx, handler);
    if (!lane)
        lane = make_lane(ctx, handler);
    *settings = lane->settings;
    return lane;
}

struct wr_router *fixture_router(struct dispatch_fixture *fixture, const char *groups)
{
    char text[1000];
    int length = snprintf(text, sizeof text, "{\"groups\": %s}", groups);
    cr_assert_lt(length, (int)sizeof text);
    struct wr_config *config = wr_config_read_text("test", text, (size_t)length, NULL, &fixture->error);
    cr_assert(config, "%s", fixture->error.text);
    struct wr_router *router =
        wr_router_new(config, &fixture->dispatcher.drain.pool, fixture->has_journal, find_lane, fixture, NULL);
    wr_config_drop(config);
    cr_assert(router);
    for (size_t i = 0; i < router->lane_count; i++)
        router->lanes[i].started = true; /* the test is the worker */
    return router;
}

void fixture_route(struct dispatch_fixture *fixture, const char *groups)
{
    struct wr_router *router = fixture_router(fixture, groups);
    wr_router_free(wr_dispatcher_switch(&fixture->dispatcher, router), 0);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

struct weir_metric *fixture_metric(struct dispatch_fixture *fixture, const char *group, const char *name)
{
    struct weir_stream *stream = wr_stream_get(&fixture->registry, group, NULL, 0, &fixture->error);
    return wr_series_get(&fixture->registry, stream, name, 0, &fixture->error);
}

struct wr_group *fixture_group(struct dispatch_fixture *fixture, const char *group)
{
    return wr_stream_get(&fixture->registry, group, NULL, 0, &fixture->error)->group;
}

weir_sample *fixture_write(struct dispatch_fixture *fixture, struct weir_metric *metric, uint16_t flags,
                           double value)
{
    cr_assert_lt(written - wr_ring_taken(&fixture->producer->ring), WR_PRODUCER_SLOTS);
    weir_sample *sample = wr_ring_slot(&fixture->producer->ring, written++);
    *sample = (weir_sample){
        .series = metric->series,
        .flags = (uint16_t)(flags | metric->flags),
        .time_ns = 1,
        .value.f64 = value,
    };
    return sample;
}

void fixture_write_text(struct dispatch_fixture *fixture, const char *text)
{
    size_t length = strlen(text);
    for (size_t done = 0; done < length; done += sizeof(weir_sample)) {
        size_t part = length - done < sizeof(weir_sample) ? length - done : sizeof(weir_sample);
        memcpy(wr_ring_slot(&fixture->producer->ring, written++), text + done, part);
    }
}

void fixture_publish(struct dispatch_fixture *fixture)
{
    wr_ring_publish(&fixture->producer->ring, written);
    wr_dispatcher_wake(&fixture->dispatcher, fixture->producer);
}

void fixture_add(struct dispatch_fixture *fixture, const char *group, const char *name, double value)
{
    fixture_write(fixture, fixture_metric(fixture, group, name), 0, value);
    fixture_publish(fixture);
}

uint64_t fixture_round(struct dispatch_fixture *fixture)
{
    int64_t next_ns;
    return wr_dispatcher_round(&fixture->dispatcher, &next_ns);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const char *fixture_queue(const struct wr_lane *lane)
{
    static char text[4000];
    const struct wr_queue *queue = &lane->ledger.queue;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wr_range *range = wr_queue_at(queue, i);
        for (uint32_t j = 0; j < range->count && length < sizeof text; j++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%g", length ? " " : "",
                                       range->segment->samples[range->first + j].value.f64);
    }
    return text;
}

weir_handler_stats fixture_stats(struct wr_lane *lane)
{
    weir_handler_stats stats;
    wr_lane_stats_get(&stats, lane, 0);
    cr_assert(ledger_is_balanced(&stats));
    return stats;
}

void fixture_drop(struct wr_lane *lane)
{
    wr_lane_drop_all(lane, WEIR_DROPPED_SHUTDOWN);
}
