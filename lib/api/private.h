/* private: what libweir.so exports for libweir-testing.a, beyond the public functions.
 *
 * No header that is installed declares these functions. Both libraries are installed together, but a test
 * program may meet a newer libweir.so: a function of which the meaning changes gets another name, so that the
 * program fails to start. */
#ifndef WR_PRIVATE_H
#define WR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

/* Fixes the time stamp of values that are added from now on at ns (negative: the real time again), or, with
 * is_step, moves the fixed time by ns. Values that were added before keep theirs. Returns 0 or a negative enum
 * weir_error, for which weir_last_error is set. */
WEIR_API int weir_private_change_time(int64_t ns, bool is_step);

/* Sets what weir_last_error returns. Returns code. */
WEIR_API int weir_private_fail(int code, const char *text);

#endif
