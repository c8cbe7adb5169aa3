/* forkers: several threads fork at the same time while others add. No child hangs, the parent loses nothing
 * and continues. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/weir.h>

#include "../support/plain.h"

enum { FORKERS = 4, FORKS = 250, ADDERS = 2, HANG_S = 60, CHILD_VALUES = 10 };

static _Atomic bool done;
static _Atomic uint64_t added;

static void *add(void *argument)
{
    weir_stream *stream = weir_get_stream("parent");
    (void)argument;
    while (!atomic_load(&done)) {
        PLAIN_CHECK(weir_add_value(stream, "x", 1) == 0);
        added++;
        usleep(20);
    }
    return NULL;
}

/* Its values are delivered, also if the parent's worker was inside the handler at the fork. */
static void run_child(void)
{
    weir_stats process;
    weir_handler_stats handler;
    plain_hang_no_longer_than(HANG_S);
    weir_stream *stream = weir_get_stream("child");
    for (int i = 0; i < CHILD_VALUES; i++)
        weir_add_value(stream, "x", i);
    weir_flush(-1);
    weir_get_stats(&process, sizeof process);
    bool has_stats = weir_get_handler_stats("null", &handler, sizeof handler) == 0;
    _exit(has_stats && process.added == CHILD_VALUES && handler.offered == CHILD_VALUES &&
                  handler.delivered == CHILD_VALUES
              ? 0
              : 1);
}

static void *fork_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < plain_rounds(FORKS); i++) {
        pid_t child = fork();
        PLAIN_CHECK(child >= 0);
        if (child == 0)
            run_child();
        int status;
        PLAIN_CHECK(waitpid(child, &status, 0) == child);
        PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_t forkers[FORKERS], adders[ADDERS];
    if (plain_is_sanitized("")) {
        puts("the sanitizers' allocators and thread lists do not support a fork of a threaded program");
        return 77;
    }
    plain_hang_no_longer_than(plain_limit(300));
    PLAIN_CHECK(weir_configure("*", "null", "{\"block_timeout\": \"1h\"}") == 0);
    for (int i = 0; i < ADDERS; i++)
        PLAIN_CHECK(pthread_create(&adders[i], NULL, add, NULL) == 0);
    for (int i = 0; i < FORKERS; i++)
        PLAIN_CHECK(pthread_create(&forkers[i], NULL, fork_often, NULL) == 0);
    for (int i = 0; i < FORKERS; i++)
        pthread_join(forkers[i], NULL);
    atomic_store(&done, true);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    weir_stats process;
    weir_handler_stats handler;
    PLAIN_CHECK(weir_flush(-1) == 0);
    weir_get_stats(&process, sizeof process);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    PLAIN_CHECK(process.added == added && process.taken == added && handler.delivered == added);
    printf("%llu values beside %d forks\n", (unsigned long long)added, FORKERS * plain_rounds(FORKS));
    return 0;
}
