#include "words.h"

#include <stdarg.h>
#include <stdio.h>

#include "log.h"

void wr_words_add(struct wr_words *words, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strlen(text) + 1;
    if (!wr_buffer_reserve(&words->texts, length + 1))
        return;
    wr_buffer_put_char(&words->texts, (char)('0' + level));
    wr_buffer_put(&words->texts, text, length);
}

void wr_words_say(struct wr_words *words, struct wr_log *log, const char *about)
{
    for (size_t at = 0; at < words->texts.length; at += strlen(words->texts.data + at) + 1)
        wr_log_say(log, words->texts.data[at] - '0', "%s: %s", about, words->texts.data + at + 1);
    wr_buffer_fini(&words->texts);
}
