/* held: nothing is allocated or freed while the round lock or a lane's lock is held, whose holders calls that
 * add values may wait for. The program's own malloc and free check it in each thread, while handlers with all
 * options deliver, fail, spool, are reconfigured and removed.
 *
 * With an argument it prints each violation's call stack, instead of the first one's only. */

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"
#include "lane/lane_internal.h"
#include "os/lock.h"
#include "runtime/runtime.h"

enum { TURNS = 50, HANG_S = 100, FRAMES = 24, SITES = 200, SHOWN = 8, WITHOUT_JOURNAL = 25 };

/* ---- The locks ------------------------------------------------------------------------------- */

static _Thread_local int held;
static _Thread_local bool is_reporting;

static bool is_watched(const struct wr_lock *lock)
{
    struct wr_runtime *runtime = wr_runtime_find();
    struct wr_engine *engine = runtime ? atomic_load(&runtime->engine) : NULL;
    if (!engine)
        return false;
    if (lock == &engine->dispatcher.round || lock == &engine->dispatcher.drain.pool.lock)
        return true;
    for (const struct wr_lane *lane = engine->lanes; lane; lane = lane->next)
        if (lock == &lane->lock)
            return true;
    return false;
}

void __real_wr_lock_enter(struct wr_lock *lock);
bool __real_wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns);
void __real_wr_lock_leave(struct wr_lock *lock);
void __real_wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns);
void __real_wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                                   const sigset_t *signals);
void __wrap_wr_lock_enter(struct wr_lock *lock);
bool __wrap_wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns);
void __wrap_wr_lock_leave(struct wr_lock *lock);
void __wrap_wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns);
void __wrap_wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                                   const sigset_t *signals);

void __wrap_wr_lock_enter(struct wr_lock *lock)
{
    __real_wr_lock_enter(lock);
    held += is_watched(lock);
}

bool __wrap_wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns)
{
    bool entered = __real_wr_lock_enter_by(lock, deadline_ns);
    held += entered && is_watched(lock);
    return entered;
}

/* A lane may have become one of the engine's while its lock was held. */
void __wrap_wr_lock_leave(struct wr_lock *lock)
{
    if (held)
        held -= is_watched(lock);
    __real_wr_lock_leave(lock);
}

void __wrap_wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns)
{
    int before = held;
    held = 0;
    __real_wr_condition_wait(condition, lock, deadline_ns);
    held = before;
}

void __wrap_wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                                   const sigset_t *signals)
{
    int before = held;
    held = 0;
    __real_wr_condition_wait_open(condition, lock, deadline_ns, signals);
    held = before;
}

/* ---- Exceptions ------------------------------------------------------------------------------ */

/* Once in a process each: the start of a journal, and its end, when no call waits any more. Both read folders,
 * and recovery fills tables of any size from what it finds there, under the lock because no round may come in
 * between: see doc/architecture.md, Locks. A call that waits meanwhile is refused after 2 s. */

static _Thread_local bool is_exempt;

void __real_wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns);
void __real_wr_fronts_leave(struct wr_fronts *fronts, int64_t now_ns);
void __real_wr_journal_stop(struct wr_journal *journal);
void __wrap_wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns);
void __wrap_wr_fronts_leave(struct wr_fronts *fronts, int64_t now_ns);
void __wrap_wr_journal_stop(struct wr_journal *journal);

void __wrap_wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns)
{
    is_exempt = true;
    __real_wr_engine_start_journal(engine, now_ns);
    is_exempt = false;
}

void __wrap_wr_fronts_leave(struct wr_fronts *fronts, int64_t now_ns)
{
    is_exempt = true;
    __real_wr_fronts_leave(fronts, now_ns);
    is_exempt = false;
}

void __wrap_wr_journal_stop(struct wr_journal *journal)
{
    is_exempt = true;
    __real_wr_journal_stop(journal);
    is_exempt = false;
}

