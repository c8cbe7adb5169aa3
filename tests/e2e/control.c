/* Configuring, flushing and shutting down with the program's own calls. */

#include <criterion/criterion.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "logbook.h"
#include "plain.h"

enum { HANG_S = 60, LONG_MS = 3600000 };

static char folder[] = "/tmp/weir-control-XXXXXX";

static void set_up(void)
{
    capture_register();
    cr_assert_not_null(mkdtemp(folder));
}

static void tear_down(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(control, .init = set_up, .fini = tear_down);

static void configure(const char *config)
{
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
}

static weir_handler_stats stats_of(const char *handler)
{
    weir_handler_stats stats;
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0, "%s", weir_last_error());
    return stats;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

Test(control, statistics_say_how_much_of_them_is_filled_in)
{
    struct {
        weir_stats stats;
        char newer[64];
    } longer = {.newer = "x"};
    weir_handler_stats of_handler;
    enum { OLDER = offsetof(weir_stats, added) + sizeof(uint64_t) };
    cr_assert_eq(weir_configure("*", "null", NULL), 0, "%s", weir_last_error());
    weir_get_stats(&longer.stats, OLDER);
    cr_assert_eq(longer.stats.size, OLDER);
    weir_get_stats(&longer.stats, sizeof longer);
    cr_assert(longer.stats.size == sizeof(weir_stats) && !longer.newer[0]);
    cr_assert_eq(weir_get_handler_stats("null", &of_handler, OLDER), 0, "%s", weir_last_error());
    cr_assert_eq(of_handler.size, OLDER);
}

Test(control, without_configuration_values_are_discarded_and_counted)
{
    weir_stats stats;
    weir_stream *stream = weir_get_stream("g");
    cr_assert(!weir_stream_enabled(stream));
    for (int i = 0; i < 10; i++)
        cr_assert_eq(weir_add_value(stream, "x", i), 0);
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.added, 10);
    cr_assert_eq(stats.unrouted, 10);
    assert_ledger(NULL);
}

Test(control, a_stream_follows_every_later_configuration)
{
    weir_stream *stream = weir_get_stream("my_app.db");
    weir_metric *metric = weir_get_metric(stream, "x");
    weir_metric_add(metric, 1);
    cr_assert_eq(weir_configure("my_app", "capture", NULL), 0);
    cr_assert(weir_stream_enabled(stream));
    weir_metric_add(metric, 2);
    cr_assert_eq(weir_configure("my_app", NULL, NULL), 0);
    cr_assert(!weir_stream_enabled(stream));
    weir_metric_add(metric, 3);
    cr_assert_eq(weir_configure(NULL, "capture", NULL), 0);
    weir_metric_add(metric, 4);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 2);
    cr_assert_eq(capture_at(0)->value, 2);
    cr_assert_eq(capture_at(1)->value, 4);
    assert_ledger("capture");
}

Test(control, values_added_before_a_configuration_go_by_the_old_routes)
{
    configure("{\"groups\":{\"*\":\"capture\"}}");
    weir_stream *stream = weir_get_stream("g");
    for (int i = 0; i < 1000; i++)
        weir_add_value(stream, "x", i);
    configure("{\"groups\":{\"*\":\"null\"}}");
    for (int i = 0; i < 500; i++)
        weir_add_value(stream, "x", i);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("capture").offered, 1000);
    cr_assert_eq(stats_of("null").delivered, 500);
    assert_ledger("capture");
    assert_ledger("null");
}

Test(control, handlers_are_named_after_their_type_and_numbered_if_options_differ)
{
    char options[200];
    snprintf(options, sizeof options, "{\"path\":\"%s/a\"}", folder);
    cr_assert_eq(weir_configure("a", "file", options), 0, "%s", weir_last_error());
    cr_assert_eq(weir_configure("same", "file", options), 0, "%s", weir_last_error());
    snprintf(options, sizeof options, "{\"path\":\"%s/b\"}", folder);
    cr_assert_eq(weir_configure("b", "file", options), 0, "%s", weir_last_error());
    weir_add_value(weir_get_stream("a"), "x", 1);
    weir_add_value(weir_get_stream("same"), "x", 1);
    weir_add_value(weir_get_stream("b"), "x", 1);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("file").delivered, 2);
    cr_assert_eq(stats_of("file:b").delivered, 1);
}

