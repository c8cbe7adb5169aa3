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

static void get_actions(struct vet_state *state)
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
    get_actions(state);
    pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
    state->umask = umask(0);
    umask(state->umask);
    state->environment = hash_environment();
    state->rounding = fegetround();
    state->priority = getpriority(PRIO_PROCESS, 0);
}

static bool signals_differ(const struct vet_state *before, const struct vet_state *after, char *text,
                           size_t size)
{
    for (int i = 1; i < VET_STATE_SIGNALS; i++) {
        const char *name = sigabbrev_np(i) ? sigabbrev_np(i) : "RT";
        if (before->actions[i] != after->actions[i])
            return snprintf(text, size, "the action of signal %d (%s)", i, name);
        if (sigismember(&before->mask, i) != sigismember(&after->mask, i))
            return snprintf(text, size, "the thread's signal mask: %d (%s) is now %s", i, name,
                            sigismember(&after->mask, i) ? "blocked" : "unblocked");
    }
    return false;
}

bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *text, size_t size)
{
    if (strcmp(before->locale, after->locale) != 0)
        return snprintf(text, size, "the locale from \"%.60s\" to \"%.60s\"", before->locale, after->locale);
    if (before->thread_locale != after->thread_locale)
        return snprintf(text, size, "the thread's locale");
    if (strcmp(before->folder, after->folder) != 0)
        return snprintf(text, size, "the working directory from %.200s to %.200s", before->folder,
                        after->folder);
    if (before->umask != after->umask)
        return snprintf(text, size, "the umask from 0%o to 0%o", before->umask, after->umask);
    if (before->environment != after->environment)
        return snprintf(text, size, "the environment");
    if (before->rounding != after->rounding)
        return snprintf(text, size, "the floating-point rounding mode");
    if (before->priority != after->priority)
        return snprintf(text, size, "the priority from %d to %d", before->priority, after->priority);
    return signals_differ(before, after, text, size);
}
