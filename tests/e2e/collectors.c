/* Collectors through the public API: when they are called and by whom, their end, and what a shutdown and a
 * fork make of them. */

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "logbook.h"
#include "plain.h"

enum { PATIENCE_MS = 60000 };

TestSuite(collectors, .init = capture_register, .timeout = 300);

static void configure(void)
{
    const char *text = "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"groups\":{\"*\":\"capture\"}}";
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
}

static void wait_on(sem_t *semaphore)
{
    while (sem_wait(semaphore) && errno == EINTR)
        ;
}

/* What a collector is given. */
struct probe {
    weir_stream *stream;
    sem_t called;     /* posted in each call */
    sem_t may_return; /* if it holds */
    bool holds;       /* each call waits for may_return */
    atomic_int calls;
    _Atomic(weir_collector *) self; /* removed in the first call, if set */
    atomic_bool may_be_called, wrongly_called, is_inside;
    atomic_bool has_signals; /* some signal was not blocked */
    pthread_t thread;
};

static void probe_init(struct probe *probe)
{
    *probe = (struct probe){.stream = weir_get_stream("pool"), .may_be_called = true};
    sem_init(&probe->called, 0, 0);
    sem_init(&probe->may_return, 0, 0);
}

static void collect(weir_stream *stream, void *context)
{
    struct probe *probe = context;
    sigset_t blocked;
    if (stream != probe->stream || !atomic_load(&probe->may_be_called))
        atomic_store(&probe->wrongly_called, true);
    atomic_store(&probe->is_inside, true);
    probe->thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGUSR1))
        atomic_store(&probe->has_signals, true);
    int calls = atomic_fetch_add(&probe->calls, 1) + 1;
    weir_add_int(stream, "length", calls);
    sem_post(&probe->called);
    if (atomic_load(&probe->holds))
        wait_on(&probe->may_return);
    weir_collector *self = atomic_load(&probe->self);
    if (self)
        weir_remove_collector(self);
    atomic_store(&probe->is_inside, false);
}

static weir_collector *add(struct probe *probe, int64_t interval_ms)
{
    weir_collector *collector = weir_add_collector(probe->stream, collect, probe, interval_ms);
    cr_assert(collector, "%s", weir_last_error());
    return collector;
}

/* The call that holds returns, and no other one waits. */
static void let_go(struct probe *probe)
{
    atomic_store(&probe->holds, false);
    sem_post(&probe->may_return);
}

static void wait_for_calls(struct probe *probe, int count)
{
    while (count-- > 0)
        wait_on(&probe->called);
}

Test(collectors, values_are_added_on_a_thread_of_their_own_and_delivered)
{
    struct probe probe;
    probe_init(&probe);
    configure();
    cr_assert_eq(weir_start(), 0);
    weir_collector *collector = add(&probe, 1);
    wait_for_calls(&probe, 10);
    weir_remove_collector(collector);
    int calls = atomic_load(&probe.calls);
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), calls);
    for (int i = 0; i < calls; i++) {
        cr_assert_str_eq(capture_at((size_t)i)->name, "length");
        cr_assert_eq(capture_at((size_t)i)->integer, i + 1);
    }
    cr_assert(!pthread_equal(probe.thread, pthread_self()));
    cr_assert(!atomic_load(&probe.wrongly_called));
    cr_assert(!atomic_load(&probe.has_signals));
    assert_ledger("capture");
}

