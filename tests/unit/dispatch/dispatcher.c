/* Rounds: samples move from rings to lanes. The test is the producer and runs each round itself. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../support/failing.h"
#include "../../support/deliver.h"
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
    const struct wr_range *range = wr_queue_front(&fixture_lane(fixture, lane)->ledger.queue);
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
    cr_assert_eq(fixture_lane(fixture, "A")->ledger.queue.count, 4);
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

/* It was added while the handlers of its group only summed: before those that are added now. */
Test(dispatcher, a_value_without_a_time_gets_that_of_the_change)
{
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    int64_t before_ns = wr_clock_wall_ns();
    fixture_route(fixture, "{\"*\": \"A\"}");
    int64_t after_ns = wr_clock_wall_ns();
    fixture_write(fixture, metric, WR_RING_WALL, 1)->time_ns = 0;
    fixture_write(fixture, metric, WR_RING_WALL, 2)->time_ns = after_ns;
    usleep(3000); /* more than what is held */
    fixture_publish(fixture);
    fixture_round(fixture);
    const weir_sample *samples = samples_of("A");
    cr_assert(samples[0].time_ns >= before_ns && samples[0].time_ns <= after_ns);
    cr_assert_eq(samples[0].flags, 0);
    cr_assert_eq(samples[1].time_ns, after_ns);
}

Test(dispatcher, an_event_without_a_time_gets_one_for_all_samples_and_handlers)
{
    struct weir_metric *metric = fixture_metric(fixture, "a", "n");
    fixture_route(fixture, "{\"a\": [\"A\", \"B\"], \"b\": \"A\"}");
    for (int i = 0; i < 100; i++)
        fixture_write(fixture, metric, WR_RING_WALL | (i < 99 ? WEIR_SAMPLE_MORE : 0), i)->time_ns = 0;
    fixture_publish(fixture);
    cr_assert_eq(fixture_round(fixture), 100);
    const weir_sample *a = samples_of("A"), *b = samples_of("B");
    cr_assert_neq(a, b);
    for (int i = 0; i < 100; i++)
        cr_assert(a[i].time_ns == a[0].time_ns && b[i].time_ns == a[0].time_ns, "sample %d", i);
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
    const struct wr_range *range = wr_queue_front(&lane->ledger.queue);
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
    wr_lane_ledger_complete(&lane->ledger, deliver_oldest(lane, samples, NULL), 0);
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
    cr_assert_eq(fixture_lane(fixture, "A")->ledger.waiters.calls[0].sequence, 2);
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

/* ---- Workers --------------------------------------------------------------------------------- */

static bool refuses_threads;
static void (*before_refusal)(void);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    if (refuses_threads && before_refusal)
        before_refusal();
    return refuses_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* Routes everything to `count` lanes, of which each wants a worker. */
static void want_workers(int count)
{
    char groups[400] = "{\"*\": [";
    for (int i = 0; i < count; i++)
        snprintf(groups + strlen(groups), sizeof groups - strlen(groups), "%s\"L%d\"", i ? "," : "", i);
    strcat(groups, "]}");
    fixture_route(fixture, groups);
    fixture_add(fixture, "a", "n", 1);
    fixture_round(fixture);
    for (int i = 0; i < count; i++)
        fixture->dispatcher.drain.router->lanes[i].started = false;
    wr_wakeup_wait(&fixture->dispatcher.wakeup, 0); /* receives what was sent */
}

Test(dispatcher, if_more_workers_are_wanted_than_a_round_starts_another_round_follows)
{
    want_workers(WR_DISPATCHER_CLAIMS + 1);
    fixture_round(fixture);
    cr_assert_eq(fixture->dispatcher.claimed_count, WR_DISPATCHER_CLAIMS);
    cr_assert_eq(fixture->dispatcher.wakeup.sent, 1, "the dispatcher would sleep");
}

Test(dispatcher, workers_that_one_round_can_start_need_no_other_round)
{
    want_workers(WR_DISPATCHER_CLAIMS);
    fixture_round(fixture);
    cr_assert_eq(fixture->dispatcher.claimed_count, WR_DISPATCHER_CLAIMS);
    cr_assert_eq(fixture->dispatcher.wakeup.sent, 0);
}

Test(dispatcher, a_worker_that_a_waiting_call_claims_is_started_by_the_dispatcher)
{
    want_workers(1);
    cr_assert(wr_dispatcher_help(&fixture->dispatcher, WR_NEVER));
    cr_assert_eq(fixture->dispatcher.claimed_count, 1);
    cr_assert_eq(fixture->dispatcher.wakeup.sent, 1, "the dispatcher would sleep");
}

Test(dispatcher, a_worker_that_could_not_be_started_is_tried_again_without_new_values)
{
    int64_t next_ns, before_ns = wr_clock_monotonic_ns();
    want_workers(1);
    struct wr_dispatcher *dispatcher = &fixture->dispatcher;
    wr_dispatcher_visit(dispatcher);
    wr_dispatcher_round(dispatcher, &next_ns);
    refuses_threads = true;
    wr_dispatcher_leave(dispatcher);
    refuses_threads = false;
    cr_assert_eq(dispatcher->wakeup.sent, 1, "the dispatcher would sleep");
    wr_dispatcher_visit(dispatcher);
    wr_dispatcher_round(dispatcher, &next_ns);
    cr_assert_eq(dispatcher->claimed_count, 0, "not at once");
    cr_assert_geq(next_ns, before_ns + WR_NS_PER_S);
    cr_assert_lt(next_ns, WR_NEVER);
    wr_dispatcher_leave(dispatcher);
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "L0")).queued, 1);
}

