/* shutdown_twice: weir is shut down by several threads, and by the end of the program, at the same time. Only
 * the first one works; the others wait for it, up to their own timeouts. Each case has its own process. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "counting.h"

enum { VALUES = 1000, STEP = 50 };

/* Shared with the parent. */
struct shared {
    _Atomic uint64_t added, delivered;
    _Atomic bool may_deliver;
};

static struct shared *shared;
static _Atomic int messages;

/* Delivers a few samples per call once it may. */
static void deliver_slowly(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    while (!atomic_load(&shared->may_deliver))
        usleep(1000);
    usleep(5000);
    outcome->done = batch->count < STEP ? batch->count : STEP;
    atomic_fetch_add(&shared->delivered, outcome->done);
}

static void set_up(void)
{
    static weir_handler_type slow;
    slow = counting_type;
    slow.emit = deliver_slowly;
    PLAIN_CHECK(weir_register_handler_type(&slow, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", NULL) == 0);
    for (int i = 0; i < VALUES; i++)
        PLAIN_CHECK(weir_add_value(weir_get_stream("twice"), "value", i) == 0);
    atomic_store(&shared->added, VALUES);
}

static void *shut_down(void *result)
{
    *(int *)result = weir_shutdown(-1);
    return result;
}

/* Returns once the shutdown in the other thread has begun. */
static void start_shutdown(pthread_t *thread, int *result)
{
    PLAIN_CHECK(pthread_create(thread, NULL, shut_down, result) == 0);
    for (; weir_add_value(weir_get_stream("late"), "value", 0) == 0; usleep(1000))
        atomic_fetch_add(&shared->added, 1);
}

static void *allow_later(void *argument)
{
    usleep(50000);
    atomic_store(&shared->may_deliver, true);
    return argument;
}

static void allow_soon(void)
{
    pthread_t thread;
    PLAIN_CHECK(pthread_create(&thread, NULL, allow_later, NULL) == 0);
    pthread_detach(thread);
}

static void main_returns(void)
{
    static int result;
    pthread_t thread;
    start_shutdown(&thread, &result);
    pthread_detach(thread);
    allow_soon();
    exit(0);
}

static void second_thread_waits(void)
{
    int first = -1;
    pthread_t thread;
    start_shutdown(&thread, &first);
    allow_soon();
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    PLAIN_CHECK(atomic_load(&shared->delivered) == atomic_load(&shared->added),
                "the second caller did not wait");
    pthread_join(thread, NULL);
    PLAIN_CHECK(first == 0 && weir_shutdown(-1) == 0 && weir_shutdown(0) == 0);
    exit(0);
}

/* ThreadSanitizer has a thread of its own, so such a process never ends there. */
#ifndef __SANITIZE_THREAD__

/* The last of weir's threads is gone, so the process ends with the thread. */
static void main_thread_ends(void)
{
    static const char config[] = "{\"settings\":{\"reload\":\"1h\"},\"groups\":{\"*\":\"counting\"}}";
    char path[] = "/tmp/weir-shutdown-XXXXXX";
    int file = mkstemp(path);
    PLAIN_CHECK(file >= 0 && write(file, config, sizeof config - 1) == sizeof config - 1);
    PLAIN_CHECK(weir_configure_file(path) == 0);
    unlink(path);
    atomic_store(&shared->may_deliver, true);
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    pthread_exit(NULL);
}

#endif

static void second_thread_times_out(void)
{
    int first = -1;
    pthread_t thread;
    start_shutdown(&thread, &first);
    PLAIN_CHECK(weir_shutdown(0) == WEIR_ERR_TIMEOUT);
    PLAIN_CHECK(weir_shutdown(20) == WEIR_ERR_TIMEOUT, "the first caller is not finished");
    allow_soon();
    pthread_join(thread, NULL);
    PLAIN_CHECK(first == 0);
    exit(0);
}

static void count_message(void *context, int level, const char *text)
{
    (void)context;
    if (level == WEIR_LOG_ERROR && strstr(text, "another thread"))
        atomic_fetch_add(&messages, 1);
}

static void check_message(void)
{
    if (atomic_load(&messages) != 1)
        _exit(1);
    atomic_store(&shared->delivered, atomic_load(&shared->added)); /* as the parent expects */
}

/* The other thread's shutdown has no limit, that at exit has: what is left is reported. */
static void exit_times_out(void)
{
    static const char config[] = "{\"settings\": {\"shutdown_timeout\": \"50ms\"}}";
    static int result;
    pthread_t thread;
    atexit(check_message); /* runs after weir's */
    weir_set_log(count_message, NULL);
    PLAIN_CHECK(weir_configure_text(config, sizeof config - 1) == 0);
    set_up();
    start_shutdown(&thread, &result);
    pthread_detach(thread);
    exit(0);
}

/* A log function that shuts down while the shutdown of its own thread logs. */
static void shut_down_nested(void *context, int level, const char *text)
{
    (void)context, (void)level, (void)text;
    weir_shutdown(-1);
    atomic_fetch_add(&messages, 1);
}

static void log_function_shuts_down(void)
{
    atomic_store(&shared->may_deliver, true);
    weir_set_log(shut_down_nested, NULL);
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    PLAIN_CHECK(atomic_load(&messages), "nothing was logged");
    exit(0);
}

static void run(const char *name, void (*test)(void), bool configured)
{
    static const char config[] = "{\"settings\": {\"shutdown_timeout\": \"1m\"}}";
    int status;
    atomic_store(&shared->delivered, 0);
    atomic_store(&shared->may_deliver, false);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(60);
        if (configured) {
            PLAIN_CHECK(weir_configure_text(config, sizeof config - 1) == 0);
            set_up();
        }
        test();
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "");
    printf("%s: %llu delivered\n", name, (unsigned long long)atomic_load(&shared->delivered));
    PLAIN_CHECK(atomic_load(&shared->delivered) == atomic_load(&shared->added), "values are lost");
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED);
    setenv("WEIR_LOG", "info", 1);
    for (int i = 0; i < plain_rounds(1); i++)
        run("main returns", main_returns, true);
    run("a second thread waits", second_thread_waits, true);
    run("a second thread times out", second_thread_times_out, true);
#ifndef __SANITIZE_THREAD__
    run("the main thread ends", main_thread_ends, true);
#endif
    run("exit times out", exit_times_out, false);
    run("a log function shuts down", log_function_shuts_down, true);
    return 0;
}