Test(collectors, none_is_called_before_the_process_starts)
{
    struct probe probe;
    probe_init(&probe);
    atomic_store(&probe.may_be_called, false);
    weir_collector *collector = add(&probe, 1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* no verdict: time for a wrong call */
    atomic_store(&probe.may_be_called, true);
    configure();
    weir_start();
    wait_for_calls(&probe, 3);
    cr_assert(!atomic_load(&probe.wrongly_called));
    weir_remove_collector(collector);
}

Test(collectors, they_are_called_from_the_first_value_on)
{
    struct probe probe;
    probe_init(&probe);
    configure();
    weir_collector *collector = add(&probe, 1);
    cr_assert_eq(weir_add_value(probe.stream, "other", 1), 0);
    wait_for_calls(&probe, 3);
    weir_remove_collector(collector);
}

static void *remove_it(void *collector)
{
    weir_remove_collector(collector);
    return NULL;
}

Test(collectors, a_removal_waits_for_the_call_that_is_made)
{
    configure();
    weir_start();
    for (int round = 0; round < 100; round++) {
        struct probe *probe = malloc(sizeof *probe);
        probe_init(probe);
        probe->holds = true;
        weir_collector *collector = add(probe, 1);
        wait_for_calls(probe, 1);
        pthread_t removers[2];
        for (int i = 0; i < 2; i++)
            cr_assert_eq(pthread_create(&removers[i], NULL, remove_it, collector), 0);
        if (round % 2)
            sched_yield();
        cr_assert(atomic_load(&probe->is_inside));
        let_go(probe);
        for (int i = 0; i < 2; i++)
            pthread_join(removers[i], NULL);
        cr_assert(!atomic_load(&probe->is_inside));
        memset(probe, 0xff, sizeof *probe);
        free(probe);
    }
}

Test(collectors, one_may_remove_itself)
{
    struct probe once, always;
    configure();
    weir_start();
    probe_init(&once);
    probe_init(&always);
    once.holds = true;
    atomic_store(&once.self, add(&once, 1));
    weir_collector *other = add(&always, 1);
    wait_for_calls(&once, 1);
    let_go(&once);
    wait_for_calls(&always, 20);
    cr_assert_eq(atomic_load(&once.calls), 1);
    weir_remove_collector(other);
}

/* The one that is called removes the other, which is due at the same time. */
static weir_collector *victim;

static void remove_victim(weir_stream *stream, void *context)
{
    (void)stream;
    weir_remove_collector(victim);
    victim = NULL;
    sem_post(context);
}

Test(collectors, one_may_remove_another)
{
    struct probe probe, always;
    sem_t removed;
    sem_init(&removed, 0, 0);
    probe_init(&probe);
    probe_init(&always);
    configure();
    weir_collector *remover = weir_add_collector(probe.stream, remove_victim, &removed, 1);
    victim = add(&probe, 1);
    weir_collector *other = add(&always, 1);
    weir_start();
    wait_on(&removed);
    wait_for_calls(&always, 5);
    cr_assert_eq(atomic_load(&probe.calls), 0);
    weir_remove_collector(remover);
    weir_remove_collector(other);
}

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct logbook book;

static void write_log(void *unused, int level, const char *text)
{
    (void)unused;
    pthread_mutex_lock(&log_lock);
    logbook_write(&book, level, text);
    pthread_mutex_unlock(&log_lock);
}

static const char hangs_from[] = "a collector of the group \"pool\" has not returned for ";
static const char hangs_to[] = " s; it is called again once it has, and others do not wait for it";
static const char left_to[] = " s; the shutdown does not wait for it";

/* How many messages begin, after what all have, and end so. */
static int count_lines(const char *from, const char *to)
{
    int found = 0;
    pthread_mutex_lock(&log_lock);
    for (unsigned i = 0; i < book.count && i < LOGBOOK_LINES; i++) {
        const char *begin = strstr(book.lines[i], from);
        if (begin && strstr(begin, to))
            found++;
    }
    pthread_mutex_unlock(&log_lock);
    return found;
}

Test(collectors, a_slow_one_is_logged_once_and_others_are_called)
{
    struct probe slow, other;
    configure();
    weir_start();
    probe_init(&slow);
    probe_init(&other);
    slow.holds = true;
    weir_set_log(write_log, NULL);
    weir_collector *first = add(&slow, 1);
    weir_collector *second = add(&other, 1);
    for (int i = 0; i < 5; i++) {
        wait_for_calls(&slow, 1);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* longer than the interval */
        sem_post(&slow.may_return);
    }
    let_go(&slow);
    wait_for_calls(&other, 3);
    weir_remove_collector(first);
    weir_remove_collector(second);
    weir_set_log(NULL, NULL);
    int found = count_lines("a collector of the group \"pool\" took ",
                            " s, longer than its interval of 0.001 s; calls are left out");
    /* on a machine that does not let it run for a second, it is said while it is slow; the other one may be
     * slow as well */
    found += count_lines(hangs_from, hangs_to);
    cr_assert(found >= 1 && found <= 1 + atomic_load(&other.calls), "%d", found);
}

Test(collectors, while_one_hangs_it_is_logged_and_the_others_are_called)
{
    struct probe hanging[2], other;
    weir_collector *collectors[3];
    configure();
    weir_start();
    weir_set_log(write_log, NULL);
    for (int i = 0; i < 2; i++) {
        probe_init(&hanging[i]);
        hanging[i].holds = true;
        collectors[i] = add(&hanging[i], 1);
    }
    probe_init(&other);
    collectors[2] = add(&other, 1);
    wait_for_calls(&other, 10);
    for (int i = 0; i < 2; i++) {
        cr_assert(atomic_load(&hanging[i].is_inside));
        cr_assert_eq(atomic_load(&hanging[i].calls), 1);
    }
    cr_assert_geq(count_lines(hangs_from, hangs_to), 2);
    for (int i = 0; i < 2; i++) {
        let_go(&hanging[i]);
        wait_for_calls(&hanging[i], 3); /* it is called again */
    }
    wait_for_calls(&other, 10);
    for (int i = 0; i < 3; i++)
        weir_remove_collector(collectors[i]);
    for (int i = 0; i < 2; i++)
        cr_assert(!atomic_load(&hanging[i].is_inside));
    weir_set_log(NULL, NULL);
}

static void wait_until_outside(struct probe *probe)
{
    while (atomic_load(&probe->is_inside))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

Test(collectors, one_that_hangs_may_remove_itself)
{
    struct probe hanging, other;
    configure();
    weir_start();
    probe_init(&hanging);
    probe_init(&other);
    hanging.holds = true;
    atomic_store(&hanging.self, add(&hanging, 1));
    weir_collector *collector = add(&other, 1);
    wait_for_calls(&other, 3);
    let_go(&hanging);
    wait_until_outside(&hanging);
    while (sem_trywait(&other.called) == 0)
        ;
    wait_for_calls(&other, 3);
    cr_assert_eq(atomic_load(&hanging.calls), 1);
    weir_remove_collector(collector);
}

/* ---- The end of the process ------------------------------------------------------------------ */

static void *shut_down(void *result)
{
    *(int *)result = weir_shutdown(PATIENCE_MS);
    return NULL;
}

Test(collectors, a_shutdown_waits_for_the_call_that_is_made_and_delivers_its_values)
{
    struct probe probe, late;
    configure();
    weir_start();
    probe_init(&probe);
    probe_init(&late);
    probe.holds = true;
    add(&probe, 86400000); /* it does not hang for so long */
    wait_for_calls(&probe, 1);
    int result = -1;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, shut_down, &result), 0);
    let_go(&probe);
    pthread_join(thread, NULL);
    cr_assert_eq(result, 0, "%s", weir_last_error());
    cr_assert(!atomic_load(&probe.is_inside));
    atomic_store(&probe.may_be_called, false);
    atomic_store(&late.may_be_called, false);
    weir_collector *collector = add(&late, 1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* no verdict: time for a wrong call */
    weir_remove_collector(collector);
    cr_assert(!atomic_load(&probe.wrongly_called) && !atomic_load(&late.wrongly_called));
    cr_assert_eq(capture_count(), atomic_load(&probe.calls));
    assert_ledger("capture");
}

Test(collectors, a_shutdown_leaves_one_that_hangs_behind_and_delivers)
{
    struct probe probe;
    configure();
    weir_start();
    weir_set_log(write_log, NULL);
    probe_init(&probe);
    probe.holds = true;
    add(&probe, 1);
    wait_for_calls(&probe, 1);
    cr_assert_eq(weir_shutdown(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert(atomic_load(&probe.is_inside));
    cr_assert_eq(capture_count(), 1);
    cr_assert_eq(count_lines("a collector of the group \"pool\" has not returned for ", left_to), 1);
    let_go(&probe);
    wait_until_outside(&probe);
    assert_ledger("capture");
    weir_set_log(NULL, NULL);
}

Test(collectors, a_shutdown_leaves_half_of_its_time_to_the_values)
{
    struct probe probe;
    configure();
    weir_start();
    weir_set_log(write_log, NULL);
    probe_init(&probe);
    probe.holds = true;
    add(&probe, 86400000);
    wait_for_calls(&probe, 1);
    weir_shutdown(2000); /* whether the other half is enough is up to the machine */
    cr_assert(atomic_load(&probe.is_inside));
    cr_assert_eq(count_lines("a collector of the group \"pool\" has not returned for ", left_to), 1);
    let_go(&probe);
    wait_until_outside(&probe);
    assert_ledger("capture");
    weir_set_log(NULL, NULL);
}

struct attempt {
    sem_t done;
    int flushed, shut_down;
};

static void deliver_all(weir_stream *stream, void *context)
{
    struct attempt *attempt = context;
    weir_add_int(stream, "length", 1);
    attempt->flushed = weir_flush(PATIENCE_MS);
    attempt->shut_down = weir_shutdown(PATIENCE_MS);
    sem_post(&attempt->done);
}

Test(collectors, one_may_flush_but_not_shut_down)
{
    struct attempt attempt;
    configure();
    sem_init(&attempt.done, 0, 0);
    cr_assert(weir_add_collector(weir_get_stream("pool"), deliver_all, &attempt, 86400000));
    weir_start();
    wait_on(&attempt.done);
    cr_assert_eq(attempt.flushed, 0);
    cr_assert_eq(attempt.shut_down, WEIR_ERR_BUSY);
    cr_assert_eq(capture_count(), 1);
    cr_assert_eq(weir_shutdown(PATIENCE_MS), 0, "%s", weir_last_error());
    assert_ledger("capture");
}

Test(collectors, a_forked_child_has_its_own)
{
    struct probe probe;
    if (plain_is_sanitized(""))
        cr_skip_test("the sanitizers' allocators and thread lists do not survive a fork of a threaded program");
    configure();
    weir_start();
    probe_init(&probe);
    weir_collector *collector = add(&probe, 1);
    wait_for_calls(&probe, 3);
    pid_t child = fork();
    if (child == 0) {
        struct probe own;
        plain_hang_no_longer_than(60);
        int calls = atomic_load(&probe.calls);
        weir_remove_collector(collector); /* the parent's: nothing happens */
        probe_init(&own);
        weir_collector *mine = add(&own, 1);
        weir_start();
        wait_for_calls(&own, 5);
        weir_remove_collector(mine);
        _exit(atomic_load(&probe.calls) == calls && weir_flush(PATIENCE_MS) == 0 ? 0 : 1);
    }
    int status;
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    while (sem_trywait(&probe.called) == 0)
        ;
    wait_for_calls(&probe, 3); /* the parent's goes on */
    weir_remove_collector(collector);
    cr_assert_eq(weir_flush(PATIENCE_MS), 0);
    assert_ledger("capture");
}

Test(collectors, arguments_that_are_not_allowed_are_refused)
{
    struct probe probe;
    configure();
    probe_init(&probe);
    cr_assert_null(weir_add_collector(NULL, collect, &probe, 1));
    cr_assert_str_eq(weir_last_error(), "weir_add_collector: the stream or the function is NULL");
    cr_assert_null(weir_add_collector(probe.stream, NULL, &probe, 1));
    cr_assert_str_eq(weir_last_error(), "weir_add_collector: the stream or the function is NULL");
    const int64_t wrong[] = {0, -1, INT64_MIN, 86400001, INT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_null(weir_add_collector(probe.stream, collect, &probe, wrong[i]));
        cr_assert(strstr(weir_last_error(), "; allowed: 1 to 86400000"), "%s", weir_last_error());
    }
    weir_remove_collector(NULL);
    weir_remove_collector(add(&probe, 86400000));
}
