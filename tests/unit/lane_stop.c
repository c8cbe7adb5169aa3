/* Coming to an end, and handlers that take over from others. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "../support/rig.h"
#include "stop.h"
#include "flush.h"

static struct rig rig;
static int64_t deadline_ns;

static void setup(void)
{
    rig_init(&rig);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    deadline_ns = rig.now_ns + 5 * WR_NS_PER_S;
}

static void teardown(void)
{
    rig_fini(&rig);
}

TestSuite(lane_stop, .init = setup, .fini = teardown);

static void load(uint32_t samples)
{
    rig_offer(&rig, samples);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

static void request_stop(void)
{
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, deadline_ns);
    rig_stats(&rig);
}

/* ---- In time --------------------------------------------------------------------------------- */

Test(lane_stop, what_is_queued_is_delivered_first)
{
    rig_offer(&rig, 3);
    request_stop();
    cr_assert_eq(rig_deliver_all(&rig), 1);
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
    cr_assert_eq(rig_stats(&rig).delivered, 3);
    cr_assert_eq(rig_stats(&rig).open, 0);
}

Test(lane_stop, a_handler_that_takes_nothing_of_what_is_left_is_closed_at_once)
{
    rig.lane->kinds = WEIR_TAKES_DOUBLE;
    rig_append_kind(&rig, WEIR_KIND_INT);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    request_stop();
    struct wr_step step = rig_step(&rig);
    cr_assert(step.kind == WR_STEP_SLEEP && step.until_ns <= rig.now_ns, "it sleeps until the deadline");
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig_close(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
}

Test(lane_stop, a_handler_with_nothing_to_do_is_closed_at_once)
{
    request_stop();
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig_close(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
}

Test(lane_stop, a_handler_that_was_never_opened_ends_at_once)
{
    rig_close(&rig);
    request_stop();
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
}

Test(lane_stop, what_is_kept_back_is_flushed_by_the_deadline)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    request_stop();
    struct wr_step step = rig_step(&rig);
    cr_assert_eq(step.kind, WR_STEP_FLUSH);
    cr_assert_eq(step.until_ns, deadline_ns);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
}

Test(lane_stop, a_last_flush_that_fails_is_not_repeated)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    request_stop();
    rig_next(&rig);
    rig_answer_flush(&rig, WEIR_OUTCOME_RETRY);
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
}

Test(lane_stop, a_pause_is_cut_short)
{
    load(2);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 0, 0);
    request_stop();
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

Test(lane_stop, a_pause_lasts_no_longer_than_the_deadline)
{
    load(2);
    request_stop();
    rig_answer_fully(&rig, (weir_outcome){.code = WEIR_OUTCOME_RETRY, .retry_after_ms = 20000}, 0);
    struct wr_step step = rig_step(&rig);
    cr_assert_eq(step.kind, WR_STEP_SLEEP);
    cr_assert_eq(step.until_ns, deadline_ns);
}

/* ---- Too late -------------------------------------------------------------------------------- */

Test(lane_stop, what_is_left_at_the_deadline_is_dropped)
{
    load(2);
    rig_offer(&rig, 3);
    request_stop();
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 1, 0);
    rig.now_ns = deadline_ns;
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_SHUTDOWN], 4);
    cr_assert_eq(rig_stats(&rig).queued, 0);
    rig_close(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
}

Test(lane_stop, a_busy_handler_is_given_up_at_the_deadline)
{
    int64_t next_ns = WR_NEVER;
    load(2);
    rig.lane->in_callback = true;
    request_stop();
    rig_check(&rig, &next_ns);
    cr_assert_eq(next_ns, deadline_ns);
    rig.now_ns = deadline_ns;
    rig_check(&rig, NULL);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_SHUTDOWN], 2);
    rig.lane->in_callback = false;
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(rig_stats(&rig).delivered, 0);
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
}

Test(lane_stop, waiting_past_the_deadline_gives_the_worker_up)
{
    load(2);
    rig.lane->in_callback = true;
    request_stop();
    wr_stop_wait(rig.lane, 0);
    cr_assert(rig.lane->abandoned);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_SHUTDOWN], 2);
}

static void *end_at_once(void *argument)
{
    return argument;
}

Test(lane_stop, a_worker_that_ended_in_time_is_not_given_up)
{
    request_stop();
    rig_deliver_all(&rig);
    cr_assert_eq(pthread_create(&rig.lane->thread, NULL, end_at_once, NULL), 0);
    rig.lane->worker = WR_WORKER_ENDED;
    wr_stop_wait(rig.lane, 0);
    cr_assert_not(rig.lane->abandoned);
    cr_assert_eq(rig.lane->worker, WR_WORKER_NONE);
}

