/* capture: the handler type "testing": keeps what it is given, and answers as it is told. See <weir/testing.h>.
 *
 * There is one store for the process, as there is one type, whatever handlers of that type exist: those who ask
 * have no handler in their hands. It has a lock of its own, a leaf, which nothing of the core's is taken under.
 */
#ifndef WR_TEST_STORE_H
#define WR_TEST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/testing.h>

extern const weir_handler_type wr_test_store_type;

/* Forgets what was captured; all: the script, the tries and a block too. */
void wr_test_store_reset(bool all);

/* Number i of the samples of a group and a name, NULL: any; false: there are fewer. */
bool wr_test_store_get(const char *group, const char *name, size_t i, weir_testing_sample *sample);
size_t wr_test_store_count(const char *group, const char *name);

/* Waits until there are so many; false: not by deadline_ns, of CLOCK_MONOTONIC. */
bool wr_test_store_wait(const char *group, const char *name, size_t count, int64_t deadline_ns);

/* The script; false: no memory. */
bool wr_test_store_answer(int code, uint32_t done, uint32_t times);

void wr_test_store_block(bool block);
bool wr_test_store_is_blocking(void);
bool wr_test_store_wait_blocked(int64_t deadline_ns);
size_t wr_test_store_tries(void);

#endif
