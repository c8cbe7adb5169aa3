#include "manners.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct wr_manners wr_manners_now(void)
{
    struct wr_manners now = {.locale = uselocale((locale_t)0)};
    pthread_sigmask(SIG_SETMASK, NULL, &now.signals);
    return now;
}

/* Not memcmp: the kernel fills a part of a sigset_t only. */
static bool are_equal(const sigset_t *one, const sigset_t *other)
{
    for (int i = 1; i <= SIGRTMAX; i++)
        if (sigismember(one, i) != sigismember(other, i))
            return false;
    return true;
}

/* Setting it answers what it was, so that looking takes no call of its own. */
static bool mend_signals(const sigset_t *before)
{
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, before, &after);
    return !are_equal(before, &after);
}

const char *wr_manners_mend(const struct wr_manners *before)
{
    bool signals = mend_signals(&before->signals), locale = uselocale(before->locale) != before->locale;
    if (signals && locale)
        return "it changed its thread's signal mask and locale";
    if (signals)
        return "it changed its thread's signal mask";
    return locale ? "it changed its thread's locale" : NULL;
}
