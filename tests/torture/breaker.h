/* breaker: what a program says to the library that has its calls fail, see breaker.c. Without it nothing
 * happens. */
#ifndef BREAKER_H
#define BREAKER_H

#include <dlfcn.h>
#include <stdint.h>

/* function: "breaker_start": from here on calls count; "breaker_stop": not any more. */
static inline void breaker_tell(const char *function)
{
    void (*tell)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, function);
    if (tell)
        tell();
}

#endif