/* ---- The dispatcher's own thread ------------------------------------------------------------- */

static int tended;

static void tend(void *ctx, int64_t now_ns, int64_t *next_ns)
{
    (void)ctx;
    (void)now_ns;
    (void)next_ns;
    tended++;
}

Test(dispatcher, a_waiting_call_leaves_periodic_work_to_the_dispatcher)
{
    fixture_route(fixture, "{\"*\": \"A\"}");
    fixture->dispatcher.tend = tend;
    fixture_add(fixture, "a", "n", 1);
    cr_assert(wr_dispatcher_help(&fixture->dispatcher, WR_NEVER));
    cr_assert_str_eq(queue_of("A"), "1");
    cr_assert_eq(tended, 0, "it may allocate, or open files");
    fixture_round(fixture);
    cr_assert_eq(tended, 1);
}

static void *stop(void *argument)
{
    (void)argument;
    wr_dispatcher_stop(&fixture->dispatcher, wr_clock_monotonic_ns() + 10 * WR_NS_PER_S);
    wr_dispatcher_join(&fixture->dispatcher, wr_clock_monotonic_ns() + 10 * WR_NS_PER_S);
    return NULL;
}

static bool is_stopping(void)
{
    wr_lock_enter(&fixture->dispatcher.round);
    bool stopping = fixture->dispatcher.stopping;
    wr_lock_leave(&fixture->dispatcher.round);
    return stopping;
}

static void wait_until_stopping(void)
{
    while (!is_stopping())
        usleep(1000);
}

Test(dispatcher, a_thread_that_could_not_be_started_is_not_joined, .timeout = 60)
{
    pthread_t stopper;
    struct wr_dispatcher *dispatcher = &fixture->dispatcher;
    fixture_route(fixture, "{\"*\": \"A\"}");
    wr_dispatcher_visit(dispatcher);
    cr_assert(wr_dispatcher_start(dispatcher));
    cr_assert_eq(pthread_create(&stopper, NULL, stop, NULL), 0);
    before_refusal = wait_until_stopping;
    refuses_threads = true;
    wr_dispatcher_leave(dispatcher);
    refuses_threads = false;
    cr_assert_eq(pthread_join(stopper, NULL), 0);
    cr_assert_not(dispatcher->running);
    cr_assert_not(dispatcher->has_thread);
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
