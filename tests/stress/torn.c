/* torn: the program forks while another thread is inside a handler type's create, during the program's first
 * value. The child must not call that code again, because its state may be inconsistent; the child's values
 * are counted, and nothing hangs. */

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

static sem_t inside, go;
static pid_t creating_pid;

static void *create(const weir_host *host, const void *options)
{
    static int instance;
    (void)host;
    (void)options;
    PLAIN_CHECK(!creating_pid, "create was interrupted by the fork and is called again");
    creating_pid = getpid();
    sem_post(&inside);
    while (sem_wait(&go) != 0)
        ;
    creating_pid = 0;
    return &instance;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type slow_type = {.size = sizeof slow_type,
                                            .abi = WEIR_ABI,
                                            .name = "slow",
                                            .summary = "has a slow create, for tests",
                                            .create = create,
                                            .emit = emit,
                                            .destroy = destroy};

static void *add_first(void *argument)
{
    (void)argument;
    PLAIN_CHECK(weir_add_value(weir_get_stream("g"), "a", 1) == 0);
    return NULL;
}

static weir_handler_stats read_stats(void)
{
    weir_handler_stats stats;
    PLAIN_CHECK(weir_get_handler_stats("slow", &stats, sizeof stats) == 0);
    PLAIN_CHECK(ledger_is_balanced(&stats));
    return stats;
}

static void run_child(void)
{
    plain_hang_no_longer_than(60);
    weir_add_value(weir_get_stream("g"), "a", 2);
    weir_flush(-1);
    weir_handler_stats stats = read_stats();
    PLAIN_CHECK(stats.offered == 1 && stats.dropped[WEIR_DROPPED_FORK_UNSAFE] == 1);
    _exit(0);
}

int main(void)
{
    pthread_t thread;
    int status;
#ifdef __SANITIZE_THREAD__
    puts("ThreadSanitizer does not support threads of a forked child");
    return 77;
#endif
    plain_hang_no_longer_than(120);
    setenv("WEIR_CONFIG", "{\"groups\": {\"*\": \"slow\"}}", 1);
    sem_init(&inside, 0, 0);
    sem_init(&go, 0, 0);
    PLAIN_CHECK(weir_register_handler_type(&slow_type, NULL) == 0);
    pthread_create(&thread, NULL, add_first, NULL);
    while (sem_wait(&inside) != 0)
        ;
    pid_t child = fork();
    if (child == 0)
        run_child();
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0);
    sem_post(&go);
    pthread_join(thread, NULL);
    PLAIN_CHECK(weir_flush(-1) == 0);
    weir_handler_stats stats = read_stats();
    PLAIN_CHECK(stats.delivered == 1);
    return 0;
}
