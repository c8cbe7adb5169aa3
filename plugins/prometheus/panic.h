/* panic: returns from a call of the HTTP library that finds a descriptor closed. The library regards that as an
 * error of the program and aborts it, but the program may close all descriptors, as daemons do, at any moment,
 * also within a call. */
#ifndef PROMETHEUS_PANIC_H
#define PROMETHEUS_PANIC_H

#include <stdbool.h>

/* For the process, before the library is used. Elsewhere than in panic_catch the library aborts as before. */
void panic_init(void);

/* Calls the function, which must not change what the caller has in local variables. Returns false if the
 * library gave up within it: its daemon must not be used again, not even to be stopped. */
bool panic_catch(void (*call)(void *ctx), void *ctx);

#endif
