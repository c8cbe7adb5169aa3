/* checker: checks the ledger and the received samples, at any time, at the end of a process, and at the end
 * of a life. */
#ifndef MODEL_CHECKER_H
#define MODEL_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* Checks the identities of the ledger, which hold at any time, and that it never counts more than the
 * handlers have received. */
void checker_check_now(void);

/* Shuts weir down. */
int checker_shut_down(int64_t timeout_ms);

/* Checks this process after weir_shutdown returned `result` and all its actors have ended. */
void checker_check_process(int result);

/* Checks process number `process`, which has ended in any way, after the last process has delivered what it
 * left. */
void checker_check_life(uint32_t process);

/* Whether the handler received all samples routed to it. */
bool checker_is_whole(const weir_handler_stats *stats);

#endif
