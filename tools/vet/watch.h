/* watch: monitors the system calls of a function that must not do I/O. It runs in a child process with a
 * seccomp filter, and the parent receives the notifications. */
#ifndef WEIR_TOOLS_VET_WATCH_H
#define WEIR_TOOLS_VET_WATCH_H

#include <stdbool.h>
#include <stddef.h>

enum vet_watch_kind {
    VET_WATCH_IO,            /* calls that open, connect, write, wait, or start threads and processes */
    VET_WATCH_ALL_BUT_CLOSE, /* every call except close(2), fstat(2), exit_group(2) and those of malloc(3) */
    VET_WATCH_NOW,           /* calls that wait, or start threads and processes */
    VET_WATCH_THREADS,       /* ends of threads, which it only delays; the text is "" */
};

/* Runs code in a child process and writes a description of its first forbidden system call to text, or "". The
 * calls are not blocked. Ends the check if the child has recorded a verdict. Returns false if monitoring is not
 * possible here; the text is then the reason. */
bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *text, size_t size);

/* Ends the check if the monitored child has recorded a verdict. */
void vet_watch_exit_if_decided(void);

/* Returns a page that a child shares with its parent, for its results; zeroed. The check is skipped if out of
 * memory. */
void *vet_watch_share(size_t size);

#endif
