/* dispatch_fixture: a dispatcher whose rounds the test runs, a producer that the test writes for, and lanes
 * without workers. Routes come from the text of a configuration; each handler that it names becomes a lane. */
#ifndef DISPATCH_FIXTURE_H
#define DISPATCH_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "text/error.h"
#include "lane/lane_internal.h"
#include "producer/producer.h"
#include "registry/registry.h"
#include "dispatch/router.h"

enum { FIXTURE_LANES = 24 };

struct dispatch_fixture {
    struct wr_log log; /* without a sink */
    struct wr_registry registry;
    struct wr_producers producers;
    struct wr_producer *producer; /* the calling thread's */
    struct wr_dispatcher dispatcher;
    struct wr_worker_env worker_env;
    struct wr_lane *lanes[FIXTURE_LANES];
    size_t lane_count;
    struct wr_lane_settings settings; /* of lanes made from now on */
    bool has_journal;                 /* of routers made from now on: lanes that sum are in feeds */
    struct wr_error error;
};

/* Returns the only fixture, which is static. Lanes have room for 1000 samples, and block, unless the test
 * changes fixture->settings before it routes. */
struct dispatch_fixture *fixture_open(void);
void fixture_close(struct dispatch_fixture *fixture);

/* Makes a router from the text of "groups": {"*": "A", "a.b": ["A", "B"]}. */
struct wr_router *fixture_router(struct dispatch_fixture *fixture, const char *groups);

/* Has the dispatcher use such a router from now on. */
void fixture_route(struct dispatch_fixture *fixture, const char *groups);

/* Starts a journal in a folder, and moves the producer's ring there. segment_room: samples of a segment; 0: the
 * default. Returns NULL on failure, with fixture->error set. */
struct wr_journal *fixture_start_journal(struct dispatch_fixture *fixture, const char *place,
                                         uint32_t segment_room);

/* A lane by its handler's name; NULL: no route has named it yet. */
struct wr_lane *fixture_lane(struct dispatch_fixture *fixture, const char *name);

/* A series of a group, and its group. */
struct weir_metric *fixture_metric(struct dispatch_fixture *fixture, const char *group, const char *name);
struct wr_group *fixture_group(struct dispatch_fixture *fixture, const char *group);

/* Write slots into the producer's ring without publishing them: a sample with flags; a text. fixture_publish
 * publishes all of them. */
weir_sample *fixture_write(struct dispatch_fixture *fixture, struct weir_metric *metric, uint16_t flags,
                           double value);
void fixture_write_text(struct dispatch_fixture *fixture, const char *text);
void fixture_publish(struct dispatch_fixture *fixture);

/* Adds one value, as a program does. */
void fixture_add(struct dispatch_fixture *fixture, const char *group, const char *name, double value);

/* Runs one round. Returns how many samples it took. */
uint64_t fixture_round(struct dispatch_fixture *fixture);

/* The values that a lane has queued, as "1 2 3". The text is static. */
const char *fixture_queue(const struct wr_lane *lane);

/* A snapshot of a lane; asserts that the ledger balances. */
weir_handler_stats fixture_stats(struct wr_lane *lane);

/* Drops all that a lane has. */
void fixture_drop(struct wr_lane *lane);

#endif