Test(control, a_call_that_replaces_a_route_replaces_its_handler)
{
    char options[200];
    for (int i = 0; i < 3; i++) {
        snprintf(options, sizeof options, "{\"path\":\"%s/%d\"}", folder, i);
        cr_assert_eq(weir_configure("a", "file", options), 0, "%s", weir_last_error());
        weir_add_value(weir_get_stream("a"), "x", i);
    }
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("file").delivered, 3);
    assert_ledger("file");
}

Test(control, invalid_calls_change_nothing_and_name_the_place)
{
    configure("{\"groups\":{\"*\":\"capture\"}}");
    cr_assert_eq(weir_configure("a..b", "capture", NULL), WEIR_ERR_NAME);
    cr_assert_eq(weir_configure("a", "captur", NULL), WEIR_ERR_PLUGIN);
    cr_assert(strstr(weir_last_error(), "\"capture\"?"), "%s", weir_last_error());
    cr_assert_eq(weir_configure("a", "capture", "{\"queue\":5}"), WEIR_ERR_CONFIG);
    cr_assert(strstr(weir_last_error(), "options:1:10: queue: 5 has no unit"), "%s", weir_last_error());
    cr_assert_eq(weir_configure("a", "capture", "{\"quue\":\"5MiB\"}"), WEIR_ERR_CONFIG);
    cr_assert(strstr(weir_last_error(), "did you mean \"queue\"?"), "%s", weir_last_error());
    cr_assert_eq(weir_configure("a", "file", NULL), WEIR_ERR_CONFIG);
    cr_assert(strstr(weir_last_error(), "\"path\" is missing"), "%s", weir_last_error());
    cr_assert_eq(weir_configure("a", "capture", "[]"), WEIR_ERR_CONFIG);
    cr_assert_eq(weir_configure_file("/no/such/file"), WEIR_ERR_CONFIG);
    cr_assert_eq(weir_configure_file("/dev/zero"), WEIR_ERR_CONFIG);
    weir_add_value(weir_get_stream("a"), "x", 1);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1);
}

Test(control, unknown_keys_are_ignored_in_the_configuration_but_not_in_a_calls_options)
{
    struct logbook book = {0};
    weir_set_log(logbook_write, &book);
    configure("{\"settings\":{\"unknown_keys\":\"warn\"},\"handlers\":{\"*\":{\"new\":1}},"
              "\"groups\":{\"*\":\"capture\"}}");
    cr_assert_str_eq(logbook_last(&book), "configuration:1:54: handlers.*.new: unknown option, ignored");
    cr_assert_eq(weir_configure("a", "capture", "{\"quue\":\"5MiB\"}"), WEIR_ERR_CONFIG);
    cr_assert(strstr(weir_last_error(), "options:1:2: quue: unknown option; did you mean \"queue\"?"), "%s",
              weir_last_error());
    cr_assert_eq(weir_configure("a", "capture", "{\"queue\":\"5MiB\"}"), 0, "%s", weir_last_error());
    cr_assert_eq(book.count, 1, "%s", logbook_last(&book));
    weir_set_log(NULL, NULL);
    weir_add_value(weir_get_stream("a"), "x", 1);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1);
    assert_ledger(NULL);
}

Test(control, an_optional_handler_that_is_left_out_is_logged_once_for_its_configuration)
{
    struct logbook book = {0};
    weir_set_log(logbook_write, &book);
    configure("{\"handlers\":{\"k\":{\"type\":\"no_such_type\",\"optional\":true}},"
              "\"groups\":{\"*\":[\"k\",\"capture\"]}}");
    cr_assert_eq(book.count, 1);
    cr_assert(strstr(logbook_last(&book), "k: optional, and left out: "), "%s", logbook_last(&book));
    cr_assert_eq(weir_configure("a", "capture", NULL), 0, "%s", weir_last_error());
    cr_assert_eq(book.count, 1, "%s", logbook_last(&book));
    cr_assert_eq(weir_configure("b", "none_such", "{\"optional\":true}"), 0, "%s", weir_last_error());
    cr_assert_eq(book.count, 2, "a call has a warning of its own");
    cr_assert_eq(weir_configure("c", "capture", NULL), 0, "%s", weir_last_error());
    cr_assert_eq(book.count, 2, "%s", logbook_last(&book));
    weir_set_log(NULL, NULL);
}

