/* Rounds: from rings to lanes. The test is the producer, and runs each round itself. */
#include <criterion/criterion.h>
#include <string.h>

#include "../support/failing.h"
#include "../support/yard.h"
#include "clock.h"
#include "gate.h"

static struct yard *yard;

static void setup(void)
{
    yard = yard_open();
}

static void teardown(void)
{
    yard_close(yard);
}

TestSuite(dispatcher, .init = setup, .fini = teardown);

static struct wr_ring *ring(void)
{
    return &yard->producer->ring;
}

static const char *queue_of(const char *lane)
{
    return yard_queue(yard_lane(yard, lane));
}

/* The samples that a lane has queued in its first range. */
static const weir_sample *samples_of(const char *lane)
{
    const struct wr_range *range = wr_queue_front(&yard_lane(yard, lane)->queue);
    return range->segment->samples + range->first;
}

static int read_answer(struct wr_ticket ticket)
{
    int answer;
    return wr_ticket_wait(ticket, 0, &answer) ? answer : -1000;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

Test(dispatcher, without_routes_it_leaves_rings_alone)
{
    yard_add(yard, "a", "n", 1);
    cr_assert_eq(yard_round(yard), 0);
    cr_assert_eq(wr_ring_fill(ring()), 1);
}

Test(dispatcher, a_round_takes_what_was_published)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_add(yard, "a", "m", 2);
    yard_write(yard, yard_metric(yard, "a", "n"), 0, 3);
    cr_assert_eq(yard_round(yard), 2);
    cr_assert_str_eq(queue_of("A"), "1 2");
    cr_assert_eq(wr_ring_fill(ring()), 0);
    yard_publish(yard);
    cr_assert_eq(yard_round(yard), 1);
    cr_assert_str_eq(queue_of("A"), "1 2 3");
}

Test(dispatcher, each_group_goes_its_own_way_in_order)
{
    yard_route(yard, "{\"a\": \"A\", \"b\": \"B\", \"c\": [\"A\", \"B\"]}");
    for (int i = 0; i < 9; i++)
        yard_add(yard, i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", "n", i);
    yard_round(yard);
    cr_assert_str_eq(queue_of("A"), "0 2 3 5 6 8");
    cr_assert_str_eq(queue_of("B"), "1 2 4 5 7 8");
}

Test(dispatcher, values_that_nobody_listens_to_are_counted)
{
    yard_route(yard, "{\"a\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_add(yard, "b", "n", 2);
    cr_assert_eq(yard_round(yard), 2);
    cr_assert_eq(yard->dispatcher.taking.unrouted, 1);
}

Test(dispatcher, events_stay_whole)
{
    yard_route(yard, "{\"*\": \"A\"}");
    struct weir_metric *metric = yard_metric(yard, "a", "n");
    for (int i = 0; i < 3; i++)
        yard_write(yard, metric, i < 2 ? WEIR_SAMPLE_MORE : 0, i);
    yard_publish(yard);
    cr_assert_eq(yard_round(yard), 3);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[0].flags, WEIR_SAMPLE_MORE);
    cr_assert_eq(samples[1].flags, WEIR_SAMPLE_MORE);
    cr_assert_eq(samples[2].flags, 0);
}

Test(dispatcher, more_than_a_segment_holds_is_taken_in_several)
{
    yard->settings.queue_bytes = 10000 * sizeof(weir_sample);
    yard->settings.batch = 1;
    yard_route(yard, "{\"*\": \"A\"}");
    struct weir_metric *metric = yard_metric(yard, "a", "n");
    for (int i = 0; i < WR_PRODUCER_SLOTS; i++)
        yard_write(yard, metric, 0, i);
    yard_publish(yard);
    cr_assert_eq(yard_round(yard), WR_PRODUCER_SLOTS);
    cr_assert_eq(yard_lane(yard, "A")->queue.count, 4);
    cr_assert_eq(yard_stats(yard_lane(yard, "A")).queued, WR_PRODUCER_SLOTS);
}

Test(dispatcher, flags_of_rings_stay_in_rings)
{
    yard_route(yard, "{\"*\": \"A\"}");
    struct weir_metric *metric = yard_metric(yard, "a", "n");
    yard_write(yard, metric, WR_RING_TICKS, 1)->time_ns = (int64_t)wr_clock_ticks();
    yard_write(yard, metric, WR_RING_TICKS | WR_RING_NO_WAIT, 2);
    yard_publish(yard);
    yard_round(yard);
    cr_assert_eq(samples_of("A")[0].flags, 0);
    cr_assert_eq(samples_of("A")[1].flags, WR_RING_NO_WAIT, "but the one that the lane goes by");
}

/* ---- Time ------------------------------------------------------------------------------------ */

Test(dispatcher, a_time_that_the_program_gave_stays_as_it_is)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_write(yard, yard_metric(yard, "a", "n"), 0, 1)->time_ns = -12345;
    yard_publish(yard);
    yard_round(yard);
    cr_assert_eq(samples_of("A")[0].time_ns, -12345);
}

