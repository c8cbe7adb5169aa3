/* Errors that a handler returns to waiting calls. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "text/error.h"
#include "lane/lane_flush.h"

static struct lane_fixture fixture;
static struct wr_ticket_state ticket_states[4];
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

static struct wr_ticket offer(int index)
{
    struct wr_ticket ticket = fixture_take_ticket(&ticket_states[index]);
    fixture_offer_sync(&fixture, ticket);
    return ticket;
}

static void finish_open(int code, int error_code, const char *reason)
{
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    outcome.code = code;
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    outcome.error = error_code;
    wr_lock_enter(&fixture.lane->lock);
    wr_outcome_apply_open(fixture.lane, &outcome, fixture.now_ns);
    wr_lane_unlock(fixture.lane);
}

static void finish_emit(int code, uint32_t done, uint32_t rejected, int error_code, const char *reason)
{
    weir_outcome outcome = {.size = sizeof outcome, .code = code, .done = done, .rejected = rejected};
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    outcome.error = error_code;
    fixture_finish_emit_with(&fixture, outcome, 0);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

Test(lane_error, waiting_calls_return_and_their_values_stay_queued)
{
    struct wr_ticket first = offer(0), second = offer(1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    cr_assert_eq(fixture_read_ticket(first), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(fixture_read_ticket(second), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
}

Test(lane_error, later_calls_do_not_wait_and_do_not_end_the_backoff)
{
    offer(0);
    fixture_next(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    cr_assert_eq(fixture_read_ticket(offer(1)), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_stats(&fixture).queued, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
}

Test(lane_error, the_error_persists_until_the_handler_opens)
{
    offer(0);
    fixture_next(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket ticket = offer(1);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(ticket), 0);
}

Test(lane_error, the_error_persists_until_the_handler_delivers)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket ticket = offer(0);
    fixture_next(&fixture);
    finish_emit(WEIR_OUTCOME_RETRY, 0, 0, WEIR_ERR_TIMEOUT, "no use");
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_TIMEOUT);
    fixture_finish_wake(&fixture, WEIR_WAKE_TIMER, WEIR_OUTCOME_OK);
    cr_assert_eq(fixture_read_ticket(offer(1)), WEIR_ERR_TIMEOUT);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(offer(2)), FIXTURE_PENDING);
}

Test(lane_error, after_a_later_outcome_without_an_error_calls_wait_again)
{
    offer(0);
    fixture_next(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "no use");
    finish_open(WEIR_OUTCOME_RETRY, 0, "soon");
    cr_assert_eq(fixture_read_ticket(offer(1)), FIXTURE_PENDING);
}

Test(lane_error, samples_settled_before_have_their_own_result)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket delivered = offer(0), refused = offer(1), waiting = offer(2);
    fixture_next(&fixture);
    finish_emit(WEIR_OUTCOME_REOPEN, 1, 0, WEIR_ERR_FIFO_NOT_CREATED, "gone");
    cr_assert_eq(fixture_read_ticket(delivered), 0);
    cr_assert_eq(fixture_read_ticket(waiting), WEIR_ERR_FIFO_NOT_CREATED);
    (void)refused;
}

Test(lane_error, the_error_of_a_retry_is_not_that_of_what_was_rejected_with_it)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    struct wr_ticket refused = offer(0), waiting = offer(1);
    fixture_next(&fixture);
    finish_emit(WEIR_OUTCOME_RETRY, 1, 1, WEIR_ERR_TIMEOUT, "late");
    cr_assert_eq(fixture_read_ticket(refused), WEIR_ERR_DROPPED);
    cr_assert_eq(fixture_read_ticket(waiting), WEIR_ERR_TIMEOUT);
}

Test(lane_error, calls_for_rejected_dropped_or_failed_samples_return_the_error)
{
    static const int codes[] = {WEIR_OUTCOME_OK, WEIR_OUTCOME_DROP, WEIR_OUTCOME_FAILED};
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    for (int i = 0; i < 3; i++) {
        struct wr_ticket ticket = offer(i);
        fixture_next(&fixture);
        uint32_t rejected = codes[i] == WEIR_OUTCOME_OK;
        finish_emit(codes[i], rejected, rejected, WEIR_ERR_TOO_LARGE, "too large");
        cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_TOO_LARGE, "%d", codes[i]);
        cr_assert_eq(fixture.lane->ledger.waiters.error, 0);
    }
}

/* ---- Flushes --------------------------------------------------------------------------------- */

static int wait_flushed(uint64_t position)
{
    error = (struct wr_error){0};
    return wr_lane_flush_wait(fixture.lane, position, WR_NEVER, &error);
}

Test(lane_error, a_flush_returns_error_and_reason, .timeout = 60)
{
    fixture_offer(&fixture, 3);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_next(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    cr_assert_eq(wait_flushed(position), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_eq(error.code, WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(error.text, "handler \"push\": not there");
}

Test(lane_error, a_later_flush_causes_another_attempt, .timeout = 60)
{
    fixture_offer(&fixture, 3);
    fixture_next(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "not there");
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, 0, NULL), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN, "the backoff ends early");
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_FIFO_NOT_CREATED, "still not");
    cr_assert_eq(wait_flushed(position), WEIR_ERR_FIFO_NOT_CREATED);
    cr_assert_str_eq(error.text, "handler \"push\": still not");
}

Test(lane_error, a_flush_of_delivered_samples_returns_no_error)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    fixture_offer(&fixture, 1);
    fixture_deliver_all(&fixture);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_deliver_all(&fixture);
    fixture_close(&fixture);
    finish_open(WEIR_OUTCOME_RETRY, WEIR_ERR_TIMEOUT, "away");
    cr_assert_eq(wait_flushed(position), 0);
}

/* ---- Reasons --------------------------------------------------------------------------------- */

static const char *description_of(int result)
{
    error = (struct wr_error){0};
    return wr_lane_describe_error(fixture.lane, result, &error) ? error.text : "";
}

Test(lane_error, a_reason_is_only_returned_with_its_own_error)
{
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    fixture_offer(&fixture, 4);
    fixture_next(&fixture);
    cr_assert_str_eq(description_of(WEIR_ERR_TIMEOUT), "");
    finish_emit(WEIR_OUTCOME_OK, 1, 1, WEIR_ERR_TOO_LARGE, "too large");
    cr_assert_str_eq(description_of(WEIR_ERR_TOO_LARGE), "handler \"push\": too large");
    cr_assert_str_eq(description_of(WEIR_ERR_TIMEOUT), "");
    fixture_next(&fixture);
    finish_emit(WEIR_OUTCOME_RETRY, 1, 0, 0, "busy");
    cr_assert_str_eq(description_of(WEIR_ERR_TOO_LARGE), "");
    cr_assert_str_eq(description_of(WEIR_ERR_TIMEOUT), "handler \"push\": busy",
                     "a waiting call can read the reason");
    finish_emit(WEIR_OUTCOME_DROP, 0, 0, 0, "unwanted");
    cr_assert_str_eq(description_of(WEIR_ERR_DROPPED), "handler \"push\": unwanted");
    fixture_offer(&fixture, 1);
    fixture_next(&fixture);
    finish_emit(WEIR_OUTCOME_OK, 1, 0, 0, "");
    cr_assert_str_eq(description_of(WEIR_ERR_DROPPED), "");
}
