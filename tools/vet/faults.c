#include "faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "text/common.h"
#include "descriptors.h"
#include "probe.h"
#include "watch.h"

/* Shared by the child, which calls the handler, and its parent, which decides about its system calls. */
struct plan {
    _Atomic int fail_at;        /* which call of open fails, from 1; 0: none */
    _Atomic int seen;           /* calls that may fail, in this open */
    _Atomic int failed;         /* the index in `faults` of the call that failed, from 1; 0: none */
    _Atomic bool blocks;        /* the destination takes nothing for a while */
    _Atomic int64_t blocked_ms; /* CLOCK_MONOTONIC: when the first write would have blocked; 0: none */
};

static struct plan *plan;

/* ---- Calls that fail ------------------------------------------------------------------------- */

static const struct {
    int number, error;
    const char *name;
} faults[] = {
    {SYS_openat, EACCES, "openat"},
    {SYS_socket, EMFILE, "socket"},
    {SYS_connect, ECONNREFUSED, "connect"},
    {SYS_bind, EADDRINUSE, "bind"},
    {SYS_sendto, EPIPE, "sendto"},
    {SYS_write, EIO, "write"},
    {SYS_writev, EIO, "writev"},
    {SYS_pwrite64, EIO, "pwrite"},
    {SYS_pipe2, EMFILE, "pipe2"},
    {SYS_mkdirat, EACCES, "mkdirat"},
    {SYS_mknodat, EACCES, "mknodat"},
    {SYS_epoll_create1, EMFILE, "epoll_create1"},
    {SYS_eventfd2, EMFILE, "eventfd2"},
    {SYS_flock, ENOLCK, "flock"},
    {SYS_lseek, ESPIPE, "lseek"},
    {SYS_ftruncate, EIO, "ftruncate"},
    {SYS_fchmod, EPERM, "fchmod"},
};

static void fail_one(void *ctx, struct vet_watch_call *call)
{
    (void)ctx;
    if (!atomic_load(&plan->fail_at) || atomic_load(&vet_page->call) != VET_OPEN ||
        vet_watch_is_system_read(call))
        return;
    for (size_t i = 0; i < WR_COUNT_OF(faults); i++) {
        if (faults[i].number != call->number ||
            atomic_fetch_add(&plan->seen, 1) + 1 != atomic_load(&plan->fail_at))
            continue;
        call->made_up = true;
        call->result = -faults[i].error;
        atomic_store(&plan->failed, (int)i + 1);
    }
}

/* Returns how many descriptors are left after an open whose call number `at` failed. */
static int count_left(const struct vet_faults_life *life, int at)
{
    int before = vet_descriptors_count();
    atomic_store(&plan->seen, 0);
    atomic_store(&plan->failed, 0);
    atomic_store(&plan->fail_at, at);
    life->open_once(life->subject);
    atomic_store(&plan->fail_at, 0);
    return vet_descriptors_count() - before;
}

/* Twice, because libraries may open descriptors on first use and keep them. */
static void open_with_faults(void *ctx)
{
    enum { MOST = 40, LEAST = 4 };
    const struct vet_faults_life *life = ctx;
    char shown[500];
    for (int at = 1; at <= MOST && (at <= LEAST || vet_has_time()); at++) {
        if (count_left(life, at) > 0 && count_left(life, at) > 0 && atomic_load(&plan->failed))
            vet_fail(
                "open leaves a descriptor open after its call of %s has failed (%s): close what was opened "
                "before: %s",
                faults[plan->failed - 1].name, strerror(faults[plan->failed - 1].error),
                vet_descriptors_show(3, shown, sizeof shown));
        if (!atomic_load(&plan->failed))
            return; /* open makes fewer calls than this */
    }
}

void vet_faults_check_open(const struct vet_faults_life *life)
{
    char text[200];
    plan = vet_watch_share(sizeof *plan);
    vet_watch_calls(fail_one, NULL, open_with_faults, (void *)(uintptr_t)life, text, sizeof text);
    vet_watch_exit_if_decided();
}