Test(control, weirs_own_metrics_follow_only_the_route_of_their_group)
{
    configure("{\"settings\":{\"stats_interval\":\"5ms\"},\"groups\":{\"*\":\"null\",\"weir\":\"capture\"}}");
    weir_stream *stream = weir_get_stream("my_app");
    for (int i = 0; i < 100; i++)
        weir_add_value(stream, "x", i);
    while (capture_count() < 20)
        usleep(1000);
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.added, 100);
    bool delivered = false;
    for (size_t i = 0; i < 20; i++) {
        cr_assert_str_eq(capture_at(i)->group, "weir");
        delivered |=
            strcmp(capture_at(i)->name, "delivered") == 0 && strcmp(capture_at(i)->labels, "handler=null") == 0;
    }
    cr_assert(delivered);
    assert_ledger("capture");
    assert_ledger("null");
}

Test(control, identical_calls_take_no_memory)
{
    char options[200];
    snprintf(options, sizeof options, "{\"path\":\"%s/a\", \"batch\": 100}", folder);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(weir_configure("g", "file", options), 0, "%s", weir_last_error());
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 10000; i++)
        cr_assert_eq(weir_configure("g", "file", options), 0, "%s", weir_last_error());
    struct mallinfo2 after = mallinfo2();
    cr_assert_lt(after.uordblks, before.uordblks + 200000, "%zu bytes more", after.uordblks - before.uordblks);
}

static void expect_nothing_but_the_journal_in_the_folder(void)
{
    struct dirent *entry;
    DIR *dir = opendir(folder);
    cr_assert_not_null(dir);
    while ((entry = readdir(dir)))
        cr_assert(entry->d_name[0] == '.' || strcmp(entry->d_name, "journal") == 0, "%s", entry->d_name);
    closedir(dir);
}

