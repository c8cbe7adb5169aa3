#include "os/words.h"

#include <stdarg.h>
#include <stdio.h>

#include "os/log.h"

/* Relaxed: a thread only asks whether it is the keeper itself, and that it has written itself. */
void wr_words_keep(struct wr_words *words)
{
    atomic_store_explicit(&words->keeper, pthread_self(), memory_order_relaxed);
}

void wr_words_let_go(struct wr_words *words)
{
    atomic_store_explicit(&words->keeper, 0, memory_order_relaxed);
}

bool wr_words_are_kept(struct wr_words *words)
{
    return pthread_equal(atomic_load_explicit(&words->keeper, memory_order_relaxed), pthread_self());
}

bool wr_words_add(struct wr_words *words, const char *about, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strlen(about) + strlen(text) + sizeof "0: ";
    if (!wr_buffer_reserve(&words->texts, length)) {
        words->texts.failed = false; /* the next one may be shorter, or later */
        return false;
    }
    wr_buffer_put_format(&words->texts, "%d%s: %s", level, about, text);
    wr_buffer_put_char(&words->texts, '\0');
    return true;
}

struct wr_buffer wr_words_take(struct wr_words *words)
{
    struct wr_buffer texts = words->texts;
    words->texts = (struct wr_buffer){0};
    return texts;
}

void wr_words_say(struct wr_buffer *texts, struct wr_log *log)
{
    for (size_t at = 0; at < texts->length; at += strlen(texts->data + at) + 1)
        wr_log_say(log, texts->data[at] - '0', "%s", texts->data + at + 1);
    wr_buffer_fini(texts);
}
