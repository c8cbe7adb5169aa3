#include "runtime/watcher.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/thread.h"
#include "text/name_index.h"

static void free_files(struct wr_watcher_file *files, size_t count)
{
    for (size_t i = 0; files && i < count; i++)
        free(files[i].path);
    free(files);
}

/* NULL: none, or out of memory. */
static struct wr_watcher_file *copy_files(const struct wr_watched *watched, size_t count)
{
    struct wr_watcher_file *files = count ? calloc(count, sizeof *files) : NULL;
    for (size_t i = 0; files && i < count; i++) {
        files[i].path = strdup(watched[i].path);
        if (!files[i].path) {
            free_files(files, count);
            return NULL;
        }
        files[i].mark = watched[i].mark;
    }
    return files;
}

/* A file that is watched already keeps the mark that was last compared, which is from before the file was read,
 * too: a reload for a change that was seen does not happen twice because it failed. Caller holds the lock. */
static void keep_marks(const struct wr_watcher *watcher, struct wr_watcher_file *files, size_t count)
{
    struct wr_name_index known = {0};
    for (size_t i = 0; i < watcher->count; i++)
        if (!wr_name_index_add(&known, watcher->files[i].path, i))
            break;
    for (size_t i = 0; i < count; i++) {
        size_t number = wr_name_index_find(&known, files[i].path, strlen(files[i].path));
        if (number != SIZE_MAX)
            files[i].mark = watcher->files[number].mark;
    }
    wr_name_index_fini(&known);
}

void wr_watcher_set(struct wr_watcher *watcher, const struct wr_watched *watched, size_t count,
                    int64_t interval_ns)
{
    struct wr_watcher_file *files = copy_files(watched, interval_ns ? count : 0);
    if (!files)
        count = 0;
    wr_lock_enter(&watcher->lock);
    keep_marks(watcher, files, count);
    struct wr_watcher_file *before = watcher->files;
    size_t count_before = watcher->count;
    watcher->files = files;
    watcher->count = count;
    watcher->generation++;
    watcher->interval_ns = count ? interval_ns : 0;
    wr_condition_wake(&watcher->changed);
    wr_lock_leave(&watcher->lock);
    free_files(before, count_before);
}

/* Whether a file has changed since the last call. A missing one has not: it may be about to be replaced. */
static bool update_mark(struct wr_watcher_file *file, const struct wr_file_mark *mark)
{
    if (mark->inode == 0 || wr_file_mark_is_same(mark, &file->mark))
        return false;
    file->mark = *mark;
    return true;
}

/* Whether one of the files has changed since the last call. Caller holds the lock; it is released during stat,
 * which may block on a network file system. */
static bool has_changed(struct wr_watcher *watcher)
{
    uint64_t generation = watcher->generation;
    bool changed = false;
    for (size_t i = 0; i < watcher->count; i++) {
        char *path = strdup(watcher->files[i].path);
        if (!path)
            break;
        wr_lock_leave(&watcher->lock);
        struct wr_file_mark mark = wr_file_mark_take(path);
        wr_lock_enter(&watcher->lock);
        free(path);
        if (watcher->generation != generation)
            break; /* other files: looked at the next time */
        changed |= update_mark(&watcher->files[i], &mark);
    }
    return changed;
}

static void *run(void *argument)
{
    struct wr_watcher *watcher = argument;
    wr_thread_set_name("weir:reload");
    wr_lock_enter(&watcher->lock);
    while (!watcher->stopping) {
        int64_t until_ns = watcher->count ? wr_clock_monotonic_ns() + watcher->interval_ns : WR_NEVER;
        wr_condition_wait(&watcher->changed, &watcher->lock, until_ns);
        if (watcher->stopping || !watcher->count || wr_clock_monotonic_ns() < until_ns || !has_changed(watcher))
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
    if (watcher->count && !watcher->running && !watcher->stopping) {
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
