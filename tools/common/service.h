/* service: the life of a command that reads from the sources of a configuration until it is told to end.
 *
 * Signals are blocked in all threads, and the main thread takes them from a descriptor. It never waits for
 * anything else: other threads wait for the sources and shut weir down, and report their end by an eventfd. */
#ifndef WEIR_TOOLS_SERVICE_H
#define WEIR_TOOLS_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads may still be using it when the process ends, so it is static and never freed. All zeros, but for what
 * the command sets. */
struct service {
    /* set by the command */
    bool is_verbose;         /* prints what was read and delivered: after a reload and at the end */
    bool is_strict;          /* what sources refuse or lose is a failure */
    int64_t every_ns;        /* also at this interval; 0: not */
    bool (*tend)(void *ctx); /* called about ten times a second until it returns true; NULL: nothing */
    void *ctx;

    int signal_fd, event_fd;
    _Atomic bool have_ended; /* the sources, at that moment */
    _Atomic bool is_drained;
    bool is_idle; /* there are no sources, until a reload adds some */
    int64_t summary_ns, timeout_ns;
};

/* Takes the signals. To be called before any thread starts. Returns false after printing why. */
bool service_open(struct service *service);

/* Starts the sources of the configuration in force. name: where it is from. Returns false after printing why.
 */
bool service_start(const char *name);

/* Runs until SIGTERM or SIGINT, or until all sources have ended; delivers what is queued. Returns the exit
 * code.
 */
int service_run(struct service *service);

#endif
