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

/* Appends a step to the script; see weir_testing_add_outcome. Returns false if out of memory. */
bool wr_test_store_add_step(int code, uint32_t done, uint32_t times);

bool wr_test_store_is_blocking(void);

#endif
