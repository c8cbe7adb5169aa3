/* weir_metric_try_add: adds a value, or refuses it with WEIR_ERR_BUSY where another call would wait, allocate
 * or start something; each refusal is counted. */

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "plain.h"
#include "threads.h"

enum { HANG_S = 60 };

static void set_up(void)
{
    capture_register();
    cr_assert_eq(weir_configure("*", "capture", NULL), 0);
}

TestSuite(try_add, .init = set_up);

static weir_metric *metric_of(const char *group)
{
    return weir_get_metric(weir_get_stream(group), "m");
}

static uint64_t refused(enum weir_refusal why)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    return stats.refused[why];
}

static uint64_t added(void)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    return stats.added;
}

Test(try_add, values_of_both_kinds_arrive_after_an_ordinary_one)
{
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 0.5), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1.5), 0);
    cr_assert_eq(weir_metric_try_add_int(metric, INT64_MIN), 0);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_count(), 3);
    cr_assert_eq(capture_at(1)->value, 1.5);
    cr_assert_eq(capture_at(2)->integer, INT64_MIN);
    assert_ledger("capture");
}

Test(try_add, the_first_value_of_a_process_is_refused_and_starts_nothing)
{
    int threads = count_threads();
    weir_metric *metric = metric_of("g");
    for (int i = 0; i < 3; i++)
        cr_assert_eq(weir_metric_try_add(metric, 1), WEIR_ERR_BUSY);
    cr_assert_eq(count_threads(), threads);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 3);
    cr_assert_eq(added(), 0);
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), 0);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(added(), 2);
    assert_ledger("capture");
}

static void *try_on_thread(void *metric)
{
    long first = weir_metric_try_add(metric, 1);
    long other = weir_metric_add(metric, 2);
    long last = weir_metric_try_add(metric, 3);
    return (void *)(long)(first == WEIR_ERR_BUSY && other == 0 && last == 0);
}

Test(try_add, the_first_value_of_a_thread_is_refused)
{
    void *as_expected;
    pthread_t thread;
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    pthread_create(&thread, NULL, try_on_thread, metric);
    pthread_join(thread, &as_expected);
    cr_assert(as_expected);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 1);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(added(), 3);
    assert_ledger("capture");
}

Test(try_add, a_value_that_is_refused_does_not_move_a_gauge)
{
    weir_metric *gauge = weir_get_gauge(weir_get_stream("g"), "level");
    cr_assert_eq(weir_metric_try_add(gauge, 5), WEIR_ERR_BUSY);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    cr_assert_eq(weir_metric_try_add(gauge, 7), 0);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(capture_at(0)->value, 1);
    cr_assert_eq(capture_at(2)->value, 8);
    assert_ledger("capture");
}

Test(try_add, the_first_value_of_a_group_is_refused)
{
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric_of("h"), 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), WEIR_ERR_BUSY);
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), 0);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 1);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(added(), 3);
    assert_ledger("capture");
}

Test(try_add, a_group_without_a_route_counts_it_as_unrouted)
{
    weir_stats stats;
    cr_assert_eq(weir_configure_text("{\"groups\":{\"g\":[]}}", 19), 0);
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), 0);
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.unrouted, 2);
    cr_assert_eq(stats.added, 2);
    assert_ledger(NULL);
}

/* The queue is full, and calls would wait for room in it. */
Test(try_add, a_full_queue_refuses_at_once)
{
    cr_assert_eq(weir_configure("*", "capture", "{\"queue\":\"64KiB\",\"batch\":1,\"block_timeout\":\"1h\"}"),
                 0);
    weir_metric *metric = metric_of("g");
    uint64_t good = 1, busy = 0;
    int result = 0;
    capture_hold();
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    capture_wait_held();
    while (busy < 100000) {
        result = weir_metric_try_add(metric, 1);
        cr_assert(result == 0 || result == WEIR_ERR_BUSY);
        result ? busy++ : good++;
    }
    cr_assert_geq(good, 2048, "the queue takes that many");
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), busy);
    capture_release();
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(added(), good);
    cr_assert_eq(capture_count(), good);
    assert_ledger("capture");
}

