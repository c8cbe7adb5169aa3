/* Calls that wait for the handler's answer (delivery "sync"). */
#include <criterion/criterion.h>

#include "../support/rig.h"
#include "stop.h"

static struct rig rig;
static struct wr_ticket_desk desks[4];

static void setup(void)
{
    rig_init(&rig);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    rig_fini(&rig);
}

TestSuite(lane_sync, .init = setup, .fini = teardown);

/* One call after the other, each from a thread of its own, offers a sample and waits. */
static void offer(struct wr_ticket *tickets, int count)
{
    for (int i = 0; i < count; i++) {
        tickets[i] = rig_take_ticket(&desks[i]);
        rig_offer_sync(&rig, tickets[i]);
    }
}

Test(lane_sync, a_delivered_sample_is_answered_with_0)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    cr_assert_eq(rig_read_ticket(ticket), RIG_NO_ANSWER);
    rig_next(&rig);
    cr_assert_eq(rig_read_ticket(ticket), RIG_NO_ANSWER);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_read_ticket(ticket), 0);
}

Test(lane_sync, a_refused_sample_is_answered_with_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 1);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_that_the_format_left_out_is_answered_with_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    rig_next(&rig);
    rig_answer_fully(&rig, (weir_outcome){.code = WEIR_OUTCOME_OK, .done = 1}, 1);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_of_a_dropped_batch_is_answered_with_dropped)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_DROP, 0, 0);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_sample_of_a_kind_that_is_not_taken_is_answered_with_dropped)
{
    struct wr_ticket ticket = rig_take_ticket(&desks[0]);
    rig.lane->kinds = WEIR_TAKES_INT;
    rig_offer_sync(&rig, ticket);
    rig_next(&rig);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, there_is_no_answer_while_the_handler_tries_again)
{
    struct wr_ticket ticket;
    offer(&ticket, 1);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 0, 0);
    cr_assert_eq(rig_read_ticket(ticket), RIG_NO_ANSWER);
    rig.now_ns = rig.lane->retry_at_ns;
    rig_deliver_all(&rig);
    cr_assert_eq(rig_read_ticket(ticket), 0);
}

Test(lane_sync, a_call_waits_for_the_end_of_its_event)
{
    struct wr_ticket ticket = rig_take_ticket(&desks[0]);
    rig_append(&rig, 3, 0, NULL);
    rig_offer_appended(&rig, ticket);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 2, 0);
    cr_assert_eq(rig_read_ticket(ticket), RIG_NO_ANSWER);
    rig_answer(&rig, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(rig_read_ticket(ticket), 0);
}

Test(lane_sync, each_call_has_the_answer_to_its_own_batch)
{
    struct wr_ticket tickets[3];
    offer(tickets, 3);
    rig_next(&rig);
    cr_assert_str_eq(rig_flight(&rig), "0");
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 1);
    rig_next(&rig);
    cr_assert_str_eq(rig_flight(&rig), "1");
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_read_ticket(tickets[0]), WEIR_ERR_DROPPED);
    cr_assert_eq(rig_read_ticket(tickets[1]), 0);
    cr_assert_eq(rig_read_ticket(tickets[2]), RIG_NO_ANSWER);
}

Test(lane_sync, a_call_that_waits_ends_the_lingering)
{
    struct wr_ticket ticket;
    rig.settings.linger_ns = WR_NS_PER_S;
    rig_apply(&rig);
    rig_offer(&rig, 2);
    cr_assert_eq(rig_next(&rig), WR_STEP_SLEEP);
    offer(&ticket, 1);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
    cr_assert_str_eq(rig_flight(&rig), "0 1 2");
}

Test(lane_sync, with_one_in_flight_the_next_call_still_waits_for_its_own)
{
    struct wr_ticket tickets[2];
    offer(tickets, 1);
    rig_next(&rig);
    tickets[1] = rig_take_ticket(&desks[1]);
    rig_offer_sync(&rig, tickets[1]);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_read_ticket(tickets[0]), 0);
    cr_assert_eq(rig_read_ticket(tickets[1]), RIG_NO_ANSWER);
}

/* ---- A full queue ---------------------------------------------------------------------------- */

