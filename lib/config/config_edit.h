/* calls: what weir_configure adds to a configuration. Each makes a new one. */
#ifndef WR_CONFIG_EDIT_H
#define WR_CONFIG_EDIT_H

#include "config/config.h"

struct wr_error;

/* A copy in which a group ("*": the default) goes to a handler of a type, in place of its present route; type
 * NULL: it has no route of its own. options: the text of a JSON object, or NULL. */
struct wr_config *wr_config_edit_route(struct wr_config *config, const char *group, const char *type,
                                       const char *options, struct wr_error *error);

/* A copy of `base` with all that weir_configure put into `config`. */
struct wr_config *wr_config_edit_carry_over(struct wr_config *base, const struct wr_config *config,
                                            struct wr_error *error);

#endif
