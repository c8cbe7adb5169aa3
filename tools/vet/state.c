#include "state.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_environment(void)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (char **entry = environ; entry && *entry; entry++)
        for (const char *c = *entry;; c++) {
            hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
            if (!*c)
                break;
        }
    return hash;
}

static void take_actions(struct vet_state *state)
{
    struct sigaction action;
    for (int i = 1; i < VET_STATE_SIGNALS; i++)
        if (sigaction(i, NULL, &action) == 0)
            state->actions[i] = action.sa_handler;
}

void vet_state_take(struct vet_state *state)
{
    memset(state, 0, sizeof *state);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(state->folder, sizeof state->folder))
        snprintf(state->folder, sizeof state->folder, "(gone)");
    state->thread_locale = uselocale((locale_t)0);
    take_actions(state);
    pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
    state->umask = umask(0);
    umask(state->umask);
    state->environment = hash_environment();
    state->rounding = fegetround();
    state->priority = getpriority(PRIO_PROCESS, 0);
}

static bool differ_in_signals(const struct vet_state *before, const struct vet_state *after, char *words,
                              size_t room)
{
    for (int i = 1; i < VET_STATE_SIGNALS; i++) {
        const char *name = sigabbrev_np(i) ? sigabbrev_np(i) : "RT";
        if (before->actions[i] != after->actions[i])
            return snprintf(words, room, "what signal %d (%s) does", i, name);
        if (sigismember(&before->mask, i) != sigismember(&after->mask, i))
            return snprintf(words, room, "the thread's signal mask: %d (%s) is %s now", i, name,
                            sigismember(&after->mask, i) ? "blocked" : "let in");
    }
    return false;
}

bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *words, size_t room)
{
    if (strcmp(before->locale, after->locale) != 0)
        return snprintf(words, room, "the locale from \"%.60s\" to \"%.60s\"", before->locale, after->locale);
    if (before->thread_locale != after->thread_locale)
        return snprintf(words, room, "the thread's locale");
    if (strcmp(before->folder, after->folder) != 0)
        return snprintf(words, room, "the working folder from %.200s to %.200s", before->folder, after->folder);
    if (before->umask != after->umask)
        return snprintf(words, room, "the umask from 0%o to 0%o", before->umask, after->umask);
    if (before->environment != after->environment)
        return snprintf(words, room, "the environment");
    if (before->rounding != after->rounding)
        return snprintf(words, room, "how floating point is rounded");
    if (before->priority != after->priority)
        return snprintf(words, room, "the priority from %d to %d", before->priority, after->priority);
    return differ_in_signals(before, after, words, room);
}
