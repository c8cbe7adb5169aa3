/* words: what is to be said once a lock is left, in order and as much as it may be; see remarks for a few lines
 * without memory. Not for sharing between threads. */
#ifndef WR_WORDS_H
#define WR_WORDS_H

#include <stdbool.h>

#include "buffer.h"

struct wr_log;

/* All zeros: nothing. */
struct wr_words {
    struct wr_buffer texts; /* a level's digit, a text, a NUL, and so on */
};

/* Adds a line. Without memory what comes is not said. */
void wr_words_add(struct wr_words *words, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool wr_words_are_there(const struct wr_words *words)
{
    return words->texts.length;
}

/* Says all, each behind what it is about, and takes it. Never with a lock held. */
void wr_words_say(struct wr_words *words, struct wr_log *log, const char *about);

#endif
