/* metrics: the section "metrics" of a configuration, which sets what names mean. */
#ifndef WR_METRICS_H
#define WR_METRICS_H

#include <stdbool.h>

#include "config/config.h"
#include "config/options.h"

/* Reads the section into config->metrics. */
bool wr_metrics_read(struct wr_config *config, const struct wr_node *node, struct wr_error *error);

/* The options of an entry, for the schema and the reference; "buckets", an array of numbers or a text, is
 * not among them. */
struct wr_options_table wr_metrics_table(void);

#endif
