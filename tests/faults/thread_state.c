/* Fault 15: handlers that change the state of a thread, its signal mask or locale, or that call weir. */

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/comma_locale.h"
#include "api_ledger.h"

/* A leak of the C library: setlocale keeps LOCPATH. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:argz_add_sep\n";
}

/* ---- The handler ----------------------------------------------------------------------------- */

enum call { NOWHERE, CREATE, OPEN, EMIT, FLUSH, WAKE, CLOSE, DESTROY };

static _Atomic enum call where;
static void (*misbehave)(void);
static _Atomic unsigned calls_with_changed_state; /* calls in which the thread did not have a worker's state */
static _Atomic unsigned misbehaviours;
static locale_t other_locale;

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void change_locale(void)
{
    uselocale(other_locale);
}

static bool is_unblocked(int signal)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return !sigismember(&mask, signal);
}

/* Thread: worker. */
static void on_call(enum call call)
{
    if (is_unblocked(SIGTERM) || is_unblocked(SIGPIPE) || uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
        calls_with_changed_state++;
    if (where != call)
        return;
    misbehave();
    misbehaviours++;
}

static void *create(const weir_host *host, const void *options)
{
    static int instance;
    (void)host;
    (void)options;
    if (where == CREATE)
        misbehave();
    return &instance;
}

static void open_it(void *self, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    on_call(OPEN);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
    on_call(EMIT);
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)self;
    (void)timeout_ms;
    (void)outcome;
    on_call(FLUSH);
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    (void)self;
    (void)why;
    (void)outcome;
    on_call(WAKE);
}

static void close_it(void *self)
{
    (void)self;
    on_call(CLOSE);
}

static void destroy(void *self)
{
    (void)self;
    if (where == DESTROY)
        misbehave();
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "rude",
    .summary = "misbehaves, for tests",
    .create = create,
    .open = open_it,
    .emit = emit,
    .flush = flush,
    .wake = wake,
    .close = close_it,
    .destroy = destroy,
};

/* ---- Log and statistics ---------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[4000];

static void log_message(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    pthread_mutex_lock(&log_lock);
    snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", text);
    pthread_mutex_unlock(&log_lock);
}

static bool was_logged(const char *text)
{
    pthread_mutex_lock(&log_lock);
    bool found = strstr(log_text, text);
    pthread_mutex_unlock(&log_lock);
    return found;
}

/* A message may be logged with a delay. */
static void wait_for_log(const char *text)
{
    while (!was_logged(text))
        weir_flush(1);
}

static weir_handler_stats rude_stats(void)
{
    weir_handler_stats stats;
    assert_ledger("rude");
    cr_assert_eq(weir_get_handler_stats("rude", &stats, sizeof stats), 0, "%s", weir_last_error());
    return stats;
}

static weir_stream *stream;

static void set_up(void)
{
    weir_set_log(log_message, NULL);
    cr_assert_eq(weir_register_handler_type(&type, NULL), 0, "%s", weir_last_error());
    other_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    stream = weir_get_stream("g");
}

static void tear_down(void)
{
    weir_shutdown(-1);
    assert_ledger("rude");
    cr_assert_eq(calls_with_changed_state, 0,
                 "the handler was called with the state that an earlier call had left");
    freelocale(other_locale);
}

TestSuite(thread_state, .init = set_up, .fini = tear_down, .timeout = 120);

static void misbehave_in(enum call call, void (*what)(void))
{
    misbehave = what;
    where = call;
    cr_assert_eq(weir_configure("*", "rude", NULL), 0, "%s", weir_last_error());
}

/* One value, one batch. */
static void deliver(double value)
{
    cr_assert_eq(weir_add_value(stream, "x", value), 0, "%s", weir_last_error());
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
}

/* ---- Signals and the thread's locale --------------------------------------------------------- */

