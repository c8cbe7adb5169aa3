/* forward_identity: what both ends of the link say of themselves, and where they meet. */
#ifndef FORWARD_IDENTITY_H
#define FORWARD_IDENTITY_H

#include <stdint.h>

#include "forward_wire.h"

/* More than an address has, so that a path that is too long is refused and not cut. */
enum { FORWARD_PATH_ROOM = 110 };

/* The id of this process: the same for all plugins in it, another one in a forked child and in any other
 * process. */
void wr_forward_id(uint8_t id[WIRE_ID]);

/* The names of this process and of this machine. */
void wr_forward_names(char process[WIRE_NAME + 1], char machine[WIRE_NAME + 1]);

/* The path of the socket where the ends meet that name no address: "unix:" and
 * $XDG_RUNTIME_DIR/weir/forward.sock or, without that variable, /run/weir/forward.sock. */
void wr_forward_default(char text[FORWARD_PATH_ROOM + 5]);

#endif
