/* verdict: what the model says at the end of a process, and at the end of all of them. */
#ifndef MODEL_VERDICT_H
#define MODEL_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* The identities of the ledger, which hold at any time; also that it knows of nothing that the handlers do not.
 */
void verdict_of_moment(void);

/* Shuts weir down. */
int verdict_shut_down(int64_t timeout_ms);

/* This process has shut weir down, was answered `result`, and all its actors are done. */
void verdict_of_process(int result);

/* Process number `process` is gone, by what way ever, and the last one has delivered what it left behind. */
void verdict_of_all(uint32_t process);

#endif
