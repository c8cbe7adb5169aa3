/* watch: monitors the system calls of a function that must not do I/O. It runs in a child process with a
 * seccomp filter, and the parent receives the notifications. */
#ifndef WEIR_TOOLS_VET_WATCH_H
#define WEIR_TOOLS_VET_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum vet_watch_kind {
    VET_WATCH_IO,            /* calls that open, connect, write, wait, or start threads and processes */
    VET_WATCH_ALL_BUT_CLOSE, /* every call except close(2) and exit_group(2) */
    VET_WATCH_NOW,           /* calls that wait, allocate or free memory, or start threads and processes */
    VET_WATCH_CALLS,         /* of vet_watch_calls */
};

/* Runs code in a child process and writes a description of its first forbidden system call to text, or "". The
 * calls are not blocked. Returns false if monitoring is not possible here; the text is then the reason. */
bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *text, size_t size);

/* A system call of the child, and what becomes of it. */
struct vet_watch_call {
    pid_t thread;
    int number;           /* SYS_... */
    const uint64_t *args; /* not followed; vet_watch_is_system_read does that for openat */
    bool made_up;         /* set it to return `result` instead of making the call */
    int64_t result;       /* negative: an error, like -EAGAIN */
};

/* Runs code in a child process and passes its I/O, its waits and the ends of its threads to on_call, in this
 * process, before they happen. Returns as vet_watch does. */
bool vet_watch_calls(void (*on_call)(void *call_ctx, struct vet_watch_call *call), void *call_ctx,
                     void (*code)(void *ctx), void *ctx, char *text, size_t size);

/* Ends the check if the monitored child has recorded a verdict. */
void vet_watch_exit_if_decided(void);

/* Whether the call opens a system file for reading, such as a library's configuration. */
bool vet_watch_is_system_read(const struct vet_watch_call *call);

/* Returns a page that a child shares with its parent, for its results; zeroed. The check is skipped if out of
 * memory. */
void *vet_watch_share(size_t size);

#endif
