/* collectors: functions of the program that a thread of weir's calls at intervals, so that they add values. */
#ifndef WR_COLLECTORS_H
#define WR_COLLECTORS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "os/lock.h"

struct wr_error;
struct wr_log;

typedef void (*wr_collect)(weir_stream *stream, void *context);

/* All zeros: none. Of one process: a forked child begins anew.
 *
 * One thread calls collectors, one after the other, so that what one adds keeps its order. While it is in a
 * call a second one sees whether that hangs: then it says so, is the one that calls from then on, and another
 * one is started to watch it. So there are two threads, and one more for each call that hangs. */
struct wr_collectors {
    struct wr_lock lock;          /* protects all of this; not held while a collector is called */
    struct wr_condition changed;  /* one was added or removed, a call has ended, or it stops */
    struct wr_condition watching; /* a call has begun that ends before watched_until_ns, or it stops */
    struct weir_collector *first; /* in the order in which they were added */
    struct weir_collector *last;
    struct weir_collector *awaited; /* is called, and the others wait for it; NULL: none */
    struct wr_log *log;
    uint64_t added;           /* how many ever were */
    uint64_t threads;         /* how many ever ran: each has a number */
    uint64_t caller, watcher; /* their numbers; 0: none */
    int64_t watched_until_ns; /* until when the watcher sleeps */
    bool has_thread;          /* one was started */
    bool is_starting;         /* the thread that is to watch; it does not run yet */
    bool may_start;           /* weir_start or the first value has started the threads */
    bool stopping;            /* after a shutdown: the threads end, and no other is started */
};

/* Returns NULL with the error set if out of memory or of threads. The stream is valid for as long as the
 * process. */
struct weir_collector *wr_collectors_add(struct wr_collectors *collectors, weir_stream *stream,
                                         wr_collect collect, void *context, int64_t interval_ns,
                                         struct wr_error *error);

/* As weir_remove_collector. */
void wr_collectors_remove(struct wr_collectors *collectors, struct weir_collector *collector);

/* The threads of the process are started: from now on collectors are called. */
void wr_collectors_start(struct wr_collectors *collectors, struct wr_log *log);

/* [shutdown] Calls none any more. Waits until the present calls have ended, but for one that this is called
 * from, and for half of the time until the deadline at most: what is left is for the values. One that hangs is
 * not waited for. Those that are left behind are logged. */
void wr_collectors_stop(struct wr_collectors *collectors, int64_t deadline_ns);

/* Whether a collector is what calls this. */
bool wr_collectors_are_here(struct wr_collectors *collectors);

#endif
