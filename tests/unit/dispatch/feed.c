/* Lanes that receive the same samples: each sample is copied and stored once. */
#include <criterion/criterion.h>

#include "../../support/failing.h"
#include "../../support/dispatch_fixture.h"
#include "dispatch/feed.h"

enum { ROOM = 10 };

static struct wr_segment_pool pool;
static struct wr_lane *lanes[2];
static struct wr_feed_lane feed_lanes[2];
static struct wr_feed_lane *pointers[2] = {&feed_lanes[0], &feed_lanes[1]};
static struct wr_feed feed;
static const struct wr_ticket no_ticket;
static struct wr_log silent;

static void setup(void)
{
    const struct wr_lane_settings settings = {.queue_bytes = 1000 * sizeof(weir_sample), .batch = 5000};
    for (int i = 0; i < 2; i++) {
        lanes[i] = wr_lane_new(i ? "second" : "first", &silent, NULL, NULL);
        wr_lane_set(lanes[i], &settings, 0);
        feed_lanes[i] = (struct wr_feed_lane){.lane = lanes[i]};
    }
    feed = (struct wr_feed){.lanes = pointers, .lane_count = 2, .segment_room = ROOM, .pool = &pool};
}

static void teardown(void)
{
    wr_feed_seal(&feed, 0);
    for (int i = 0; i < 2; i++) {
        fixture_drop(lanes[i]);
        wr_lane_free_unused(lanes[i]);
    }
}

TestSuite(feed, .init = setup, .fini = teardown);

/* Puts one event of `samples` samples. */
static void put(uint32_t samples, double first)
{
    weir_sample *to = wr_feed_reserve(&feed, samples, 0, 0);
    cr_assert(to);
    for (uint32_t i = 0; i < samples; i++)
        to[i] = (weir_sample){.value.f64 = first + i, .flags = i + 1 < samples ? WEIR_SAMPLE_MORE : 0};
    wr_feed_added(&feed, samples);
}

static int read_result(struct wr_ticket ticket)
{
    int result;
    return wr_ticket_wait(ticket, 0, &result) ? result : -1000;
}

Test(feed, every_lane_is_offered_all_samples)
{
    put(1, 1);
    put(2, 2);
    cr_assert_str_eq(fixture_queue(lanes[0]), "");
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_str_eq(fixture_queue(lanes[0]), "1 2 3");
    cr_assert_str_eq(fixture_queue(lanes[1]), "1 2 3");
    cr_assert(feed_lanes[0].wanted && feed_lanes[1].wanted);
}

Test(feed, each_sample_is_offered_once)
{
    put(1, 1);
    wr_feed_offer(&feed, no_ticket, 0);
    wr_feed_offer(&feed, no_ticket, 0);
    put(1, 2);
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_str_eq(fixture_queue(lanes[0]), "1 2");
}

Test(feed, an_empty_feed_offers_nothing)
{
    wr_feed_offer(&feed, no_ticket, 0);
    wr_feed_seal(&feed, 0);
    cr_assert_not(feed_lanes[0].wanted);
}

Test(feed, lanes_share_one_segment)
{
    put(3, 1);
    wr_feed_offer(&feed, no_ticket, 0);
    const struct wr_segment *segment = feed.segment;
    cr_assert_eq(segment->references, 3);
    cr_assert_eq(wr_queue_front(&lanes[0]->ledger.queue)->segment, segment);
    cr_assert_eq(wr_queue_front(&lanes[1]->ledger.queue)->segment, segment);
}

Test(feed, a_sealed_segment_belongs_to_the_lanes)
{
    put(3, 1);
    struct wr_segment *segment = feed.segment;
    wr_feed_seal(&feed, 0);
    cr_assert_null(feed.segment);
    cr_assert_eq(segment->references, 2);
    put(1, 4);
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_str_eq(fixture_queue(lanes[1]), "1 2 3 4");
}

Test(feed, an_event_that_does_not_fit_begins_another_segment)
{
    put(ROOM - 1, 1);
    const struct wr_segment *first = feed.segment;
    put(2, 100);
    cr_assert_neq(feed.segment, first);
    cr_assert_eq(feed.segment->count, 2);
    cr_assert_eq(fixture_stats(lanes[0]).queued, ROOM - 1, "the full segment was offered");
}

Test(feed, lanes_that_producers_wait_for_are_reported)
{
    struct wr_lane_settings settings = {.queue_bytes = 2 * sizeof(weir_sample), .batch = 5000};
    wr_lane_set(lanes[1], &settings, 0);
    put(2, 1);
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_eq(feed_lanes[0].waiting, WR_NOBODY_WAITS);
    cr_assert_eq(feed_lanes[1].waiting, WR_ALL_WAIT);
}

Test(feed, only_synchronous_lanes_complete_the_call)
{
    static struct wr_ticket_state ticket_state = {0};
    struct wr_ticket ticket = wr_ticket_take(&ticket_state);
    feed_lanes[1].sync = true;
    wr_ticket_expect(ticket, 1);
    put(1, 1);
    wr_feed_offer(&feed, ticket, 0);
    cr_assert_eq(lanes[0]->ledger.waiters.count, 0);
    cr_assert_eq(lanes[1]->ledger.waiters.count, 1);
    fixture_drop(lanes[1]);
    cr_assert_eq(read_result(ticket), WEIR_ERR_DROPPED);
}

Test(feed, the_flag_for_weirs_own_threads_applies_to_one_offer)
{
    put(1, 1);
    feed.no_wait = true;
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_not(feed.no_wait);
}

/* ---- Without memory -------------------------------------------------------------------------- */

static void put_without_memory(uint32_t samples)
{
    failing_set(true);
    cr_assert_null(wr_feed_reserve(&feed, samples, 0, 0));
    failing_set(false);
}

Test(feed, without_memory_samples_are_counted_as_dropped_by_every_lane)
{
    put_without_memory(3);
    wr_feed_offer(&feed, no_ticket, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fixture_stats(lanes[i]).offered, 3);
        cr_assert_eq(fixture_stats(lanes[i]).dropped[WEIR_DROPPED_FULL], 3);
    }
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_eq(fixture_stats(lanes[0]).offered, 3);
}

Test(feed, with_memory_available_again_samples_are_stored)
{
    put(1, 1);
    wr_feed_seal(&feed, 0);
    put_without_memory(1);
    put(1, 3);
    wr_feed_offer(&feed, no_ticket, 0);
    cr_assert_str_eq(fixture_queue(lanes[0]), "1 3");
    cr_assert_eq(fixture_stats(lanes[0]).offered, 3);
}

Test(feed, a_call_whose_sample_was_lost_returns)
{
    static struct wr_ticket_state ticket_state = {0};
    struct wr_ticket ticket = wr_ticket_take(&ticket_state);
    feed_lanes[0].sync = feed_lanes[1].sync = true;
    wr_ticket_expect(ticket, 2);
    put_without_memory(1);
    wr_feed_offer(&feed, ticket, 0);
    cr_assert_eq(read_result(ticket), WEIR_ERR_MEMORY);
}

Test(feed, a_call_whose_sample_was_stored_does_not_get_the_result_of_a_lost_one)
{
    static struct wr_ticket_state ticket_state = {0};
    struct wr_ticket ticket = wr_ticket_take(&ticket_state);
    feed_lanes[0].sync = true;
    wr_ticket_expect(ticket, 1);
    put_without_memory(1);
    put(1, 1);
    wr_feed_offer(&feed, ticket, 0);
    cr_assert_eq(read_result(ticket), -1000);
}
