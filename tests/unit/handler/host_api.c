/* The functions that the core provides to handlers. */
#include <criterion/criterion.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../support/ledger.h"
#include "../../support/host_fixture.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "format/format.h"
#include "handler/instance.h"
#include "lane/lane_next.h"
#include "lane/outcome.h"
#include "lane/lane_stop.h"
#include "lane/lane_stats.h"

static struct wr_encoder encoder;

static void teardown(void)
{
    wr_lane_drop_all(lane, WEIR_DROPPED_SHUTDOWN);
    wr_lane_free_unused(lane);
    wr_encoder_fini(&encoder);
}

TestSuite(host_api, .init = setup, .fini = teardown);

Test(host_api, the_host_has_size_abi_name_type_and_context)
{
    cr_assert_eq(host->size, sizeof *host);
    cr_assert_eq(host->abi, WEIR_ABI);
    cr_assert_str_eq(host->name, "push");
    cr_assert_eq(host->type, &given);
    cr_assert_eq(host->context, &book);
}

/* ---- log ------------------------------------------------------------------------------------- */

Test(host_api, messages_are_logged_under_the_handlers_name)
{
    host->log(host, WEIR_LOG_INFO, "connected to %s", "there");
    cr_assert_str_eq(logbook_last(&book), "push: connected to there");
    cr_assert_eq(logbook_last_level(&book), WEIR_LOG_INFO);
}

Test(host_api, messages_are_logged_up_to_the_level)
{
    host->log(host, WEIR_LOG_DEBUG, "details");
    host->log(host, 0, "no level");
    host->log(host, 5, "no level");
    host->log(host, -1, "no level");
    cr_assert_eq(book.count, 0);
}

/* ---- count ----------------------------------------------------------------------------------- */

static uint64_t value_of(const char *name)
{
    struct wr_lane_counter counters[WR_LANE_COUNTERS];
    size_t count = wr_lane_stats_get_counters(lane, counters);
    for (size_t i = 0; i < count; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    return 0;
}

Test(host_api, counters_are_kept_by_name)
{
    host->count(host, "status.404", 2);
    host->count(host, "status.500", 1);
    host->count(host, "status.404", 3);
    cr_assert_eq(value_of("status.404"), 5);
    cr_assert_eq(value_of("status.500"), 1);
}

Test(host_api, names_of_counters_are_copied)
{
    char name[] = "first";
    host->count(host, name, 1);
    memcpy(name, "other", 5);
    host->count(host, "first", 1);
    cr_assert_eq(value_of("first"), 2);
}

Test(host_api, long_names_of_counters_are_truncated)
{
    char name[200];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 5; i++)
        host->count(host, name, 1);
    cr_assert_eq(lane->counters[0].value, 5);
    cr_assert_eq(lane->counter_count, 1);
}

Test(host_api, an_empty_counter_name_is_separate)
{
    host->count(host, "", 1);
    host->count(host, "other", 2);
    host->count(host, "", 4);
    cr_assert_eq(value_of(""), 5);
    cr_assert_eq(value_of("other"), 2);
}

Test(host_api, the_number_of_counters_is_limited)
{
    char name[20];
    for (int i = 0; i < WR_LANE_COUNTERS + 5; i++) {
        snprintf(name, sizeof name, "n%d", i);
        host->count(host, name, 1);
    }
    cr_assert_eq(value_of("n31"), 1);
    cr_assert_eq(value_of("n32"), 0);
    host->count(host, "n0", 1);
    cr_assert_eq(value_of("n0"), 2);
}

/* ---- wake_in --------------------------------------------------------------------------------- */

Test(host_api, wake_in_sets_a_timer_and_a_later_call_replaces_it)
{
    int64_t before = wr_clock_monotonic_ns();
    host->wake_in(host, 3600000);
    cr_assert_geq(lane->wake_at_ns, before + 3600 * WR_NS_PER_S);
    host->wake_in(host, 0);
    cr_assert_leq(lane->wake_at_ns, wr_clock_monotonic_ns());
    cr_assert_neq(lane->wake_at_ns, 0);
}

Test(host_api, a_negative_delay_cancels_the_timer)
{
    host->wake_in(host, 1000);
    host->wake_in(host, -1);
    cr_assert_eq(lane->wake_at_ns, 0);
}

Test(host_api, the_longest_delay_never_expires)
{
    host->wake_in(host, INT64_MAX);
    cr_assert_eq(lane->wake_at_ns, WR_NEVER);
}

/* ---- wait and stopping ----------------------------------------------------------------------- */

