/* cancelled: threads are cancelled while they call weir. No call is a cancellation point: it returns, what it
 * added is in the ledger, and other threads continue. Each case has its own process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/weir.h>

#include "../support/plain.h"

enum { ROUNDS = 40, LOOPS = 300, ADDERS = 4, HANG_S = 60 };

static char folder[] = "/tmp/weir-cancelled-XXXXXX";
static char config_path[100], journal_path[100];
static _Atomic uint64_t added;

static const char *path_of(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- Each function, with a cancellation that is pending already ------------------------------- */

static void add_first(void)
{
    PLAIN_CHECK(weir_add_value(weir_get_stream("first"), "value", 1) == 0);
}

static void get_stream_first(void)
{
    PLAIN_CHECK(weir_get_stream("first") != NULL);
}

static void ask_first(void)
{
    PLAIN_CHECK(weir_stream_enabled(weir_get_stream("first")));
}

/* WEIR_CONFIG takes precedence, so these only check. */
static void configure_first(void)
{
    PLAIN_CHECK(weir_configure("g", "console", "{}") == 0);
}

static void configure_file(void)
{
    add_first();
    PLAIN_CHECK(weir_configure_file(config_path) == 0);
}

static void reload(void)
{
    add_first();
    PLAIN_CHECK(weir_reload() == 0);
}

static void flush(void)
{
    add_first();
    PLAIN_CHECK(weir_flush(-1) == 0);
}

static void new_names(void)
{
    char name[20];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "name%d", i);
        PLAIN_CHECK(weir_add_value(weir_get_stream("names"), name, 1) == 0);
    }
}

static void events(void)
{
    const weir_sample_spec spec = {.size = sizeof spec, .name = "x", .value = 1, .metadata = "text"};
    const weir_value values[] = {{"a", 1}, {"b", 2}};
    PLAIN_CHECK(weir_add(weir_get_stream("events"), &spec) == 0);
    PLAIN_CHECK(weir_emit(weir_get_stream("events"), values, 2) == 0);
    PLAIN_CHECK(weir_describe(weir_get_stream("events"), "x", "s", "a time") == 0);
}

static void read_stats(void)
{
    weir_stats process;
    weir_handler_stats handler;
    add_first();
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("out", &handler, sizeof handler) == 0);
}

static void shut_down(void)
{
    add_first();
    PLAIN_CHECK(weir_shutdown(-1) == 0);
}

