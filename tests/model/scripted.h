/* scripted: handler types that take, refuse, fail, hesitate and recover by a script, which is drawn from the
 * seed; and check each sample they are given against what its actor wrote down. */
#ifndef MODEL_SCRIPTED_H
#define MODEL_SCRIPTED_H

#include <stdbool.h>
#include <stdint.h>

/* How handlers behave. */
struct scripted_temper {
    uint32_t trouble;    /* one answer of so many is none of OK; 0: all are OK */
    bool rejects, fails; /* it refuses samples; it may give up for good */
    bool tells;          /* it tells those who wait not to */
};

extern struct scripted_temper scripted_temper;

/* Makes the types "scripted" and "picky", which takes no integers, known. */
void scripted_register(void);

#endif
