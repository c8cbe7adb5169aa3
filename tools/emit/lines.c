#include "lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

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

/* A signal that comes between the look and the wait would not be noticed: so it is let in during the wait only.
 * false: no reading any more. */
static bool wait_for_input(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    while (!stopped && ppoll(&wanted, 1, NULL, &before) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !stopped;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Makes room for a piece more and the NUL behind it. */
static bool make_room(struct lines *lines)
{
    if (lines->start) {
        memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
    }
    if (lines->room - lines->end > PIECE)
        return true;
    size_t room = lines->room ? lines->room * 2 : 2 * PIECE;
    char *grown = realloc(lines->buffer, room);
    if (!grown)
        return false;
    lines->buffer = grown;
    lines->room = room;
    return true;
}

/* Reads some more. false: LINES_END, or LINES_FAILED with errno. */
static bool fill(struct lines *lines, enum lines_what *what)
{
    *what = LINES_FAILED;
    if (!make_room(lines))
        return false;
    for (;;) {
        if (!wait_for_input(lines->fd)) {
            *what = LINES_END;
            return false;
        }
        ssize_t got = read(lines->fd, lines->buffer + lines->end, PIECE);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return false;
        lines->ended = got == 0;
        lines->end += (size_t)got;
        return true;
    }
}

/* What is there of a line that is too long is thrown away. */
static void skip(struct lines *lines)
{
    lines->skipping = true;
    lines->start = lines->end = 0;
}

static enum lines_what give(struct lines *lines, size_t end, char **line, size_t *length)
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

enum lines_what lines_next(struct lines *lines, char **line, size_t *length)
{
    size_t looked = lines->start;
    enum lines_what what;
    for (;;) {
        const char *end =
            lines->end > looked ? memchr(lines->buffer + looked, '\n', lines->end - looked) : NULL;
        if (end)
            return give(lines, (size_t)(end - lines->buffer), line, length);
        if (lines->ended && (lines->end > lines->start || lines->skipping))
            return give(lines, lines->end, line, length);
        if (lines->ended)
            return LINES_END;
        if (lines->end - lines->start > LINES_LONGEST)
            skip(lines);
        looked = lines->end - lines->start;
        if (!fill(lines, &what))
            return what;
        looked += lines->start;
    }
}

void lines_fini(struct lines *lines)
{
    free(lines->buffer);
    lines->buffer = NULL;
}
