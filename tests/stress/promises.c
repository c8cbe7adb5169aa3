/* promises: what the contract promises to a handler type around its callbacks: prepare is called once in a
 * process, before create, and not again in a forked child, which may use what it did; weir delivers before exit
 * handlers that prepare registers; the type and its context are in the host; the worker has 1 MiB of stack,
 * though the program has a lot of thread-local storage and its own limit for stacks is small. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/plain.h"

enum { PROMISED_STACK = 1024 * 1024, LIMIT = 256 * 1024, STORAGE = 8 * 1024 * 1024, PAGE = 4096 };

static _Thread_local volatile char storage[STORAGE];

static int context_of_test, prepared, created;
static _Atomic int delivered;
static _Atomic bool library_gone;
static pid_t process;

/* Registered by prepare, as a library does; runs after weir's. */
static void end_library(void)
{
    library_gone = true;
    if (getpid() == process && delivered != 2)
        _exit(3);
}

static void check_host(const weir_host *host)
{
    PLAIN_CHECK(host->context == &context_of_test);
    PLAIN_CHECK(WEIR_HAS(host, service) && strcmp(host->type->name, "promises") == 0);
}

static bool prepare(const weir_host *host)
{
    check_host(host);
    PLAIN_CHECK(strcmp(host->name, "promises") == 0 && !host->wait(host, 1000));
    PLAIN_CHECK(created == 0);
    if (++prepared == 1) {
        host->refuse(host, "", "not the first time");
        return false;
    }
    PLAIN_CHECK(prepared == 2 && atexit(end_library) == 0);
    return true;
}

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    check_host(host);
    PLAIN_CHECK(prepared == 2);
    created++;
    return &context_of_test;
}

/* One frame of a whole MiB, written from its end on: down to the last page of it. */
static __attribute__((noinline)) int fill_stack(void)
{
    volatile char frame[PROMISED_STACK - PAGE];
    for (size_t i = sizeof frame; i > 0; i -= i < PAGE ? i : PAGE)
        frame[i - 1] = (char)i;
    return frame[sizeof frame - 1];
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    PLAIN_CHECK(!library_gone);
    fill_stack();
    delivered += (int)batch->count;
}

static void destroy(void *self)
{
    (void)self;
}

static void add(void)
{
    PLAIN_CHECK(weir_add_value(weir_get_stream("g"), "x", 1) == 0);
}

/* Delivers by a handler of its own. */
static void be_child(void)
{
    add();
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(prepared == 2 && created == 4);
    exit(0);
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "promises",
    .summary = "relies on what is promised",
    .prepare = prepare,
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* The C library reads the limit when a program starts. */
static void restart_with_small_stacks(char **argv)
{
    struct rlimit now;
    PLAIN_CHECK(getrlimit(RLIMIT_STACK, &now) == 0);
    if (now.rlim_cur == LIMIT)
        return;
    PLAIN_CHECK(setrlimit(RLIMIT_STACK, &(struct rlimit){LIMIT, now.rlim_max}) == 0);
    execv("/proc/self/exe", argv);
    PLAIN_CHECK(false, "cannot be started again");
}

int main(int argc, char **argv)
{
    int status;
    (void)argc;
    restart_with_small_stacks(argv);
    process = getpid();
    storage[0] = 1;
    PLAIN_CHECK(weir_register_handler_type(&type, &context_of_test) == 0);
    PLAIN_CHECK(weir_configure("*", "promises", NULL) == WEIR_ERR_CONFIG);
    PLAIN_CHECK(strstr(weir_last_error(), "not the first time") && created == 0);
    PLAIN_CHECK(weir_configure("*", "promises", NULL) == 0);
    PLAIN_CHECK(weir_configure("other", "promises", "{\"linger\": \"1ms\"}") == 0 && created == 2);
    add();
    PLAIN_CHECK(weir_flush(-1) == 0);
    pid_t child = fork();
    if (child == 0)
        be_child();
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0);
    add(); /* delivered at exit */
    return 0;
}
