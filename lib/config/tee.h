/* tee: handlers that somebody else adds to whatever configuration a program has: the environment variable
 * WEIR_TEE. It replaces nothing: each route of the program gets more handlers.
 *
 * The configuration with the tee is made anew from the program's own, whenever that changes: so calls that edit
 * a configuration, and rereading it, never see the tee. */
#ifndef WR_TEE_H
#define WR_TEE_H

#include <stdbool.h>

#include "config/config.h"

struct wr_error;

/* The names of a tee's handlers begin so, in front of those that the tee gives them. No name that is made of a
 * type's does. What a journal of a dead process holds for one is of no use to another process: its tee, if it
 * has any, is somebody else's. */
#define WR_TEE_PREFIX "WEIR_TEE:"

/* The tee of WEIR_TEE, which is a path, or the text itself as for WEIR_CONFIG: a configuration that has
 * handlers and groups only. Returns one reference. NULL: error is set. */
struct wr_config *wr_tee_read(struct wr_error *error);

/* A configuration with the handlers and routes of both: a group is routed to the handlers that it has without
 * the tee, and to those of the tee's route for it. The tee's handlers do not get the defaults that `config` has
 * for handlers. Returns one reference. NULL: error is set: a name that both define, or out of memory. */
struct wr_config *wr_tee_add(struct wr_config *config, struct wr_config *tee, struct wr_error *error);

/* The configuration without the tee: itself, unless wr_tee_add made it. Borrowed. */
struct wr_config *wr_tee_without(struct wr_config *config);

#endif
