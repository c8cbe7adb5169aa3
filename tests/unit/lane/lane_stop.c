/* Stopping a lane, and replacing its handler. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_mark.h"
#include "lane/lane_stop.h"
#include "lane/lane_flush.h"

static struct lane_fixture fixture;
static int64_t deadline_ns;

static void setup(void)
{
    fixture_init(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    deadline_ns = fixture.now_ns + 5 * WR_NS_PER_S;
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_stop, .init = setup, .fini = teardown);

static void load(uint32_t samples)
{
    fixture_offer(&fixture, samples);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

static void request_stop(void)
{
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, deadline_ns);
    fixture_stats(&fixture);
}

/* ---- In time --------------------------------------------------------------------------------- */

Test(lane_stop, queued_samples_are_delivered_first)
{
    fixture_offer(&fixture, 3);
    request_stop();
    cr_assert_eq(fixture_deliver_all(&fixture), 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).delivered, 3);
    cr_assert_eq(fixture_stats(&fixture).open, 0);
}

Test(lane_stop, a_handler_that_accepts_none_of_the_rest_is_closed_at_once)
{
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    request_stop();
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert(step.kind == WR_LANE_NEXT_SLEEP && step.until_ns <= fixture.now_ns,
              "it sleeps until the deadline");
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
}

Test(lane_stop, a_handler_with_nothing_to_do_is_closed_at_once)
{
    request_stop();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
}

Test(lane_stop, a_lane_whose_handler_was_never_opened_ends_at_once)
{
    fixture_close(&fixture);
    request_stop();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
}

Test(lane_stop, buffered_samples_are_flushed_by_the_deadline)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    request_stop();
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_FLUSH);
    cr_assert_eq(step.until_ns, deadline_ns);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
}

Test(lane_stop, a_final_flush_that_fails_is_not_retried)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    request_stop();
    fixture_next(&fixture);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_RETRY);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
}

Test(lane_stop, a_stop_ends_the_backoff)
{
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    request_stop();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

Test(lane_stop, a_backoff_ends_at_the_deadline)
{
    load(2);
    request_stop();
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .retry_after_ms = 20000}, 0);
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    cr_assert_eq(step.until_ns, deadline_ns);
}

Test(lane_stop, a_stop_that_is_taken_back_no_longer_shortens_the_backoff)
{
    load(2);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_REMOVED, deadline_ns);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert(fixture.lane->delivery.retry_at_ns - fixture.now_ns < 250 * WR_NS_PER_MS);
    wr_lane_stop_cancel(fixture.lane);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert(fixture.lane->delivery.retry_at_ns - fixture.now_ns >= 500 * WR_NS_PER_MS);
}

/* ---- What the handler needs is not created --------------------------------------------------- */

/* An attempt that fails, with these flags. */
static void fail_with(uint32_t flags)
{
    weir_outcome outcome = {.size = sizeof outcome,
                            .code = WEIR_OUTCOME_RETRY,
                            .flags = flags,
                            .error = WEIR_ERR_FIFO_NOT_CREATED,
                            .reason = "no pipe"};
    fixture_finish_emit_with(&fixture, outcome, 0);
}

Test(lane_stop, a_handler_that_gives_up_is_closed_before_the_deadline)
{
    load(2);
    request_stop();
    fixture_offer(&fixture, 3);
    fail_with(WEIR_OUTCOME_GIVES_UP);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 5);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
}

Test(lane_stop, a_handler_that_gave_up_before_the_stop_gets_one_more_attempt)
{
    load(2);
    fail_with(WEIR_OUTCOME_GIVES_UP);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    request_stop();
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(fixture_deliver_all(&fixture), 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 2);
}

Test(lane_stop, errors_of_calls_do_not_end_it)
{
    load(2);
    request_stop();
    fail_with(0);
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert(step.kind == WR_LANE_NEXT_SLEEP && step.until_ns > fixture.now_ns);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
}

/* ---- Too late -------------------------------------------------------------------------------- */

Test(lane_stop, samples_left_at_the_deadline_are_dropped)
{
    load(2);
    fixture_offer(&fixture, 3);
    request_stop();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    fixture.now_ns = deadline_ns;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 4);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
}

Test(lane_stop, a_busy_handler_is_abandoned_at_the_deadline)
{
    int64_t next_ns = WR_NEVER;
    load(2);
    fixture.lane->worker.state = WR_THREAD_CALLING;
    request_stop();
    fixture_check(&fixture, &next_ns);
    cr_assert_eq(next_ns, deadline_ns);
    fixture.now_ns = deadline_ns;
    fixture_check(&fixture, NULL);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 2);
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
}

/* Of label sets whose memory is used again: see engine/reclaim. */
Test(lane_stop, what_a_busy_handler_was_left_with_is_in_its_hands_until_it_returns)
{
    struct wr_lane_bound bound;
    uint64_t dropped;
    load(2);
    fixture.lane->worker.state = WR_THREAD_CALLING;
    wr_lane_bound_take(fixture.lane, &bound);
    cr_assert_not(wr_lane_bound_is_past(fixture.lane, &bound));
    request_stop();
    fixture.now_ns = deadline_ns;
    fixture_check(&fixture, NULL);
    cr_assert_eq(wr_lane_bound_check(fixture.lane, &bound, &dropped), WR_LANE_SETTLED);
    cr_assert_eq(dropped, 2);
    cr_assert_not(wr_lane_bound_is_past(fixture.lane, &bound));
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert(wr_lane_bound_is_past(fixture.lane, &bound));
}

