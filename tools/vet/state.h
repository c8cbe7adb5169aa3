/* state: what belongs to the whole process, and is the program's, not a handler's: locale, signals, working
 * folder and the like. */
#ifndef WEIR_TOOLS_VET_STATE_H
#define WEIR_TOOLS_VET_STATE_H

#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VET_STATE_SIGNALS = 65 };

/* Of the process, and of the calling thread. */
struct vet_state {
    char locale[256], folder[4096];
    locale_t thread_locale;
    void (*actions[VET_STATE_SIGNALS])(int);
    sigset_t mask;
    mode_t umask;
    uint64_t environment;
    int rounding;
    int priority;
};

void vet_state_take(struct vet_state *state);

/* Writes what is different in words ("the umask from 022 to 0"); false: nothing is. */
bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *words, size_t room);

#endif
