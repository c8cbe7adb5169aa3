/* thread_state: the attributes of a thread that a handler must leave unchanged: its signal mask and its locale.
 * The process's locale is not checked: the program may have changed it meanwhile, and weir does not depend on
 * it.
 */
#ifndef WR_THREAD_STATE_H
#define WR_THREAD_STATE_H

#include <locale.h>
#include <signal.h>

struct wr_thread_state {
    sigset_t signals;
    locale_t locale;
};

/* Returns the state of the calling thread. */
struct wr_thread_state wr_thread_state_save(void);

/* Restores the state of the calling thread. Returns what had been changed, as the end of a message about the
 * handler; NULL if nothing had. Static. */
const char *wr_thread_state_restore(const struct wr_thread_state *before);

#endif
