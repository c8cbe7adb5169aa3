/* instance: a handler type with options: what the plugin sees of the core, and what the core keeps for it. */
#ifndef WR_INSTANCE_H
#define WR_INSTANCE_H

#include <weir/handler.h>

#include "config/common_options.h"
#include "config/config.h"
#include "format/encoder.h"
#include "handler/host_api.h"
#include "text/region.h"
#include "lane/lane.h"
#include "lane/lane_config.h"
#include "lane/lane_worker.h"
#include "handler/plugin.h"

struct wr_instance {
    struct wr_host_api host; /* what the plugin is given */
    struct wr_type *type;
    struct wr_region keep; /* what options point to */
    struct wr_common_options common_options;
    void *options;
    const struct wr_format *format; /* NULL: the type writes no format */
    void *format_options;
    struct wr_encoder encoder;
    char *identity; /* everything configured, as text: equal texts, equal handlers. Holds secrets. */
    void *self;     /* the plugin's */
};

/* Fills the options of a handler, which the plugin does not see yet. NULL: the error tells why. */
struct wr_instance *wr_instance_new(struct wr_type *type, const struct wr_config *config,
                                    const struct wr_config_handler *handler, struct wr_log *log,
                                    struct wr_error *error);

/* The format of a handler for which none is configured, if its type writes any. */
const char *wr_instance_standard_format(const struct wr_type *type);

/* [configuring, no locks held] Has the plugin create its side of it. false: the error tells why. */
bool wr_instance_create(struct wr_instance *instance, struct wr_error *error);

/* Has the plugin destroy its side, if it was created, and frees the rest. May be NULL. */
void wr_instance_free(struct wr_instance *instance);

/* What a lane knows of the instance, which must have been created. */
struct wr_lane_handler wr_instance_for_lane(struct wr_instance *instance);

/* The instance has become the lane's handler: from here on its host uses the lane. Called before the worker
 * calls the instance. */
void wr_instance_attach(struct wr_instance *instance, struct wr_lane *lane);

/* [fork] Gives up the plugin's side. */
void wr_instance_abandon(const struct wr_instance *instance);

/* What of the last batch's first samples the format left out; for wr_lane_worker_finish. */
struct wr_lane_omissions wr_instance_omissions(const struct wr_instance *instance);

#endif
