#include "runtime/collectors.h"

#include <pthread.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/log.h"
#include "os/thread.h"
#include "registry/registry.h"
#include "text/common.h"
#include "text/error.h"

struct weir_collector {
    struct weir_collector *next;
    weir_stream *stream;
    wr_collect collect;
    void *context;
    uint64_t number; /* tells it from another one that was added later, in the same memory */
    int64_t interval_ns;
    int64_t due_ns;   /* monotonic */
    int64_t begun_ns; /* the last call, monotonic */
    pthread_t thread; /* of the call */
    bool is_called;   /* at the moment */
    bool is_slow;     /* the last call took longer than the interval, which was logged */
    bool hangs;       /* the call has not returned within its time, which was logged */
    bool is_left;     /* by a shutdown, which was logged */
    bool is_removed;  /* during the call; it is freed when that has ended */
};

/* A call hangs when it has taken longer than its interval, within these bounds. */
enum { HANG_AFTER_MS_LEAST = 1000, HANG_AFTER_MS_MOST = 10000 };

static bool is_here(const struct weir_collector *collector)
{
    return collector->is_called && pthread_equal(collector->thread, pthread_self());
}

static int64_t call_hangs_at_ns(const struct weir_collector *collector)
{
    int64_t hangs_after_ns = collector->interval_ns;
    if (hangs_after_ns < HANG_AFTER_MS_LEAST * WR_NS_PER_MS)
        hangs_after_ns = HANG_AFTER_MS_LEAST * WR_NS_PER_MS;
    if (hangs_after_ns > HANG_AFTER_MS_MOST * WR_NS_PER_MS)
        hangs_after_ns = HANG_AFTER_MS_MOST * WR_NS_PER_MS;
    return collector->begun_ns + hangs_after_ns;
}

/* ---- The list: the caller holds the lock ------------------------------------------------------ */

static void append(struct wr_collectors *collectors, struct weir_collector *collector)
{
    if (collectors->last)
        collectors->last->next = collector;
    else
        collectors->first = collector;
    collectors->last = collector;
    collector->number = ++collectors->added;
}

static void take_out(struct wr_collectors *collectors, const struct weir_collector *collector)
{
    struct weir_collector *previous = NULL;
    for (struct weir_collector *each = collectors->first; each != collector; each = each->next)
        previous = each;
    if (previous)
        previous->next = collector->next;
    else
        collectors->first = collector->next;
    if (collectors->last == collector)
        collectors->last = previous;
}

static bool contains(const struct wr_collectors *collectors, const struct weir_collector *collector)
{
    const struct weir_collector *each = collectors->first;
    while (each && each != collector)
        each = each->next;
    return each;
}

