/* state: process-wide state that a handler must not change: locale, signals, working directory, standard
 * descriptors and so on. */
#ifndef WEIR_TOOLS_VET_STATE_H
#define WEIR_TOOLS_VET_STATE_H

#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VET_STATE_SIGNALS = 65, VET_STATE_CATEGORIES = 6, VET_STATE_TIMERS = 3, VET_STATE_STANDARD = 3 };

/* The state of the process and of the calling thread. */
struct vet_state {
    char locale[VET_STATE_CATEGORIES][32], folder[4096];
    locale_t thread_locale;
    void (*actions[VET_STATE_SIGNALS])(int);
    sigset_t mask;
    mode_t umask;
    uint64_t environment;
    int rounding;
    int priority;
    bool timers[VET_STATE_TIMERS]; /* whether they are set */
    struct {
        dev_t device; /* 0 with file 0: closed */
        ino_t file;
        off_t size;
    } standard[VET_STATE_STANDARD]; /* standard input, output and error */
};

void vet_state_take(struct vet_state *state);

/* Returns whether the states differ; writes the first difference to text ("the umask from 022 to 00"). */
bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *text, size_t size);

/* Fails the check if a callback has changed the state, or has written to standard output or error, unless
 * may_write. guide: for vet_see; NULL: the check's own section. */
void vet_state_check(const struct vet_state *before, const struct vet_state *after, const char *callback,
                     bool may_write, const char *guide);

/* Returns the standard descriptor that was written to, 1 or 2; 0: none. */
int vet_state_written(const struct vet_state *before, const struct vet_state *after);

#endif