Test(host_api, without_a_stop_a_wait_lasts_its_full_time)
{
    cr_assert_not(host->stopping(host));
    lane->worker.state = WR_THREAD_CALLING;
    cr_assert(host->wait(host, 0));
    cr_assert(host->wait(host, -5));
    cr_assert(wr_lane_thread_is_inside(&lane->worker));
}

Test(host_api, a_stop_ends_the_wait, .timeout = 60)
{
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    cr_assert(host->stopping(host));
    cr_assert_not(host->wait(host, 3600000));
    cr_assert_not(host->wait(host, INT64_MAX));
    cr_assert_not(host->wait(host, 0));
}

Test(host_api, a_successor_ends_the_wait, .timeout = 60)
{
    struct wr_instance successor;
    lane->successor.instance = &successor;
    cr_assert(host->stopping(host));
    cr_assert_not(host->wait(host, 3600000));
    lane->successor.instance = NULL;
}

static void *wait_long(void *argument)
{
    (void)argument;
    bool waited = host->wait(host, 3600000);
    return waited ? &book : NULL;
}

/* Starts a thread that waits inside its handler. Returns with the lock held once it waits. */
static pthread_t start_waiting(void)
{
    pthread_t thread;
    lane->worker.state = WR_THREAD_CALLING;
    pthread_create(&thread, NULL, wait_long, NULL);
    wr_lock_enter(&lane->lock);
    while (wr_lane_thread_is_inside(&lane->worker))
        wr_condition_wait(&lane->progress, &lane->lock, WR_NEVER);
    return thread;
}

Test(host_api, a_waiting_handler_is_not_in_a_callback_and_returns_when_a_stop_is_requested, .timeout = 60)
{
    void *result = &book;
    pthread_t thread = start_waiting();
    wr_lock_leave(&lane->lock);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    pthread_join(thread, &result);
    cr_assert_null(result);
    cr_assert(wr_lane_thread_is_inside(&lane->worker));
}

Test(host_api, a_waiting_handler_is_held_during_a_fork, .timeout = 60)
{
    void *result = &book;
    pthread_t thread = start_waiting();
    lane->fork = WR_LANE_FORK_PENDING;
    wr_lock_leave(&lane->lock);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    wr_lock_enter(&lane->lock);
    cr_assert_not(wr_lane_thread_is_inside(&lane->worker), "it must not return before the fork is over");
    lane->fork = WR_LANE_FORK_NONE;
    wr_condition_wake(&lane->worker.work);
    wr_lock_leave(&lane->lock);
    pthread_join(thread, &result);
    cr_assert_null(result);
}

Test(host_api, a_handler_waiting_inside_emit_keeps_its_batch, .timeout = 60)
{
    struct wr_segment_pool pool = {0};
    struct wr_segment *segment = wr_segment_new(&pool, 1);
    segment->samples[segment->count++] = (weir_sample){0};
    wr_delivery_opened(&lane->delivery);
    wr_lane_offer(lane, &(struct wr_offer){.segment = segment, .count = 1}, 1);
    cr_assert_eq(wr_lane_next_decide(lane, 1).kind, WR_LANE_NEXT_EMIT);
    pthread_t thread = start_waiting();
    wr_lock_leave(&lane->lock);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, 0);
    wr_lane_stop_wait(lane, 0, 3600 * WR_NS_PER_S);
    pthread_join(thread, NULL);
    cr_assert_eq(segment->references, 2, "the handler is still reading it");
    weir_outcome outcome = {.code = WEIR_OUTCOME_OK, .done = 1};
    wr_outcome_apply_emit(lane, &outcome, NULL, 2);
    cr_assert_eq(segment->references, 1);
    weir_handler_stats stats;
    wr_lane_stats_get(&stats, lane, 2);
    cr_assert(ledger_is_balanced(&stats));
    cr_assert_eq(stats.dropped[WEIR_DROPPED_SHUTDOWN], 1);
    wr_segment_drop(segment);
}

/* ---- Blocking calls of the handler ----------------------------------------------------------- */

static const weir_blocking_call *blocking_call(void)
{
    const weir_blocking_call *service = host->service(host, WEIR_SERVICE_BLOCKING_CALL);
    cr_assert(service && service->size == sizeof *service);
    return service;
}

Test(host_api, a_handler_in_a_blocking_call_is_not_in_a_callback)
{
    lane->worker.state = WR_THREAD_CALLING;
    blocking_call()->begin(host);
    cr_assert_not(wr_lane_thread_is_inside(&lane->worker));
    blocking_call()->end(host);
    cr_assert(wr_lane_thread_is_inside(&lane->worker));
}

static _Atomic int waiter_tid;

static void *end_waiting(void *argument)
{
    (void)argument;
    waiter_tid = (int)syscall(SYS_gettid);
    blocking_call()->end(host);
    return &book;
}

