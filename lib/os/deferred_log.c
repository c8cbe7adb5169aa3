#include "os/deferred_log.h"

#include <stdio.h>
#include <string.h>

#include "os/log.h"
#include "os/pages.h"

/* Relaxed suffices for `holder`: a thread only compares it with its own id, which it has stored itself. */
void wr_deferred_log_enter(struct wr_deferred_log *deferred)
{
    atomic_store_explicit(&deferred->holder, pthread_self(), memory_order_relaxed);
}

void wr_deferred_log_leave(struct wr_deferred_log *deferred)
{
    atomic_store_explicit(&deferred->holder, 0, memory_order_relaxed);
}

bool wr_deferred_log_is_holder(struct wr_deferred_log *deferred)
{
    return pthread_equal(atomic_load_explicit(&deferred->holder, memory_order_relaxed), pthread_self());
}

bool wr_deferred_texts_add(struct wr_deferred_texts *texts, const char *about, int level, const char *format,
                           va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    size_t size = strlen(about) + strlen(text) + sizeof "0: ";
    char *data = wr_pages_grow(texts->data, texts->length + size);
    if (!data)
        return false;
    texts->data = data;
    snprintf(data + texts->length, size, "%d%s: %s", level, about, text);
    texts->length += size;
    return true;
}

bool wr_deferred_log_add(struct wr_deferred_log *deferred, const char *about, int level, const char *format,
                         ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool added = wr_deferred_texts_add(&deferred->texts, about, level, format, arguments);
    va_end(arguments);
    return added;
}

struct wr_deferred_texts wr_deferred_log_take(struct wr_deferred_log *deferred)
{
    struct wr_deferred_texts texts = deferred->texts;
    deferred->texts = (struct wr_deferred_texts){0};
    return texts;
}

void wr_deferred_log_write(struct wr_deferred_texts *texts, struct wr_log *log)
{
    for (size_t at = 0; at < texts->length; at += strlen(texts->data + at) + 1)
        wr_log_write(log, texts->data[at] - '0', "%s", texts->data + at + 1);
    wr_pages_put(texts->data);
    *texts = (struct wr_deferred_texts){0};
}
