#include "reading.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

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

void reading_catch_signals(void)
{
    catch_one(SIGINT);
    catch_one(SIGTERM);
}

bool reading_was_stopped(void)
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

ssize_t reading_read(int fd, char *to, size_t room)
{
    for (;;) {
        if (!wait_for_input(fd))
            return 0;
        ssize_t got = read(fd, to, room);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
    }
}
