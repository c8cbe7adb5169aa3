/* exit_handlers: preloaded into a program under test; writes to stderr which shared objects register exit
 * handlers, a line for each registration. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

typedef int registering(void (*function)(void *), void *argument, void *object);

/* What atexit(3) calls: object is an address inside the one that called it, and NULL for the program. */
extern registering __cxa_atexit __attribute__((visibility("default"))); // NOLINT

int __cxa_atexit(void (*function)(void *), void *argument, void *object) // NOLINT
{
    registering *real = (registering *)(uintptr_t)dlsym(RTLD_NEXT, "__cxa_atexit");
    Dl_info by;
    if (object && dladdr(object, &by))
        dprintf(STDERR_FILENO, "exit handler of %s\n", by.dli_fname);
    return real(function, argument, object);
}
