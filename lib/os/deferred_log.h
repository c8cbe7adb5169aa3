/* deferred_log: messages that are made while a lock is held, and logged after it was released. The log may be a
 * function of the program, which must not be called with a lock of weir's held.
 *
 * wr_deferred_texts is the messages alone, wr_deferred_log also knows which thread holds the lock, for code
 * that takes an inner one. Both are protected by the lock in question. */
#ifndef WR_DEFERRED_LOG_H
#define WR_DEFERRED_LOG_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct wr_log;

/* For each message the digit of its level, its text and a NUL. All zeros: none. */
struct wr_deferred_texts {
    char *data; /* os/pages, because a lock is held */
    size_t length;
};

/* Adds the message "about: text". Returns false, without it, if out of memory. */
bool wr_deferred_texts_add(struct wr_deferred_texts *texts, const char *about, int level, const char *format,
                           va_list arguments) __attribute__((format(printf, 4, 0)));

/* All zeros: empty. */
struct wr_deferred_log {
    struct wr_deferred_texts texts;
    _Atomic(pthread_t) holder; /* the thread that holds the lock; 0: none */
};

/* Called right after the lock was taken, and right before it is released. */
void wr_deferred_log_enter(struct wr_deferred_log *deferred);
void wr_deferred_log_leave(struct wr_deferred_log *deferred);

/* [any thread] Whether the calling thread holds the lock, and so must defer its messages. */
bool wr_deferred_log_is_holder(struct wr_deferred_log *deferred);

/* As wr_deferred_texts_add. */
bool wr_deferred_log_add(struct wr_deferred_log *deferred, const char *about, int level, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));

static inline bool wr_deferred_log_is_empty(const struct wr_deferred_log *deferred)
{
    return !deferred->texts.length;
}

/* Takes all messages out, for wr_deferred_log_write. */
struct wr_deferred_texts wr_deferred_log_take(struct wr_deferred_log *deferred);

/* Logs what was taken, and frees it. No lock may be held. */
void wr_deferred_log_write(struct wr_deferred_texts *texts, struct wr_log *log);

#endif
