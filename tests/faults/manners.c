/* Fault 15: handlers that change what is not theirs, the signal mask and the locale, or that call weir
 * themselves. */

#include <criterion/criterion.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "api_ledger.h"

/* The C library's own: what setlocale keeps of LOCPATH. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:argz_add_sep\n";
}

/* ---- A handler that misbehaves as it is told ------------------------------------------------- */

enum place { NOWHERE, CREATE, OPEN, EMIT, FLUSH, WAKE, CLOSE, DESTROY };

static _Atomic enum place where;
static void (*misbehave)(void);
static _Atomic unsigned calls_in_a_strange_state; /* the thread was not as a worker's is */
static _Atomic unsigned times;
static locale_t other_locale;

static void let_signals_in(void)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void keep_signals_out(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void use_another_locale(void)
{
    uselocale(other_locale);
}

static bool lets_in(int signal)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return !sigismember(&mask, signal);
}

/* Only worker threads come here. */
static void be_at(enum place place)
{
    if (lets_in(SIGTERM) || lets_in(SIGPIPE) || uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
        calls_in_a_strange_state++;
    if (where != place)
        return;
    misbehave();
    times++;
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
    be_at(OPEN);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
    be_at(EMIT);
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)self;
    (void)timeout_ms;
    (void)outcome;
    be_at(FLUSH);
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    (void)self;
    (void)why;
    (void)outcome;
    be_at(WAKE);
}