/* Waits until a thread sleeps in a system call (returns true) or has ended (false). */
static bool is_asleep_in(pthread_t thread, const char *call)
{
    char path[64], line[64] = "";
    while (!waiter_tid)
        sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", waiter_tid);
    while (strncmp(line, call, strlen(call)) != 0) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file))
            line[0] = '\0';
        if (file)
            fclose(file);
        if (pthread_tryjoin_np(thread, NULL) == 0)
            return false;
        sched_yield();
    }
    return true;
}

static const char *call_number(long number)
{
    static char text[20];
    snprintf(text, sizeof text, "%ld ", number);
    return text;
}

Test(host_api, a_handler_that_ends_its_blocking_call_is_held_during_a_fork, .timeout = 60)
{
    pthread_t thread;
    lane->worker.state = WR_THREAD_CALLING;
    blocking_call()->begin(host);
    lane->fork = WR_LANE_FORK_PENDING;
    pthread_create(&thread, NULL, end_waiting, NULL);
    cr_assert(is_asleep_in(thread, call_number(SYS_futex)));
    wr_lock_enter(&lane->lock);
    cr_assert_not(wr_lane_thread_is_inside(&lane->worker));
    lane->fork = WR_LANE_FORK_NONE;
    wr_condition_wake(&lane->worker.work);
    wr_lock_leave(&lane->lock);
    pthread_join(thread, NULL);
    cr_assert(wr_lane_thread_is_inside(&lane->worker));
}

Test(host_api, an_abandoned_handler_never_returns_from_its_blocking_call, .timeout = 60)
{
    pthread_t thread;
    lane->worker.state = WR_THREAD_CALLING;
    blocking_call()->begin(host);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, 0);
    wr_lane_stop_wait(lane, 0, 3600 * WR_NS_PER_S);
    pthread_create(&thread, NULL, end_waiting, NULL);
#ifdef SYS_pause
    cr_assert(is_asleep_in(thread, call_number(SYS_pause)));
#else
    cr_assert(is_asleep_in(thread, call_number(SYS_ppoll)));
#endif
    cr_assert_not(wr_lane_thread_is_inside(&lane->worker), "a fork does not wait for it");
}

Test(host_api, a_handler_can_read_its_remaining_time)
{
    cr_assert_eq(blocking_call()->remaining_ms(host), -1);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    cr_assert_eq(blocking_call()->remaining_ms(host), INT32_MAX, "a stop without a limit is a stop");
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, wr_clock_deadline_ns(3600000));
    int64_t left_ms = blocking_call()->remaining_ms(host);
    cr_assert(left_ms > 3000000 && left_ms <= 3600000);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, 1);
    cr_assert_eq(blocking_call()->remaining_ms(host), 0);
}

Test(host_api, in_create_a_blocking_call_has_no_effect)
{
    core.lane = NULL;
    blocking_call()->begin(host);
    blocking_call()->end(host);
    cr_assert_eq(blocking_call()->remaining_ms(host), -1);
}

/* ---- Before there is a lane ------------------------------------------------------------------ */

Test(host_api, in_create_counters_timers_and_waits_have_no_effect)
{
    core.lane = NULL;
    host->count(host, "n", 1);
    host->wake_in(host, 1000);
    cr_assert_not(host->stopping(host));
    cr_assert_not(host->wait(host, 3600000));
}

/* ---- Services -------------------------------------------------------------------------------- */

Test(host_api, an_encoder_is_available_to_handlers_with_a_format)
{
    cr_assert_null(host->service(host, WEIR_SERVICE_ENCODER));
    wr_encoder_init(&encoder, wr_format_find("json"), NULL);
    core.encoder = &encoder;
    const weir_encoder *service = host->service(host, WEIR_SERVICE_ENCODER);
    cr_assert(service);
    cr_assert_eq(service->size, sizeof *service);
    cr_assert_str_eq(service->content_type(host), encoder.format->content_type);
    cr_assert_eq(service->format(host), WEIR_FORMAT_LINES);
}

Test(host_api, the_color_service_sets_the_encoders_color)
{
    cr_assert_null(host->service(host, WEIR_SERVICE_COLOR));
    core.encoder = &encoder;
    const weir_color *terminal = host->service(host, WEIR_SERVICE_COLOR);
    cr_assert_eq(terminal->size, sizeof *terminal);
    cr_assert_not(encoder.color);
    terminal->set(host, true);
    cr_assert(encoder.color);
}

