/* What a handler tells those who wait for it: an error, instead of an end. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "text/error.h"
#include "lane/lane_flush.h"

static struct lane_fixture fixture;
static struct wr_ticket_state desks[4];
static struct wr_error error;

static void setup(void)
{
    fixture_init(&fixture);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_error, .init = setup, .fini = teardown);

static struct wr_ticket offer(int desk)
{
    struct wr_ticket ticket = fixture_take_ticket(&desks[desk]);
    fixture_offer_sync(&fixture, ticket);
    return ticket;
}

static void answer_open(int code, int told, const char *reason)
{
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    outcome.code = code;
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    weir_outcome_set_error(&outcome, told);
    wr_lock_enter(&fixture.lane->lock);
    wr_outcome_of_open(fixture.lane, &outcome, fixture.now_ns);
    wr_lane_unlock(fixture.lane);
}

static void answer_emit(int code, uint32_t done, uint32_t rejected, int told, const char *reason)
{
    weir_outcome outcome = {.size = sizeof outcome, .code = code, .done = done, .rejected = rejected};
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    weir_outcome_set_error(&outcome, told);
    fixture_finish_emit_with(&fixture, outcome, 0);
}

Test(lane_error, an_older_core_has_no_room_for_it)
{
    weir_outcome outcome = {.size = offsetof(weir_outcome, error)};
    weir_outcome_set_error(&outcome, WEIR_ERR_TIMEOUT);
    cr_assert_eq(outcome.error, 0);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

Test(lane_error, calls_that_wait_come_back_and_their_values_stay_queued)
{
    struct wr_ticket first = offer(0), second = offer(1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    cr_assert_eq(fixture_read_ticket(first), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(fixture_read_ticket(second), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
}

Test(lane_error, calls_that_come_later_do_not_wait_and_end_no_pause)
{
    offer(0);
    fixture_next(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    cr_assert_eq(fixture_read_ticket(offer(1)), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
}

Test(lane_error, it_holds_until_the_handler_opens)
{
    offer(0);
    fixture_next(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket ticket = offer(1);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture.now_ns = fixture.lane->retry_at_ns;
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(ticket), 0);
}

Test(lane_error, it_holds_until_the_handler_delivers)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket ticket = offer(0);
    fixture_next(&fixture);
    answer_emit(WEIR_OUTCOME_RETRY, 0, 0, WEIR_ERR_TIMEOUT, "no use");
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_TIMEOUT);
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_OK);
    cr_assert_eq(fixture_read_ticket(offer(1)), WEIR_ERR_TIMEOUT);
    fixture.now_ns = fixture.lane->retry_at_ns;
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(offer(2)), FIXTURE_PENDING);
}

Test(lane_error, a_later_answer_without_an_error_has_calls_wait_again)
{
    offer(0);
    fixture_next(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    answer_open(WEIR_OUTCOME_RETRY, 0, "soon");
    cr_assert_eq(fixture_read_ticket(offer(1)), FIXTURE_PENDING);
}

Test(lane_error, what_was_settled_before_has_its_own_answer)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket delivered = offer(0), refused = offer(1), waiting = offer(2);
    fixture_next(&fixture);
    answer_emit(WEIR_OUTCOME_REOPEN, 1, 0, WEIR_ERR_FIFO_NOT_CREATED, "gone");
    cr_assert_eq(fixture_read_ticket(delivered), 0);
    cr_assert_eq(fixture_read_ticket(waiting), WEIR_ERR_FIFO_NOT_CREATED);
    (void)refused;
}

Test(lane_error, the_error_of_a_retry_is_not_that_of_what_was_rejected_with_it)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket refused = offer(0), waiting = offer(1);
    fixture_next(&fixture);
    answer_emit(WEIR_OUTCOME_RETRY, 1, 1, WEIR_ERR_TIMEOUT, "late");
    cr_assert_eq(fixture_read_ticket(refused), WEIR_ERR_DROPPED);
    cr_assert_eq(fixture_read_ticket(waiting), WEIR_ERR_TIMEOUT);
}

Test(lane_error, what_is_rejected_dropped_or_given_up_is_answered_with_the_error)
{
    static const int codes[] = {WEIR_OUTCOME_OK, WEIR_OUTCOME_DROP, WEIR_OUTCOME_FAILED};
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    for (int i = 0; i < 3; i++) {
        struct wr_ticket ticket = offer(i);
        fixture_next(&fixture);
        uint32_t rejected = codes[i] == WEIR_OUTCOME_OK;
        answer_emit(codes[i], rejected, rejected, WEIR_ERR_TOO_LARGE, "too large");
        cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_TOO_LARGE, "%d", codes[i]);
        cr_assert_eq(fixture.lane->sync_waiters.error, 0);
    }
}

/* ---- Flushes --------------------------------------------------------------------------------- */

static int wait_flushed(uint64_t position)
{
    error = (struct wr_error){0};
    return wr_lane_flush_wait(fixture.lane, position, WR_NEVER, &error);
}

Test(lane_error, a_flush_comes_back_with_error_and_reason, .timeout = 60)
{
    fixture_offer(&fixture, 3);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    cr_assert_eq(wait_flushed(position), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(error.code, WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(error.text, "handler \"push\": not there");
}

Test(lane_error, a_later_flush_has_it_tried_once_more, .timeout = 60)
{
    fixture_offer(&fixture, 3);
    fixture_next(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, 0, NULL), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN, "the pause is cut short");
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "still not");
    cr_assert_eq(wait_flushed(position), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(error.text, "handler \"push\": still not");
}

Test(lane_error, a_flush_of_what_is_delivered_does_not_mind)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    fixture_offer(&fixture, 1);
    fixture_deliver_all(&fixture);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_deliver_all(&fixture);
    fixture_close(&fixture);
    answer_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "away");
    cr_assert_eq(wait_flushed(position), 0);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *words_of(int answer)
{
    error = (struct wr_error){0};
    return wr_lane_describe_error(fixture.lane, answer, &error) ? error.text : "";
}

Test(lane_error, the_reason_explains_the_error_it_came_with_and_no_other)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    fixture_offer(&fixture, 4);
    fixture_next(&fixture);
    cr_assert_str_eq(words_of(WEIR_ERR_TIMEOUT), "");
    answer_emit(WEIR_OUTCOME_OK, 1, 1, WEIR_ERR_TOO_LARGE, "too large");
    cr_assert_str_eq(words_of(WEIR_ERR_TOO_LARGE), "handler \"push\": too large");
    cr_assert_str_eq(words_of(WEIR_ERR_TIMEOUT), "");
    fixture_next(&fixture);
    answer_emit(WEIR_OUTCOME_RETRY, 1, 0, 0, "busy");
    cr_assert_str_eq(words_of(WEIR_ERR_TOO_LARGE), "");
    cr_assert_str_eq(words_of(WEIR_ERR_TIMEOUT), "handler \"push\": busy",
                     "calls that wait in vain may ask why");
    answer_emit(WEIR_OUTCOME_DROP, 0, 0, 0, "unwanted");
    cr_assert_str_eq(words_of(WEIR_ERR_DROPPED), "handler \"push\": unwanted");
    fixture_offer(&fixture, 1);
    fixture_next(&fixture);
    answer_emit(WEIR_OUTCOME_OK, 1, 0, 0, "");
    cr_assert_str_eq(words_of(WEIR_ERR_DROPPED), "");
}
