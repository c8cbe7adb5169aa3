/* Rounds: samples move from rings to lanes. The test is the producer and runs each round itself. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../support/failing.h"
#include "../../support/dispatch_fixture.h"
#include "os/clock.h"
#include "producer/gate.h"

static struct dispatch_fixture *fixture;

static void setup(void)
{
    fixture = fixture_open();
}

static void teardown(void)
{
    fixture_close(fixture);
}

TestSuite(dispatcher, .init = setup, .fini = teardown);

static struct wr_ring *ring(void)
{
    return &fixture->producer->ring;
}

static const char *queue_of(const char *lane)
{
    return fixture_queue(fixture_lane(fixture, lane));
}

/* The samples that a lane has queued in its first range. */
static const weir_sample *samples_of(const char *lane)
{
    const struct wr_range *range = wr_queue_front(&fixture_lane(fixture, lane)->queue);
    return range->segment->samples + range->first;
}

static int read_result(struct wr_ticket ticket)
{
    int result;
    return wr_ticket_wait(ticket, 0, &result) ? result : -1000;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

Test(dispatcher, without_routes_rings_are_not_read)
{
    fixture_add(fixture, "a", "n", 1);
    cr_assert_eq(fixture_round(fixture), 0);
    cr_assert_eq(wr_ring_fill(ring()), 1);
}

Test(dispatcher, a_round_takes_what_was_published)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_add(fixture, "a", "m", 2);
    fixture_write(fixture, fixture_metric(fixture, "a", "n"), 0, 3);
    cr_assert_eq(fixture_round(fixture), 2);
    cr_assert_str_eq(queue_of("A"), "1 2");
    cr_assert_eq(wr_ring_fill(ring()), 0);
    fixture_publish(fixture);
    cr_assert_eq(fixture_round(fixture), 1);
    cr_assert_str_eq(queue_of("A"), "1 2 3");
}

Test(dispatcher, each_group_is_routed_in_order)
{
    fixture_route(fixture, "{\"a\": \"A\", \"b\": \"B\", \"c\": [\"A\", \"B\"]}");
    for (int i = 0; i < 9; i++)
        fixture_add(fixture, i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", "n", i);
    fixture_round(fixture);
    cr_assert_str_eq(queue_of("A"), "0 2 3 5 6 8");
    cr_assert_str_eq(queue_of("B"), "1 2 4 5 7 8");
}

Test(dispatcher, values_without_a_route_are_counted)
{
    fixture_route(fixture, "{\"a\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_add(fixture, "b", "n", 2);
    cr_assert_eq(fixture_round(fixture), 2);
    cr_assert_eq(fixture->dispatcher.drain.unrouted, 1);
}

Test(dispatcher, events_stay_whole)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    for (int i = 0; i < 3; i++)
        fixture_write(fixture, metric, i < 2 ? WEIR_SAMPLE_MORE : 0, i);
    fixture_publish(fixture);
    cr_assert_eq(fixture_round(fixture), 3);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[0].flags, WEIR_SAMPLE_MORE);
    cr_assert_eq(samples[1].flags, WEIR_SAMPLE_MORE);
    cr_assert_eq(samples[2].flags, 0);
}

Test(dispatcher, more_samples_than_a_segment_holds_go_into_several)
{
    fixture->settings.queue_bytes = 10000 * sizeof(weir_sample);
    fixture->settings.batch = 1;
    fixture_route(fixture, "{\"*\": \"A\"}");
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    for (int i = 0; i < WR_PRODUCER_SLOTS; i++)
        fixture_write(fixture, metric, 0, i);
    fixture_publish(fixture);
    cr_assert_eq(fixture_round(fixture), WR_PRODUCER_SLOTS);
    cr_assert_eq(fixture_lane(fixture, "A")->queue.count, 4);
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).queued, WR_PRODUCER_SLOTS);
}

