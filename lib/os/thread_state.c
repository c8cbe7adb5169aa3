#include "os/thread_state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct wr_thread_state wr_thread_state_save(void)
{
    struct wr_thread_state now;
    memset(&now, 0, sizeof now);
    now.locale = uselocale((locale_t)0);
    pthread_sigmask(SIG_SETMASK, NULL, &now.signals);
    return now;
}

/* pthread_sigmask returns the mask that it replaces, so a separate call to read it is not needed. The kernel
 * fills only a part of a sigset_t; the rest is zero in both. */
static bool restore_signals(const sigset_t *before)
{
    sigset_t after;
    memset(&after, 0, sizeof after);
    pthread_sigmask(SIG_SETMASK, before, &after);
    return memcmp(before, &after, sizeof after) != 0;
}

const char *wr_thread_state_restore(const struct wr_thread_state *before)
{
    bool signals = restore_signals(&before->signals), locale = uselocale(before->locale) != before->locale;
    if (signals && locale)
        return "it changed its thread's signal mask and locale";
    if (signals)
        return "it changed its thread's signal mask";
    return locale ? "it changed its thread's locale" : NULL;
}