Test(lane_stop, so_is_what_was_read_from_the_disk)
{
    /* of nothing: what other processes left comes from no lane */
    struct wr_lane_bound bound = {.is_taken = true};
    load(2);
    cr_assert(wr_lane_bound_is_past(fixture.lane, &bound));
    fixture.lane->ledger.flight.spooled = true;
    cr_assert_not(wr_lane_bound_is_past(fixture.lane, &bound));
    fixture.lane->ledger.flight.spooled = false;
}

Test(lane_stop, waiting_past_the_deadline_abandons_the_worker)
{
    load(2);
    fixture.lane->worker.state = WR_THREAD_CALLING;
    request_stop();
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    cr_assert_eq(fixture.lane->stop, WR_LANE_ABANDONED);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 2);
}

static void *end_at_once(void *argument)
{
    return argument;
}

Test(lane_stop, a_worker_that_ended_in_time_is_not_abandoned)
{
    request_stop();
    fixture_deliver_all(&fixture);
    cr_assert_eq(pthread_create(&fixture.lane->worker.id, NULL, end_at_once, NULL), 0);
    fixture.lane->worker.state = WR_THREAD_ENDED;
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    cr_assert_eq(fixture.lane->stop, WR_LANE_SHUT);
    cr_assert_eq(fixture.lane->worker.state, WR_THREAD_NONE);
}

/* ---- Messages at the end --------------------------------------------------------------------- */

static sem_t logging;
static _Atomic bool is_logged;

static void log_slowly(void *ctx, int level, const char *text)
{
    struct timespec pause = {0, 50000000};
    (void)ctx, (void)level, (void)text;
    sem_post(&logging);
    nanosleep(&pause, NULL);
    is_logged = true;
}

static void *log_message(void *argument)
{
    wr_lock_enter(&fixture.lane->lock);
    wr_lane_log(fixture.lane, WEIR_LOG_ERROR, "the last words");
    wr_lane_unlock(fixture.lane);
    return argument;
}

Test(lane_stop, the_end_waits_for_messages_being_logged)
{
    pthread_t thread;
    cr_assert_eq(sem_init(&logging, 0, 0), 0);
    cr_assert(wr_log_set_sink(&fixture.log, log_slowly, NULL));
    cr_assert_eq(pthread_create(&thread, NULL, log_message, NULL), 0);
    cr_assert_eq(sem_wait(&logging), 0);
    wr_lane_stop_wait(fixture.lane, 0, 3600 * WR_NS_PER_S);
    cr_assert(is_logged);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* ---- After the end --------------------------------------------------------------------------- */

Test(lane_stop, samples_offered_after_the_end_are_dropped_for_the_same_reason)
{
    request_stop();
    fixture_deliver_all(&fixture);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_SHUTDOWN], 2);
}

Test(lane_stop, a_lane_without_a_worker_ends_at_once)
{
    fixture_offer(&fixture, 2);
    fixture.lane->worker.state = WR_THREAD_NONE;
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_REMOVED, deadline_ns);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REMOVED], 2);
}

Test(lane_stop, producers_do_not_wait_for_a_lane_that_has_ended)
{
    fixture.settings.queue_bytes = 2 * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 2);
    request_stop();
    fixture.now_ns = deadline_ns;
    cr_assert_not(fixture_check(&fixture, NULL));
    cr_assert_not(fixture_offer(&fixture, 9));
}

Test(lane_stop, the_dispatcher_is_woken_when_a_lane_ends_that_producers_waited_for)
{
    fixture.settings.queue_bytes = 2 * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 2);
    request_stop();
    fixture.now_ns = deadline_ns;
    fixture_next(&fixture);
    cr_assert_eq(fixture.wakeup.sent, 1);
}

/* ---- Successors ------------------------------------------------------------------------------ */

/* Only the address of this instance is used. */
static struct wr_instance *const another = (struct wr_instance *)&deadline_ns;

Test(lane_stop, a_successor_takes_over_when_the_handler_is_closed)
{
    fixture.lane->successor.instance = another;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_REPLACE);
    fixture.lane->successor.instance = NULL;
}

Test(lane_stop, a_successor_delivers_queued_and_retried_samples)
{
    load(3);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 1, 0);
    fixture_offer(&fixture, 2);
    fixture.lane->successor.instance = another;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_REPLACE);
    fixture.lane->successor.instance = NULL;
    fixture.lane->delivery.retry_at_ns = 0;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "1 2");
    cr_assert_str_eq(fixture_queue(&fixture), "3 4");
}

Test(lane_stop, a_successor_gets_what_a_missing_pipe_did_not)
{
    load(2);
    fixture.lane->successor.instance = another;
    fail_with(WEIR_OUTCOME_GIVES_UP);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_REPLACE);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
    fixture.lane->successor.instance = NULL;
}

Test(lane_stop, buffered_samples_are_flushed_before_a_successor_takes_over)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture.lane->successor.instance = another;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture.lane->successor.instance = NULL;
}

Test(lane_stop, a_failed_flush_does_not_delay_a_successor)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture.lane->successor.instance = another;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_RETRY);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    fixture.lane->successor.instance = NULL;
}

Test(lane_stop, a_flush_waits_for_samples_buffered_by_a_successor)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    fixture_offer(&fixture, 1);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture.lane->successor.instance = another;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    fixture_close(&fixture);
    fixture.lane->successor.instance = NULL;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, 0, NULL), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, 0, NULL), 0);
}

Test(lane_stop, a_stop_takes_precedence_over_a_successor)
{
    fixture.lane->successor.instance = another;
    request_stop();
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_END);
    fixture.lane->successor.instance = NULL;
}
