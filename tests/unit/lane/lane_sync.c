/* Calls that wait for the handler's result (delivery "sync"). */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_stop.h"

static struct lane_fixture fixture;
static struct wr_ticket_state ticket_states[4];

static void setup(void)
{
    fixture_init(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_sync, .init = setup, .fini = teardown);

/* Offers one sample for each call; each call has its own ticket, as if it came from its own thread. */
static void offer(struct wr_ticket *tickets, int count)
{
    for (int i = 0; i < count; i++) {
        tickets[i] = fixture_take_ticket(&ticket_states[i]);
        fixture_offer_sync(&fixture, tickets[i]);
    }
}

Test(lane_sync, a_delivered_sample_returns_0)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture_next(&fixture);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_read_ticket(ticket), 0);
}

Test(lane_sync, a_rejected_sample_returns_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 1);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_that_the_format_left_out_returns_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    fixture_next(&fixture);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_OK, .done = 1}, 1);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_of_a_dropped_batch_returns_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 0, 0);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_of_an_unaccepted_kind_returns_dropped)
{
    struct wr_ticket ticket = fixture_take_ticket(&ticket_states[0]);
    fixture.lane->handler.kinds = WEIR_KINDS_INT;
    fixture_offer_sync(&fixture, ticket);
    fixture_next(&fixture);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_call_does_not_return_while_the_handler_retries)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(ticket), 0);
}

Test(lane_sync, a_call_waits_for_the_end_of_its_event)
{
    struct wr_ticket ticket = fixture_take_ticket(&ticket_states[0]);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_offer_appended(&fixture, ticket);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 2, 0);
    cr_assert_eq(fixture_read_ticket(ticket), FIXTURE_PENDING);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_read_ticket(ticket), 0);
}

Test(lane_sync, each_call_returns_the_result_of_its_own_batch)
{
    struct wr_ticket tickets[3];
    offer(tickets, 3);
    fixture_next(&fixture);
    cr_assert_str_eq(fixture_flight(&fixture), "0");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 1);
    fixture_next(&fixture);
    cr_assert_str_eq(fixture_flight(&fixture), "1");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_read_ticket(tickets[0]), WEIR_ERR_DROPPED);
    cr_assert_eq(fixture_read_ticket(tickets[1]), 0);
    cr_assert_eq(fixture_read_ticket(tickets[2]), FIXTURE_PENDING);
}

Test(lane_sync, a_waiting_call_ends_the_linger)
{
    struct wr_ticket ticket;
    fixture.settings.linger_ns = WR_NS_PER_S;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 2);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
    offer(&ticket, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "0 1 2");
}

Test(lane_sync, with_one_batch_in_flight_the_next_call_waits_for_its_own)
{
    struct wr_ticket tickets[2];
    offer(tickets, 1);
    fixture_next(&fixture);
    tickets[1] = fixture_take_ticket(&ticket_states[1]);
    fixture_offer_sync(&fixture, tickets[1]);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_read_ticket(tickets[0]), 0);
    cr_assert_eq(fixture_read_ticket(tickets[1]), FIXTURE_PENDING);
}

/* ---- A full queue ---------------------------------------------------------------------------- */

static void use(enum wr_overflow overflow, uint32_t samples)
{
    fixture.settings.overflow = overflow;
    fixture.settings.queue_bytes = samples * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
}

Test(lane_sync, a_sample_that_finds_the_queue_full_returns_full)
{
    struct wr_ticket ticket;
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    fixture_offer(&fixture, 2);
    offer(&ticket, 1);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_FULL);
}

Test(lane_sync, a_call_with_a_queued_sample_waits_while_another_finds_the_queue_full)
{
    struct wr_ticket tickets[3];
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    offer(tickets, 3);
    cr_assert_eq(fixture_read_ticket(tickets[0]), FIXTURE_PENDING);
    cr_assert_eq(fixture_read_ticket(tickets[1]), FIXTURE_PENDING);
    cr_assert_eq(fixture_read_ticket(tickets[2]), WEIR_ERR_FULL);
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(tickets[0]), 0);
    cr_assert_eq(fixture_read_ticket(tickets[1]), 0);
}

Test(lane_sync, a_sample_dropped_for_a_newer_one_returns_full)
{
    struct wr_ticket tickets[3];
    use(WR_OVERFLOW_DROP_OLDEST, 2);
    offer(tickets, 3);
    cr_assert_eq(fixture_read_ticket(tickets[0]), WEIR_ERR_FULL);
    cr_assert_eq(fixture_read_ticket(tickets[1]), FIXTURE_PENDING);
    cr_assert_eq(fixture_read_ticket(tickets[2]), FIXTURE_PENDING);
}

Test(lane_sync, a_call_with_a_sample_in_flight_waits_while_others_are_dropped)
{
    struct wr_ticket tickets[4];
    use(WR_OVERFLOW_DROP_OLDEST, 2);
    offer(tickets, 1);
    fixture_next(&fixture);
    for (int i = 1; i < 3; i++) {
        tickets[i] = fixture_take_ticket(&ticket_states[i]);
        fixture_offer_sync(&fixture, tickets[i]);
    }
    cr_assert_eq(fixture_read_ticket(tickets[0]), FIXTURE_PENDING, "the sample is in flight");
    cr_assert_eq(fixture_read_ticket(tickets[1]), WEIR_ERR_FULL);
    cr_assert_eq(fixture_read_ticket(tickets[2]), FIXTURE_PENDING);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(fixture_read_ticket(tickets[0]), 0);
    fixture_deliver_all(&fixture);
    cr_assert_eq(fixture_read_ticket(tickets[2]), 0);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(lane_sync, calls_to_a_failed_handler_return_dropped)
{
    struct wr_ticket tickets[3];
    offer(tickets, 3);
    fixture_next(&fixture);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(fixture_read_ticket(tickets[i]), WEIR_ERR_DROPPED);
}

Test(lane_sync, calls_to_an_ended_lane_return_at_once)
{
    struct wr_ticket ticket;
    fixture.lane->end_reason = WEIR_DROPPED_FAILED;
    offer(&ticket, 1);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, calls_waiting_at_the_stop_deadline_return_dropped)
{
    struct wr_ticket tickets[2];
    offer(tickets, 2);
    fixture_next(&fixture);
    fixture.lane->worker.state = WR_THREAD_CALLING;
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    fixture_check(&fixture, NULL);
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    cr_assert_eq(fixture_read_ticket(tickets[0]), WEIR_ERR_DROPPED);
    cr_assert_eq(fixture_read_ticket(tickets[1]), WEIR_ERR_DROPPED);
}

Test(lane_sync, many_calls_may_wait)
{
    static struct wr_ticket_state many[100];
    struct wr_ticket tickets[100];
    for (int i = 0; i < 100; i++) {
        tickets[i] = fixture_take_ticket(&many[i]);
        fixture_offer_sync(&fixture, tickets[i]);
    }
    cr_assert_eq(fixture_deliver_all(&fixture), 100);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(fixture_read_ticket(tickets[i]), 0);
}