static void expect_child_adds(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        _exit(weir_add_value(weir_get_stream("a"), "x", 2) || weir_flush(-1));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

Test(control, a_journal_stays_where_it_is_when_routes_are_changed_by_calls)
{
    char path[200], text[300];
    struct logbook book = {0};
    weir_set_log(logbook_write, &book);
    cr_assert_eq(chdir(folder), 0);
    snprintf(path, sizeof path, "%s.json", folder);
    snprintf(text, sizeof text, "{\"settings\":{\"journal\":\"%s/journal\"},\"groups\":{\"*\":\"capture\"}}",
             folder);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    cr_assert_eq(weir_configure_file(path), 0, "%s", weir_last_error());
    for (int i = 0; i < 3; i++)
        cr_assert_eq(weir_configure("a", "capture", "{}"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    cr_assert_eq(weir_configure("b", "capture", "{}"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_add_value(weir_get_stream("a"), "x", 1), 0);
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    /* The sanitizers' allocators and thread lists do not survive a fork of a threaded program. */
    if (!plain_is_sanitized(""))
        expect_child_adds();
    cr_assert_eq(book.count, 0, "%s", logbook_last(&book));
    expect_nothing_but_the_journal_in_the_folder();
    unlink(path);
}

static bool is_refusing;

static void *create_unless_refusing(const weir_host *host, const void *options)
{
    (void)options;
    if (is_refusing)
        host->refuse(host, "", "not in this process");
    return is_refusing ? NULL : (void *)host;
}

static void emit_later(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self, (void)batch;
    outcome->code = WEIR_OUTCOME_RETRY;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type fussy = {
    .size = sizeof fussy,
    .abi = WEIR_ABI,
    .name = "fussy",
    .summary = "for tests",
    .create = create_unless_refusing,
    .emit = emit_later,
    .destroy = destroy,
};

static _Atomic int kept, kept_as_expected;

static void note_kept(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    bool is_expected =
        strstr(text, "1 values are kept for handler \"fussy\", which cannot take them now; restart");
    atomic_fetch_add(&kept_as_expected, is_expected);
    atomic_fetch_add(&kept, strstr(text, "are kept for handler") != NULL);
}

static void add_and_be_killed(void)
{
    weir_add_value(weir_get_stream("g"), "x", 1);
    raise(SIGKILL);
}

static void recover_without_a_handler(void)
{
    is_refusing = true;
    weir_set_log(note_kept, NULL);
    weir_add_value(weir_get_stream("g"), "x", 2);
    while (!atomic_load(&kept))
        usleep(1000);
    _exit(atomic_load(&kept_as_expected) == 1 ? 0 : 1);
}

static int run_child(void (*run)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        run();
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(control, what_a_handler_of_a_route_cannot_take_now_is_kept_in_the_journal)
{
    char text[300];
    if (plain_is_sanitized(""))
        cr_skip_test("a child of a threaded program is forked");
    cr_assert_eq(weir_register_handler_type(&fussy, NULL), 0, "%s", weir_last_error());
    snprintf(text, sizeof text, "{\"settings\":{\"journal\":\"%s/journal\"},\"groups\":{\"*\":\"fussy\"}}",
             folder);
    configure(text);
    cr_assert_eq(run_child(add_and_be_killed), SIGKILL);
    cr_assert_eq(run_child(recover_without_a_handler), 0);
}

/* ---- Flushing -------------------------------------------------------------------------------- */

Test(control, flush_waits_for_earlier_values_and_polls_with_0)
{
    configure("{\"groups\":{\"*\":\"capture\"}}");
    capture_hold();
    weir_add_value(weir_get_stream("g"), "x", 1);
    cr_assert_eq(weir_flush(0), WEIR_ERR_TIMEOUT);
    cr_assert(strstr(weir_last_error(), "\"capture\""), "%s", weir_last_error());
    capture_wait_held();
    cr_assert_eq(weir_flush(5), WEIR_ERR_TIMEOUT);
    capture_release();
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1);
    cr_assert_eq(weir_flush(0), 0);
}

Test(control, flush_reports_drops_once)
{
    configure("{\"groups\":{\"*\":\"capture\"}}");
    capture_fail(3 /* DROP */, "no use");
    weir_add_value(weir_get_stream("g"), "x", 1);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    capture_fail(0, "");
    weir_add_value(weir_get_stream("g"), "x", 2);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_REJECTED], 1);
    assert_ledger("capture");
}

Test(control, flush_ends_a_back_off_early)
{
    configure("{\"handlers\":{\"c\":{\"type\":\"capture\",\"retry_min\":\"1h\",\"retry_max\":\"1h\"}},"
              "\"groups\":{\"*\":\"c\"}}");
    capture_fail(1 /* RETRY */, "not now");
    weir_add_value(weir_get_stream("g"), "x", 1);
    while (stats_of("c").retries == 0)
        usleep(1000);
    capture_fail(0, "");
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1);
}

Test(control, linger_delays_values_until_a_batch_is_full)
{
    configure("{\"handlers\":{\"c\":{\"type\":\"capture\",\"linger\":\"1h\",\"batch\":100}},\"groups\":{\"*"
              "\":\"c\"}}");
    weir_stream *stream = weir_get_stream("g");
    for (int i = 0; i < 1000; i++)
        weir_add_value(stream, "x", i);
    while (capture_count() < 1000)
        usleep(1000);
    cr_assert_eq(capture_batches(), 10);
    weir_add_value(stream, "x", 1000);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1001);
}

/* ---- Listing handlers ------------------------------------------------------------------------ */

Test(control, handlers_are_listed_in_the_order_in_which_they_were_configured)
{
    cr_assert_null(weir_get_handler_name(0), "nothing is configured");
    configure("{\"handlers\":{\"b\":{\"type\":\"capture\"}},\"groups\":{\"g\":\"b\"}}");
    cr_assert_str_eq(weir_get_handler_name(0), "b");
    cr_assert_null(weir_get_handler_name(1));
    configure("{\"handlers\":{\"b\":{\"type\":\"capture\"},\"a\":{\"type\":\"capture\"}},"
              "\"groups\":{\"g\":[\"a\",\"b\"]}}");
    cr_assert_str_eq(weir_get_handler_name(0), "b");
    cr_assert_str_eq(weir_get_handler_name(1), "a");
    cr_assert_null(weir_get_handler_name(2));
    cr_assert_null(weir_get_handler_name(SIZE_MAX));
}

Test(control, a_handler_that_was_removed_stays_in_the_list_with_its_counters)
{
    configure("{\"handlers\":{\"old\":{\"type\":\"capture\"}},\"groups\":{\"g\":\"old\"}}");
    const char *old = weir_get_handler_name(0);
    weir_add_value(weir_get_stream("g"), "x", 1);
    cr_assert_eq(weir_flush(-1), 0);
    configure("{\"handlers\":{\"new\":{\"type\":\"capture\"}},\"groups\":{\"g\":\"new\"}}");
    cr_assert_eq(weir_get_handler_name(0), old, "the name is the same text until the process ends");
    cr_assert_str_eq(old, "old");
    cr_assert_eq(stats_of(old).delivered, 1);
    cr_assert_str_eq(weir_get_handler_name(1), "new");
    cr_assert_null(weir_get_handler_name(2));
}

static _Atomic bool is_configured;

static void *list_handlers(void *argument)
{
    weir_handler_stats stats;
    const char *name, *seen[10] = {NULL};
    (void)argument;
    while (!is_configured)
        for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
            cr_assert_lt(i, 10);
            cr_assert(!seen[i] || seen[i] == name, "an index keeps its handler");
            cr_assert_eq(weir_get_handler_stats(name, &stats, sizeof stats), 0);
            seen[i] = name;
        }
    return NULL;
}

