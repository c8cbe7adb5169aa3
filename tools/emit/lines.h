/* lines: reads a descriptor line by line until its end, SIGINT or SIGTERM. */
#ifndef WEIR_TOOLS_LINES_H
#define WEIR_TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { LINES_LONGEST = 1024 * 1024 };

enum lines_result {
    LINES_LINE,
    LINES_TOO_LONG, /* a line of more than LINES_LONGEST bytes, which was skipped */
    LINES_END,      /* the end, or a signal after which all complete lines that were read have been returned */
    LINES_FAILED,   /* a read error: errno */
};

/* Initialise with {.fd = ...}. */
struct lines {
    int fd;
    unsigned long number; /* of the line returned last, from 1 */
    char *buffer;
    size_t start, end, room; /* unread bytes: buffer[start .. end) */
    bool skipping, ended;
};

/* From now on the first SIGINT or SIGTERM ends the input instead of the process; a second one ends the process.
 * Signals that are ignored stay ignored. */
void lines_catch_signals(void);

/* Whether such a signal has arrived. */
bool lines_were_stopped(void);

/* The next line without its "\n" or "\r\n", terminated by NUL; the caller may modify it until the next call.
 * The last line need not end in a newline. */
enum lines_result lines_next(struct lines *lines, char **line, size_t *length);

void lines_fini(struct lines *lines);

#endif
