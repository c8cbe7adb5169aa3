/* thread_state: what a thread has to itself, and a handler has to leave as it found it: the thread's signal
 * mask and its locale. The process's locale is not looked at: nobody can tell whether it was the program itself
 * that set another one, and nothing that weir writes or reads goes by it. */
#ifndef WR_THREAD_STATE_H
#define WR_THREAD_STATE_H

#include <locale.h>
#include <signal.h>

struct wr_thread_state {
    sigset_t signals;
    locale_t locale;
};

/* How it is on the calling thread. */
struct wr_thread_state wr_thread_state_save(void);

/* Puts the calling thread back to how it was. Answers, as the end of a sentence about who was in between, what
 * was changed; NULL: nothing. Static. */
const char *wr_thread_state_restore(const struct wr_thread_state *before);

#endif
