/* instance: a handler: its type, its options, its host and the instance that the plugin created. */
#ifndef WR_INSTANCE_H
#define WR_INSTANCE_H

#include <weir/handler.h>

#include "config/common_options.h"
#include "config/config.h"
#include "format/encoder.h"
#include "handler/host_api.h"
#include "handler/parts.h"
#include "text/region.h"
#include "lane/lane.h"
#include "lane/lane_config.h"
#include "lane/lane_worker.h"
#include "handler/plugin.h"

struct wr_instance {
    struct wr_host_api host; /* what the plugin gets */
    struct wr_type *type;
    struct wr_region keep; /* memory that options point to */
    struct wr_common_options common_options;
    void *options;
    const struct wr_format *format; /* NULL: the type writes no format */
    void *format_options;
    struct wr_encoder encoder;
    struct wr_parts_rules parts_rules; /* for summaries that are delivered in parts */
    struct wr_parts parts;
    char *identity; /* all options as text: handlers with equal texts are equal. Holds secrets. */
    void *self;     /* the plugin's instance; NULL: not created */
};

/* Fills the options of a handler; nothing of the plugin is called. expanded: what the configuration's strings
 * have become so far; NULL: this handler's alone. unknown: gets its unknown keys, if the configuration ignores
 * these; may be NULL. Returns NULL with the error set. */
struct wr_instance *wr_instance_new(struct wr_type *type, const struct wr_config *config,
                                    const struct wr_config_handler *handler, struct wr_log *log,
                                    struct wr_expanded *expanded, struct wr_unknown_keys *unknown,
                                    struct wr_error *error);

/* The format of a handler for which none is configured, if its type writes any. */
const char *wr_instance_default_format(const struct wr_type *type);

/* [configuring, no locks held] Calls the type's prepare, unless that is done. Returns false with the error set.
 */
bool wr_instance_prepare(struct wr_instance *instance, struct wr_error *error);

/* [configuring, no locks held] Calls prepare as above, then create. Returns false with the error set. */
bool wr_instance_create(struct wr_instance *instance, struct wr_error *error);

/* Calls destroy if it was created, and frees the instance. May be NULL. */
void wr_instance_free(struct wr_instance *instance);

/* Whether its samples get the label of settings.instance. */
bool wr_instance_wants_label(const struct wr_instance *instance);

/* The common options, as a lane uses them, and what the type adds. */
struct wr_lane_settings wr_instance_settings(const struct wr_instance *instance);

/* What a lane knows of the instance, which must have been created. */
struct wr_lane_handler wr_instance_for_lane(struct wr_instance *instance);

/* The instance has become the lane's handler: from here on its host uses the lane. Called before the worker
 * calls the instance. */
void wr_instance_attach(struct wr_instance *instance, struct wr_lane *lane);

/* [fork] In the child: closes its descriptors. is_torn: the fork has interrupted the type's code, and its
 * abandon is not called. */
void wr_instance_abandon(const struct wr_instance *instance, bool is_torn);

/* How many of the last batch's first samples the format left out; for wr_lane_worker_finish. */
struct wr_lane_omissions wr_instance_omissions(const struct wr_instance *instance);

#endif