/* ---- Last words ------------------------------------------------------------------------------ */

static sem_t saying;
static _Atomic bool said;

static void say_slowly(void *ctx, int level, const char *text)
{
    struct timespec pause = {0, 50000000};
    (void)ctx, (void)level, (void)text;
    sem_post(&saying);
    nanosleep(&pause, NULL);
    said = true;
}

static void *say_something(void *argument)
{
    wr_lock_enter(&rig.lane->lock);
    wr_lane_say(rig.lane, WEIR_LOG_ERROR, "the last words");
    wr_lane_leave(rig.lane);
    return argument;
}

Test(lane_stop, the_end_waits_until_what_is_being_said_is_out)
{
    pthread_t thread;
    cr_assert_eq(sem_init(&saying, 0, 0), 0);
    cr_assert(wr_log_set_sink(&rig.log, say_slowly, NULL));
    cr_assert_eq(pthread_create(&thread, NULL, say_something, NULL), 0);
    cr_assert_eq(sem_wait(&saying), 0);
    wr_stop_wait(rig.lane, 0);
    cr_assert(said);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* ---- After the end --------------------------------------------------------------------------- */

Test(lane_stop, what_comes_after_the_end_is_dropped_for_the_same_reason)
{
    request_stop();
    rig_deliver_all(&rig);
    rig_offer(&rig, 2);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_SHUTDOWN], 2);
}

Test(lane_stop, without_a_worker_the_end_is_there_at_once)
{
    rig_offer(&rig, 2);
    rig.lane->worker = WR_WORKER_NONE;
    wr_stop_request(rig.lane, WEIR_DROPPED_REMOVED, deadline_ns);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_REMOVED], 2);
}

Test(lane_stop, nobody_waits_for_a_lane_that_has_ended)
{
    rig.settings.queue_bytes = 2 * RIG_SAMPLE_BYTES;
    rig_apply(&rig);
    rig_offer(&rig, 2);
    request_stop();
    rig.now_ns = deadline_ns;
    cr_assert_not(rig_check(&rig, NULL));
    cr_assert_not(rig_offer(&rig, 9));
}

Test(lane_stop, the_dispatcher_is_rung_when_producers_waited_for_a_lane_that_ends)
{
    rig.settings.queue_bytes = 2 * RIG_SAMPLE_BYTES;
    rig_apply(&rig);
    rig_offer(&rig, 2);
    request_stop();
    rig.now_ns = deadline_ns;
    rig_next(&rig);
    cr_assert_eq(rig.bell.rung, 1);
}

/* ---- Taking over ----------------------------------------------------------------------------- */

/* An instance is only pointed at here. */
static struct wr_instance *const another = (struct wr_instance *)&deadline_ns;

Test(lane_stop, a_successor_comes_when_the_handler_is_closed)
{
    rig.lane->successor = another;
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig_close(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_REPLACE);
    rig.lane->successor = NULL;
}

Test(lane_stop, a_successor_delivers_what_is_queued_and_what_was_tried)
{
    load(3);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 1, 0);
    rig_offer(&rig, 2);
    rig.lane->successor = another;
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig_close(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_REPLACE);
    rig.lane->successor = NULL;
    rig.lane->retry_at_ns = 0;
    cr_assert_eq(rig_next(&rig), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
    cr_assert_str_eq(rig_flight(&rig), "1 2");
    cr_assert_str_eq(rig_queue(&rig), "3 4");
}

Test(lane_stop, what_is_kept_back_is_flushed_before_a_successor_comes)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rig.lane->successor = another;
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig.lane->successor = NULL;
}

Test(lane_stop, a_flush_that_fails_does_not_keep_a_successor_waiting)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rig.lane->successor = another;
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    rig_answer_flush(&rig, WEIR_OUTCOME_RETRY);
    cr_assert_eq(rig_next(&rig), WR_STEP_CLOSE);
    rig.lane->successor = NULL;
}

Test(lane_stop, a_flush_waits_for_what_a_successor_keeps_back)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rig_offer(&rig, 1);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig.lane->successor = another;
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    rig_close(&rig);
    rig.lane->successor = NULL;
    cr_assert_eq(rig_next(&rig), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(wr_flush_wait(rig.lane, position, 0, NULL), WEIR_ERR_TIMEOUT);
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert_eq(wr_flush_wait(rig.lane, position, 0, NULL), 0);
}

Test(lane_stop, a_stop_comes_before_a_successor)
{
    rig.lane->successor = another;
    request_stop();
    rig_deliver_all(&rig);
    cr_assert_eq(rig_next(&rig), WR_STEP_END);
    rig.lane->successor = NULL;
}