Test(control, an_index_keeps_its_handler_while_another_thread_configures, .timeout = 60)
{
    pthread_t thread;
    char text[200];
    cr_assert_eq(pthread_create(&thread, NULL, list_handlers, NULL), 0);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text,
                 "{\"handlers\":{\"h%d\":{\"type\":\"capture\"}},\"groups\":{\"g\":\"h%d\"}}", i, i);
        configure(text);
    }
    is_configured = true;
    pthread_join(thread, NULL);
    cr_assert_str_eq(weir_get_handler_name(9), "h9");
    cr_assert_null(weir_get_handler_name(10));
}

/* ---- The program's log function -------------------------------------------------------------- */

static _Atomic int reads;

static void read_all_stats(void *ctx, int level, const char *text)
{
    weir_stats stats;
    weir_handler_stats handler;
    (void)ctx;
    (void)level;
    int wrong = weir_get_stats(&stats, sizeof stats) || weir_get_handler_stats("c", &handler, sizeof handler) ||
                weir_add_value(weir_get_stream("said"), "x", 1);
    if (!wrong && strstr(text, "removed"))
        reads++;
}

Test(control, a_log_function_may_use_weir_even_during_the_removal_of_a_handler, .timeout = 60)
{
    configure("{\"settings\":{\"shutdown_timeout\":\"20ms\"},\"handlers\":{\"c\":{\"type\":\"capture\"}},"
              "\"groups\":{\"g\":\"c\",\"said\":\"null\"}}");
    weir_set_log(read_all_stats, NULL);
    capture_hold();
    weir_add_value(weir_get_stream("g"), "x", 1);
    capture_wait_held();
    configure("{\"settings\":{\"shutdown_timeout\":\"20ms\"},\"groups\":{\"said\":\"null\"}}");
    while (!reads)
        usleep(1000);
    capture_release();
    weir_set_log(NULL, NULL);
    cr_assert_eq(stats_of("c").dropped[WEIR_DROPPED_REMOVED], 1);
    assert_ledger("c");
}

