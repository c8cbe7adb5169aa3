/* lane_config: what a configuration changes of a lane. [dispatcher's round, unless stated otherwise]
 *
 * A handler is replaced without waiting: the worker closes and destroys the old instance and continues with its
 * successor. Queue and spool stay. */
#ifndef WR_LANE_CONFIG_H
#define WR_LANE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane.h"

struct wr_instance;
struct wr_label_set;

/* What a lane knows of an instance of its handler. The texts are borrowed from the instance, but for those that
 * live until the process ends. */
struct wr_lane_handler {
    struct wr_instance *instance; /* not interpreted here; NULL: none */
    const char *type;             /* name of the handler type; lives until the process ends */
    const char *identity;         /* everything configured, as text. Holds secrets. */
    const char *spool;            /* folder; NULL: none */
    struct wr_lane_settings settings;
    uint32_t kinds;         /* WEIR_KINDS_* that it takes */
    bool has_flush;         /* it has to be called */
    bool has_now;           /* it has emit_now */
    int64_t try_timeout_ns; /* how long an attempt may take in addition to block_timeout */
    const char *breach;     /* process state that create changed; lives until the process ends; NULL: none */
};

/* Instances that changes took out of use, for the caller to free without locks. Each change of a lane appends
 * at most two, for which the caller has made room. */
struct wr_lane_discarded {
    struct wr_instance **instances;
    size_t count;
};

/* Whether the lane already has a handler that is configured the same, or is about to. [any thread] */
bool wr_lane_config_is_same(struct wr_lane *lane, const char *identity);

/* Keeps a lane whose handler stays as it is from coming to an end. Returns false if it has already. */
bool wr_lane_config_keep(struct wr_lane *lane);

struct wr_lane_change {
    struct wr_label_set *labels; /* of the configuration; the lane takes a reference. NULL: none */
    int end_reason; /* enum weir_drop: there is no handler, drop all further samples; WR_LANE_LIVES: keep them
                     */
    const struct wr_lane_handler *handler; /* NULL: it stays as it is */
    const _Atomic bool *journaled; /* whether what is queued is in a journal; it stays as long as the lane */
};

/* Applies a change. Returns whether the new handler is in place at once, because the lane has no worker. */
bool wr_lane_config_apply(struct wr_lane *lane, const struct wr_lane_change *change,
                          struct wr_lane_discarded *discarded);

/* Has a lane deliver what it has until deadline_ns and come to its end. Returns false if it was asked to
 * before.
 */
bool wr_lane_config_remove(struct wr_lane *lane, int64_t deadline_ns, struct wr_lane_discarded *discarded);

#endif