/* ---- Calls that would block ------------------------------------------------------------------ */

enum { BLOCKED_MS = 150, NAP_MS = 10, LEFT_MS = 10000, SAMPLES = 20 };

static bool is_write(const struct vet_watch_call *call)
{
    static const int writes[] = {SYS_write, SYS_writev, SYS_pwrite64, SYS_sendto};
    for (size_t i = 0; i < WR_COUNT_OF(writes); i++)
        if (writes[i] == call->number && call->args[0] > 2)
            return true;
    return false;
}

static bool is_poll(const struct vet_watch_call *call)
{
    static const int polls[] = {
        SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
#ifdef SYS_poll
        SYS_poll,  SYS_select,   SYS_epoll_wait,
#endif
    };
    for (size_t i = 0; i < WR_COUNT_OF(polls); i++)
        if (polls[i] == call->number)
            return true;
    return false;
}

/* For a while writes would block, and polls time out. */
static void block(void *ctx, struct vet_watch_call *call)
{
    const struct timespec nap = {0, NAP_MS * 1000000};
    int64_t since_ms = atomic_load(&plan->blocked_ms);
    (void)ctx;
    if (!atomic_load(&plan->blocks) || atomic_load(&vet_page->call) != VET_EMIT ||
        (!since_ms && !is_write(call)))
        return;
    if (!since_ms)
        atomic_store(&plan->blocked_ms, since_ms = vet_now_ms());
    if (vet_now_ms() - since_ms >= BLOCKED_MS)
        return;
    call->made_up = is_write(call) || is_poll(call);
    call->result = is_write(call) ? -EAGAIN : 0;
    if (call->made_up)
        nanosleep(&nap, NULL);
}

/* Returns whether emit delivers a batch to a destination that takes nothing at first. */
static bool delivers_blocked(struct vet_probe *probe, bool stop)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_OK};
    vet_probe_must_open(probe);
    const weir_batch *batch = vet_batches_make(
        &(struct vet_recipe){.count = SAMPLES, .kinds = probe->type->kinds, .sequence = probe->sequence});
    probe->sequence += SAMPLES;
    atomic_store(&plan->blocked_ms, 0);
    atomic_store(&vet_page->stop_deadline_ms, vet_now_ms() + 2 * LEFT_MS);
    atomic_store(&vet_page->stop, stop);
    atomic_store(&plan->blocks, true);
    vet_probe_emit(probe, batch, &outcome);
    atomic_store(&plan->blocks, false);
    atomic_store(&vet_page->stop, 0);
    vet_batches_end(batch);
    bool delivered = outcome.code == WEIR_OUTCOME_OK && outcome.done == SAMPLES;
    if (!delivered)
        vet_probe_close(probe);
    return delivered && atomic_load(&plan->blocked_ms);
}

/* A handler that does not wait in emit, but returns RETRY, is right too: the core tries again. */
static void stop_while_blocked(struct vet_probe *probe)
{
    vet_probe_must_deliver(probe, (struct vet_recipe){.count = 1}); /* the first batch may connect */
    if (!delivers_blocked(probe, false) || delivers_blocked(probe, true) || delivers_blocked(probe, true))
        return;
    if (!delivers_blocked(probe, false))
        return;
    vet_fail(
        "emit waits for its destination, but gives up as soon as a stop is requested, although %d ms are left: "
        "the values are lost when the program ends; wait until remaining_ms of blocking_call/1 returns 0",
        LEFT_MS);
}

static void live_blocked(void *ctx)
{
    vet_probe_run(ctx, stop_while_blocked);
}

void vet_faults_check_stop(const struct vet_subject *subject)
{
    char text[200];
    plan = vet_watch_share(sizeof *plan);
    vet_watch_calls(block, NULL, live_blocked, (void *)(uintptr_t)subject, text, sizeof text);
    if (atomic_load(&vet_page->verdict) != VET_SKIPPED)
        vet_watch_exit_if_decided();
}
