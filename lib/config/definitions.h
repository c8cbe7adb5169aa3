/* definitions: finds names that two files of a configuration define. */
#ifndef WR_DEFINITIONS_H
#define WR_DEFINITIONS_H

#include <stdbool.h>

#include "config/config.h"

struct wr_error;

/* Whether each handler, group and entry of "metrics" is defined in one document only. If not, the error names
 * both places. */
bool wr_definitions_check(const struct wr_config *config, struct wr_error *error);

#endif
