/* logbook: keeps log lines for a test to read. Not thread-safe. */
#ifndef LOGBOOK_H
#define LOGBOOK_H

#include <stdio.h>

enum { LOGBOOK_LINES = 32 };

struct logbook {
    unsigned count; /* of all lines so far */
    int levels[LOGBOOK_LINES];
    char lines[LOGBOOK_LINES][600];
};

/* For wr_log_set_sink and weir_set_log; ctx: the logbook. */
static inline void logbook_write(void *ctx, int level, const char *text)
{
    struct logbook *book = ctx;
    unsigned line = book->count++ % LOGBOOK_LINES;
    book->levels[line] = level;
    snprintf(book->lines[line], sizeof book->lines[line], "%s", text);
}

/* The latest line; "" if there is none. */
static inline const char *logbook_last(const struct logbook *book)
{
    return book->count ? book->lines[(book->count - 1) % LOGBOOK_LINES] : "";
}

static inline int logbook_last_level(const struct logbook *book)
{
    return book->count ? book->levels[(book->count - 1) % LOGBOOK_LINES] : 0;
}

#endif
