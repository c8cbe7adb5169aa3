/* signals: blocks signals while state is inconsistent that a signal handler of the program might need, if it
 * calls weir. */
#ifndef WR_SIGNALS_H
#define WR_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

static inline void wr_signals_block(sigset_t *saved)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, saved);
}

static inline void wr_signals_restore(const sigset_t *saved)
{
    pthread_sigmask(SIG_SETMASK, saved, NULL);
}

/* The signals that a write raises on the thread that writes, as far as discarding them loses none that was
 * pending before. */
struct wr_signals_raised {
    sigset_t set;
};

/* All signals are blocked. before: those that were blocked otherwise: another one cannot have been pending. */
static inline struct wr_signals_raised wr_signals_begin_raising(const sigset_t *before)
{
    static const int raised[] = {SIGPIPE, SIGXFSZ};
    struct wr_signals_raised made;
    sigset_t pending;
    bool known = false;
    sigemptyset(&made.set);
    for (int i = 0; i < 2; i++) {
        if (sigismember(before, raised[i]) == 1 && !known)
            known = sigpending(&pending) == 0;
        if (sigismember(before, raised[i]) != 1 || (known && sigismember(&pending, raised[i]) != 1))
            sigaddset(&made.set, raised[i]);
    }
    return made;
}

static inline void wr_signals_discard_raised(const struct wr_signals_raised *raised)
{
    const struct timespec now = {0, 0};
    while (sigtimedwait(&raised->set, NULL, &now) > 0)
        ;
}

#endif