Test(host_api, the_try_timeout_is_clamped_to_a_day)
{
    const weir_try_timeout *try_timeout = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    cr_assert_eq(try_timeout->size, sizeof *try_timeout);
    cr_assert_eq(core.try_timeout_ns, 0);
    try_timeout->set(host, 1500);
    cr_assert_eq(core.try_timeout_ns, 1500 * WR_NS_PER_MS);
    try_timeout->set(host, -1);
    cr_assert_eq(core.try_timeout_ns, 0);
    try_timeout->set(host, INT64_MAX);
    cr_assert_eq(core.try_timeout_ns, 86400 * WR_NS_PER_S);
}

Test(host_api, unknown_services_and_revisions_are_not_available)
{
    cr_assert_null(host->service(host, "encoder/2"));
    cr_assert_null(host->service(host, "encoder"));
    cr_assert_null(host->service(host, ""));
}

/* ---- Waiting for descriptors ----------------------------------------------------------------- */

static const weir_waiting *waiting(void)
{
    const weir_waiting *service = host->service(host, WEIR_SERVICE_WAITING);
    cr_assert(service && service->size == sizeof *service);
    return service;
}

/* A pipe without anything to read. */
static struct pollfd empty_pipe(int *writer)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    *writer = ends[1];
    return (struct pollfd){.fd = ends[0], .events = POLLIN};
}

Test(host_api, a_wait_for_a_descriptor_ends_with_its_event, .timeout = 60)
{
    int writer;
    struct pollfd entry = empty_pipe(&writer);
    cr_assert_eq(write(writer, "x", 1), 1);
    cr_assert_eq(waiting()->wait(host, &entry, 1, -1), WEIR_WAIT_READY);
    cr_assert_eq(entry.revents, POLLIN);
}

Test(host_api, a_wait_for_a_descriptor_ends_with_its_timeout, .timeout = 60)
{
    int writer;
    struct pollfd entry = empty_pipe(&writer);
    int64_t start_ms = waiting()->now_ms(host);
    cr_assert_eq(waiting()->wait(host, &entry, 1, 120), 0);
    cr_assert_geq(waiting()->now_ms(host) - start_ms, 119); /* the times are rounded down */
    cr_assert_eq(entry.revents, 0);
    cr_assert_eq(waiting()->wait(host, NULL, 0, 0), 0);
}

Test(host_api, a_wait_for_a_descriptor_goes_on_after_a_stop_until_no_time_is_left, .timeout = 60)
{
    int writer;
    struct pollfd entry = empty_pipe(&writer);
    int64_t end_ns = wr_clock_deadline_ns(150);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, end_ns);
    cr_assert_eq(waiting()->wait(host, &entry, 1, 1), 0, "time is left");
    cr_assert_eq(waiting()->wait(host, &entry, 1, -1), WEIR_WAIT_STOP);
    cr_assert_geq(wr_clock_monotonic_ns(), end_ns - 1000000);
    cr_assert_eq(write(writer, "x", 1), 1);
    cr_assert_eq(waiting()->wait(host, &entry, 1, -1), WEIR_WAIT_READY | WEIR_WAIT_STOP);
}

Test(host_api, in_create_a_wait_for_a_descriptor_ends_at_once, .timeout = 60)
{
    int writer;
    struct wr_error error;
    struct pollfd entry = empty_pipe(&writer);
    core.lane = NULL;
    core.refusal = &error;
    cr_assert_eq(waiting()->wait(host, &entry, 1, -1), WEIR_WAIT_STOP);
}

/* As when `weir check --open` calls it. */
Test(host_api, without_a_lane_a_wait_ends_by_its_descriptor_or_its_timeout)
{
    int writer;
    struct pollfd entry = empty_pipe(&writer);
    core.lane = NULL;
    cr_assert_eq(waiting()->wait(host, &entry, 1, 1), 0);
    cr_assert_eq(write(writer, "x", 1), 1);
    cr_assert_eq(waiting()->wait(host, &entry, 1, -1), WEIR_WAIT_READY);
}

static void *wait_for_pipe(void *argument)
{
    waiter_tid = (int)syscall(SYS_gettid);
    waiting()->wait(host, argument, 1, -1);
    return NULL;
}

Test(host_api, a_handler_that_waits_for_a_descriptor_is_not_in_a_callback, .timeout = 60)
{
    pthread_t thread;
    int writer;
    struct pollfd entry = empty_pipe(&writer);
    lane->worker.state = WR_THREAD_CALLING;
    pthread_create(&thread, NULL, wait_for_pipe, &entry);
    while (wr_lane_thread_is_inside(&lane->worker))
        sched_yield();
    cr_assert_eq(write(writer, "x", 1), 1);
    pthread_join(thread, NULL);
    cr_assert(wr_lane_thread_is_inside(&lane->worker));
}
