/* system: descriptions of errno values, for all handlers. */
#ifndef WEIR_PLUGINS_SYSTEM_H
#define WEIR_PLUGINS_SYSTEM_H

#include <string.h>

/* Returns a static string. Not strerror: it takes a lock of the C library for translations; if another
 * thread forks at that moment, the lock is never released in the child. */
static inline const char *system_strerror(int error)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
#else
    return strerror(error);
#endif
}

#endif