Test(try_add, synchronous_delivery_refuses_at_once)
{
    cr_assert_eq(weir_configure("*", "capture", "{\"delivery\":\"sync\",\"block_timeout\":\"1h\"}"), 0);
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), WEIR_ERR_BUSY);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 1);
    cr_assert_eq(capture_count(), 1);
    assert_ledger("capture");
}

/* Everything that the child does before it has used weir itself. */
static int live_as_child(weir_metric *metric)
{
    weir_stats stats;
    int threads = count_threads();
    bool refuses = weir_metric_try_add(metric, 1) == WEIR_ERR_BUSY && weir_metric_try_add_int(NULL, 1) != 0;
    bool quiet = count_threads() == threads;
    bool adds = weir_metric_add(metric, 1) == 0 && weir_metric_try_add(metric, 1) == 0;
    weir_get_stats(&stats, sizeof stats);
    bool counted =
        stats.added == 2 && stats.refused[WEIR_REFUSED_BUSY] == 1 && stats.refused[WEIR_REFUSED_ARGUMENT] == 1;
    return (refuses ? 0 : 1) + (quiet ? 0 : 2) + (adds ? 0 : 4) + (counted ? 0 : 8);
}

Test(try_add, a_forked_child_refuses_and_counts_until_it_has_used_weir)
{
    int status;
    weir_metric *metric = metric_of("g");
    if (plain_is_sanitized(""))
        cr_skip_test("the sanitizers' allocators and thread lists do not survive a fork of a threaded program");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric_of("new"), 1), WEIR_ERR_BUSY);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        _exit(live_as_child(metric));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 1);
    cr_assert_eq(weir_flush(-1), 0);
    assert_ledger("capture");
}

Test(try_add, after_the_shutdown_it_is_refused_as_closed)
{
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_shutdown(-1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), WEIR_ERR_CLOSED);
    cr_assert_eq(refused(WEIR_REFUSED_CLOSED), 1);
    assert_ledger("capture");
}

Test(try_add, a_refusal_keeps_errno_and_the_last_error)
{
    char before[300];
    weir_metric *bad = weir_get_metric(weir_get_stream("g"), "");
    snprintf(before, sizeof before, "%s", weir_last_error());
    cr_assert_neq(before[0], '\0');
    errno = 4711;
    cr_assert_eq(weir_metric_try_add(bad, 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_metric_try_add(NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_try_add(metric_of("h"), 1), WEIR_ERR_BUSY);
    cr_assert_eq(errno, 4711);
    cr_assert_str_eq(weir_last_error(), before);
    cr_assert_eq(refused(WEIR_REFUSED_NAME), 1);
    cr_assert_eq(refused(WEIR_REFUSED_ARGUMENT), 1);
    cr_assert_eq(refused(WEIR_REFUSED_BUSY), 1);
    assert_ledger(NULL);
}

/* A thread's ring moves to the journal in its next ordinary call. */
Test(try_add, a_ring_that_is_to_move_to_the_journal_refuses)
{
    char folder[] = "/tmp/weir-try-add-XXXXXX", config[200];
    cr_assert_not_null(mkdtemp(folder));
    weir_metric *metric = metric_of("g");
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), 0);
    int length = snprintf(config, sizeof config,
                          "{\"settings\":{\"journal\":\"%s/j\"},\"groups\":{\"*\":\"capture\"}}", folder);
    cr_assert_eq(weir_configure_text(config, (size_t)length), 0, "%s", weir_last_error());
    cr_assert_eq(weir_metric_try_add(metric, 1), WEIR_ERR_BUSY);
    cr_assert_eq(weir_metric_add(metric, 1), 0);
    cr_assert_eq(weir_metric_try_add(metric, 1), 0);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(added(), 4);
    assert_ledger("capture");
    cr_assert_eq(weir_shutdown(-1), 0);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}