static void add_at(uint64_t ticks)
{
    yard_write(yard, yard_metric(yard, "a", "n"), WR_RING_TICKS, 0)->time_ns = (int64_t)ticks;
}

Test(dispatcher, a_slight_step_back_is_held_back_within_a_ring_and_a_large_one_is_not)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    yard_route(yard, "{\"*\": \"A\"}");
    yard_round(yard); /* the speed is known from here on */
    const uint64_t ticks = wr_clock_ticks();
    add_at(ticks);
    add_at(ticks - 1000);
    add_at(ticks + 1000);
    add_at(ticks - UINT64_C(100000000000));
    yard_publish(yard);
    yard_round(yard);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[1].time_ns, samples[0].time_ns);
    cr_assert_gt(samples[2].time_ns, samples[1].time_ns);
    cr_assert_lt(samples[3].time_ns, samples[2].time_ns - WR_NS_PER_MS);
}

Test(dispatcher, a_change_from_the_counter_to_the_wall_clock_is_no_step_back)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    yard_route(yard, "{\"*\": \"A\"}");
    yard_round(yard);
    add_at(wr_clock_ticks());
    yard_publish(yard);
    yard_round(yard);
    const int64_t first_ns = samples_of("A")[0].time_ns;
    struct weir_metric *metric = yard_metric(yard, "a", "n");
    yard_write(yard, metric, WR_RING_WALL, 1)->time_ns = first_ns - 100;
    yard_write(yard, metric, WR_RING_WALL, 2)->time_ns = first_ns + 100;
    yard_write(yard, metric, WR_RING_WALL, 3)->time_ns = first_ns - WR_NS_PER_S;
    yard_publish(yard);
    yard_round(yard);
    const weir_sample *samples = samples_of("A");
    cr_assert_eq(samples[1].time_ns, first_ns);
    cr_assert_eq(samples[2].time_ns, first_ns + 100);
    cr_assert_eq(samples[3].time_ns, first_ns - WR_NS_PER_S, "but a clock that was set back is followed");
    cr_assert_eq(samples[3].flags, 0);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static const char text[] = "some words that need more than one slot, since a slot has 32 bytes";

static void add_with_text(const char *group, double value)
{
    weir_sample *sample = yard_write(yard, yard_metric(yard, group, "n"), WR_RING_TEXT, value);
    sample->note = (uint32_t)strlen(text);
    yard_write_text(yard, text);
    yard_publish(yard);
}

static const char *note_of(const struct wr_lane *lane, uint32_t sample)
{
    const struct wr_range *range = wr_queue_front(&lane->queue);
    uint32_t note = range->segment->samples[range->first + sample].note;
    return note ? wr_segment_texts(range->segment)[note] : NULL;
}

Test(dispatcher, metadata_goes_with_its_sample)
{
    yard_route(yard, "{\"a\": [\"A\", \"B\"], \"b\": \"B\"}");
    yard_add(yard, "a", "n", 1);
    add_with_text("a", 2);
    yard_add(yard, "a", "n", 3);
    cr_assert_eq(yard_round(yard), 3);
    cr_assert_str_eq(queue_of("A"), "1 2 3");
    cr_assert_str_eq(queue_of("B"), "1 2 3");
    cr_assert_null(note_of(yard_lane(yard, "A"), 0));
    cr_assert_str_eq(note_of(yard_lane(yard, "A"), 1), text);
    cr_assert_str_eq(note_of(yard_lane(yard, "B"), 1), text);
    cr_assert_null(note_of(yard_lane(yard, "A"), 2));
    cr_assert_eq(ring()->text_slots, 3);
}