Test(control, a_first_use_after_shutdown_is_refused_and_nothing_is_logged)
{
    struct logbook book = {0};
    cr_assert_eq(weir_shutdown(-1), 0);
    weir_set_log(logbook_write, &book);
    cr_assert_eq(weir_configure(NULL, "capture", NULL), WEIR_ERR_CLOSED);
    cr_assert_str_eq(weir_last_error(), "weir has been shut down");
    cr_assert_eq(weir_add_value(weir_get_stream("g"), "x", 1), WEIR_ERR_CLOSED);
    cr_assert_eq(book.count, 0, "%s", logbook_last(&book));
    assert_ledger(NULL);
}

/* ---- Synchronous delivery -------------------------------------------------------------------- */

static const char sync_config[] = "{\"handlers\":{\"c\":{\"type\":\"capture\",\"delivery\":\"sync\",\"block_"
                                  "timeout\":\"1h\"}},\"groups\":{\"*\":\"c\"}}";

static void *add_one(void *argument)
{
    weir_add_value(weir_get_stream("g"), "x", 0);
    return argument;
}

/* The child cannot call a handler that another thread was inside of at the fork. */
Test(control, a_child_reports_values_that_are_spooled_also_after_it_configures_again, .timeout = 60)
{
    char text[300];
    pthread_t thread;
    int status;
    snprintf(text, sizeof text,
             "{\"handlers\":{\"c\":{\"type\":\"capture\",\"delivery\":\"sync\",\"block_timeout\":\"1d\","
             "\"spool\":\"%s/spool\"}},\"groups\":{\"g\":\"c\"}}",
             folder);
    configure(text);
    capture_hold();
    cr_assert_eq(pthread_create(&thread, NULL, add_one, NULL), 0);
    capture_wait_held();
    pid_t child = fork();
    if (child == 0) {
        int before = weir_add_value(weir_get_stream("g"), "x", 1);
        int result = weir_configure("other", "null", NULL);
        int after = weir_add_value(weir_get_stream("g"), "x", 2);
        _exit(before != WEIR_ERR_SPOOLED ? 1 : result ? 2 : after != WEIR_ERR_SPOOLED ? 3 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0, "%d", WEXITSTATUS(status));
    capture_release();
    pthread_join(thread, NULL);
    assert_ledger("c");
}

Test(control, a_synchronous_call_returns_after_the_handler_has_settled_its_value)
{
    configure(sync_config);
    weir_stream *stream = weir_get_stream("g");
    for (size_t i = 0; i < 100; i++) {
        cr_assert_eq(weir_add_value(stream, "x", (double)i), 0);
        cr_assert_eq(capture_count(), i + 1);
    }
    weir_value event[] = {{"a", 1}, {"b", 2}};
    cr_assert_eq(weir_emit(stream, event, 2), 0);
    cr_assert_eq(capture_count(), 102);
    assert_ledger("c");
}

Test(control, a_synchronous_call_reports_a_drop)
{
    configure(sync_config);
    weir_stream *stream = weir_get_stream("g");
    capture_fail(3 /* DROP */, "no use");
    cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_DROPPED);
    capture_fail(0, "");
    cr_assert_eq(weir_add_value(stream, "x", 2), 0);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    cr_assert_eq(capture_count(), 1);
    assert_ledger("c");
}

Test(control, a_synchronous_call_reports_a_handler_that_does_not_return)
{
    configure("{\"handlers\":{\"c\":{\"type\":\"capture\",\"delivery\":\"sync\",\"block_timeout\":\"50ms\"}},"
              "\"groups\":{\"*\":\"c\"}}");
    capture_hold();
    cr_assert_eq(weir_add_value(weir_get_stream("g"), "x", 1), WEIR_ERR_TIMEOUT);
    capture_release();
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 1, "it is delivered nevertheless");
    assert_ledger("c");
}

