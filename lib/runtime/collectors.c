#include "runtime/collectors.h"

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
    int64_t interval_ns;
    int64_t due_ns; /* monotonic */
    bool is_slow;   /* the last call took longer than the interval, which was logged */
    bool is_removed;
};

static bool is_own_thread(const struct wr_collectors *collectors)
{
    return collectors->has_thread && pthread_equal(collectors->thread, pthread_self());
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Of equal ones the one that was added first. Caller holds the lock. */
static struct weir_collector *find_next(const struct wr_collectors *collectors)
{
    struct weir_collector *next = collectors->first;
    for (struct weir_collector *each = next; each; each = each->next)
        if (each->due_ns < next->due_ns)
            next = each;
    return next;
}

/* What a slow call has missed is left out, so that there are no calls one after the other to make up for it. */
static void set_due(struct weir_collector *collector, int64_t now_ns)
{
    int64_t intervals = now_ns > collector->due_ns ? (now_ns - collector->due_ns) / collector->interval_ns : 0;
    collector->due_ns += (intervals + 1) * collector->interval_ns;
}

/* Once for as long as it is slow. */
static void note_time(const struct wr_collectors *collectors, struct weir_collector *collector, int64_t took_ns)
{
    bool is_slow = took_ns > collector->interval_ns;
    if (is_slow && !collector->is_slow)
        wr_log_write(
            collectors->log, WEIR_LOG_WARNING,
            "a collector of the group \"%s\" took %.3g s, longer than its interval of %.3g s; calls are "
            "left out",
            collector->stream->group->name, (double)took_ns / 1e9, (double)collector->interval_ns / 1e9);
    collector->is_slow = is_slow;
}

/* Caller holds the lock, which is released meanwhile. */
static void call(struct wr_collectors *collectors, struct weir_collector *collector)
{
    collectors->running = collector;
    wr_lock_leave(&collectors->lock);
    int64_t begun_ns = wr_clock_monotonic_ns();
    collector->collect(collector->stream, collector->context);
    int64_t now_ns = wr_clock_monotonic_ns();
    note_time(collectors, collector, now_ns - begun_ns);
    wr_lock_enter(&collectors->lock);
    collectors->running = NULL;
    wr_condition_wake(&collectors->changed);
    if (collector->is_removed)
        free(collector);
    else
        set_due(collector, now_ns);
}

static void *run(void *argument)
{
    struct wr_collectors *collectors = argument;
    wr_thread_set_name("weir:collect");
    wr_lock_enter(&collectors->lock);
    while (!collectors->stopping) {
        struct weir_collector *next = find_next(collectors);
        if (next && next->due_ns <= wr_clock_monotonic_ns())
            call(collectors, next);
        else
            wr_condition_wait(&collectors->changed, &collectors->lock, next ? next->due_ns : WR_NEVER);
    }
    collectors->has_thread = false; /* another thread may get its identity */
    wr_lock_leave(&collectors->lock);
    return NULL;
}

/* Caller holds the lock. Returns false if the system refuses a thread. */
static bool start_thread(struct wr_collectors *collectors)
{
    if (collectors->has_thread || collectors->stopping || !collectors->may_start || !collectors->first)
        return true;
    collectors->has_thread = wr_thread_start(run, collectors, &collectors->thread);
    if (collectors->has_thread)
        pthread_detach(collectors->thread); /* it ends at shutdown, and is not waited for */
    return collectors->has_thread;
}

/* ---- Adding and removing --------------------------------------------------------------------- */

/* Caller holds the lock. */
static void append(struct wr_collectors *collectors, struct weir_collector *collector)
{
    if (collectors->last)
        collectors->last->next = collector;
    else
        collectors->first = collector;
    collectors->last = collector;
}

/* Returns false if it is not there. Caller holds the lock. */
static bool take_out(struct wr_collectors *collectors, const struct weir_collector *collector)
{
    struct weir_collector *previous = NULL, *each = collectors->first;
    for (; each && each != collector; each = each->next)
        previous = each;
    if (!each)
        return false;
    if (previous)
        previous->next = each->next;
    else
        collectors->first = each->next;
    if (collectors->last == each)
        collectors->last = previous;
    return true;
}

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
    bool is_added = start_thread(collectors);
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

/* A collector that removes itself is freed when its call has ended. One that is called at the moment is freed
 * by the thread that took it out, once the call has ended. */
void wr_collectors_remove(struct wr_collectors *collectors, struct weir_collector *collector)
{
    wr_lock_enter(&collectors->lock);
    bool is_mine = take_out(collectors, collector);
    bool is_inside = collectors->running == collector && is_own_thread(collectors);
    if (is_mine && is_inside)
        collector->is_removed = true;
    while (!is_inside && collectors->running == collector)
        wr_condition_wait(&collectors->changed, &collectors->lock, WR_NEVER);
    wr_lock_leave(&collectors->lock);
    if (is_mine && !is_inside)
        free(collector);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void wr_collectors_start(struct wr_collectors *collectors, struct wr_log *log)
{
    wr_lock_enter(&collectors->lock);
    collectors->log = log;
    collectors->may_start = true;
    bool is_started = start_thread(collectors);
    wr_lock_leave(&collectors->lock);
    if (!is_started)
        wr_log_write(log, WEIR_LOG_ERROR, "the system refuses a thread for collectors; none is called");
}

bool wr_collectors_stop(struct wr_collectors *collectors, int64_t deadline_ns)
{
    if (!wr_lock_enter_by(&collectors->lock, deadline_ns))
        return false;
    collectors->stopping = true;
    wr_condition_wake(&collectors->changed);
    while (collectors->running && !is_own_thread(collectors) && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&collectors->changed, &collectors->lock, deadline_ns);
    bool is_stopped = !collectors->running || is_own_thread(collectors);
    wr_lock_leave(&collectors->lock);
    return is_stopped;
}

bool wr_collectors_are_here(struct wr_collectors *collectors)
{
    wr_lock_enter(&collectors->lock);
    bool are_here = is_own_thread(collectors);
    wr_lock_leave(&collectors->lock);
    return are_here;
}

void wr_collectors_after_fork(struct wr_collectors *collectors)
{
    *collectors = (struct wr_collectors){.forsaken = collectors->first};
}
