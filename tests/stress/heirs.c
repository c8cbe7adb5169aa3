/* heirs: in a forked child other threads use weir before the thread that forked; they are more than the parent
 * has rings. Each thread has a ring of its own: what calls returned 0 for is in the ledger and delivered. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include <weir/weir.h>

#include "../support/plain.h"
#include "../support/threads.h"

enum { ROUNDS = 10, THREADS = 6, VALUES = 20000, HANG_S = 60, QUIET_US = 30000 };

struct adder {
    pthread_t thread;
    _Atomic bool has_added;
};

static _Atomic uint64_t added;
static weir_metric *metric;

static void add_values(int count)
{
    uint64_t good = 0;
    for (int i = 0; i < count; i++)
        good += weir_metric_add_int(metric, 1) == 0;
    atomic_fetch_add(&added, good);
}

static void *add(void *argument)
{
    struct adder *adder = argument;
    add_values(1);
    atomic_store(&adder->has_added, true);
    add_values(VALUES);
    return NULL;
}

static void start(struct adder *adder)
{
    PLAIN_CHECK(pthread_create(&adder->thread, NULL, add, adder) == 0);
    while (!atomic_load(&adder->has_added))
        usleep(100);
}

static void check_ledger(uint64_t expected)
{
    weir_stats process;
    weir_handler_stats handler;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    if (process.added != expected || handler.delivered != expected)
        fprintf(stderr, "heirs: %llu calls returned 0, %llu added, %llu delivered\n",
                (unsigned long long)expected, (unsigned long long)process.added,
                (unsigned long long)handler.delivered);
    PLAIN_CHECK(process.added == expected && handler.delivered == expected);
}

/* A thread of the child is first; then come threads that could adopt a ring, then the one that forked, then
 * threads that adopt the rings of ended threads. */
static void run_child(void)
{
    struct adder adders[THREADS] = {0};
    atomic_store(&added, 0);
    plain_hang_no_longer_than(HANG_S);
    for (int i = 0; i < THREADS; i++)
        start(&adders[i]);
    add_values(VALUES);
    for (int i = 0; i < THREADS; i++)
        pthread_join(adders[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        adders[i].has_added = false;
        start(&adders[i]);
    }
    add_values(VALUES);
    for (int i = 0; i < THREADS; i++)
        pthread_join(adders[i].thread, NULL);
    PLAIN_CHECK(atomic_load(&added) == 2 * (VALUES + THREADS * (VALUES + 1)), "a call was refused");
    check_ledger(atomic_load(&added));
    exit(0);
}

static void fork_once(pid_t (*make_child)(void))
{
    int status;
    weir_flush(-1);
    wait_until_others_rest(QUIET_US); /* _Fork does not wait until weir's threads are outside malloc */
    pid_t child = make_child();
    PLAIN_CHECK(child >= 0);
    if (child == 0)
        run_child();
    PLAIN_CHECK(waitpid(child, &status, 0) == child);
    PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
}

static void *fork_without_a_ring(void *argument)
{
    (void)argument;
    fork_once(fork);
    fork_once(_Fork);
    return NULL;
}

int main(void)
{
    pthread_t forker;
    if (plain_is_sanitized("")) {
        puts("the sanitizers' allocators and thread lists do not support a fork of a threaded program");
        return 77;
    }
    plain_hang_no_longer_than(plain_limit(300));
    PLAIN_CHECK(weir_configure("*", "null", "{\"block_timeout\": \"1h\"}") == 0);
    metric = weir_get_metric(weir_get_stream("my_app"), "x");
    add_values(1);
    for (int i = 0; i < plain_rounds(ROUNDS); i++) {
        fork_once(fork);
        fork_once(_Fork);
        PLAIN_CHECK(pthread_create(&forker, NULL, fork_without_a_ring, NULL) == 0);
        pthread_join(forker, NULL);
    }
    check_ledger(atomic_load(&added));
    return 0;
}
