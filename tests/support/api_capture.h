/* api_capture: a handler type for tests, registered in the program, that keeps the samples it receives and
 * returns the outcomes that a test sets. */
#ifndef WEIR_TESTS_CAPTURE_H
#define WEIR_TESTS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct captured {
    char group[256], name[256], labels[1024], note[256], unit[64], help[256];
    double value;
    int64_t integer;
    int kind, instrument;
    int64_t time_ns;
    bool cumulative, total, more, ended; /* the first of the series, the others of the sample */
    char handler[64];
};

/* Registers the handler type "capture". */
void capture_register(void);

/* The samples captured so far, in order; valid until the process ends. */
size_t capture_count(void);
const struct captured *capture_at(size_t i);

/* The number of calls of emit. */
size_t capture_batches(void);

/* From now on emit returns this outcome and captures nothing; WEIR_OUTCOME_OK: it captures again. */
void capture_fail(int code, const char *reason);

/* The same; waiting calls return `error`. */
void capture_fail_with(int code, int error, const char *reason);

/* From now on emit blocks until capture_release. */
void capture_hold(void);
void capture_release(void);

/* Waits until a call of emit is blocked. */
void capture_wait_held(void);

#endif