/* ---- malloc ---------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

static _Atomic int violations;
static _Atomic uint64_t checked;
static _Atomic uintptr_t sites[SITES];
static int shown = 1;

/* Returns false if it is known. */
static bool note_site(void *const *frames, int count)
{
    uintptr_t site = 1;
    for (int i = 2; i < count && i < 2 + SHOWN; i++)
        site = site * 31 + (uintptr_t)frames[i];
    for (int i = 0; i < SITES; i++) {
        uintptr_t empty = 0;
        if (atomic_load(&sites[i]) == site)
            return false;
        if (atomic_compare_exchange_strong(&sites[i], &empty, site))
            return true;
    }
    return false;
}

static void check(const char *function)
{
    void *frames[FRAMES];
    atomic_fetch_add_explicit(&checked, 1, memory_order_relaxed);
    if (!held || is_exempt || is_reporting)
        return;
    is_reporting = true;
    int count = backtrace(frames, FRAMES);
    if (note_site(frames, count) && atomic_fetch_add(&violations, 1) < shown) {
        fprintf(stderr, "%s with a lock held:\n", function);
        backtrace_symbols_fd(frames + 2, count - 2 < SHOWN ? count - 2 : SHOWN, 2);
    }
    is_reporting = false;
}

void *malloc(size_t size)
{
    check("malloc");
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    check("calloc");
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    check("realloc");
    return __libc_realloc(memory, size);
}

void free(void *memory)
{
    if (memory)
        check("free");
    __libc_free(memory);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* Takes a part, fails, or takes long. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    static _Atomic unsigned turn;
    (void)self;
    unsigned now = atomic_fetch_add(&turn, 1);
    outcome->done = batch->count;
    if (now % 5 == 0) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = batch->count / 2;
        snprintf(outcome->reason, sizeof outcome->reason, "turn %u\nof \xff bytes", now);
    } else if (now % 7 == 0) {
        outcome->rejected = outcome->done;
        outcome->code = WEIR_OUTCOME_DROP;
    } else if (now % 11 == 0) {
        usleep(5000);
    }
}

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)host;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "moody",
    .summary = "takes a part, fails, or takes long",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* ---- The load -------------------------------------------------------------------------------- */

static char folder[] = "/tmp/weir-held-XXXXXX";
static _Atomic bool done;
static _Atomic unsigned turns;

static const char *const configurations[] = {
    "{\"settings\":{%s\"labels\":{\"a\":\"1\"},\"stats_interval\":\"100ms\"},"
    "\"handlers\":{\"plain\":{\"type\":\"moody\",\"retry_min\":\"1ms\",\"retry_max\":\"2ms\"},"
    "\"old\":{\"type\":\"moody\",\"overflow\":\"drop_oldest\",\"queue\":\"64KiB\",\"retry_min\":\"1ms\"},"
    "\"disk\":{\"type\":\"moody\",\"spool\":\"%s/spool\",\"retry_min\":\"20ms\",\"queue\":\"64KiB\"},"
    "\"sums\":{\"type\":\"moody\",\"aggregate\":\"%s\",\"queue\":\"4KiB\",\"retry_min\":\"1ms\"},"
    "\"now\":{\"type\":\"moody\",\"delivery\":\"sync\",\"retry_min\":\"1ms\"}},"
    "\"groups\":{\"*\":[\"plain\",\"sums\"],\"b\":[\"plain\",\"old\"],\"c\":\"disk\",\"d\":\"now\",\"weir\":"
    "\"plain\"}}",
    "{\"settings\":{%s\"labels\":{\"a\":\"2\"},\"stats_interval\":\"100ms\"},"
    "\"handlers\":{\"plain\":{\"type\":\"moody\",\"retry_min\":\"2ms\",\"batch\":100},"
    "\"new\":{\"type\":\"moody\",\"overflow\":\"drop_newest\",\"queue\":\"64KiB\",\"retry_min\":\"1ms\"},"
    "\"disk\":{\"type\":\"moody\",\"spool\":\"%s/other\",\"retry_min\":\"20ms\",\"queue\":\"64KiB\"},"
    "\"sums\":{\"type\":\"moody\",\"aggregate\":\"%s\",\"percentiles\":[50],\"retry_min\":\"1ms\"}},"
    "\"groups\":{\"*\":[\"plain\",\"disk\",\"sums\"],\"b\":[\"new\",\"sums\"],\"d\":[]}}",
};

