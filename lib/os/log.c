#include "os/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text/common.h"
#include "text/utf8.h"

enum { PREFIX_ROOM = 32, TEXT_ROOM = 1900 };

static const char *const level_names[] = {"off", "error", "warning", "info", "debug"};

bool wr_log_init(struct wr_log *log, const char *level)
{
    atomic_store(&log->level, WEIR_LOG_WARNING);
    if (!level)
        return true;
    for (int i = 0; i < (int)WR_COUNT_OF(level_names); i++) {
        if (strcmp(level_names[i], level) == 0) {
            atomic_store(&log->level, i);
            return true;
        }
    }
    return false;
}

static struct wr_log_sink *find_sink(struct wr_log *log, void (*write)(void *, int, const char *), void *ctx)
{
    struct wr_log_sink *sink = atomic_load(&log->sinks);
    while (sink && (sink->write != write || sink->ctx != ctx))
        sink = sink->next;
    return sink;
}

bool wr_log_set_sink(struct wr_log *log, void (*write)(void *ctx, int level, const char *text), void *ctx)
{
    struct wr_log_sink *sink = NULL;
    if (write) {
        sink = find_sink(log, write, ctx);
        if (!sink) {
            sink = malloc(sizeof *sink);
            if (!sink)
                return false;
            *sink = (struct wr_log_sink){.write = write, .ctx = ctx, .next = atomic_load(&log->sinks)};
            while (!atomic_compare_exchange_weak(&log->sinks, &sink->next, sink))
                ;
        }
    }
    /* sequentially consistent, so a release: a thread that loads the sink sees its fields */
    atomic_store(&log->sink, sink);
    return true;
}

/* Writes to stderr. If that is a pipe without a reader, SIGPIPE is suppressed: it would end the program. */
static void write_without_sigpipe(const char *data, size_t size)
{
    sigset_t pipe_only, saved, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &saved);
    sigpending(&pending);
    ssize_t written = write(STDERR_FILENO, data, size);
    /* removes the signal that this write has raised, which is pending for this thread; a signal that was
     * pending before is the program's */
    if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &(struct timespec){0, 0});
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

/* line: has room for one more byte. One write, so that lines of several threads do not mix; there is no way to
 * report that stderr is closed or full. */
static void write_stderr(char *line)
{
    size_t size = strlen(line);
    line[size++] = '\n';
    write_without_sigpipe(line, size);
}

void wr_log_write_list(struct wr_log *log, int level, const char *format, va_list arguments)
{
    if (level < WEIR_LOG_ERROR || level > WEIR_LOG_DEBUG || !wr_log_wants(log, level))
        return;
    int saved = errno;
    /* longer than text by one UTF-8 character, so that a character cut here does not show as invalid */
    char unescaped[TEXT_ROOM + 4], line[PREFIX_ROOM + TEXT_ROOM + 1];
    vsnprintf(unescaped, sizeof unescaped, format, arguments);
    int prefix = snprintf(line, PREFIX_ROOM, "weir: %s: ", level_names[level]);
    char *text = line + prefix;
    wr_utf8_line(text, TEXT_ROOM, unescaped);
    struct wr_log_sink *sink = atomic_load(&log->sink);
    if (sink)
        sink->write(sink->ctx, level, text);
    else
        write_stderr(line);
    errno = saved;
}

void wr_log_write(struct wr_log *log, int level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    wr_log_write_list(log, level, format, arguments);
    va_end(arguments);
}
