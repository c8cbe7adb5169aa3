/* api_capture: a handler type for tests, registered in the program, that keeps what it is given and does as it
 * is told. */
#ifndef WEIR_TESTS_CAPTURE_H
#define WEIR_TESTS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct captured {
    char group[256], name[256], labels[1024], note[256], unit[64], help[256];
    double value;
    int64_t integer;
    int kind;
    int64_t time_ns;
    bool cumulative, more;
};

/* Makes the handler type "capture" known. */
void capture_register(void);

/* What was captured so far, in order; valid until the process ends. */
size_t capture_count(void);
const struct captured *capture_at(size_t i);

/* How often emit was called. */
size_t capture_batches(void);

/* From now on emit answers this outcome instead of taking anything; OK: it takes again. */
void capture_answer(int code, const char *reason);

/* The same, and with it tells those who wait an error. */
void capture_tell(int code, int error, const char *reason);

/* From now on emit blocks until it is let go; or it is let go. */
void capture_hold(void);
void capture_let_go(void);

/* Waits until emit is inside, held. */
void capture_wait_held(void);

#endif
