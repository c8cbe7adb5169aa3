/* yard: a dispatcher whose rounds the test runs, between a producer that the test writes for and lanes that
 * have no workers. Routes come from a configuration's text; each handler that it names becomes a lane of that
 * name. */
#ifndef YARD_H
#define YARD_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatcher.h"
#include "error.h"
#include "lane.h"
#include "producer.h"
#include "registry.h"
#include "router.h"

enum { YARD_LANES = 8 };

struct yard {
    struct wr_log log; /* says nothing */
    struct wr_registry registry;
    struct wr_producers producers;
    struct wr_producer *producer; /* the calling thread's */
    struct wr_dispatcher dispatcher;
    struct wr_crew crew;
    struct wr_lane *lanes[YARD_LANES];
    size_t lane_count;
    struct wr_lane_settings settings; /* of lanes made from now on */
    struct wr_error error;
};

/* The whole yard is static: there is one. Lanes have room for 1000 samples, and block, unless the test changes
 * yard->settings before it routes. */
struct yard *yard_open(void);
void yard_close(struct yard *yard);

/* Makes a router of the text of "groups": {"*": "A", "a.b": ["A", "B"]}. */
struct wr_router *yard_router(struct yard *yard, const char *groups);

/* Has the dispatcher use such a router from now on, in rounds of which the lanes take no notice. */
void yard_route(struct yard *yard, const char *groups);

/* Starts a journal in a folder, and moves the producer's ring there. segment_room: samples of a segment; 0: as
 * usual. NULL: yard->error tells why not. */
struct wr_journal *yard_start_journal(struct yard *yard, const char *place, uint32_t segment_room);

/* A lane by its handler's name; NULL: no route has named it so far. */
struct wr_lane *yard_lane(struct yard *yard, const char *name);

/* A series of a group, and its group. */
struct weir_metric *yard_metric(struct yard *yard, const char *group, const char *name);
struct wr_group *yard_group(struct yard *yard, const char *group);

/* Writes slots into the producer's ring without publishing them: a sample with flags, the next slot's contents.
 * yard_publish shows all of them to the dispatcher. */
weir_sample *yard_write(struct yard *yard, struct weir_metric *metric, uint16_t flags, double value);
void yard_write_text(struct yard *yard, const char *text);
void yard_publish(struct yard *yard);

/* Adds one value; as a program would. */
void yard_add(struct yard *yard, const char *group, const char *name, double value);

/* One round; answers how many samples it took. */
uint64_t yard_round(struct yard *yard);

/* The values that a lane has queued, as "1 2 3". Static. */
const char *yard_queue(const struct wr_lane *lane);

/* A snapshot of a lane, in which the ledger balances. */
weir_handler_stats yard_stats(struct wr_lane *lane);

/* Drops all that a lane has. */
void yard_drop(struct wr_lane *lane);

#endif