Test(dispatcher, flags_of_rings_are_not_copied)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    fixture_write(fixture, metric, WR_RING_TICKS, 1)->time_ns = (int64_t)wr_clock_ticks();
    fixture_write(fixture, metric, WR_RING_TICKS | WR_RING_NO_WAIT, 2);
    fixture_publish(fixture);
    fixture_round(fixture);
    cr_assert_eq(samples_of("A")[0].flags, 0);
    cr_assert_eq(samples_of("A")[1].flags, WR_RING_NO_WAIT, "the flag that the lane reads is copied");
}

/* ---- Time ------------------------------------------------------------------------------------ */

Test(dispatcher, a_time_set_by_the_program_is_unchanged)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_write(fixture, fixture_metric(fixture, "a", "n"), 0, 1)->time_ns = -12345;
    fixture_publish(fixture);
    fixture_round(fixture);
    cr_assert_eq(samples_of("A")[0].time_ns, -12345);
}

static void add_at(uint64_t ticks)
{
    fixture_write(fixture, fixture_metric(fixture, "a", "n"), WR_RING_TICKS, 0)->time_ns = (int64_t)ticks;
}

Test(dispatcher, a_small_step_back_is_suppressed_within_a_ring_and_a_large_one_is_not)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_round(fixture); /* determines the rate of the counter */
    const uint64_t ticks = wr_clock_ticks();
    add_at(ticks);
    add_at(ticks - 1000);
    add_at(ticks + 1000);
    add_at(ticks - UINT64_C(100000000000));
    fixture_publish(fixture);
    fixture_round(fixture);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[1].time_ns, samples[0].time_ns);
    cr_assert_gt(samples[2].time_ns, samples[1].time_ns);
    cr_assert_lt(samples[3].time_ns, samples[2].time_ns - WR_NS_PER_MS);
}

Test(dispatcher, a_change_from_the_counter_to_the_wall_clock_is_not_a_step_back)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_round(fixture);
    add_at(wr_clock_ticks());
    fixture_publish(fixture);
    fixture_round(fixture);
    const int64_t first_ns = samples_of("A")[0].time_ns;
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    fixture_write(fixture, metric, WR_RING_WALL, 1)->time_ns = first_ns - 100;
    fixture_write(fixture, metric, WR_RING_WALL, 2)->time_ns = first_ns + 100;
    fixture_write(fixture, metric, WR_RING_WALL, 3)->time_ns = first_ns - WR_NS_PER_S;
    fixture_publish(fixture);
    fixture_round(fixture);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[1].time_ns, first_ns);
    cr_assert_eq(samples[2].time_ns, first_ns + 100);
    cr_assert_eq(samples[3].time_ns, first_ns - WR_NS_PER_S, "a clock that was set back is followed");
    cr_assert_eq(samples[3].flags, 0);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static const char text[] = "a text of more than one slot of a ring, since a slot has 32 bytes.";

static void add_with_text(const char *group, double value)
{
    weir_sample *sample = fixture_write(fixture, fixture_metric(fixture, group, "n"), WR_RING_TEXT, value);
    sample->note = (uint32_t)strlen(text);
    fixture_write_text(fixture, text);
    fixture_publish(fixture);
}

static const char *note_of(const struct wr_lane *lane, uint32_t sample)
{
    const struct wr_range *range = wr_queue_front(&lane->queue);
    uint32_t note = range->segment->samples[range->first + sample].note;
    return note ? wr_segment_texts(range->segment)[note] : NULL;
}

Test(dispatcher, metadata_is_copied_with_its_sample)
{
    fixture_route(fixture, "{\"a\": [\"A\", \"B\"], \"b\": \"B\"}");
    fixture_add(fixture, "a", "n", 1);
    add_with_text("a", 2);
    fixture_add(fixture, "a", "n", 3);
    cr_assert_eq(fixture_round(fixture), 3);
    cr_assert_str_eq(queue_of("A"), "1 2 3");
    cr_assert_str_eq(queue_of("B"), "1 2 3");
    cr_assert_null(note_of(fixture_lane(fixture, "A"), 0));
    cr_assert_str_eq(note_of(fixture_lane(fixture, "A"), 1), text);
    cr_assert_str_eq(note_of(fixture_lane(fixture, "B"), 1), text);
    cr_assert_null(note_of(fixture_lane(fixture, "A"), 2));
    cr_assert_eq(ring()->text_slots, 3);
}