static void use(enum wr_overflow overflow, uint32_t samples)
{
    rig.settings.overflow = overflow;
    rig.settings.queue_bytes = samples * RIG_SAMPLE_BYTES;
    rig_apply(&rig);
}

Test(lane_sync, a_sample_that_finds_the_queue_full_is_answered_with_full)
{
    struct wr_ticket ticket;
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    rig_offer(&rig, 2);
    offer(&ticket, 1);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_FULL);
}

Test(lane_sync, a_call_whose_sample_is_queued_still_waits_when_another_finds_the_queue_full)
{
    struct wr_ticket tickets[3];
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    offer(tickets, 3);
    cr_assert_eq(rig_read_ticket(tickets[0]), RIG_NO_ANSWER);
    cr_assert_eq(rig_read_ticket(tickets[1]), RIG_NO_ANSWER);
    cr_assert_eq(rig_read_ticket(tickets[2]), WEIR_ERR_FULL);
    rig_deliver_all(&rig);
    cr_assert_eq(rig_read_ticket(tickets[0]), 0);
    cr_assert_eq(rig_read_ticket(tickets[1]), 0);
}

Test(lane_sync, a_sample_that_gives_way_to_a_newer_one_is_answered_with_full)
{
    struct wr_ticket tickets[3];
    use(WR_OVERFLOW_DROP_OLDEST, 2);
    offer(tickets, 3);
    cr_assert_eq(rig_read_ticket(tickets[0]), WEIR_ERR_FULL);
    cr_assert_eq(rig_read_ticket(tickets[1]), RIG_NO_ANSWER);
    cr_assert_eq(rig_read_ticket(tickets[2]), RIG_NO_ANSWER);
}

Test(lane_sync, a_call_whose_sample_is_in_flight_still_waits_when_others_give_way)
{
    struct wr_ticket tickets[4];
    use(WR_OVERFLOW_DROP_OLDEST, 2);
    offer(tickets, 1);
    rig_next(&rig);
    for (int i = 1; i < 3; i++) {
        tickets[i] = rig_take_ticket(&desks[i]);
        rig_offer_sync(&rig, tickets[i]);
    }
    cr_assert_eq(rig_read_ticket(tickets[0]), RIG_NO_ANSWER, "the handler has it in its hands");
    cr_assert_eq(rig_read_ticket(tickets[1]), WEIR_ERR_FULL);
    cr_assert_eq(rig_read_ticket(tickets[2]), RIG_NO_ANSWER);
    rig_answer(&rig, WEIR_OUTCOME_OK, 1, 0);
    cr_assert_eq(rig_read_ticket(tickets[0]), 0);
    rig_deliver_all(&rig);
    cr_assert_eq(rig_read_ticket(tickets[2]), 0);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(lane_sync, a_handler_that_fails_answers_all_with_dropped)
{
    struct wr_ticket tickets[3];
    offer(tickets, 3);
    rig_next(&rig);
    rig_answer(&rig, WEIR_OUTCOME_FAILED, 0, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(rig_read_ticket(tickets[i]), WEIR_ERR_DROPPED);
}

Test(lane_sync, a_lane_that_has_ended_answers_at_once)
{
    struct wr_ticket ticket;
    rig.lane->ending = WEIR_DROPPED_FAILED;
    offer(&ticket, 1);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_DROPPED);
}

Test(lane_sync, the_time_for_stopping_being_over_answers_all_with_dropped)
{
    struct wr_ticket tickets[2];
    offer(tickets, 2);
    rig_next(&rig);
    rig.lane->in_callback = true;
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, rig.now_ns);
    rig_check(&rig, NULL);
    rig.lane->in_callback = false;
    cr_assert_eq(rig_read_ticket(tickets[0]), WEIR_ERR_DROPPED);
    cr_assert_eq(rig_read_ticket(tickets[1]), WEIR_ERR_DROPPED);
}

Test(lane_sync, many_calls_may_wait)
{
    static struct wr_ticket_desk many[100];
    struct wr_ticket tickets[100];
    for (int i = 0; i < 100; i++) {
        tickets[i] = rig_take_ticket(&many[i]);
        rig_offer_sync(&rig, tickets[i]);
    }
    cr_assert_eq(rig_deliver_all(&rig), 100);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(rig_read_ticket(tickets[i]), 0);
}
