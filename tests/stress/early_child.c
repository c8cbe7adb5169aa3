/* early_child: a fork handler of the program runs in the child before weir's, since it was registered before
 * weir's first use, and adds a value. The child has one set of weir's threads, its values are in its ledger,
 * and its signal mask and cancellation state are the parent's. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/weir.h>

#include "../support/plain.h"
#include "../support/threads.h"

enum { FORKS = 30, VALUES = 1000, HANG_S = 60, THREADS = 3 /* the program's, weir, weir:null */ };

static bool adds_early;
static uint64_t added;

static void add(void)
{
    PLAIN_CHECK(weir_add_value(weir_get_stream("early"), "value", 1) == 0);
    added++;
}

static void in_child(void)
{
    added = 0;
    if (adds_early)
        add();
}

static void check_thread(void)
{
    sigset_t signals;
    int state;
    PLAIN_CHECK(pthread_sigmask(SIG_SETMASK, NULL, &signals) == 0);
    PLAIN_CHECK(!sigismember(&signals, SIGTERM) && sigismember(&signals, SIGUSR2),
                "the signal mask has changed");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    PLAIN_CHECK(state == PTHREAD_CANCEL_ENABLE, "the cancellation state has changed");
}

static void check_ledger(void)
{
    weir_stats process;
    weir_handler_stats handler;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    if (process.added != added || handler.delivered != added)
        fprintf(stderr, "early_child: %llu calls returned 0, %llu added, %llu delivered\n",
                (unsigned long long)added, (unsigned long long)process.added,
                (unsigned long long)handler.delivered);
    PLAIN_CHECK(process.added == added && handler.delivered == added);
}

static void run_child(int depth);

static void fork_once(int depth)
{
    int status;
    pid_t child = fork();
    PLAIN_CHECK(child >= 0);
    if (child == 0)
        run_child(depth);
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "a child failed");
    check_thread();
}

static void run_child(int depth)
{
    plain_hang_no_longer_than(HANG_S);
    check_thread();
    for (int i = 0; i < VALUES; i++)
        add();
    check_ledger();
    PLAIN_CHECK(count_threads() == THREADS, "the child does not have one set of threads");
    if (depth)
        fork_once(depth - 1);
    exit(0);
}

int main(void)
{
    sigset_t signals;
    if (plain_is_sanitized("")) {
        puts("the sanitizers' allocators and thread lists do not support a fork of a threaded program");
        return 77;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    PLAIN_CHECK(pthread_atfork(NULL, NULL, in_child) == 0);
    PLAIN_CHECK(weir_configure("*", "null", "{\"block_timeout\": \"1h\"}") == 0);
    add();
    for (int i = 0; i < plain_rounds(FORKS); i++) {
        adds_early = i % 2 == 0;
        fork_once(1);
        add();
        check_ledger();
    }
    return 0;
}
