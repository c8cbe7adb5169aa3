/* calls_at_exit: calls that are in progress while weir is shut down. A call that returned 0 is delivered, or
 * dropped and counted; one that does not end in time is reported. Each case has its own process. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "counting.h"

enum { EVENT = 500, THREADS = 100, CROWDS = 5, PAGE = 4096, LONG_MS = 3600000 };

/* Shared with the parent. */
struct shared {
    _Atomic uint64_t accepted, delivered;
};

static struct shared *shared;
static char *page;               /* has a name, and cannot be read while a call is held */
static _Atomic bool held, freed; /* a call is inside the write of its event; it may continue */
static _Atomic bool returned;    /* the call has ended */
static _Atomic int reports, late_reports;

static void count(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    atomic_fetch_add(&shared->delivered, batch->count);
}

static void configure(void)
{
    static weir_handler_type type;
    type = counting_type;
    type.emit = count;
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", "{\"queue\": \"64MiB\", \"block_timeout\": \"1h\"}") == 0);
}

/* ---- A call that is held while it writes its event ------------------------------------------- */

static void hold(int number)
{
    (void)number;
    atomic_store(&held, true);
    while (!atomic_load(&freed))
        usleep(1000);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void *emit_held(void *argument)
{
    static weir_value values[EVENT];
    weir_stream *stream = weir_get_stream("held");
    for (int i = 0; i < EVENT; i++)
        values[i] = (weir_value){"value", i};
    PLAIN_CHECK(weir_emit(stream, values, EVENT) == 0); /* the thread and the group are ready then */
    PLAIN_CHECK(weir_flush(-1) == 0);
    values[EVENT / 2].name = page;
    mprotect(page, PAGE, PROT_NONE);
    if (weir_emit(stream, values, EVENT) == 0)
        atomic_fetch_add(&shared->accepted, EVENT);
    atomic_fetch_add(&shared->accepted, EVENT);
    atomic_store(&returned, true);
    return argument;
}

static void start_held(pthread_t *thread)
{
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(page != MAP_FAILED);
    strcpy(page, "other");
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = hold}, NULL);
    configure();
    PLAIN_CHECK(pthread_create(thread, NULL, emit_held, NULL) == 0);
    while (!atomic_load(&held))
        usleep(1000);
}

/* The shutdown logs that it waits for a call: it may continue then. */
static void free_call(void *context, int level, const char *text)
{
    (void)context, (void)level;
    if (!strstr(text, "1 calls that add values"))
        return;
    atomic_store(&freed, true);
    while (!atomic_load(&returned))
        usleep(1000);
}

static void long_call_is_waited_for(void)
{
    pthread_t call;
    weir_set_log(free_call, NULL);
    start_held(&call);
    PLAIN_CHECK(weir_shutdown(LONG_MS) == 0);
    PLAIN_CHECK(atomic_load(&freed), "the shutdown did not wait for the call");
    pthread_join(call, NULL);
    exit(0);
}

static void count_report(void *context, int level, const char *text)
{
    (void)context;
    atomic_fetch_add(&reports, level == WEIR_LOG_ERROR && strstr(text, "1 calls"));
    atomic_fetch_add(&late_reports, level == WEIR_LOG_ERROR && strstr(text, "500 values were added after"));
}

/* Returns when the call has ended, after the shutdown. */
static void shut_down_before_call(void)
{
    pthread_t call;
    weir_set_log(count_report, NULL);
    start_held(&call);
    weir_shutdown(100);
    PLAIN_CHECK(atomic_load(&reports) == 1, "the call that is not waited for is not reported");
    atomic_store(&freed, true);
    pthread_join(call, NULL);
    PLAIN_CHECK(atomic_load(&late_reports) == 0, "reported too early");
    PLAIN_CHECK(atomic_load(&shared->accepted) == 2 * EVENT, "the call does not return 0");
    atomic_store(&shared->accepted, EVENT); /* the others came too late */
}

