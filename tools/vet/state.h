/* state: process-wide state that a handler must not change: locale, signals, working directory and so on. */
#ifndef WEIR_TOOLS_VET_STATE_H
#define WEIR_TOOLS_VET_STATE_H

#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VET_STATE_SIGNALS = 65 };

/* The state of the process and of the calling thread. */
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

/* Returns whether the states differ; writes the first difference to text ("the umask from 022 to 00"). */
bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *text, size_t size);

#endif