/* At first without the journal: once it is started, it stays. */
static void configure(unsigned turn)
{
    char text[2048], journal[100] = "";
    if (turn > WITHOUT_JOURNAL)
        snprintf(journal, sizeof journal, "\"journal\":\"%s/journal\",", folder);
    const char *interval = journal[0] ? "0s" : turn % 3 ? "20ms" : "10ms"; /* not with a journal */
    int length = snprintf(text, sizeof text, configurations[turn % 2], journal, folder, interval);
    int result = weir_configure_text(text, (size_t)length);
    if (result)
        fprintf(stderr, "held: %s\n", weir_last_error());
    PLAIN_CHECK(result == 0);
}

static bool is_over(void)
{
    return atomic_load(&done);
}

static void *add(void *argument)
{
    static const char *const groups[] = {"a", "b", "c", "d"};
    weir_stream *stream = weir_get_stream(groups[(uintptr_t)argument % 4]);
    char name[32];
    for (unsigned i = 0; !is_over(); i++) {
        snprintf(name, sizeof name, "n%u", i % 3000);
        for (int j = 0; j < 50; j++)
            weir_add_value(stream, "x", i);
        WEIR_EMIT(stream, {name, 1}, {"y", 2});
        weir_sample_spec spec = {
            .size = sizeof spec, .name = "z", .value = 1, .metadata = "metadata of a sample"};
        weir_add(stream, &spec);
    }
    return NULL;
}

static void *use(void *argument)
{
    (void)argument;
    for (unsigned i = 0; !is_over(); i++) {
        weir_stats process;
        weir_handler_stats handler;
        weir_flush(i % 3 ? 0 : 20);
        weir_get_stats(&process, sizeof process);
        weir_get_handler_stats("plain", &handler, sizeof handler);
        weir_describe(weir_get_stream("a"), "x", "ms", "text");
        usleep(500);
    }
    return NULL;
}

static void *reconfigure(void *argument)
{
    (void)argument;
    for (unsigned i = 1; !is_over(); i++) {
        configure(i);
        atomic_store(&turns, i);
        weir_reload();
        usleep(30000);
    }
    return NULL;
}

static void check_offered(const char *handler)
{
    weir_handler_stats stats;
    PLAIN_CHECK(weir_get_handler_stats(handler, &stats, sizeof stats) == 0 && stats.offered > 0);
}

static void ignore(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

int main(int argc, char **argv)
{
    void *frames[1];
    pthread_t threads[6];
    (void)argv;
    plain_hang_no_longer_than(HANG_S);
    shown = argc > 1 ? SITES : 1;
    backtrace(frames, 1); /* loads what it needs */
    PLAIN_CHECK(mkdtemp(folder) != NULL);
    weir_set_log(ignore, NULL);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    configure(0);
    for (uintptr_t i = 0; i < 6; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL,
                                   i < 4    ? add
                                   : i == 4 ? use
                                            : reconfigure,
                                   (void *)i) == 0);
    while (atomic_load(&turns) < TURNS)
        usleep(10000);
    atomic_store(&done, true);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    weir_shutdown(2000);
    PLAIN_CHECK(ledger_all_are_balanced());
    check_offered("plain");
    check_offered("old");
    check_offered("new");
    check_offered("disk");
    check_offered("sums");
    check_offered("now");
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    PLAIN_CHECK(system(command) == 0);
    printf("%llu calls of malloc and free, %d places with a lock held\n", (unsigned long long)checked,
           violations);
    PLAIN_CHECK(checked > 1000 && violations == 0);
    return 0;
}