Test(dispatcher, metadata_may_wrap_around_the_ring)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    for (int i = 0; i < WR_PRODUCER_SLOTS - 2; i++)
        fixture_write(fixture, metric, 0, i);
    fixture_publish(fixture);
    fixture_round(fixture);
    fixture_drop(fixture_lane(fixture, "A"));
    add_with_text("a", 7); /* the sample is in the last but one slot */
    cr_assert_eq(fixture_round(fixture), 1);
    cr_assert_str_eq(queue_of("A"), "7");
    cr_assert_str_eq(note_of(fixture_lane(fixture, "A"), 0), text);
}

Test(dispatcher, metadata_without_a_route_is_skipped)
{
    fixture_route(fixture, "{\"a\": \"A\"}");
    add_with_text("b", 1);
    fixture_add(fixture, "a", "n", 2);
    cr_assert_eq(fixture_round(fixture), 2);
    cr_assert_str_eq(queue_of("A"), "2");
}

/* ---- Parking --------------------------------------------------------------------------------- */

Test(dispatcher, a_ring_is_polled_after_it_wakes)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    cr_assert_eq(ring()->parked, 1);
    fixture_add(fixture, "a", "n", 1);
    cr_assert_eq(ring()->parked, 0);
    cr_assert_eq(fixture->dispatcher.wakeup.sent, 1);
    fixture_round(fixture);
    cr_assert_eq(fixture->dispatcher.active_count, 1);
    wr_dispatcher_wake(&fixture->dispatcher, fixture->producer);
    cr_assert_null(fixture->dispatcher.woken, "only a parked ring wakes up");
}

Test(dispatcher, a_quiet_ring_is_parked)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    cr_assert_eq(ring()->quiet_since_ns, 0);
    ring()->quiet_since_ns = 1; /* long ago */
    fixture_round(fixture);
    cr_assert_eq(ring()->parked, 1);
    cr_assert_eq(fixture->dispatcher.active_count, 0);
}

Test(dispatcher, a_ring_with_samples_is_not_parked)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    ring()->quiet_since_ns = 1;
    fixture_add(fixture, "a", "n", 2);
    fixture_round(fixture);
    cr_assert_eq(ring()->parked, 0);
    cr_assert_eq(fixture->dispatcher.active_count, 1);
}

Test(dispatcher, a_parked_ring_wakes_up_again)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    for (int i = 0; i < 3; i++) {
        fixture_add(fixture, "a", "n", i);
        fixture_round(fixture);
        ring()->quiet_since_ns = 1;
        fixture_round(fixture);
        cr_assert_eq(ring()->parked, 1);
    }
    cr_assert_str_eq(queue_of("A"), "0 1 2");
}

Test(dispatcher, a_writer_waiting_for_space_is_woken)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    uint32_t room = ring()->room;
    fixture_round(fixture);
    cr_assert_eq(ring()->room, room, "no writer was waiting");
    fixture_add(fixture, "a", "n", 2);
    ring()->hungry = 1;
    fixture_round(fixture);
    cr_assert_eq(ring()->room, room + 1);
    cr_assert_eq(ring()->hungry, 0);
}

Test(dispatcher, waiting_for_available_space_returns_at_once, .timeout = 60)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    wr_dispatcher_wait_room(&fixture->dispatcher, fixture->producer, 1, WR_NEVER);
    cr_assert_eq(fixture->dispatcher.wakeup.sent, 1);
}

/* ---- Switching ------------------------------------------------------------------------------- */

