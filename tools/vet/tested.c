#include "tested.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Whose host it is ------------------------------------------------------------------------ */

enum { MOST = 16 };

static struct vet_tested *_Atomic all[MOST];
static const char *kind; /* of the last one */

struct vet_tested *vet_tested_of(const weir_host *host)
{
    for (size_t i = 0; i < MOST; i++) {
        struct vet_tested *tested = all[i];
        if (tested && tested->host == host)
            return tested;
    }
    vet_fail("a service was called with a host that is not the %s's, or after its destroy has returned", kind);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

enum { MIN_SECRET_LENGTH = 4 };

void vet_tested_check_text(const struct vet_tested *tested, const char *what, const char *text)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(tested->table, i)); i++) {
        bool is_secret = row->type == WEIR_OPTION_STRING && row->flags & WEIR_OPTION_SECRET;
        const char *value =
            is_secret ? *(const char *const *)(const void *)((const char *)tested->options + row->offset)
                      : NULL;
        if (value && strlen(value) >= MIN_SECRET_LENGTH && strstr(text, value))
            vet_fail("%s contains the value of the option \"%s\", which is secret", what, row->name);
    }
}

static void host_log(const weir_host *host, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    const struct vet_tested *tested = vet_tested_of(host);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (level < WEIR_LOG_ERROR || level > WEIR_LOG_DEBUG)
        vet_fail("host->log was called with level %d; allowed: 1 (error) to 4 (debug)", level);
    vet_tested_check_text(tested, "a log message", text);
    snprintf(vet_page->last_log, sizeof vet_page->last_log, "%.255s", text);
}

static void host_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    const struct vet_tested *tested = vet_tested_of(host);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (*tested->self)
        vet_fail("host->refuse was called after create; report later errors in an outcome");
    if (option && *option && !wr_options_find(tested->table, option))
        vet_fail("host->refuse names the option \"%.64s\", which the type does not have", option);
    if (!*text)
        vet_fail("host->refuse was called without a message");
    vet_tested_check_text(tested, "the message of host->refuse", text);
    tested->core.refuse(host, option, "%s", text);
}

void vet_tested_attach(struct vet_tested *tested, weir_host *host)
{
    tested->host = host;
    tested->core = *host;
    kind = tested->kind;
    host->log = host_log;
    host->refuse = host_refuse;
    for (size_t i = 0; i < MOST; i++)
        if (!all[i]) {
            all[i] = tested;
            return;
        }
    vet_skip("vet itself: too many %ss at once", kind);
}

void vet_tested_detach(struct vet_tested *tested)
{
    for (size_t i = 0; i < MOST; i++)
        if (all[i] == tested)
            all[i] = NULL;
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

void vet_tested_begin(struct vet_tested *tested)
{
    tested->waiting = false;
    if (tested->before)
        tested->before();
}

void vet_tested_end(struct vet_tested *tested, const char *callback)
{
    vet_leave();
    if (tested->waiting)
        vet_fail("%s returns between begin and end of blocking_call/1", callback);
    if (tested->after)
        tested->after(tested, callback);
}

enum { FENCE = 0xa5 };

void vet_fenced_init(struct vet_fenced *fenced, uint32_t done)
{
    memset(fenced, FENCE, sizeof *fenced);
    fenced->outcome = (weir_outcome){.size = sizeof fenced->outcome, .code = WEIR_OUTCOME_OK, .done = done};
}

void vet_fenced_check(const struct vet_fenced *fenced, const char *callback)
{
    if (fenced->outcome.size != sizeof fenced->outcome)
        vet_fail("%s changes outcome->size, which is read-only", callback);
    for (size_t i = 0; i < sizeof fenced->fence; i++)
        if (fenced->fence[i] != FENCE)
            vet_fail("%s writes beyond the end of the outcome, which is %zu bytes long", callback,
                     sizeof fenced->outcome);
}

void vet_fenced_check_reason(const struct vet_fenced *fenced, const char *callback)
{
    const weir_outcome *outcome = &fenced->outcome;
    if (!memchr(outcome->reason, '\0', sizeof outcome->reason))
        vet_fail("%s returns a reason without a NUL at its end", callback);
    if (outcome->code != WEIR_OUTCOME_OK && !*outcome->reason)
        vet_fail("%s returns the code %d without a reason: set outcome->reason", callback, outcome->code);
}