Test(dispatcher, metadata_goes_on_at_the_rings_beginning)
{
    yard_route(yard, "{\"*\": \"A\"}");
    struct weir_metric *metric = yard_metric(yard, "a", "n");
    for (int i = 0; i < WR_PRODUCER_SLOTS - 2; i++)
        yard_write(yard, metric, 0, i);
    yard_publish(yard);
    yard_round(yard);
    yard_drop(yard_lane(yard, "A"));
    add_with_text("a", 7); /* the sample is the last slot but one */
    cr_assert_eq(yard_round(yard), 1);
    cr_assert_str_eq(queue_of("A"), "7");
    cr_assert_str_eq(note_of(yard_lane(yard, "A"), 0), text);
}

Test(dispatcher, metadata_that_nobody_listens_to_is_passed_over)
{
    yard_route(yard, "{\"a\": \"A\"}");
    add_with_text("b", 1);
    yard_add(yard, "a", "n", 2);
    cr_assert_eq(yard_round(yard), 2);
    cr_assert_str_eq(queue_of("A"), "2");
}

/* ---- Parking --------------------------------------------------------------------------------- */

Test(dispatcher, a_ring_is_watched_once_it_has_woken_up)
{
    yard_route(yard, "{\"*\": \"A\"}");
    cr_assert_eq(ring()->parked, 1);
    yard_add(yard, "a", "n", 1);
    cr_assert_eq(ring()->parked, 0);
    cr_assert_eq(yard->dispatcher.bell.rung, 1);
    yard_round(yard);
    cr_assert_eq(yard->dispatcher.active_count, 1);
    wr_dispatcher_wake(&yard->dispatcher, yard->producer);
    cr_assert_null(yard->dispatcher.woken, "only one that was parked wakes up");
}

Test(dispatcher, a_ring_that_was_quiet_is_parked)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_round(yard);
    cr_assert_eq(ring()->quiet_since_ns, 0);
    ring()->quiet_since_ns = 1; /* long ago */
    yard_round(yard);
    cr_assert_eq(ring()->parked, 1);
    cr_assert_eq(yard->dispatcher.active_count, 0);
}

Test(dispatcher, a_ring_that_has_something_is_not_parked)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_round(yard);
    ring()->quiet_since_ns = 1;
    yard_add(yard, "a", "n", 2);
    yard_round(yard);
    cr_assert_eq(ring()->parked, 0);
    cr_assert_eq(yard->dispatcher.active_count, 1);
}

Test(dispatcher, a_parked_ring_wakes_up_again)
{
    yard_route(yard, "{\"*\": \"A\"}");
    for (int i = 0; i < 3; i++) {
        yard_add(yard, "a", "n", i);
        yard_round(yard);
        ring()->quiet_since_ns = 1;
        yard_round(yard);
        cr_assert_eq(ring()->parked, 1);
    }
    cr_assert_str_eq(queue_of("A"), "0 1 2");
}

Test(dispatcher, a_hungry_writer_is_told_of_room)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    uint32_t room = ring()->room;
    yard_round(yard);
    cr_assert_eq(ring()->room, room, "nobody was waiting");
    yard_add(yard, "a", "n", 2);
    ring()->hungry = 1;
    yard_round(yard);
    cr_assert_eq(ring()->room, room + 1);
    cr_assert_eq(ring()->hungry, 0);
}

Test(dispatcher, waiting_for_room_that_is_there_ends_at_once, .timeout = 60)
{
    yard_route(yard, "{\"*\": \"A\"}");
    wr_dispatcher_wait_room(&yard->dispatcher, yard->producer, 1, WR_NEVER);
    cr_assert_eq(yard->dispatcher.bell.rung, 1);
}

/* ---- Switching ------------------------------------------------------------------------------- */

