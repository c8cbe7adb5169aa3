#include "runtime/watcher.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/thread.h"

/* Follows symbolic links. A missing file has a mark of zeros. */
static struct wr_watcher_mark take_mark(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return (struct wr_watcher_mark){0};
    return (struct wr_watcher_mark){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

static bool is_same(const struct wr_watcher_mark *a, const struct wr_watcher_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

void wr_watcher_set(struct wr_watcher *watcher, const char *path, int64_t interval_ns)
{
    char *copy = path && interval_ns ? strdup(path) : NULL;
    struct wr_watcher_mark mark = {0};
    if (copy)
        mark = take_mark(copy);
    wr_lock_enter(&watcher->lock);
    char *before = watcher->path;
    bool same_file = before && copy && strcmp(before, copy) == 0;
    watcher->path = copy;
    watcher->interval_ns = copy ? interval_ns : 0;
    if (!same_file)
        watcher->mark = mark;
    wr_condition_wake(&watcher->changed);
    wr_lock_leave(&watcher->lock);
    free(before);
}

/* Whether the file has changed since the last call. A missing file has not: it may be about to be replaced.
 * Caller holds the lock; it is released during stat, which may block on a network file system. */
static bool has_changed(struct wr_watcher *watcher)
{
    char *path = strdup(watcher->path);
    if (!path)
        return false;
    wr_lock_leave(&watcher->lock);
    struct wr_watcher_mark mark = take_mark(path);
    wr_lock_enter(&watcher->lock);
    bool changed =
        watcher->path && strcmp(path, watcher->path) == 0 && mark.inode != 0 && !is_same(&mark, &watcher->mark);
    if (changed)
        watcher->mark = mark;
    free(path);
    return changed;
}

static void *run(void *argument)
{
    struct wr_watcher *watcher = argument;
    wr_thread_set_name("weir:reload");
    wr_lock_enter(&watcher->lock);
    while (!watcher->stopping) {
        int64_t until_ns = watcher->path ? wr_clock_monotonic_ns() + watcher->interval_ns : WR_NEVER;
        wr_condition_wait(&watcher->changed, &watcher->lock, until_ns);
        if (watcher->stopping || !watcher->path || wr_clock_monotonic_ns() < until_ns || !has_changed(watcher))
            continue;
        wr_lock_leave(&watcher->lock);
        watcher->reload(watcher->ctx);
        wr_lock_enter(&watcher->lock);
    }
    wr_lock_leave(&watcher->lock);
    return NULL;
}

void wr_watcher_start(struct wr_watcher *watcher)
{
    wr_lock_enter(&watcher->lock);
    pthread_t thread;
    if (watcher->path && !watcher->running && !watcher->stopping) {
        watcher->running = wr_thread_start(run, watcher, &thread);
        if (watcher->running)
            pthread_detach(thread); /* it ends at shutdown, and is not waited for */
    }
    wr_lock_leave(&watcher->lock);
}

void wr_watcher_stop(struct wr_watcher *watcher, int64_t deadline_ns)
{
    if (!wr_lock_enter_by(&watcher->lock, deadline_ns))
        return;
    watcher->stopping = true;
    wr_condition_wake(&watcher->changed);
    wr_lock_leave(&watcher->lock);
}

void wr_watcher_after_fork(struct wr_watcher *watcher)
{
    wr_lock_reset(&watcher->lock);
    watcher->changed = (struct wr_condition){0};
    watcher->running = watcher->stopping = false;
    /* not freed: another thread of the parent may have been about to do so. The child configures itself anew.
     */
    watcher->path = NULL;
}
