/* breaker: controls the preloaded library of breaker.c. Without it nothing happens. */
#ifndef BREAKER_H
#define BREAKER_H

#include <dlfcn.h>
#include <stdint.h>

/* function: "breaker_start" starts counting calls, "breaker_stop" stops it. */
static inline void breaker_call(const char *function)
{
    void (*control)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, function);
    if (control)
        control();
}

#endif