/* In whatever order the ledger is read. */
static void stuck_call_is_counted(void)
{
    weir_stats stats;
    weir_handler_stats handler;
    shut_down_before_call();
    PLAIN_CHECK(weir_get_handler_stats("counting", &handler, sizeof handler) == 0, "");
    PLAIN_CHECK(handler.offered == 2 * EVENT && handler.delivered == EVENT, "the handler's ledger");
    PLAIN_CHECK(handler.dropped[WEIR_DROPPED_SHUTDOWN] == EVENT && handler.queued == 0, "what is dropped");
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0, "");
    PLAIN_CHECK(stats.added == 2 * EVENT && stats.taken == stats.added && stats.in_rings == 0, "the ledger");
    PLAIN_CHECK(atomic_load(&late_reports) == 1, "the values that came too late are not reported");
    exit(0);
}

static void check_late_reports(void)
{
    if (atomic_load(&late_reports) != 1)
        _exit(1);
}

/* Nobody reads the ledger: it is reported at exit. */
static void stuck_call_is_reported_at_exit(void)
{
    atexit(check_late_reports); /* runs after weir's own */
    shut_down_before_call();
    exit(0);
}

/* ---- More threads than processors ------------------------------------------------------------ */

static void *emit_all(void *argument)
{
    weir_value values[EVENT];
    weir_stream *stream = weir_get_stream("crowd");
    for (int i = 0; i < EVENT; i++)
        values[i] = (weir_value){"value", i};
    while (weir_emit(stream, values, EVENT) == 0)
        atomic_fetch_add(&shared->accepted, EVENT);
    return argument;
}

static void crowd_is_waited_for(void)
{
    pthread_t thread;
    configure();
    for (int i = 0; i < THREADS; i++) {
        PLAIN_CHECK(pthread_create(&thread, NULL, emit_all, NULL) == 0);
        pthread_detach(thread);
    }
    while (atomic_load(&shared->accepted) < THREADS * EVENT)
        usleep(1000);
    PLAIN_CHECK(weir_shutdown(LONG_MS) == 0);
    exit(0);
}

/* ---- A synchronous call ---------------------------------------------------------------------- */

static _Atomic bool synchronous;

static void block(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    count(self, batch, outcome);
    atomic_store(&synchronous, true);
    while (!atomic_load(&freed))
        usleep(1000);
}

static void *add_synchronously(void *argument)
{
    weir_add_value(weir_get_stream("sync"), "value", 1);
    return argument;
}

/* Its value is counted already: the shutdown does not spend its time on waiting for the call. */
static void synchronous_call_is_not_stuck(void)
{
    static weir_handler_type type;
    pthread_t call;
    type = counting_type;
    type.emit = block;
    weir_set_log(count_report, NULL);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", "{\"delivery\": \"sync\", \"block_timeout\": \"1h\"}") == 0);
    PLAIN_CHECK(pthread_create(&call, NULL, add_synchronously, NULL) == 0);
    pthread_detach(call);
    while (!atomic_load(&synchronous))
        usleep(1000);
    weir_shutdown(0);
    PLAIN_CHECK(atomic_load(&reports) == 0, "a call is reported whose value is counted");
    atomic_store(&freed, true);
    exit(0);
}

static void run(const char *name, void (*test)(void))
{
    int status;
    *shared = (struct shared){0};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(100);
        test();
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "");
    uint64_t accepted = atomic_load(&shared->accepted), delivered = atomic_load(&shared->delivered);
    printf("%s: %llu accepted, %llu delivered\n", name, (unsigned long long)accepted,
           (unsigned long long)delivered);
    PLAIN_CHECK(delivered >= accepted, "values of calls that returned 0 are lost");
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED);
    run("long call", long_call_is_waited_for);
    run("stuck call", stuck_call_is_counted);
    run("stuck call, at exit", stuck_call_is_reported_at_exit);
    for (int i = 0; i < plain_rounds(CROWDS); i++)
        run("crowd", crowd_is_waited_for);
    run("synchronous call", synchronous_call_is_not_stuck);
    return 0;
}
