/* log: weir's own messages, one line each, on stderr or passed to a function of the program. Characters that
 * could hide others on a terminal are escaped.
 *
 * Takes no lock and may be called from any thread, but not with a lock of the core held, since the program's
 * function is foreign code: see deferred_log.h. */
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
    _Atomic int level;                  /* messages above it are not written; 0: none are */
    _Atomic(struct wr_log_sink *) sink; /* NULL: stderr */
    /* all sinks ever set; never freed, as a thread may still be calling one */
    _Atomic(struct wr_log_sink *) sinks;
};

/* Sets the level by its name (off, error, warning, info, debug; NULL: warning). Returns false, with the level
 * warning, for any other name. */
bool wr_log_init(struct wr_log *log, const char *level);

/* See weir_set_log. Returns false, with nothing changed, if out of memory. */
bool wr_log_set_sink(struct wr_log *log, void (*write)(void *ctx, int level, const char *text), void *ctx);

void wr_log_write(struct wr_log *log, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void wr_log_write_list(struct wr_log *log, int level, const char *format, va_list arguments);

static inline bool wr_log_wants(struct wr_log *log, int level)
{
    return level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

#endif
