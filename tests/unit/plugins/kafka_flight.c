/* What the kafka handler knows of samples on their way, over several calls of emit. */
#include <criterion/criterion.h>

#include "../../../plugins/kafka/flight.h"

static struct flight flight;

static void begin(const char *origin, uint64_t sequence, uint32_t count)
{
    const weir_batch batch = {.size = sizeof batch, .count = count, .sequence = sequence, .origin = origin};
    cr_assert(wr_flight_begin(&flight, &batch));
}

/* Sends a message of an event and returns what its report will have. */
static void *send_one(uint32_t index)
{
    wr_flight_sent(&flight, wr_flight_slot(&flight, index));
    return wr_flight_opaque(&flight, index);
}

static void finish(void)
{
    wr_flight_fini(&flight);
}

TestSuite(kafka_flight, .fini = finish);

Test(kafka_flight, a_report_settles_the_event_it_is_of)
{
    begin("a", 100, 3);
    void *first = send_one(0), *last = send_one(2);
    cr_assert_eq(wr_flight_reported(&flight, last), wr_flight_slot(&flight, 2));
    cr_assert_eq(flight.pending, 1);
    cr_assert_eq(wr_flight_reported(&flight, first), wr_flight_slot(&flight, 0));
    cr_assert_null(wr_flight_reported(&flight, first)); /* a second time */
}

Test(kafka_flight, the_rest_of_a_batch_is_known_when_it_is_offered_again)
{
    begin("a", 100, 5);
    send_one(1);
    void *pending = send_one(3);
    begin("a", 103, 2);
    cr_assert_eq(wr_flight_slot(&flight, 0)->sent, 1);
    cr_assert_eq(wr_flight_slot(&flight, 1)->sent, 0);
    cr_assert_eq(flight.pending, 1); /* what is before the batch is given up */
    cr_assert_eq(wr_flight_reported(&flight, pending), wr_flight_slot(&flight, 0));
}

Test(kafka_flight, a_shorter_batch_keeps_what_is_behind_it)
{
    begin("a", 100, 5);
    void *behind = send_one(4);
    begin("a", 100, 2);
    begin("a", 102, 100);
    cr_assert_eq(wr_flight_slot(&flight, 2)->sent, 1);
    cr_assert_eq(wr_flight_slot(&flight, 99)->sent, 0);
    cr_assert_eq(wr_flight_reported(&flight, behind), wr_flight_slot(&flight, 2));
}

Test(kafka_flight, reports_of_other_batches_are_ignored)
{
    begin("a", 100, 5);
    void *old = send_one(0);
    begin("b", 100, 5);
    cr_assert_eq(flight.pending, 0);
    cr_assert_eq(wr_flight_slot(&flight, 0)->sent, 0);
    cr_assert_null(wr_flight_reported(&flight, old));
    begin("b", 50, 5); /* earlier ones of the same origin */
    cr_assert_null(wr_flight_reported(&flight, old));
}

Test(kafka_flight, many_batches_in_turn_use_the_same_memory)
{
    for (uint32_t i = 0; i < 1000; i++) {
        begin("a", i * 10, 16);
        cr_assert_eq(wr_flight_slot(&flight, 15)->sent, 0);
        for (uint32_t k = 0; k < 16; k++)
            if (!wr_flight_slot(&flight, k)->sent)
                wr_flight_reported(&flight, send_one(k));
    }
    cr_assert_eq(flight.pending, 0);
    cr_assert_leq(flight.room, 32);
}

Test(kafka_flight, what_has_no_report_when_the_producer_is_closed_is_sent_again)
{
    begin("a", 0, 3);
    wr_flight_reported(&flight, send_one(0));
    send_one(1);
    send_one(2);
    wr_flight_fail(&flight, wr_flight_reported(&flight, send_one(2)));
    flight.plain = 3;
    wr_flight_forget(&flight);
    cr_assert_eq(flight.pending, 0);
    cr_assert_eq(flight.plain, 0);
    cr_assert_not(wr_flight_slot(&flight, 0)->resend);
    for (uint32_t i = 1; i < 3; i++) {
        cr_assert(wr_flight_slot(&flight, i)->resend);
        cr_assert_eq(wr_flight_slot(&flight, i)->pending, 0);
        wr_flight_restart(wr_flight_slot(&flight, i));
        cr_assert_not_null(wr_flight_reported(&flight, send_one(i)));
    }
    cr_assert_eq(flight.pending, 0);
}

Test(kafka_flight, an_event_that_failed_is_encoded_again)
{
    begin("a", 0, 4);
    flight.plain = 4;
    wr_flight_fail(&flight, wr_flight_slot(&flight, 2));
    cr_assert_eq(flight.plain, 2);
    wr_flight_restart(wr_flight_slot(&flight, 2));
    cr_assert_not(wr_flight_slot(&flight, 2)->resend);
    begin("a", 3, 1);
    cr_assert_eq(flight.plain, 0);
}
