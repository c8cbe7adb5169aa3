/* lifecycle: adds values at unusual times: before main, in destructors of threads, after shutdown, in exit
 * handlers and destructors. Each value is in the ledger, or refused and counted; nothing crashes. */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static uint64_t good, refused;
static pthread_key_t first_key, second_key;

static void add(const char *name)
{
    int result = weir_add_value(weir_get_stream("my_app"), name, 1);
    if (result == 0)
        good++;
    else if (result == WEIR_ERR_CLOSED)
        refused++;
    else {
        fprintf(stderr, "lifecycle: %s: %s\n", name, weir_last_error());
        abort();
    }
}

/* Compares with the library's counts. Shutting down has completed before the last call. */
static void check(const char *when)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    if (stats.added == good && stats.refused[WEIR_REFUSED_CLOSED] == refused &&
        stats.added == stats.taken + stats.in_rings)
        return;
    fprintf(stderr, "lifecycle: %s: added %" PRIu64 " of %" PRIu64 ", refused %" PRIu64 " of %" PRIu64 "\n",
            when, stats.added, good, stats.refused[WEIR_REFUSED_CLOSED], refused);
    _Exit(9);
}

__attribute__((constructor)) static void before_main(void)
{
    add("constructor");
}

__attribute__((destructor)) static void after_exit(void)
{
    add("destructor");
    check("in a destructor");
}

static void in_exit_handler(void)
{
    add("exit handler");
}

static void when_thread_ends(void *value)
{
    add("thread's destructor");
    /* setting it again makes the C library call this once more, perhaps after weir's destructor */
    if (value == &first_key)
        pthread_setspecific(second_key, &second_key);
}

static void *run(void *argument)
{
    (void)argument;
    pthread_setspecific(first_key, &first_key);
    add("thread");
    return NULL;
}

/* Registered before weir's first use, so it runs after weir's exit handler. */
__attribute__((constructor(101))) static void very_early(void)
{
    atexit(in_exit_handler);
}

int main(void)
{
    pthread_t thread;
    if (pthread_key_create(&first_key, when_thread_ends) || pthread_key_create(&second_key, when_thread_ends))
        return 2;
    for (int i = 0; i < 50; i++) {
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
    }
    add("main");
    check("in main");
    if (weir_shutdown(-1))
        return 3;
    add("after shutdown");
    if (weir_shutdown(-1))
        return 4;
    check("after shutdown");
    return 0;
}
