/* forward_identity: what both ends of the link say of themselves. */
#ifndef FORWARD_IDENTITY_H
#define FORWARD_IDENTITY_H

#include <stdint.h>

#include "forward_wire.h"

/* The id of this process: the same for all plugins in it, another one in a forked child and in any other
 * process. */
void wr_forward_id(uint8_t id[WIRE_ID]);

/* The names of this process and of this machine. */
void wr_forward_names(char process[WIRE_NAME + 1], char machine[WIRE_NAME + 1]);

#endif
