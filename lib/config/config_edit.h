/* config_edit: config -> config: applies calls of weir_configure. The given configuration is unchanged; the
 * returned one holds what it shares with it. */
#ifndef WR_CONFIG_EDIT_H
#define WR_CONFIG_EDIT_H

#include "config/config.h"

struct wr_error;

/* Routes a group ("*": the default) to a handler of a type, replacing the group's route; type NULL: removes the
 * route. options: the text of a JSON object, or NULL. NULL: error is set. */
struct wr_config *wr_config_edit_route(struct wr_config *config, const char *group, const char *type,
                                       const char *options, struct wr_error *error);

/* `base` with all calls that were applied to `config`. NULL: error is set. */
struct wr_config *wr_config_edit_carry_over(struct wr_config *base, const struct wr_config *config,
                                            struct wr_error *error);

#endif