static void fork_child(void)
{
    int status;
    add_first();
    pid_t child = fork();
    if (child == 0) {
        add_first();
        exit(0);
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

struct pending {
    void (*call)(void);
    bool returned;
};

static void *call_while_pending(void *argument)
{
    struct pending *pending = argument;
    int state;
    pthread_cancel(pthread_self());
    pending->call();
    pending->returned = true;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    PLAIN_CHECK(state == PTHREAD_CANCEL_ENABLE, "the thread's cancellation state was changed");
    pthread_testcancel();
    return NULL;
}

/* The process still works, unless it was shut down. */
static void check_process(void)
{
    weir_stats stats;
    if (weir_add_value(weir_get_stream("after"), "value", 1) == WEIR_ERR_CLOSED)
        return;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0 && stats.taken == stats.added && stats.added > 0);
}

static void run_pending(void (*call)(void))
{
    pthread_t thread;
    void *result;
    struct pending pending = {.call = call};
    PLAIN_CHECK(pthread_create(&thread, NULL, call_while_pending, &pending) == 0);
    pthread_join(thread, &result);
    PLAIN_CHECK(pending.returned, "the thread was cancelled inside weir");
    PLAIN_CHECK(result == PTHREAD_CANCELED, "the thread was not cancelled after the call");
    check_process();
}

/* ---- Cancellation at any time ---------------------------------------------------------------- */

static void *use_first(void *argument)
{
    add_first();
    pthread_testcancel();
    return argument;
}

static void cancel_first_use(unsigned delay_us)
{
    pthread_t thread;
    PLAIN_CHECK(pthread_create(&thread, NULL, use_first, NULL) == 0);
    usleep(delay_us);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    check_process();
}

/* A queue that is soon full: most calls wait at the gate. Configurations replace the handler. */
static void configure_small(int i)
{
    char text[500];
    int length = snprintf(text, sizeof text,
                          "{\"settings\":{\"journal\":\"%s\"},\"handlers\":{\"out\":{\"type\":\"file\","
                          "\"path\":\"%s/all.%d\",\"queue\":\"4KiB\",\"block_timeout\":\"1h\"}},\"groups\":{"
                          "\"*\":\"out\"}}",
                          journal_path, folder, i % 2);
    PLAIN_CHECK(weir_configure_text(text, (size_t)length) == 0);
}

static void *add_until_cancelled(void *argument)
{
    weir_stream *stream = weir_get_stream("loop");
    for (;; pthread_testcancel()) {
        PLAIN_CHECK(weir_add_value(stream, "value", 1) == 0);
        atomic_fetch_add(&added, 1);
    }
    return argument;
}

static void *configure_until_cancelled(void *argument)
{
    for (int i = 0;; i++) {
        configure_small(i);
        pthread_testcancel();
    }
    return argument;
}

static void *flush_until_cancelled(void *argument)
{
    for (;; pthread_testcancel())
        weir_flush(10);
    return argument;
}

/* delay_us: so long do the threads of a round live. */
static void run_loop(unsigned unused)
{
    pthread_t threads[ADDERS + 2];
    uint64_t random = 1;
    weir_stats stats;
    (void)unused;
    unsetenv("WEIR_CONFIG");
    configure_small(0);
    for (int i = 0; i < plain_rounds(LOOPS); i++) {
        for (int j = 0; j < ADDERS + 2; j++)
            PLAIN_CHECK(pthread_create(&threads[j], NULL,
                                       j < ADDERS    ? add_until_cancelled
                                       : j == ADDERS ? configure_until_cancelled
                                                     : flush_until_cancelled,
                                       NULL) == 0);
        usleep(plain_draw(&random, 3000));
        for (int j = 0; j < ADDERS + 2; j++)
            pthread_cancel(threads[j]);
        for (int j = 0; j < ADDERS + 2; j++)
            pthread_join(threads[j], NULL);
    }
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
    printf("loop: %llu calls returned 0, %llu added\n", (unsigned long long)added,
           (unsigned long long)stats.added);
    PLAIN_CHECK(stats.added == added && stats.taken == added);
    weir_handler_stats handler;
    PLAIN_CHECK(weir_get_handler_stats("out", &handler, sizeof handler) == 0 && handler.delivered == added);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void finish(pid_t child, const char *name)
{
    int status;
    PLAIN_CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        plain_fail(__FILE__, __LINE__, "the process succeeds", name);
}

static void run_case(const char *name, void (*call)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        run_pending(call);
        exit(0);
    }
    finish(child, name);
}

static void run_process(const char *name, void (*run)(unsigned number), unsigned number, unsigned hang_s)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(hang_s);
        run(number);
        exit(0);
    }
    finish(child, name);
}

static void write_config(void)
{
    snprintf(config_path, sizeof config_path, "%s", path_of("weir.json"));
    snprintf(journal_path, sizeof journal_path, "%s", path_of("journal"));
    FILE *file = fopen(config_path, "w");
    PLAIN_CHECK(file);
    fprintf(file,
            "{\"settings\":{\"journal\":\"%s\"},\"handlers\":{\"out\":{\"type\":\"file\",\"path\":\"%s/"
            "out\",\"block_timeout\":\"1h\"}},"
            "\"groups\":{\"*\":\"out\"}}",
            journal_path, folder);
    PLAIN_CHECK(fclose(file) == 0);
    setenv("WEIR_CONFIG", config_path, 1);
}

static void remove_all(void)
{
    static const char *const names[] = {"weir.json", "out", "all.0", "all.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    PLAIN_CHECK(rmdir(journal_path) == 0, "a journal is left");
    PLAIN_CHECK(rmdir(folder) == 0);
}

int main(void)
{
    PLAIN_CHECK(mkdtemp(folder));
    write_config();
    run_case("weir_add_value", add_first);
    run_case("weir_get_stream", get_stream_first);
    run_case("weir_stream_enabled", ask_first);
    run_case("weir_configure", configure_first);
    run_case("weir_configure_file", configure_file);
    run_case("weir_reload", reload);
    run_case("weir_flush", flush);
    run_case("new names", new_names);
    run_case("events", events);
    run_case("weir_get_stats", read_stats);
    run_case("weir_shutdown", shut_down);
    /* The sanitizers' allocators and thread lists do not survive a fork of a threaded program. */
    if (!plain_is_sanitized(""))
        run_case("fork", fork_child);
    for (unsigned i = 0; i < (unsigned)plain_rounds(ROUNDS); i++)
        run_process("first use", cancel_first_use, i % 40 * 50, HANG_S);
    run_process("loop", run_loop, 0, plain_limit(300));
    remove_all();
    return 0;
}
