/* signals: blocks signals while state is inconsistent that a signal handler of the program might need, if it
 * calls weir. */
#ifndef WR_SIGNALS_H
#define WR_SIGNALS_H

#include <pthread.h>
#include <signal.h>

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

#endif
