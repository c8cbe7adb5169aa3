/* lines: reads a descriptor line by line, until its end or until the process is asked to stop. */
#ifndef WEIR_TOOLS_LINES_H
#define WEIR_TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { LINES_LONGEST = 1024 * 1024 };

enum lines_what {
    LINES_LINE,
    LINES_TOO_LONG, /* a line of more than LINES_LONGEST bytes, which is skipped */
    LINES_END, /* of the input; or SIGINT or SIGTERM came, and every whole line that was read has been given */
    LINES_FAILED, /* errno tells */
};

/* All zeros but fd: nothing read yet. */
struct lines {
    int fd;
    unsigned long number; /* of the line given last, from 1 */
    char *buffer;
    size_t start, end, room; /* of what is in it */
    bool skipping, ended;
};

/* From now on SIGINT and SIGTERM end the reading instead of the process, the first time; a second one ends the
 * process. A signal that is ignored stays so. */
void lines_catch_signals(void);

/* Whether one of them came. */
bool lines_were_stopped(void);

/* The next line, without its end ("\n" or "\r\n"), with a NUL behind; valid, and to be overwritten, until the
 * next call. A last line need not have an end. */
enum lines_what lines_next(struct lines *lines, char **line, size_t *length);

void lines_fini(struct lines *lines);

#endif
