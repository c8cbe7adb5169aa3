/* test_store: the handler type "testing" of <weir/testing.h>, which stores values and returns scripted
 * outcomes.
 *
 * There is one store in the process, for all handlers of the type. Its lock is a leaf: no other lock of weir is
 * taken while it is held. All functions may be called from any thread. */
#ifndef WR_TEST_STORE_H
#define WR_TEST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/testing.h>

extern const weir_handler_type wr_test_store_type;

/* Removes the stored samples. all: resets the script, the number of tries and the block, too. */
void wr_test_store_reset(bool all);

/* Sample number i of a group and a name, NULL: of any. Returns false if there are not so many. */
bool wr_test_store_get(const char *group, const char *name, size_t i, weir_testing_sample *sample);
size_t wr_test_store_count(const char *group, const char *name);

/* Waits until so many samples are stored, for at most timeout_ms (negative: no limit). Returns whether they
 * are.
 */
bool wr_test_store_wait(const char *group, const char *name, size_t count, int64_t timeout_ms);

/* Appends a step to the script; see weir_testing_add_outcome. Returns false if out of memory. */
bool wr_test_store_add_step(int code, uint32_t done, uint32_t times);

void wr_test_store_block(bool block);
bool wr_test_store_is_blocking(void);
/* Waits until emit waits, for at most timeout_ms (negative: no limit). Returns whether it does. */
bool wr_test_store_wait_blocked(int64_t timeout_ms);
size_t wr_test_store_tries(void);

#endif
