#include "yard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "journal.h"
#include "ledger.h"
#include "parse.h"
#include "ring.h"
#include "series.h"
#include "stream.h"
#include "tally.h"

enum { QUEUE_SAMPLES = 1000 };

static struct yard the_yard;
static uint64_t written; /* up to this position */

struct yard *yard_open(void)
{
    struct yard *yard = &the_yard;
    cr_assert(wr_registry_init(&yard->registry) && wr_producers_init(&yard->producers));
    yard->producer = wr_producers_attach(&yard->producers);
    cr_assert(yard->producer);
    yard->crew = (struct wr_crew){.registry = &yard->registry, .producers = &yard->producers};
    wr_dispatcher_init(&yard->dispatcher, &yard->registry, &yard->crew);
    yard->settings = (struct wr_lane_settings){
        .queue_bytes = QUEUE_SAMPLES * sizeof(weir_sample),
        .overflow = WR_OVERFLOW_BLOCK,
        .block_timeout_ns = WR_NS_PER_S,
        .batch = 5000,
        .batch_bytes = 1024 * 1024,
        .retry_min_ns = 500 * WR_NS_PER_MS,
        .retry_max_ns = 30 * WR_NS_PER_S,
    };
    written = wr_ring_position(&yard->producer->ring);
    return yard;
}

void yard_close(struct yard *yard)
{
    wr_router_free(yard->dispatcher.taking.router, wr_clock_monotonic_ns());
    for (size_t i = 0; i < yard->lane_count; i++) {
        yard_drop(yard->lanes[i]);
        wr_lane_free_unused(yard->lanes[i]);
    }
    wr_segment_pool_set(&yard->dispatcher.taking.pool, 0);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

struct wr_journal *yard_start_journal(struct yard *yard, const char *place, uint32_t segment_room)
{
    struct wr_taking *taking = &yard->dispatcher.taking;
    struct wr_journal *journal =
        wr_journal_start(place, &yard->registry, &yard->dispatcher.words, &yard->error);
    if (!journal)
        return NULL;
    taking->pool.journal = journal;
    wr_taking_renew(taking, &yard->producer->ring);
    for (size_t i = 0; segment_room && i < taking->router->feed_count; i++)
        taking->router->feeds[i].segment_room = segment_room;
    return journal;
}

struct wr_lane *yard_lane(struct yard *yard, const char *name)
{
    for (size_t i = 0; i < yard->lane_count; i++)
        if (strcmp(yard->lanes[i]->name, name) == 0)
            return yard->lanes[i];
    return NULL;
}

static struct wr_lane *make_lane(struct yard *yard, const char *name)
{
    cr_assert_lt(yard->lane_count, YARD_LANES);
    struct wr_lane *lane = wr_lane_new(name, &yard->log, &yard->dispatcher.bell, &yard->dispatcher.words);
    cr_assert(lane);
    wr_lane_set(lane, &yard->settings, 0);
    yard->lanes[yard->lane_count++] = lane;
    return lane;
}

static struct wr_lane *find_lane(void *ctx, const char *handler, struct wr_lane_settings *settings)
{
    struct wr_lane *lane = yard_lane(ctx, handler);
    if (!lane)
        lane = make_lane(ctx, handler);
    *settings = lane->settings;
    return lane;
}

struct wr_router *yard_router(struct yard *yard, const char *groups)
{
    char text[1000];
    int length = snprintf(text, sizeof text, "{\"groups\": %s}", groups);
    cr_assert_lt(length, (int)sizeof text);
    struct wr_config *config = wr_parse_text("test", text, (size_t)length, NULL, &yard->error);
    cr_assert(config, "%s", yard->error.text);
    struct wr_router *router = wr_router_new(config, &yard->dispatcher.taking.pool, find_lane, yard);
    wr_config_drop(config);
    cr_assert(router);
    for (size_t i = 0; i < router->lane_count; i++)
        router->lanes[i].started = true; /* the test is the worker */
    return router;
}

void yard_route(struct yard *yard, const char *groups)
{
    wr_dispatcher_switch(&yard->dispatcher, yard_router(yard, groups));
}

/* ---- Adding ---------------------------------------------------------------------------------- */

struct weir_metric *yard_metric(struct yard *yard, const char *group, const char *name)
{
    struct weir_stream *stream = wr_stream_get(&yard->registry, group, NULL, 0, &yard->error);
    return wr_series_get(&yard->registry, stream, name, 0, &yard->error);
}

struct wr_group *yard_group(struct yard *yard, const char *group)
{
    return wr_stream_get(&yard->registry, group, NULL, 0, &yard->error)->group;
}

weir_sample *yard_write(struct yard *yard, struct weir_metric *metric, uint16_t flags, double value)
{
    cr_assert_lt(written - wr_ring_taken(&yard->producer->ring), WR_PRODUCER_SLOTS);
    weir_sample *sample = wr_ring_slot(&yard->producer->ring, written++);
    *sample = (weir_sample){
        .series = metric->series,
        .flags = (uint16_t)(flags | metric->flags),
        .time_ns = 1,
        .value.f64 = value,
    };
    return sample;
}

void yard_write_text(struct yard *yard, const char *text)
{
    size_t length = strlen(text);
    for (size_t done = 0; done < length; done += sizeof(weir_sample)) {
        size_t part = length - done < sizeof(weir_sample) ? length - done : sizeof(weir_sample);
        memcpy(wr_ring_slot(&yard->producer->ring, written++), text + done, part);
    }
}

void yard_publish(struct yard *yard)
{
    wr_ring_publish(&yard->producer->ring, written);
    wr_dispatcher_wake(&yard->dispatcher, yard->producer);
}

void yard_add(struct yard *yard, const char *group, const char *name, double value)
{
    yard_write(yard, yard_metric(yard, group, name), 0, value);
    yard_publish(yard);
}

uint64_t yard_round(struct yard *yard)
{
    int64_t next_ns;
    return wr_dispatcher_round(&yard->dispatcher, &next_ns);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const char *yard_queue(const struct wr_lane *lane)
{
    static char text[4000];
    const struct wr_queue *queue = &lane->queue;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wr_range *range = &queue->ranges[(queue->first + i) % queue->room];
        for (uint32_t j = 0; j < range->count && length < sizeof text; j++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%g", length ? " " : "",
                                       range->segment->samples[range->first + j].value.f64);
    }
    return text;
}

weir_handler_stats yard_stats(struct wr_lane *lane)
{
    weir_handler_stats stats;
    wr_tally_take(&stats, lane, 0);
    cr_assert(ledger_is_balanced(&stats));
    return stats;
}

void yard_drop(struct wr_lane *lane)
{
    wr_lane_drop_all(lane, WEIR_DROPPED_SHUTDOWN);
}