Test(control, a_synchronous_call_and_a_flush_return_the_error_that_the_handler_sets)
{
    configure("{\"handlers\":{\"c\":{\"type\":\"capture\",\"delivery\":\"sync\",\"block_timeout\":\"1h\","
              "\"retry_min\":\"1h\",\"retry_max\":\"1h\"}},\"groups\":{\"*\":\"c\"}}");
    weir_stream *stream = weir_get_stream("g");
    capture_fail_with(1 /* RETRY */, WEIR_ERR_FIFO_NOT_CREATED, "the pipe is missing");
    cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(weir_last_error(), "handler \"c\": the pipe is missing");
    cr_assert_eq(weir_add_value(stream, "x", 2), WEIR_ERR_FIFO_NOT_CREATED, "later calls do not wait");
    cr_assert_eq(capture_batches(), 1);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(weir_last_error(), "handler \"c\": the pipe is missing");
    cr_assert_eq(capture_batches(), 2, "a flush causes another attempt");
    capture_fail(0, "");
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(weir_add_value(stream, "x", 3), 0);
    cr_assert_eq(capture_count(), 3);
    assert_ledger("c");
}

Test(control, a_synchronous_call_reports_why_its_value_was_dropped)
{
    configure(sync_config);
    weir_stream *stream = weir_get_stream("g");
    capture_fail_with(3 /* DROP */, WEIR_ERR_TOO_LARGE, "7 bytes are too many");
    cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_TOO_LARGE);
    cr_assert_str_eq(weir_last_error(), "handler \"c\": 7 bytes are too many");
    capture_fail(3 /* DROP */, "no use");
    cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_DROPPED);
    cr_assert_str_eq(weir_last_error(), "handler \"c\": no use");
    assert_ledger("c");
}

static void *add_hundred(void *argument)
{
    (void)argument;
    weir_stream *stream = weir_get_stream("g");
    for (int i = 0; i < 100; i++)
        if (weir_add_value(stream, "x", i))
            return "a synchronous call failed";
    return NULL;
}

Test(control, threads_that_wait_do_not_disturb_each_other)
{
    pthread_t threads[8];
    void *error;
    configure(sync_config);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, add_hundred, NULL);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &error);
        cr_assert_null(error, "%s", (char *)error);
    }
    cr_assert_eq(capture_count(), 800);
    assert_ledger("c");
}

/* ---- Forked children ------------------------------------------------------------------------- */

/* Returns how the child ended, which runs `code` and exits with what that returns. */
static int run_in_child(int (*code)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        _exit(code());
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static void skip_if_sanitized(void)
{
    if (plain_is_sanitized(""))
        cr_skip_test("the sanitizers' allocators and thread lists do not survive a fork of a threaded program");
}

static int add_routed(void)
{
    weir_handler_stats stats;
    if (weir_add_value(weir_get_stream("g"), "x", 1) || weir_flush(-1))
        return 1;
    return weir_get_handler_stats("null", &stats, sizeof stats) || stats.delivered != 1 ? 2 : 0;
}

static int get_a_stream_and_fork(void)
{
    return weir_get_stream("g") ? run_in_child(add_routed) != 0 : 1;
}

Test(control, a_grandchild_has_the_configuration_also_if_its_parent_has_added_no_value)
{
    skip_if_sanitized();
    configure("{\"groups\":{\"*\":\"null\"}}");
    cr_assert_eq(run_in_child(get_a_stream_and_fork), 0);
    cr_assert_eq(run_in_child(add_routed), 0);
}

static _Thread_local bool stops_in_getpid;
static sem_t stopped, released;

/* weir compares the process as it begins anew in a child: there a thread can be stopped. */
__attribute__((visibility("default"))) pid_t getpid(void)
{
    if (stops_in_getpid) {
        stops_in_getpid = false;
        sem_post(&stopped);
        sem_wait(&released);
    }
    return (pid_t)syscall(SYS_getpid);
}

static void *begin_anew(void *argument)
{
    stops_in_getpid = true;
    weir_get_stream("g");
    return argument;
}

static void fail_at_message(void *ctx, int level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
    _exit(1);
}

static int exit_while_another_thread_begins_anew(void)
{
    pthread_t thread;
    sem_init(&stopped, 0, 0);
    sem_init(&released, 0, 0);
    if (pthread_create(&thread, NULL, begin_anew, NULL) != 0)
        return 2;
    sem_wait(&stopped);
    exit(0);
}

Test(control, the_exit_of_a_child_that_has_no_handlers_yet_leaves_those_of_its_parent)
{
    skip_if_sanitized();
    weir_set_log(fail_at_message, NULL);
    configure("{\"groups\":{\"*\":\"null\"}}");
    cr_assert_eq(weir_add_value(weir_get_stream("g"), "x", 1), 0);
    cr_assert_eq(run_in_child(exit_while_another_thread_begins_anew), 0);
}

/* ---- Shutting down --------------------------------------------------------------------------- */

Test(control, shutdown_delivers_and_later_calls_are_counted_no_ops)
{
    weir_stats stats;
    configure("{\"groups\":{\"*\":\"capture\"}}");
    weir_stream *stream = weir_get_stream("g");
    for (int i = 0; i < 100; i++)
        weir_add_value(stream, "x", i);
    cr_assert_eq(weir_shutdown(-1), 0);
    cr_assert_eq(capture_count(), 100);
    cr_assert_eq(weir_shutdown(-1), 0);
    cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_CLOSED);
    cr_assert_eq(weir_add_value(weir_get_stream("new"), "y", 1), WEIR_ERR_CLOSED);
    weir_value event[] = {{"a", 1}, {"b", 2}};
    cr_assert_eq(weir_emit(stream, event, 2), WEIR_ERR_CLOSED);
    cr_assert_eq(weir_configure("*", "null", NULL), WEIR_ERR_CLOSED);
    cr_assert_eq(weir_reload(), WEIR_ERR_CLOSED);
    cr_assert_eq(weir_flush(-1), 0);
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.refused[WEIR_REFUSED_CLOSED], 4);
    cr_assert_eq(stats.added, 100);
    assert_ledger("capture");
}