Test(dispatcher, samples_added_before_a_switch_use_the_old_routes)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    fixture_add(fixture, "a", "n", 2);
    fixture_route(fixture, "{\"*\": \"B\"}");
    fixture_add(fixture, "a", "n", 3);
    fixture_round(fixture);
    cr_assert_str_eq(queue_of("A"), "1 2");
    cr_assert_str_eq(queue_of("B"), "3");
}

Test(dispatcher, a_switch_sets_all_gates_to_cold)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    cr_assert_eq(wr_gate_read(fixture_group(fixture, "a")), WR_GATE_OPEN);
    fixture_route(fixture, "{\"*\": \"B\"}");
    cr_assert_eq(wr_gate_read(fixture_group(fixture, "a")), WR_GATE_COLD);
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

/* Adds a value as a waiting call does. Returns its ticket. */
static struct wr_ticket add_and_wait(double value)
{
    struct wr_ticket ticket = wr_ticket_take(&fixture->producer->ticket);
    fixture_write(fixture, fixture_metric(fixture, "a", "n"), WR_RING_SYNC, value)->reserved = ticket.number;
    fixture_publish(fixture);
    return ticket;
}

/* Settles a lane's oldest samples, as its handler would. */
static void settle(const char *name, uint32_t samples)
{
    struct wr_lane *lane = fixture_lane(fixture, name);
    struct wr_range range = wr_queue_take(&lane->queue, samples, UINT64_MAX);
    lane->delivered += range.count;
    wr_lane_complete_calls(lane, range.position + range.count, 0);
    wr_segment_drop(range.segment);
}

Test(dispatcher, a_call_waits_for_its_synchronous_lanes)
{
    fixture->settings.sync = true;
    fixture_route(fixture, "{\"*\": [\"A\", \"B\"]}");
    struct wr_ticket ticket = add_and_wait(1);
    cr_assert_eq(read_result(ticket), -1000);
    fixture_round(fixture);
    settle("A", 1);
    cr_assert_eq(read_result(ticket), -1000);
    settle("B", 1);
    cr_assert_eq(read_result(ticket), 0);
}

Test(dispatcher, a_call_whose_group_lost_its_synchronous_lanes_returns)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    struct wr_ticket ticket = add_and_wait(1);
    fixture_round(fixture);
    cr_assert_eq(read_result(ticket), 0);
}

Test(dispatcher, an_offer_that_a_call_waits_for_ends_after_its_sample)
{
    fixture->settings.sync = true;
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_add(fixture, "a", "n", 1);
    add_and_wait(2);
    fixture_add(fixture, "a", "n", 3);
    fixture_round(fixture);
    cr_assert_eq(fixture_lane(fixture, "A")->sync_waiters.calls[0].sequence, 2);
}

Test(dispatcher, the_number_of_a_ticket_stays_in_the_ring)
{
    fixture->settings.sync = true;
    fixture_route(fixture, "{\"*\": \"A\"}");
    add_and_wait(1);
    fixture_round(fixture);
    cr_assert_eq(samples_of("A")[0].reserved, 0);
}

Test(dispatcher, a_call_does_not_get_the_result_of_an_earlier_abandoned_call)
{
    fixture->settings.sync = true;
    fixture_route(fixture, "{\"*\": \"A\"}");
    add_and_wait(1);
    struct wr_ticket ticket = add_and_wait(2); /* before any round has read the first one */
    fixture_round(fixture);
    settle("A", 1);
    cr_assert_eq(read_result(ticket), -1000, "its own value is still queued");
    settle("A", 1);
    cr_assert_eq(read_result(ticket), 0);
}

/* ---- Without memory -------------------------------------------------------------------------- */

Test(dispatcher, a_sample_lost_to_memory_exhaustion_is_counted_once)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture_metric(fixture, "a", "n");
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    wr_feed_seal(&fixture->dispatcher.drain.router->feeds[0], 0);
    fixture_add(fixture, "a", "n", 2);
    failing_set(true);
    uint64_t taken = fixture_round(fixture);
    failing_set(false);
    cr_assert_eq(taken, 1);
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).offered, 2);
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).dropped[WEIR_DROPPED_FULL], 1);
}
