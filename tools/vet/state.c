#include "state.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "vet.h"

static const struct {
    int number;
    const char *name;
} categories[VET_STATE_CATEGORIES] = {
    {LC_CTYPE, "LC_CTYPE"},     {LC_NUMERIC, "LC_NUMERIC"},   {LC_TIME, "LC_TIME"},
    {LC_COLLATE, "LC_COLLATE"}, {LC_MONETARY, "LC_MONETARY"}, {LC_MESSAGES, "LC_MESSAGES"},
};

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

/* A timer that alarm(2) or setitimer(2) has set ends a program that does not expect its signal. */
static void get_timers(struct vet_state *state)
{
    static const int timers[VET_STATE_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    struct itimerval timer;
    for (int i = 0; i < VET_STATE_TIMERS; i++)
        state->timers[i] = getitimer((__itimer_which_t)timers[i], &timer) == 0 &&
                           (timer.it_value.tv_sec || timer.it_value.tv_usec);
}

static void get_standard(struct vet_state *state)
{
    struct stat status;
    fflush(stdout); /* so that its size includes what printf has written */
    for (int fd = 0; fd < VET_STATE_STANDARD; fd++)
        if (fstat(fd, &status) == 0) {
            state->standard[fd].device = status.st_dev;
            state->standard[fd].file = status.st_ino;
            state->standard[fd].size = status.st_size;
        }
}

void vet_state_take(struct vet_state *state)
{
    memset(state, 0, sizeof *state);
    for (int i = 0; i < VET_STATE_CATEGORIES; i++)
        snprintf(state->locale[i], sizeof state->locale[i], "%s", setlocale(categories[i].number, NULL));
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
    get_timers(state);
    get_standard(state);
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

static bool locales_differ(const struct vet_state *before, const struct vet_state *after, char *text,
                           size_t size)
{
    for (int i = 0; i < VET_STATE_CATEGORIES; i++)
        if (strcmp(before->locale[i], after->locale[i]) != 0)
            return snprintf(text, size, "the locale (%s) from \"%s\" to \"%s\"", categories[i].name,
                            before->locale[i], after->locale[i]);
    return false;
}

static bool standard_differs(const struct vet_state *before, const struct vet_state *after, char *text,
                             size_t size)
{
    static const char *const names[VET_STATE_STANDARD] = {"input", "output", "error"};
    for (int fd = 0; fd < VET_STATE_STANDARD; fd++)
        if (before->standard[fd].device != after->standard[fd].device ||
            before->standard[fd].file != after->standard[fd].file)
            return snprintf(text, size, "standard %s: descriptor %d is %s", names[fd], fd,
                            after->standard[fd].file ? "another file now" : "closed");
    return false;
}

bool vet_state_differs(const struct vet_state *before, const struct vet_state *after, char *text, size_t size)
{
    if (locales_differ(before, after, text, size) || standard_differs(before, after, text, size))
        return true;
    for (int i = 0; i < VET_STATE_TIMERS; i++)
        if (before->timers[i] != after->timers[i])
            return snprintf(text, size, "the process's timers (alarm, setitimer)");
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

int vet_state_written(const struct vet_state *before, const struct vet_state *after)
{
    for (int fd = 1; fd < VET_STATE_STANDARD; fd++)
        if (after->standard[fd].size != before->standard[fd].size)
            return fd;
    return 0;
}

void vet_state_check(const struct vet_state *before, const struct vet_state *after, const char *callback,
                     bool may_write, const char *guide)
{
    char text[400];
    bool has_changed = vet_state_differs(before, after, text, sizeof text);
    int fd = may_write ? 0 : vet_state_written(before, after);
    if (guide && (has_changed || fd))
        vet_see(guide);
    if (has_changed)
        vet_fail("%s changes %s, which is the program's", callback, text);
    if (fd)
        vet_fail("%s writes to standard %s, which is the program's; use host->log", callback,
                 fd == 1 ? "output" : "error");
}
