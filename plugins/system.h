/* system: what errno's numbers mean, for handlers of all kinds. */
#ifndef WEIR_PLUGINS_SYSTEM_H
#define WEIR_PLUGINS_SYSTEM_H

#include <string.h>

/* Static. Not strerror: that takes a lock of the C library, for translations, which a process that is forked at
 * that moment never gets back. */
static inline const char *system_words(int error)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *words = strerrordesc_np(error);
    return words ? words : "unknown error";
#else
    return strerror(error);
#endif
}

#endif
