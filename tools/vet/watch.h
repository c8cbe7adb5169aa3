/* watch: has the kernel tell which system calls a piece of code makes (seccomp, with the parent as the one who
 * is told), so that what may do no I/O can be held to it. */
#ifndef WEIR_TOOLS_VET_WATCH_H
#define WEIR_TOOLS_VET_WATCH_H

#include <stdbool.h>
#include <stddef.h>

enum vet_watch_kind {
    VET_WATCH_IO,            /* what opens, connects, writes, waits, or starts threads and processes */
    VET_WATCH_ALL_BUT_CLOSE, /* everything but close(2), and the end of the process */
};

/* Runs code in a child process and writes to words what it did first that is not allowed; "": nothing. false:
 * it cannot be watched here, and the words tell why. What the code does is done: nothing is held back. */
bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *words, size_t room);

#endif
