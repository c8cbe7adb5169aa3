/* Flushing: positions, deadlines, and handlers that buffer. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "text/error.h"
#include "lane/lane_flush.h"

static struct lane_fixture fixture;

static void setup(void)
{
    fixture_init(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_flush, .init = setup, .fini = teardown);

static bool is_flushed(uint64_t position)
{
    struct wr_error error;
    return wr_lane_flush_wait(fixture.lane, position, 0, &error) == 0;
}

static void load(uint32_t samples)
{
    fixture_offer(&fixture, samples);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

static void rest(void)
{
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    cr_assert_eq(step.until_ns, WR_NEVER);
}

Test(lane_flush, a_flush_of_an_empty_lane_completes_at_once)
{
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(position, 0);
    cr_assert(is_flushed(position));
}

Test(lane_flush, a_flush_waits_for_everything_offered_before_it)
{
    fixture_offer(&fixture, 3);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(position, 3);
    cr_assert_not(is_flushed(position));
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    fixture_next(&fixture);
    cr_assert_not(is_flushed(position));
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, a_flush_does_not_wait_for_later_samples)
{
    fixture.settings.batch = 1;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 1);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_offer(&fixture, 5);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert(is_flushed(position), "there is always more to deliver in a busy program");
}

/* Delivers a sample that a flush waits for, and fails with another one that a later flush waits for. Returns
 * the position of the first flush. */
static uint64_t fail_behind_a_flush(void)
{
    fixture_offer(&fixture, 1);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_offer(&fixture, 1);
    uint64_t later = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert_not(is_flushed(later));
    return position;
}

Test(lane_flush, a_flush_does_not_wait_for_what_a_later_one_waits_for)
{
    fixture.settings.batch = 1;
    fixture_apply(&fixture);
    cr_assert(is_flushed(fail_behind_a_flush()));
}

Test(lane_flush, what_a_handler_buffers_is_flushed_once_it_is_closed)
{
    fixture.lane->handler.has_flush = true;
    fixture.settings.batch = 1;
    fixture_apply(&fixture);
    uint64_t position = fail_behind_a_flush();
    cr_assert_not(is_flushed(position));
    fixture_close(&fixture);
    cr_assert(is_flushed(position));
}

Test(lane_flush, the_handler_is_flushed_before_more_is_delivered)
{
    fixture.lane->handler.has_flush = true;
    fixture.settings.batch = 1;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 1);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_offer(&fixture, 5);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    cr_assert_not(is_flushed(position));
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

Test(lane_flush, a_handler_that_buffers_is_flushed_by_the_deadline)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    rest();
    uint64_t position = wr_lane_flush_request(fixture.lane, fixture.now_ns + WR_NS_PER_S);
    cr_assert_not(is_flushed(position));
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_FLUSH);
    cr_assert_eq(step.until_ns, fixture.now_ns + WR_NS_PER_S);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
    rest();
}

Test(lane_flush, a_handler_without_new_samples_is_not_flushed_again)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(wr_lane_flush_request(fixture.lane, WR_NEVER)));
    rest();
}

Test(lane_flush, a_closed_handler_buffers_nothing)
{
    fixture.lane->handler.has_flush = true;
    load(2);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    fixture_close(&fixture);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, an_incomplete_flush_is_retried_after_a_backoff)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_RETRY);
    cr_assert_not(is_flushed(position));
    struct wr_lane_next_step step = fixture_step(&fixture);
    cr_assert_eq(step.kind, WR_LANE_NEXT_SLEEP);
    cr_assert_eq(step.until_ns, fixture.lane->delivery.retry_at_ns);
    fixture.now_ns = step.until_ns;
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
}

Test(lane_flush, a_flush_that_reopens_completes_when_the_handler_is_closed)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_REOPEN);
    cr_assert_not(is_flushed(position));
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_CLOSE);
    wr_outcome_apply_close(fixture.lane);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, an_expired_flush_does_not_call_the_handler)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_lane_flush_request(fixture.lane, fixture.now_ns + 5);
    fixture.now_ns += 5;
    rest();
    cr_assert_not(is_flushed(position));
}

Test(lane_flush, after_an_expired_flush_another_one_completes)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    wr_lane_flush_request(fixture.lane, fixture.now_ns);
    rest();
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_FLUSH);
    fixture_finish_flush(&fixture, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
}

Test(lane_flush, of_several_flushes_the_latest_deadline_is_used)
{
    fixture.lane->handler.has_flush = true;
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    wr_lane_flush_request(fixture.lane, fixture.now_ns + 100);
    wr_lane_flush_request(fixture.lane, fixture.now_ns + 50);
    cr_assert_eq(fixture_step(&fixture).until_ns, fixture.now_ns + 100);
}

Test(lane_flush, a_flush_ends_the_backoff)
{
    load(1);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

Test(lane_flush, a_flush_completes_when_its_samples_were_dropped)
{
    fixture_offer(&fixture, 3);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 0, 0);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, a_flush_of_a_lane_without_a_worker_completes_when_nothing_is_queued)
{
    fixture.lane->worker.state = WR_THREAD_NONE;
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert(is_flushed(position));
    fixture_offer(&fixture, 1);
    position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_not(is_flushed(position));
}

/* Waiters sleep on `progress`; a change of its turn shows that they were woken. */
static bool is_woken_by(void (*action)(void))
{
    uint32_t turn = fixture.lane->progress.turn;
    fixture.lane->progress.waiters++;
    action();
    fixture.lane->progress.waiters--;
    return fixture.lane->progress.turn != turn;
}

static void fail_in_emit(void)
{
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
}

static void fail_in_wake(void)
{
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_FAILED);
}

static void fail_in_open(void)
{
    fixture_close(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_FAILED, NULL);
}

static void settle(void)
{
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
}

static void notice(void)
{
    fixture_next(&fixture);
}

Test(lane_flush, waiters_are_woken_by_progress)
{
    load(2);
    cr_assert(is_woken_by(settle));
}

Test(lane_flush, waiters_are_woken_when_all_is_flushed)
{
    load(2);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert(is_woken_by(notice));
    cr_assert(is_flushed(2));
}

Test(lane_flush, waiters_are_woken_when_the_handler_fails_in_emit)
{
    load(2);
    cr_assert(is_woken_by(fail_in_emit));
    cr_assert(is_flushed(2));
}

Test(lane_flush, waiters_are_woken_when_the_handler_fails_in_wake)
{
    load(2);
    cr_assert(is_woken_by(fail_in_wake));
    cr_assert(is_flushed(2));
}

Test(lane_flush, waiters_are_woken_when_the_handler_fails_in_open)
{
    fixture_offer(&fixture, 2);
    cr_assert(is_woken_by(fail_in_open));
    cr_assert(is_flushed(2));
}
