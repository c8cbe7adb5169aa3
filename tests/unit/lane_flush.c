/* Flushing: positions, deadlines, and handlers that keep something back. */
#include <criterion/criterion.h>

#include "../support/rig.h"
#include "error.h"
#include "flush.h"

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    rig_fini(&rig);
}

TestSuite(lane_flush, .init = setup, .fini = teardown);

static bool is_flushed(uint64_t position)
{
    struct wr_error error;
    return wr_flush_wait(rig.lane, position, 0, &error) == 0;
}

static void load(uint32_t samples)
{
    rig_offer(&rig, samples);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

static void rest(void)
{
    struct wr_step step = rig_step(&rig);
    cr_assert_eq(step.kind, WR_STEP_SLEEP);
    cr_assert_eq(step.until_ns, WR_NEVER);
}

Test(lane_flush, of_nothing_is_done_at_once)
{
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(position, 0);
    cr_assert(is_flushed(position));
}

Test(lane_flush, waits_for_everything_offered_before_it)
{
    rig_offer(&rig, 3);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(position, 3);
    cr_assert_not(is_flushed(position));
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    rig_next(&rig);
    cr_assert_not(is_flushed(position));
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, does_not_wait_for_what_comes_after_it)
{
    rig.settings.batch = 1;
    rig_apply(&rig);
    rig_offer(&rig, 1);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig_offer(&rig, 5);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
    cr_assert(is_flushed(position), "there is always more to deliver in a busy program");
}

Test(lane_flush, asks_the_handler_to_flush_before_it_delivers_more)
{
    rig.lane->has_flush = true;
    rig.settings.batch = 1;
    rig_apply(&rig);
    rig_offer(&rig, 1);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig_offer(&rig, 5);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    cr_assert_not(is_flushed(position));
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

Test(lane_flush, a_handler_that_keeps_something_back_is_asked_by_the_deadline)
{
    rig.lane->has_flush = true;
    load(2);
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    rest();
    uint64_t position = wr_flush_request(rig.lane, rig.now_ns + WR_NS_PER_S);
    cr_assert_not(is_flushed(position));
    struct wr_step step = rig_step(&rig);
    cr_assert_eq(step.kind, WR_STEP_FLUSH);
    cr_assert_eq(step.until_ns, rig.now_ns + WR_NS_PER_S);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
    rest();
}

Test(lane_flush, a_handler_with_nothing_new_is_not_asked_again)
{
    rig.lane->has_flush = true;
    load(2);
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    wr_flush_request(rig.lane, WR_NEVER);
    rig_next(&rig);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(wr_flush_request(rig.lane, WR_NEVER)));
    rest();
}

Test(lane_flush, a_closed_handler_keeps_nothing_back)
{
    rig.lane->has_flush = true;
    load(2);
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    rig_close(&rig);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, that_is_not_done_yet_is_asked_for_again_after_a_pause)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig_next(&rig);
    rig_answer_flush(&rig, WEIR_OUTCOME_RETRY);
    cr_assert_not(is_flushed(position));
    struct wr_step step = rig_step(&rig);
    cr_assert_eq(step.kind, WR_STEP_SLEEP);
    cr_assert_eq(step.until_ns, rig.lane->retry_at_ns);
    rig.now_ns = step.until_ns;
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
}

Test(lane_flush, that_can_never_be_done_counts_as_tried)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig_next(&rig);
    rig_answer_flush(&rig, WEIR_OUTCOME_DROP);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, past_its_deadline_nobody_waits_and_the_handler_is_left_alone)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    uint64_t position = wr_flush_request(rig.lane, rig.now_ns + 5);
    rig.now_ns += 5;
    rest();
    cr_assert_not(is_flushed(position));
}

Test(lane_flush, after_one_that_was_given_up_another_is_answered)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    wr_flush_request(rig.lane, rig.now_ns);
    rest();
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(rig_next(&rig), WR_STEP_FLUSH);
    rig_answer_flush(&rig, WEIR_OUTCOME_OK);
    cr_assert(is_flushed(position));
}

Test(lane_flush, of_several_the_latest_deadline_counts)
{
    rig.lane->has_flush = true;
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    wr_flush_request(rig.lane, rig.now_ns + 100);
    wr_flush_request(rig.lane, rig.now_ns + 50);
    cr_assert_eq(rig_step(&rig).until_ns, rig.now_ns + 100);
}

Test(lane_flush, cuts_the_pause_short)
{
    load(1);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert_eq(rig_next(&rig), WR_STEP_SLEEP);
    wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

Test(lane_flush, is_done_when_what_it_waits_for_was_dropped)
{
    rig_offer(&rig, 3);
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_DROP, 0, 0);
    rest();
    cr_assert(is_flushed(position));
}

Test(lane_flush, of_a_lane_without_a_worker_is_done_when_nothing_is_queued)
{
    rig.lane->worker = WR_WORKER_NONE;
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert(is_flushed(position));
    rig_offer(&rig, 1);
    position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_not(is_flushed(position));
}

/* Whoever waits sleeps on `progress`: its turn tells whether he was woken. */
static bool wakes(void (*answer)(void))
{
    uint32_t turn = rig.lane->progress.turn;
    rig.lane->progress.waiters++;
    answer();
    rig.lane->progress.waiters--;
    return rig.lane->progress.turn != turn;
}

static void fail_in_emit(void)
{
    rig_answer(&rig, WEIR_OUTCOME_FAILED, 0, 0);
}

static void fail_in_wake(void)
{
    rig_answer_wake(&rig, WEIR_WAKE_TIMER, WEIR_OUTCOME_FAILED);
}

static void fail_in_open(void)
{
    rig_close(&rig);
    rig_answer_open(&rig, WEIR_OUTCOME_FAILED, NULL);
}

static void settle(void)
{
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
}

static void notice(void)
{
    rig_next(&rig);
}

Test(lane_flush, whoever_waits_is_woken_by_progress)
{
    load(2);
    cr_assert(wakes(settle));
}

Test(lane_flush, whoever_waits_is_woken_when_all_is_flushed)
{
    load(2);
    wr_flush_request(rig.lane, WR_NEVER);
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    cr_assert(wakes(notice));
    cr_assert(is_flushed(2));
}

Test(lane_flush, whoever_waits_is_woken_when_the_handler_fails_in_emit)
{
    load(2);
    cr_assert(wakes(fail_in_emit));
    cr_assert(is_flushed(2));
}

Test(lane_flush, whoever_waits_is_woken_when_the_handler_fails_in_wake)
{
    load(2);
    cr_assert(wakes(fail_in_wake));
    cr_assert(is_flushed(2));
}

Test(lane_flush, whoever_waits_is_woken_when_the_handler_fails_in_open)
{
    rig_offer(&rig, 2);
    cr_assert(wakes(fail_in_open));
    cr_assert(is_flushed(2));
}