Test(dispatcher, what_was_added_before_a_switch_goes_by_the_old_routes)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_round(yard);
    yard_add(yard, "a", "n", 2);
    yard_route(yard, "{\"*\": \"B\"}");
    yard_add(yard, "a", "n", 3);
    yard_round(yard);
    cr_assert_str_eq(queue_of("A"), "1 2");
    cr_assert_str_eq(queue_of("B"), "3");
}

Test(dispatcher, a_switch_turns_all_gates_cold)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    yard_round(yard);
    cr_assert_eq(wr_gate_read(yard_group(yard, "a")), WR_GATE_OPEN);
    yard_route(yard, "{\"*\": \"B\"}");
    cr_assert_eq(wr_gate_read(yard_group(yard, "a")), WR_GATE_COLD);
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

/* Adds a value as a call that waits does; answers its ticket. */
static struct wr_ticket add_and_wait(double value)
{
    struct wr_ticket ticket = wr_ticket_take(&yard->producer->desk);
    yard_write(yard, yard_metric(yard, "a", "n"), WR_RING_SYNC, value)->reserved = ticket.number;
    yard_publish(yard);
    return ticket;
}

/* Settles a lane's oldest samples, as its handler would. */
static void settle(const char *name, uint32_t samples)
{
    struct wr_lane *lane = yard_lane(yard, name);
    struct wr_range range = wr_queue_take(&lane->queue, samples, UINT64_MAX);
    lane->delivered += range.count;
    wr_lane_answer(lane, range.sequence + range.count, 0);
    wr_segment_drop(range.segment);
}

Test(dispatcher, a_call_waits_for_its_synchronous_lanes)
{
    yard->settings.sync = true;
    yard_route(yard, "{\"*\": [\"A\", \"B\"]}");
    struct wr_ticket ticket = add_and_wait(1);
    cr_assert_eq(read_answer(ticket), -1000);
    yard_round(yard);
    settle("A", 1);
    cr_assert_eq(read_answer(ticket), -1000);
    settle("B", 1);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(dispatcher, a_call_whose_group_has_lost_its_synchronous_lanes_goes_on)
{
    yard_route(yard, "{\"*\": \"A\"}");
    struct wr_ticket ticket = add_and_wait(1);
    yard_round(yard);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(dispatcher, an_offer_that_a_call_waits_for_ends_with_its_sample)
{
    yard->settings.sync = true;
    yard_route(yard, "{\"*\": \"A\"}");
    yard_add(yard, "a", "n", 1);
    add_and_wait(2);
    yard_add(yard, "a", "n", 3);
    yard_round(yard);
    cr_assert_eq(yard_lane(yard, "A")->waiting.calls[0].sequence, 2);
}

Test(dispatcher, the_number_of_a_ticket_stays_in_the_ring)
{
    yard->settings.sync = true;
    yard_route(yard, "{\"*\": \"A\"}");
    add_and_wait(1);
    yard_round(yard);
    cr_assert_eq(samples_of("A")[0].reserved, 0);
}

Test(dispatcher, a_call_is_not_answered_for_the_one_that_its_thread_gave_up)
{
    yard->settings.sync = true;
    yard_route(yard, "{\"*\": \"A\"}");
    add_and_wait(1);
    struct wr_ticket ticket = add_and_wait(2); /* before any round has seen the first */
    yard_round(yard);
    settle("A", 1);
    cr_assert_eq(read_answer(ticket), -1000, "its own value is still queued");
    settle("A", 1);
    cr_assert_eq(read_answer(ticket), 0);
}

/* ---- Without memory -------------------------------------------------------------------------- */

Test(dispatcher, a_sample_that_is_lost_for_want_of_memory_is_counted_once)
{
    yard_route(yard, "{\"*\": \"A\"}");
    yard_metric(yard, "a", "n");
    yard_add(yard, "a", "n", 1);
    yard_round(yard);
    wr_feed_seal(&yard->dispatcher.taking.router->feeds[0], 0);
    yard_add(yard, "a", "n", 2);
    failing_set(true);
    uint64_t taken = yard_round(yard);
    failing_set(false);
    cr_assert_eq(taken, 1);
    cr_assert_eq(yard_stats(yard_lane(yard, "A")).offered, 2);
    cr_assert_eq(yard_stats(yard_lane(yard, "A")).dropped[WEIR_DROPPED_FULL], 1);
}