static void close_it(void *self)
{
    (void)self;
    be_at(CLOSE);
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

/* ---- What is said, and counted --------------------------------------------------------------- */

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[4000];

static void hear(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    pthread_mutex_lock(&said_lock);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
    pthread_mutex_unlock(&said_lock);
}

static bool was_said(const char *words)
{
    pthread_mutex_lock(&said_lock);
    bool found = strstr(said, words);
    pthread_mutex_unlock(&said_lock);
    return found;
}

/* A message may come a moment after what it is about. */
static void wait_until_said(const char *words)
{
    while (!was_said(words))
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
    weir_set_log(hear, NULL);
    cr_assert_eq(weir_register_handler_type(&type, NULL), 0, "%s", weir_last_error());
    other_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    stream = weir_get_stream("g");
}

static void tear_down(void)
{
    weir_shutdown(-1);
    assert_ledger("rude");
    cr_assert_eq(calls_in_a_strange_state, 0, "the handler was called with what an earlier call had left");
    freelocale(other_locale);
}

TestSuite(thread_state, .init = set_up, .fini = tear_down, .timeout = 120);

static void be_rude(enum place place, void (*how)(void))
{
    misbehave = how;
    where = place;
    cr_assert_eq(weir_configure("*", "rude", NULL), 0, "%s", weir_last_error());
}

/* One value, one batch. */
static void deliver(double value)
{
    cr_assert_eq(weir_add_value(stream, "x", value), 0, "%s", weir_last_error());
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
}

/* ---- Signals and the thread's locale --------------------------------------------------------- */

Test(thread_state, fault_15_a_signal_mask_that_emit_changed_is_put_right_and_counted)
{
    be_rude(EMIT, let_signals_in);
    for (int i = 0; i < 3; i++)
        deliver(i);
    weir_handler_stats stats = rude_stats();
    cr_assert_eq(stats.faults, 3);
    cr_assert_eq(stats.delivered, 3);
    wait_until_said("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

Test(thread_state, fault_15_a_locale_that_emit_left_on_its_thread_is_put_right_and_counted)
{
    be_rude(EMIT, use_another_locale);
    for (int i = 0; i < 3; i++)
        deliver(i);
    cr_assert_eq(rude_stats().faults, 3);
    cr_assert_eq(rude_stats().delivered, 3);
    wait_until_said("rude: the handler type is at fault: it changed its thread's locale\n");
}

Test(thread_state, fault_15_so_it_is_in_open_flush_and_close)
{
    const enum place places[] = {OPEN, FLUSH, CLOSE};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        times = 0;
        uint64_t before = i ? rude_stats().faults : 0;
        be_rude(places[i], let_signals_in);
        deliver(1);
        cr_assert_eq(weir_configure("*", NULL, NULL), 0);
        while (times == 0 || rude_stats().faults == before)
            weir_flush(1);
        cr_assert_eq(rude_stats().faults, before + times);
    }
}

Test(thread_state, fault_15_and_in_wake)
{
    be_rude(WAKE, let_signals_in);
    deliver(1);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    while (times == 0)
        weir_flush(1);
    deliver(2);
    cr_assert_eq(rude_stats().faults, times);
}

Test(thread_state, fault_15_ten_times_in_a_row_and_the_handler_is_given_up)
{
    be_rude(EMIT, let_signals_in);
    for (int i = 0; i < 9; i++)
        deliver(i);
    cr_assert_eq(weir_add_value(stream, "x", 9), 0);
    weir_flush(-1);
    cr_assert_eq(rude_stats().faults, 10);
    wait_until_said("rude: it changed its thread's signal mask; gives up");
    cr_assert_eq(weir_add_value(stream, "x", 10), 0);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    cr_assert_eq(rude_stats().delivered, 10);
    cr_assert_eq(rude_stats().dropped[WEIR_DROPPED_FAILED], 1);
    cr_assert_eq(times, 10);
}

Test(thread_state, fault_15_a_well_behaved_batch_in_between_begins_the_count_anew)
{
    be_rude(EMIT, let_signals_in);
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

Test(thread_state, fault_15_create_leaves_the_programs_thread_as_it_was)
{
    cr_assert(lets_in(SIGTERM));
    be_rude(CREATE, keep_signals_out);
    cr_assert(lets_in(SIGTERM));
    deliver(1);
    cr_assert_eq(rude_stats().faults, 1, "counted as soon as there is an account");
    wait_until_said("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

Test(thread_state, fault_15_so_does_destroy_of_what_was_never_opened)
{
    be_rude(DESTROY, keep_signals_out);
    cr_assert_eq(weir_configure("*", "null", NULL), 0, "%s", weir_last_error());
    cr_assert(lets_in(SIGTERM));
    deliver(1);
    wait_until_said("rude: the handler type is at fault: it changed its thread's signal mask\n");
}

/* ---- The process's locale -------------------------------------------------------------------- */

static char folder[] = "/tmp/weir-thread_state-XXXXXX";

static void leave_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

/* One in which decimals have a comma. localedef warns that it has nothing else. */
static void make_locale(void)
{
    char command[400];
    cr_assert_not_null(mkdtemp(folder));
    atexit(leave_folder);
    snprintf(command, sizeof command,
             "cd %s && printf 'LC_NUMERIC\\ncopy \"de_DE\"\\nEND LC_NUMERIC\\n' >source && "
             "localedef -c -i ./source -f UTF-8 ./comma >log 2>&1",
             folder);
    if (system(command) < 0)
        cr_skip_test("no shell");
    setenv("LOCPATH", folder, 1);
    snprintf(command, sizeof command, "%s/comma/LC_NUMERIC", folder);
    if (access(command, R_OK) != 0)
        cr_skip_test("no locale with a decimal comma can be made here");
}

static void set_locale(void)
{
    cr_assert(setlocale(LC_NUMERIC, "comma"));
}

static const char *const formats[] = {"text", "json", "bai", "csv", "influx", "graphite", "statsd"};

/* One handler of the type file for each format, and "rude", which opens first. */
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

Test(thread_state, fault_15_no_format_goes_by_a_locale_that_a_handler_has_set)
{
    make_locale();
    misbehave = set_locale;
    where = EMIT;
    configure_files();
    cr_assert_eq(weir_add_value(weir_get_stream("rude"), "x", 0), 0);
    cr_assert_eq(weir_flush(-1), 0);
    char shown[20];
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    cr_assert_str_eq(shown, "0,5", "so it was set");
    deliver(1234.5);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_has_a_dot(formats[i]);
}

/* ---- Calling weir ---------------------------------------------------------------------------- */

static _Atomic int flushed, shut_down, added, configured, asked;

static void call_weir(void)
{
    static weir_handler_stats stats;
    flushed = weir_flush(-1);
    shut_down = weir_shutdown(-1);
    added = weir_add_value(weir_get_stream("other"), "y", 1);
    configured = weir_configure("other", "null", NULL);
    asked = weir_get_handler_stats("rude", &stats, sizeof stats);
}

Test(thread_state, fault_15_a_handler_that_calls_weir_never_waits_for_itself)
{
    be_rude(EMIT, call_weir);
    cr_assert_eq(weir_configure("other", "null", NULL), 0);
    for (int i = 0; i < 20; i++)
        deliver(i);
    cr_assert_eq(flushed, WEIR_ERR_BUSY);
    cr_assert_eq(shut_down, WEIR_ERR_BUSY);
    cr_assert_eq(added, 0);
    cr_assert_eq(configured, 0);
    cr_assert_eq(asked, 0);
    cr_assert_eq(rude_stats().faults, 0);
    cr_assert_eq(rude_stats().delivered, 20);
    cr_assert_eq(times, 20);
}
