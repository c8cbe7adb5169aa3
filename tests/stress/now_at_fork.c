/* now_at_fork: threads of the program are inside emit_now while others fork. The fork waits for them as for
 * busy workers; where one takes longer than that, the child uses a type that shares nothing as usual, and drops
 * the values of another. Parent and children deliver all their values once, and their ledgers are exact. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { THREADS = 3, FORKS = 40, VALUES = 5 };

/* Of all processes. */
struct shared {
    _Atomic uint64_t by_parent, by_children, now;
};

static struct shared *shared;
static pid_t parent;
static _Atomic bool done, hold;
static _Atomic int inside;
static _Atomic uint64_t added;

/* ---- The handler types ------------------------------------------------------------------------ */

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)(uintptr_t)host;
}

static void destroy(void *self)
{
    (void)self;
}

static void take(const weir_batch *batch)
{
    atomic_fetch_add(getpid() == parent ? &shared->by_parent : &shared->by_children, batch->count);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self, (void)outcome;
    take(batch);
}

static void emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    static _Atomic uint32_t calls;
    (void)self, (void)outcome;
    atomic_fetch_add(&inside, 1);
    if (atomic_fetch_add(&calls, 1) % 16 == 0)
        usleep(2000);
    while (atomic_load(&hold) && getpid() == parent)
        usleep(1000);
    take(batch);
    atomic_fetch_add(&shared->now, 1);
    atomic_fetch_sub(&inside, 1);
}

#define TYPE(its_name, its_flags)                                                                              \
    {                                                                                                          \
        .size = sizeof(weir_handler_type), .abi = WEIR_ABI, .name = its_name,                                  \
        .summary = "counts values, for tests", .create = create, .emit = emit, .destroy = destroy,             \
        .flags = its_flags, .emit_now = emit_now,                                                              \
    }
static const weir_handler_type alone = TYPE("alone", WEIR_TYPE_SHARES_NOTHING), sharing = TYPE("sharing", 0);

static void check_ledger(const char *handler, uint64_t delivered, uint64_t dropped)
{
    weir_handler_stats stats;
    char text[LEDGER_ROOM];
    PLAIN_CHECK(weir_get_handler_stats(handler, &stats, sizeof stats) == 0);
    bool exact =
        ledger_is_balanced(&stats) && stats.delivered == delivered && ledger_dropped(&stats) == dropped;
    if (!exact)
        fprintf(stderr, "%s: %s\n", handler, ledger_format(&stats, text));
    PLAIN_CHECK(exact);
}

/* ---- Forks while threads add ------------------------------------------------------------------ */

static void *produce(void *unused)
{
    weir_metric *metric = weir_get_metric(weir_get_stream("alone"), "value");
    (void)unused;
    while (!atomic_load(&done)) {
        PLAIN_CHECK(weir_metric_add(metric, 1) == 0);
        atomic_fetch_add(&added, 1);
    }
    return NULL;
}

/* Returns in the parent. group: to which the child adds, whose handler delivers or drops its values. */
static void fork_and_add(const char *group, uint64_t delivered, uint64_t dropped)
{
    int status;
    pid_t child = fork();
    PLAIN_CHECK(child >= 0);
    if (child == 0) {
        plain_hang_no_longer_than(30);
        for (int i = 0; i < VALUES; i++)
            weir_add_value(weir_get_stream(group), "value", i);
        weir_flush(-1); /* values that are dropped are not waited for */
        check_ledger(group, delivered, dropped);
        exit(0);
    }
    PLAIN_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "a child has failed");
}

static void fork_while_adding(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, NULL) == 0);
    for (int i = 0; i < plain_rounds(FORKS); i++)
        fork_and_add("alone", VALUES, 0);
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(atomic_load(&shared->by_children) == (uint64_t)plain_rounds(FORKS) * VALUES);
    check_ledger("alone", atomic_load(&added), 0);
    PLAIN_CHECK(atomic_load(&shared->by_parent) == atomic_load(&added) && atomic_load(&shared->now) > 0);
}

/* ---- A fork that waits in vain ---------------------------------------------------------------- */

static _Atomic bool has_added;

static void *add_one(void *group)
{
    PLAIN_CHECK(weir_add_value(weir_get_stream(group), "value", 1) == 0);
    atomic_store(&has_added, true);
    return NULL;
}

/* Starts a thread that is held inside emit_now. The worker may still be busy with the value before, and deliver
 * this one itself: then there is another thread. Returns how many values these add. */
static uint64_t hold_one(const char *group, pthread_t *thread)
{
    for (uint64_t values = 1;; values++) {
        atomic_store(&has_added, false);
        PLAIN_CHECK(pthread_create(thread, NULL, add_one, (void *)(uintptr_t)group) == 0);
        while (!atomic_load(&inside) && !atomic_load(&has_added))
            usleep(1000);
        if (!atomic_load(&has_added))
            return values;
        pthread_join(*thread, NULL);
    }
}

/* Returns how many values the parent adds. */
static uint64_t fork_while_held(const char *group, uint64_t delivered, uint64_t dropped)
{
    pthread_t thread;
    add_one((void *)(uintptr_t)group); /* the worker opens the handler */
    while (atomic_load(&inside))
        usleep(1000);
    atomic_store(&hold, true);
    uint64_t values = 1 + hold_one(group, &thread);
    fork_and_add(group, delivered, dropped);
    atomic_store(&hold, false);
    pthread_join(thread, NULL);
    return values;
}

int main(void)
{
    plain_hang_no_longer_than(plain_limit(30));
    parent = getpid();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED);
    setenv("WEIR_LOG", "off", 1);
    PLAIN_CHECK(weir_register_handler_type(&alone, NULL) == 0 &&
                weir_register_handler_type(&sharing, NULL) == 0);
    PLAIN_CHECK(weir_configure("alone", "alone", "{\"delivery\": \"sync\", \"block_timeout\": \"1h\"}") == 0 &&
                weir_configure("sharing", "sharing", "{\"delivery\": \"sync\", \"block_timeout\": \"1h\"}") ==
                    0);
    fork_while_adding();
    fork_while_held("alone", VALUES, 0);
    uint64_t values = fork_while_held("sharing", 0, VALUES);
    check_ledger("sharing", values, 0);
    printf("%llu values of the parent, %llu batches by callers\n", (unsigned long long)atomic_load(&added),
           (unsigned long long)atomic_load(&shared->now));
    return 0;
}