Test(thread_state, fault_15_a_signal_mask_changed_by_emit_is_restored_and_counted)
{
    misbehave_in(EMIT, unblock_signals);
    for (int i = 0; i < 3; i++)
        deliver(i);
    weir_handler_stats stats = rude_stats();
    cr_assert_eq(stats.faults, 3);
    cr_assert_eq(stats.delivered, 3);
    wait_for_log("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

Test(thread_state, fault_15_a_thread_locale_changed_by_emit_is_restored_and_counted)
{
    misbehave_in(EMIT, change_locale);
    for (int i = 0; i < 3; i++)
        deliver(i);
    cr_assert_eq(rude_stats().faults, 3);
    cr_assert_eq(rude_stats().delivered, 3);
    wait_for_log("rude: the handler type is at fault: it changed its thread's locale\n");
}

Test(thread_state, fault_15_the_signal_mask_is_restored_after_open_flush_and_close)
{
    const enum call places[] = {OPEN, FLUSH, CLOSE};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        misbehaviours = 0;
        uint64_t before = i ? rude_stats().faults : 0;
        misbehave_in(places[i], unblock_signals);
        deliver(1);
        cr_assert_eq(weir_configure("*", NULL, NULL), 0);
        while (misbehaviours == 0 || rude_stats().faults == before)
            weir_flush(1);
        cr_assert_eq(rude_stats().faults, before + misbehaviours);
    }
}

Test(thread_state, fault_15_the_signal_mask_is_restored_after_wake)
{
    misbehave_in(WAKE, unblock_signals);
    deliver(1);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    while (misbehaviours == 0)
        weir_flush(1);
    deliver(2);
    cr_assert_eq(rude_stats().faults, misbehaviours);
}

Test(thread_state, fault_15_a_handler_is_disabled_after_ten_faults_in_a_row)
{
    misbehave_in(EMIT, unblock_signals);
    for (int i = 0; i < 9; i++)
        deliver(i);
    cr_assert_eq(weir_add_value(stream, "x", 9), 0);
    weir_flush(-1);
    cr_assert_eq(rude_stats().faults, 10);
    wait_for_log("rude: it changed its thread's signal mask; gives up");
    cr_assert_eq(weir_add_value(stream, "x", 10), 0);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    cr_assert_eq(rude_stats().delivered, 10);
    cr_assert_eq(rude_stats().dropped[WEIR_DROPPED_FAILED], 1);
    cr_assert_eq(misbehaviours, 10);
}

Test(thread_state, fault_15_a_correct_batch_resets_the_count)
{
    misbehave_in(EMIT, unblock_signals);
    for (int i = 0; i < 9; i++)
        deliver(i);
    where = NOWHERE;
    deliver(9);
    where = EMIT;
    for (int i = 0; i < 9; i++)
        deliver(i);
    cr_assert_eq(rude_stats().faults, 18);
    cr_assert_eq(rude_stats().delivered, 19);
}

/* ---- The program's threads ------------------------------------------------------------------- */

Test(thread_state, fault_15_the_callers_signal_mask_is_restored_after_create)
{
    cr_assert(is_unblocked(SIGTERM));
    misbehave_in(CREATE, block_signals);
    cr_assert(is_unblocked(SIGTERM));
    deliver(1);
    cr_assert_eq(rude_stats().faults, 1, "counted once the handler has statistics");
    wait_for_log("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

Test(thread_state, fault_15_the_callers_signal_mask_is_restored_after_destroy_of_an_unopened_handler)
{
    misbehave_in(DESTROY, block_signals);
    cr_assert_eq(weir_configure("*", "null", NULL), 0, "%s", weir_last_error());
    cr_assert(is_unblocked(SIGTERM));
    deliver(1);
    wait_for_log("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

/* ---- The process's locale -------------------------------------------------------------------- */

static char folder[] = "/tmp/weir-thread_state-XXXXXX";

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

static const char *const formats[] = {"text", "json", "bai", "csv", "influx", "graphite", "statsd"};

/* A handler of the type file for each format, and "rude", which is opened first. */
static void configure_files(void)
{
    char config[4000], groups[1000] = "";
    int length = snprintf(config, sizeof config, "{\"handlers\": {");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        length += snprintf(config + length, sizeof config - (size_t)length,
                           "\"%s\": {\"type\": \"file\", \"path\": \"%s/%s\", \"format\": \"%s\"}, ",
                           formats[i], folder, formats[i], formats[i]);
        snprintf(groups + strlen(groups), sizeof groups - strlen(groups), ", \"%s\"", formats[i]);
    }
    length += snprintf(
        config + length, sizeof config - (size_t)length,
        "\"rude\": {\"type\": \"rude\"}}, \"groups\": {\"rude\": \"rude\", \"g\": [\"rude\"%s]}}", groups);
    cr_assert_eq(weir_configure_text(config, (size_t)length), 0, "%s", weir_last_error());
}

static void assert_has_a_dot(const char *format)
{
    char path[100], text[4000];
    snprintf(path, sizeof path, "%s/%s", folder, format);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    cr_assert(strstr(text, "1234.5") && !strstr(text, "1234,5"), "%s: %s", format, text);
    assert_ledger(format);
}

Test(thread_state, fault_15_formats_ignore_a_locale_that_a_handler_has_set)
{
    cr_assert_not_null(mkdtemp(folder));
    atexit(remove_folder);
    make_comma_locale(folder);
    misbehave = set_comma_locale;
    where = EMIT;
    configure_files();
    cr_assert_eq(weir_add_value(weir_get_stream("rude"), "x", 0), 0);
    cr_assert_eq(weir_flush(-1), 0);
    char shown[20];
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    cr_assert_str_eq(shown, "0,5", "the locale must be set");
    deliver(1234.5);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_has_a_dot(formats[i]);
}

/* ---- Calling weir ---------------------------------------------------------------------------- */

static _Atomic int flushed, shut_down, added, configured, stats_result;

static void call_weir(void)
{
    static weir_handler_stats stats;
    flushed = weir_flush(-1);
    shut_down = weir_shutdown(-1);
    added = weir_add_value(weir_get_stream("other"), "y", 1);
    configured = weir_configure("other", "null", NULL);
    stats_result = weir_get_handler_stats("rude", &stats, sizeof stats);
}

Test(thread_state, fault_15_a_handler_that_calls_weir_never_waits_for_itself)
{
    misbehave_in(EMIT, call_weir);
    cr_assert_eq(weir_configure("other", "null", NULL), 0);
    for (int i = 0; i < 20; i++)
        deliver(i);
    cr_assert_eq(flushed, WEIR_ERR_BUSY);
    cr_assert_eq(shut_down, WEIR_ERR_BUSY);
    cr_assert_eq(added, 0);
    cr_assert_eq(configured, 0);
    cr_assert_eq(stats_result, 0);
    cr_assert_eq(rude_stats().faults, 0);
    cr_assert_eq(rude_stats().delivered, 20);
    cr_assert_eq(misbehaviours, 20);
}
