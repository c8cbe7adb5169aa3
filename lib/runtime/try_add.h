/* try_add: adds a value where nothing may wait, allocate, take a lock or start anything: in signal handlers,
 * and in threads with deadlines.
 *
 * A library cannot find out whether it runs in a signal handler, so the caller chooses by the function. Here is
 * every case in which runtime/intake would do one of these: the value is refused as BUSY. Nothing is called but
 * atomics, a clock, and FUTEX_WAKE. */
#ifndef WR_TRY_ADD_H
#define WR_TRY_ADD_H

#include "producer/fast_add.h"
#include "registry/registry.h"

/* Adds one value of a series. Returns as weir_metric_try_add. Keeps errno and the thread's last error. */
int wr_try_add(struct weir_metric *metric, weir_number value);

/* Counts a value that is refused for another reason. Returns the error of the call. */
int wr_try_add_refuse(enum weir_refusal why);

#endif