static void *add_until_closed(void *argument)
{
    uint64_t *added = argument;
    weir_metric *metric = weir_get_metric(weir_get_stream("g"), "x");
    while (weir_metric_add(metric, 1) == 0)
        ++*added;
    return NULL;
}

Test(control, shutdown_while_threads_add_loses_no_accepted_value)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t added[THREADS] = {0}, sum = 0;
    configure("{\"groups\":{\"*\":\"null\"}}");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add_until_closed, &added[i]);
    while (stats_of("null").delivered == 0)
        usleep(1000);
    cr_assert_eq(weir_shutdown(LONG_MS), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += added[i];
    }
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.added, sum);
    cr_assert_eq(stats_of("null").delivered, sum);
    assert_ledger("null");
}

/* ---- Messages -------------------------------------------------------------------------------- */

static char messages[10][500];
static int levels[10];
static _Atomic int message_count;

static void log_message(void *ctx, int level, const char *text)
{
    cr_assert_eq(ctx, messages);
    int i = message_count;
    snprintf(messages[i], sizeof messages[i], "%s", text);
    levels[i] = level;
    message_count = i + 1;
}

Test(control, a_failing_handler_is_logged_once_and_its_recovery_too)
{
    weir_set_log(log_message, messages);
    configure("{\"handlers\":{\"c\":{\"type\":\"capture\",\"retry_min\":\"1ms\",\"retry_max\":\"2ms\"}},"
              "\"groups\":{\"*\":\"c\"}}");
    capture_fail(1 /* RETRY */, "the \x1b[31mpeer\n is down");
    weir_add_value(weir_get_stream("g"), "x", 1);
    while (stats_of("c").retries < 5)
        usleep(1000);
    cr_assert_eq(stats_of("c").failing, 1);
    capture_fail(0, "");
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("c").failing, 0);
    cr_assert_str_eq(stats_of("c").last_error, "the \\x1b[31mpeer\\n is down");
    cr_assert_geq(stats_of("c").last_error_ms, 0);
    cr_assert_eq(message_count, 2);
    cr_assert_str_eq(messages[0], "c: the \\x1b[31mpeer\\n is down; retrying, 1 queued");
    cr_assert(strncmp(messages[1], "c: back after ", 14) == 0 && strstr(messages[1], ", 0 lost"), "%s",
              messages[1]);
    cr_assert_eq(levels[0], WEIR_LOG_WARNING);
    weir_set_log(NULL, NULL);
}