/* Of those that are not called. Of equal ones the one that was added first. */
static struct weir_collector *find_next(const struct wr_collectors *collectors)
{
    struct weir_collector *next = NULL;
    for (struct weir_collector *each = collectors->first; each; each = each->next)
        if (!each->is_called && (!next || each->due_ns < next->due_ns))
            next = each;
    return next;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void *run(void *argument);

/* Caller holds the lock. Returns false if the system refuses a thread. It is not waited for. */
static bool start_thread(struct wr_collectors *collectors)
{
    pthread_t thread;
    if (!wr_thread_start(run, collectors, &thread))
        return false;
    pthread_detach(thread);
    return true;
}

/* Where intervals of handlers end, so that what these deliver is fresh. What a slow call has missed is left
 * out, so that there are no calls one after the other to make up for it. */
static void set_due(struct weir_collector *collector, int64_t now_ns)
{
    collector->due_ns = wr_clock_before_end_ns(now_ns, collector->interval_ns);
}

/* Caller holds the lock, which is released meanwhile. Once for as long as it is slow. */
static void note_time(struct wr_collectors *collectors, struct weir_collector *collector, int64_t took_ns)
{
    bool was_slow = collector->is_slow;
    collector->is_slow = took_ns > collector->interval_ns;
    if (!collector->is_slow || was_slow)
        return;
    wr_lock_leave(&collectors->lock);
    wr_log_write(collectors->log, WEIR_LOG_WARNING,
                 "a collector of the group \"%s\" took %.3g s, longer than its interval of %.3g s; calls are "
                 "left out",
                 collector->stream->group->name, (double)took_ns / 1e9, (double)collector->interval_ns / 1e9);
    wr_lock_enter(&collectors->lock);
}

/* [calling] Caller holds the lock, which is released meanwhile. */
static void call(struct wr_collectors *collectors, struct weir_collector *collector)
{
    collectors->awaited = collector;
    collector->begun_ns = wr_clock_monotonic_ns();
    collector->thread = pthread_self();
    collector->is_called = true;
    if (!collectors->watcher && !collectors->is_starting) /* if it is refused, nobody sees a call that hangs */
        collectors->is_starting = start_thread(collectors);
    else if (call_hangs_at_ns(collector) < collectors->watched_until_ns)
        wr_condition_wake(&collectors->watching);
    wr_lock_leave(&collectors->lock);
    collector->collect(collector->stream, collector->context);
    int64_t now_ns = wr_clock_monotonic_ns();
    wr_lock_enter(&collectors->lock);
    if (!contains(collectors, collector)) /* in a child that was forked in the call: it is the parent's */
        return;
    note_time(collectors, collector, now_ns - collector->begun_ns);
    collector->is_called = collector->hangs = false;
    if (collectors->awaited == collector)
        collectors->awaited = NULL;
    wr_condition_wake(&collectors->changed);
    set_due(collector, now_ns);
    if (!collector->is_removed)
        return;
    take_out(collectors, collector);
    free(collector);
}

/* [calling] Caller holds the lock, which is released meanwhile. */
static void call_next(struct wr_collectors *collectors)
{
    struct weir_collector *next = find_next(collectors);
    if (next && next->due_ns <= wr_clock_monotonic_ns())
        call(collectors, next);
    else
        wr_condition_wait(&collectors->changed, &collectors->lock, next ? next->due_ns : WR_NEVER);
}

/* Caller holds the lock, which is released meanwhile. */
static void note_hanging(struct wr_collectors *collectors, struct weir_collector *collector, int64_t now_ns)
{
    const char *group = collector->stream->group->name; /* valid for as long as the process */
    double took = (double)(now_ns - collector->begun_ns) / 1e9;
    collectors->awaited = NULL;
    collector->hangs = collector->is_slow = true;
    wr_lock_leave(&collectors->lock);
    wr_log_write(collectors->log, WEIR_LOG_WARNING,
                 "a collector of the group \"%s\" has not returned for %.3g s; it is called again once it has, "
                 "and others do not wait for it",
                 group, took);
    wr_lock_enter(&collectors->lock);
}

/* [watching] Takes over what the calling thread does if that hangs. Caller holds the lock, which is released
 * meanwhile. */
static void watch(struct wr_collectors *collectors)
{
    struct weir_collector *awaited = collectors->awaited;
    int64_t now_ns = wr_clock_monotonic_ns();
    collectors->watched_until_ns = awaited ? call_hangs_at_ns(awaited) : WR_NEVER;
    if (!awaited || collectors->watched_until_ns > now_ns) {
        wr_condition_wait(&collectors->watching, &collectors->lock, collectors->watched_until_ns);
        return;
    }
    collectors->caller = collectors->watcher;
    collectors->watcher = 0;
    note_hanging(collectors, awaited, now_ns);
}

/* One that was in a call that hung finds that others have taken its place. */
static void *run(void *argument)
{
    struct wr_collectors *collectors = argument;
    wr_thread_set_name("weir:collect");
    wr_lock_enter(&collectors->lock);
    uint64_t mine = ++collectors->threads;
    collectors->is_starting = false;
    while (!collectors->stopping) {
        if (!collectors->caller)
            collectors->caller = mine;
        else if (!collectors->watcher && collectors->caller != mine)
            collectors->watcher = mine;
        if (collectors->caller == mine)
            call_next(collectors);
        else if (collectors->watcher == mine)
            watch(collectors);
        else
            break;
    }
    wr_lock_leave(&collectors->lock);
    return NULL;
}

/* Caller holds the lock. Returns false if there is no thread, and the system refuses one. */
static bool need_thread(struct wr_collectors *collectors)
{
    bool needs = !collectors->has_thread && !collectors->stopping && collectors->may_start && collectors->first;
    if (needs)
        collectors->has_thread = start_thread(collectors);
    return !needs || collectors->has_thread;
}

/* ---- Adding and removing --------------------------------------------------------------------- */

struct weir_collector *wr_collectors_add(struct wr_collectors *collectors, weir_stream *stream,
                                         wr_collect collect, void *context, int64_t interval_ns,
                                         struct wr_error *error)
{
    struct weir_collector *collector = malloc(sizeof *collector);
    if (!collector) {
        wr_error_set(error, WEIR_ERR_MEMORY, "out of memory");
        return NULL;
    }
    *collector = (struct weir_collector){.stream = stream,
                                         .collect = collect,
                                         .context = context,
                                         .interval_ns = interval_ns,
                                         .due_ns = wr_clock_monotonic_ns()};
    wr_lock_enter(&collectors->lock);
    append(collectors, collector);
    bool is_added = need_thread(collectors);
    if (!is_added)
        take_out(collectors, collector);
    wr_condition_wake(&collectors->changed);
    wr_lock_leave(&collectors->lock);
    if (is_added)
        return collector;
    free(collector);
    wr_error_set(error, WEIR_ERR_MEMORY, "the system refuses a thread for collectors");
    return NULL;
}

/* It may not be there any more. One that is called at the moment is freed when its call has ended. */
void wr_collectors_remove(struct wr_collectors *collectors, struct weir_collector *collector)
{
    wr_lock_enter(&collectors->lock);
    uint64_t number = contains(collectors, collector) ? collector->number : 0;
    bool is_mine = number && !collector->is_called;
    if (is_mine)
        take_out(collectors, collector);
    else if (number)
        collector->is_removed = true;
    while (!is_mine && contains(collectors, collector) && collector->number == number && !is_here(collector))
        wr_condition_wait(&collectors->changed, &collectors->lock, WR_NEVER);
    wr_lock_leave(&collectors->lock);
    if (is_mine)
        free(collector);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void wr_collectors_start(struct wr_collectors *collectors, struct wr_log *log)
{
    wr_lock_enter(&collectors->lock);
    collectors->log = log;
    collectors->may_start = true;
    bool is_started = need_thread(collectors);
    wr_lock_leave(&collectors->lock);
    if (!is_started)
        wr_log_write(log, WEIR_LOG_ERROR, "the system refuses a thread for collectors; none is called");
}

/* Caller holds the lock. */
static struct weir_collector *find_called(const struct wr_collectors *collectors)
{
    struct weir_collector *each = collectors->first;
    while (each && (!each->is_called || each->is_left || is_here(each)))
        each = each->next;
    return each;
}

/* Caller holds the lock, which is released meanwhile. */
static void leave_behind(struct wr_collectors *collectors, struct weir_collector *collector, int64_t now_ns)
{
    const char *group = collector->stream->group->name;
    double took = (double)(now_ns - collector->begun_ns) / 1e9;
    collector->is_left = true;
    wr_lock_leave(&collectors->lock);
    wr_log_write(
        collectors->log, WEIR_LOG_ERROR,
        "a collector of the group \"%s\" has not returned for %.3g s; the shutdown does not wait for it", group,
        took);
    wr_lock_enter(&collectors->lock);
}

void wr_collectors_stop(struct wr_collectors *collectors, int64_t deadline_ns)
{
    struct weir_collector *called;
    int64_t now_ns = wr_clock_monotonic_ns();
    int64_t half_ns = deadline_ns == WR_NEVER ? WR_NEVER : now_ns + (deadline_ns - now_ns) / 2;
    if (!wr_lock_enter_by(&collectors->lock, deadline_ns))
        return;
    collectors->stopping = true;
    wr_condition_wake(&collectors->changed);
    wr_condition_wake(&collectors->watching);
    while ((called = find_called(collectors))) {
        int64_t end_ns = call_hangs_at_ns(called);
        now_ns = wr_clock_monotonic_ns();
        if (end_ns > half_ns)
            end_ns = half_ns;
        if (called->hangs || now_ns >= end_ns)
            leave_behind(collectors, called, now_ns);
        else
            wr_condition_wait(&collectors->changed, &collectors->lock, end_ns);
    }
    wr_lock_leave(&collectors->lock);
}

bool wr_collectors_are_here(struct wr_collectors *collectors)
{
    wr_lock_enter(&collectors->lock);
    const struct weir_collector *each = collectors->first;
    while (each && !is_here(each))
        each = each->next;
    wr_lock_leave(&collectors->lock);
    return each;
}
