/* words: what is to be said once a lock is left, in order and as much as it may be; see remarks for a few lines
 * without memory. For whoever holds that lock. */
#ifndef WR_WORDS_H
#define WR_WORDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "text/buffer.h"

struct wr_log;

/* All zeros: nothing. */
struct wr_words {
    struct wr_buffer texts;    /* a level's digit, a text, a NUL, and so on */
    _Atomic(pthread_t) keeper; /* the thread that holds the lock; 0: none does */
};

/* The calling thread has entered the lock, and will leave it. */
void wr_words_keep(struct wr_words *words);
void wr_words_let_go(struct wr_words *words);

/* [any thread] Whether the calling thread holds the lock, and so must not speak now. */
bool wr_words_are_kept(struct wr_words *words);

/* Adds a line, and what it is about. false: no memory for it. */
bool wr_words_add(struct wr_words *words, const char *about, int level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline bool wr_words_are_there(const struct wr_words *words)
{
    return words->texts.length;
}

/* Takes all that is to be said. */
struct wr_buffer wr_words_take(struct wr_words *words);

/* Says what was taken. Never with a lock held. */
void wr_words_say(struct wr_buffer *texts, struct wr_log *log);

#endif
