/* scripted: handler types that accept, refuse, fail, delay and recover by a script drawn from the seed, and
 * check each received sample against the actor's record. */
#ifndef MODEL_SCRIPTED_H
#define MODEL_SCRIPTED_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

/* What they return to waiting calls. Not that a pipe was not created, which lets a lane end early. */
enum { SCRIPTED_ERROR = WEIR_ERR_PLUGIN };

struct scripted_behaviour {
    uint32_t failure_odds;    /* one in so many results is not OK; 0: all are OK */
    bool rejects, fails;      /* it refuses samples; it may fail permanently */
    bool fails_waiting_calls; /* it returns an error to waiting calls */
};

extern struct scripted_behaviour scripted_behaviour;

/* Registers the types "scripted" and "picky", which accepts no integers; and for instruments "summing", and
 * "parted", which accepts no summaries. */
void scripted_register(void);

/* Nothing that the handlers of this process receive is recorded any more: a shutdown that has not waited for
 * them leaves their threads at work. One that has something to record waits until the process ends. */
void scripted_stop_recording(void);

#endif
