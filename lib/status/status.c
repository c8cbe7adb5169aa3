#include "status/status.h"

#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "os/thread.h"

/* Starts with short intervals, for programs that run only briefly. */
enum { SHORTEST_MS = 100, LONGEST_MS = 1000 };

/* State of the thread. */
struct work {
    struct wr_status *status;
    struct wr_snapshot *snapshot;
    struct wr_buffer page;
    bool failed; /* the last write failed, and that was logged */
    int64_t interval_ns;
};

void wr_status_set(struct wr_status *status, const char *setting)
{
    char *copy = strcmp(setting, "off") != 0 ? strdup(setting) : NULL;
    wr_lock_enter(&status->lock);
    char *before = status->setting;
    bool same = before && copy && strcmp(before, copy) == 0;
    if (!same) {
        status->setting = copy;
        status->turn++;
    }
    wr_condition_wake(&status->changed);
    wr_lock_leave(&status->lock);
    free(same ? copy : before);
}

static bool write_page(struct work *work, const char *setting, struct wr_error *error)
{
    if (!work->snapshot) {
        work->snapshot = malloc(sizeof *work->snapshot);
        if (work->snapshot)
            wr_snapshot_init(work->snapshot);
    }
    wr_buffer_clear(&work->page);
    const struct wr_status *status = work->status;
    if (work->snapshot) {
        wr_snapshot_take(work->snapshot, status->engine, &status->sources);
        wr_status_page_put(&work->page, &work->snapshot->view);
    }
    if (work->snapshot && !work->page.failed)
        return wr_status_file_write(&work->status->file, setting, work->page.data, work->page.length, error);
    return wr_error_no_memory(error, NULL);
}

/* Called without locks. A failure is logged once, until a write succeeds again. */
static void update(struct work *work, const char *setting)
{
    struct wr_error error;
    bool written = write_page(work, setting, &error);
    if (!written && !work->failed)
        wr_log_write(work->status->engine->log, WEIR_LOG_WARNING,
                     "settings.status: %s; the status file is not written", error.text);
    work->failed = !written;
}

static int64_t next_interval(struct work *work)
{
    int64_t interval_ns = work->interval_ns;
    work->interval_ns =
        interval_ns < LONGEST_MS * WR_NS_PER_MS / 2 ? 2 * interval_ns : LONGEST_MS * WR_NS_PER_MS;
    return interval_ns;
}

/* Caller holds the lock, which is released meanwhile. Updates the file until the setting changes. */
static void follow_setting(struct work *work)
{
    struct wr_status *status = work->status;
    char *setting = strdup(status->setting);
    uint64_t turn = status->turn;
    while (setting && !status->stopping && status->turn == turn) {
        wr_lock_leave(&status->lock);
        update(work, setting);
        wr_lock_enter(&status->lock);
        int64_t until_ns = wr_clock_monotonic_ns() + next_interval(work);
        while (!status->stopping && status->turn == turn && wr_clock_monotonic_ns() < until_ns)
            wr_condition_wait(&status->changed, &status->lock, until_ns);
    }
    free(setting);
    wr_lock_leave(&status->lock);
    wr_status_file_remove(&status->file);
    work->failed = false;
    wr_lock_enter(&status->lock);
}

static void *run(void *argument)
{
    struct wr_status *status = argument;
    struct work work = {.status = status, .interval_ns = SHORTEST_MS * WR_NS_PER_MS};
    wr_thread_set_name("weir:status");
    wr_lock_enter(&status->lock);
    while (!status->stopping) {
        if (status->setting)
            follow_setting(&work);
        else
            wr_condition_wait(&status->changed, &status->lock, WR_NEVER);
    }
    wr_lock_leave(&status->lock);
    free(work.snapshot);
    wr_buffer_fini(&work.page);
    return NULL;
}

void wr_status_start(struct wr_status *status, struct wr_engine *engine)
{
    wr_lock_enter(&status->lock);
    if (status->setting && !status->running && !status->stopping) {
        status->engine = engine;
        status->running = wr_thread_start(run, status, &status->thread);
    }
    wr_lock_leave(&status->lock);
}

void wr_status_stop(struct wr_status *status, int64_t deadline_ns)
{
    wr_lock_enter(&status->lock);
    bool running = status->running && !status->stopping;
    status->stopping = true;
    wr_condition_wake(&status->changed);
    wr_lock_leave(&status->lock);
    if (running && !wr_thread_join_by(status->thread, deadline_ns))
        pthread_detach(status->thread);
}
