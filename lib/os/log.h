/* log: weir's own messages: one line each on stderr, or to a function of the program's; what could disguise
 * others is shown escaped.
 *
 * Takes no lock, so it may be used with or without any, from any thread; but never call it with a lock of the
 * core's held: the program's function is foreign code. */
#ifndef WR_LOG_H
#define WR_LOG_H

#include <stdarg.h>
#include <stdatomic.h>

#include <weir/weir.h>

struct wr_log_sink {
    void (*write)(void *ctx, int level, const char *text);
    void *ctx;
    struct wr_log_sink *next;
};

struct wr_log {
    _Atomic int level;                   /* messages above it are not made; 0: none at all */
    _Atomic(struct wr_log_sink *) sink;  /* NULL: stderr */
    _Atomic(struct wr_log_sink *) sinks; /* every sink there was: a thread may still be calling it */
};

/* Sets the level from WEIR_LOG's text (off, error, warning, info, debug; NULL: warning). false: it is none of
 * them. */
bool wr_log_init(struct wr_log *log, const char *level);

/* See weir_set_log. false: no memory; nothing changed. */
bool wr_log_set_sink(struct wr_log *log, void (*write)(void *ctx, int level, const char *text), void *ctx);

void wr_log_say(struct wr_log *log, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void wr_log_say_list(struct wr_log *log, int level, const char *format, va_list arguments);

static inline bool wr_log_wants(struct wr_log *log, int level)
{
    return level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

#endif
