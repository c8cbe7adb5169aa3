#include "lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

/* ---- Signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void catch_one(int number)
{
    const struct sigaction caught = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &caught, NULL);
}

void lines_catch_signals(void)
{
    catch_one(SIGINT);
    catch_one(SIGTERM);
}

bool lines_were_stopped(void)
{
    return stopped;
}

/* The signals are unblocked only inside ppoll, because one that arrives between the test of `stopped` and the
 * wait would be missed. Returns false after a signal. */
static bool wait_for_input(int fd)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    while (!stopped && ppoll(&input, 1, NULL, &before) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !stopped;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Makes room for READ_BYTES and a NUL after the last line. Returns false if out of memory. */
static bool make_room(struct lines *lines)
{
    if (lines->start) {
        memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
    }
    if (lines->room - lines->end > READ_BYTES)
        return true;
    size_t room = lines->room ? lines->room * 2 : 2 * READ_BYTES;
    char *grown = realloc(lines->buffer, room);
    if (!grown)
        return false;
    lines->buffer = grown;
    lines->room = room;
    return true;
}

/* Reads more. Returns false with LINES_END, or with LINES_FAILED and errno. */
static bool fill(struct lines *lines, enum lines_result *result)
{
    *result = LINES_FAILED;
    if (!make_room(lines))
        return false;
    for (;;) {
        if (!wait_for_input(lines->fd)) {
            *result = LINES_END;
            return false;
        }
        ssize_t got = read(lines->fd, lines->buffer + lines->end, READ_BYTES);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return false;
        lines->ended = got == 0;
        lines->end += (size_t)got;
        return true;
    }
}

/* Discards what has been read of a line that is too long. */
static void discard(struct lines *lines)
{
    lines->skipping = true;
    lines->start = lines->end = 0;
}

static enum lines_result return_line(struct lines *lines, size_t end, char **line, size_t *length)
{
    bool was_skipping = lines->skipping;
    *line = lines->buffer + lines->start;
    *length = end - lines->start;
    lines->start = end < lines->end ? end + 1 : end;
    lines->skipping = false;
    lines->number++;
    if (was_skipping || *length > LINES_LONGEST)
        return LINES_TOO_LONG;
    if (*length && (*line)[*length - 1] == '\r')
        --*length;
    (*line)[*length] = '\0';
    return LINES_LINE;
}

enum lines_result lines_next(struct lines *lines, char **line, size_t *length)
{
    size_t searched = lines->start; /* there is no newline before it */
    enum lines_result result;
    for (;;) {
        const char *end =
            lines->end > searched ? memchr(lines->buffer + searched, '\n', lines->end - searched) : NULL;
        if (end)
            return return_line(lines, (size_t)(end - lines->buffer), line, length);
        if (lines->ended && (lines->end > lines->start || lines->skipping))
            return return_line(lines, lines->end, line, length);
        if (lines->ended)
            return LINES_END;
        if (lines->end - lines->start > LINES_LONGEST)
            discard(lines);
        searched = lines->end - lines->start;
        if (!fill(lines, &result))
            return result;
        searched += lines->start;
    }
}

void lines_fini(struct lines *lines)
{
    free(lines->buffer);
    lines->buffer = NULL;
}
