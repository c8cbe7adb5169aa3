/* sync_now: many threads add synchronously to a handler with emit_now, which delivers on the calling thread. In
 * between it refuses, delivers a part, fails and is interrupted by signal handlers that add; others flush,
 * reload and replace the handler. No callback overlaps another, each value is delivered once and in order
 * before its call returns, and the ledger is exact. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { THREADS = 64, VALUES = 150, FAIL_EVERY = 50 };

static _Atomic int inside;                       /* callbacks that are running */
static _Atomic uint64_t by_caller, by_worker;    /* batches */
static _Atomic uint64_t delivered;               /* values */
static _Atomic uint64_t next_values[THREADS];    /* next expected one, by thread */
static _Atomic uint64_t interrupts, interrupted; /* values added by signal handlers, and by those delivered */
static _Atomic bool done;
static _Thread_local bool is_adding; /* the calling thread is one of the program's */

/* ---- The handler type ------------------------------------------------------------------------ */

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)(uintptr_t)host;
}

static void destroy(void *self)
{
    (void)self;
}

static void take(const weir_batch *batch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const weir_sample *sample = &batch->samples[i];
        const weir_series *series = weir_batch_series(batch, sample);
        if (series->name[0] == 's') {
            atomic_fetch_add(&interrupted, 1);
            continue;
        }
        unsigned long thread = strtoul(series->name + 1, NULL, 10);
        PLAIN_CHECK(thread < THREADS);
        PLAIN_CHECK((uint64_t)sample->value.i64 == atomic_fetch_add(&next_values[thread], 1),
                    "lost, twice, or out of order");
    }
    atomic_fetch_add(&delivered, count);
}

static void enter(void)
{
    PLAIN_CHECK(atomic_fetch_add(&inside, 1) == 0, "two callbacks at once");
}

static void leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    PLAIN_CHECK(!is_adding, "emit on a thread of the program");
    enter();
    take(batch, batch->count);
    atomic_fetch_add(&by_worker, 1);
    leave();
}

static void check_signals(void)
{
    sigset_t mask;
    int cancel;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    PLAIN_CHECK(sigismember(&mask, SIGALRM) == 1 && sigismember(&mask, SIGPIPE) == 1,
                "signals are not blocked");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    PLAIN_CHECK(cancel == PTHREAD_CANCEL_DISABLE, "cancellation is not disabled");
}

/* Part of the outcomes are those of a handler at fault or in difficulties. */
static void emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    static uint64_t random = 1;
    const weir_host *host = self;
    PLAIN_CHECK(is_adding, "emit_now on a thread of weir");
    enter();
    check_signals();
    atomic_fetch_add(&by_caller, 1);
    outcome->done = 0;
    switch (plain_draw(&random, FAIL_EVERY)) {
    case 0: outcome->code = WEIR_OUTCOME_NOT_NOW; break;
    case 1: outcome->code = WEIR_OUTCOME_RETRY; break;
    case 2: outcome->code = WEIR_OUTCOME_REOPEN; break;
    case 3:
        host->log(host, WEIR_LOG_INFO, "a message from emit_now");
        host->wake_in(host, 1);
        PLAIN_CHECK(!host->wait(host, 1000), "emit_now must not wait");
        outcome->code = WEIR_OUTCOME_NOT_NOW;
        break;
    case 4:
        raise(SIGPIPE);
        outcome->code = WEIR_OUTCOME_NOT_NOW;
        break;
    default:
        take(batch, batch->count);
        outcome->done = batch->count;
        if (plain_draw(&random, 20) == 0)
            usleep(100);
    }
    leave();
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    (void)self, (void)why, (void)outcome;
    enter();
    leave();
}

static void open_or_close(void *self)
{
    (void)self;
    enter();
    leave();
}

static void open_handler(void *self, weir_outcome *outcome)
{
    (void)outcome;
    open_or_close(self);
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "now",
    .summary = "delivers on the calling thread, for tests",
    .create = create,
    .open = open_handler,
    .emit = emit,
    .close = open_or_close,
    .destroy = destroy,
    .wake = wake,
    .emit_now = emit_now,
};

/* ---- Threads --------------------------------------------------------------------------------- */

/* Retries are immediate, and messages are not shown. */
static void configure(int number)
{
    char options[200];
    snprintf(options, sizeof options,
             "{\"delivery\": \"sync\", \"block_timeout\": \"60s\", \"retry_min\": \"1ms\", \"retry_max\": "
             "\"2ms\", \"batch\": %d}",
             1000 + number % 2);
    PLAIN_CHECK(weir_configure("*", "now", options) == 0, "weir_configure failed");
}

static weir_metric *signal_metric;

/* Refused if it interrupts a call, which is the usual case. */
static void on_signal(int number)
{
    (void)number;
    if (is_adding && weir_metric_add(signal_metric, 1) == 0)
        atomic_fetch_add(&interrupts, 1);
}

/* The first value of a process starts threads, which a signal handler must not. */
static void add_first(void)
{
    is_adding = true;
    PLAIN_CHECK(weir_metric_add(signal_metric, 1) == 0);
    atomic_fetch_add(&interrupts, 1);
    is_adding = false;
}

static void *produce(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    char name[20];
    snprintf(name, sizeof name, "t%u", (unsigned)number);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    is_adding = true;
    uint64_t first = atomic_load(&next_values[number]);
    for (uint64_t i = first; i < first + (uint64_t)plain_rounds(VALUES); i++) {
        PLAIN_CHECK(weir_metric_add_int(metric, (int64_t)i) == 0);
        PLAIN_CHECK(atomic_load(&next_values[number]) == i + 1,
                    "the call returned before its value was delivered");
    }
    is_adding = false;
    return NULL;
}

static void *disturb(void *unused)
{
    (void)unused;
    for (int i = 0; !atomic_load(&done); i++) {
        weir_handler_stats stats;
        configure(i);
        weir_flush(1000);
        PLAIN_CHECK(weir_get_handler_stats("now", &stats, sizeof stats) == 0);
        PLAIN_CHECK(ledger_is_balanced(&stats), "the ledger is not exact");
        weir_reload();
        usleep(2000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], disturber;
    weir_handler_stats stats;
    char text[LEDGER_ROOM];
    struct itimerval every = {{0, 1000}, {0, 1000}};
    plain_hang_no_longer_than(plain_limit(60));
    setenv("WEIR_LOG", "off", 1);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    configure(0);
    signal_metric = weir_get_metric(weir_get_stream("stress"), "signal");
    add_first();
    sigaction(SIGVTALRM, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    PLAIN_CHECK(pthread_create(&disturber, NULL, disturb, NULL) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    produce((void *)0); /* alone */
    atomic_store(&done, true);
    pthread_join(disturber, NULL);
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_handler_stats("now", &stats, sizeof stats) == 0);
    PLAIN_CHECK(ledger_is_balanced(&stats) && stats.delivered == atomic_load(&delivered) && !stats.queued,
                "the ledger is not exact");
    PLAIN_CHECK(atomic_load(&interrupts) == atomic_load(&interrupted), "values of signal handlers");
    PLAIN_CHECK(atomic_load(&by_caller) > 0 && atomic_load(&by_worker) > 0);
    printf("%s; %llu batches by callers, %llu by the worker, %llu values of signal handlers\n",
           ledger_format(&stats, text), (unsigned long long)atomic_load(&by_caller),
           (unsigned long long)atomic_load(&by_worker), (unsigned long long)atomic_load(&interrupts));
    return 0;
}
