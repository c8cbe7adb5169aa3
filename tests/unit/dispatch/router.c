/* Routes of groups to lanes, and the states of the groups' gates. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../support/deliver.h"
#include "../../support/dispatch_fixture.h"
#include "producer/gate.h"

static struct dispatch_fixture *fixture;
static struct wr_router *router;

static void setup(void)
{
    fixture = fixture_open();
}

static void teardown(void)
{
    wr_router_free(router, 0);
    fixture_close(fixture);
}

TestSuite(router, .init = setup, .fini = teardown);

static void use(const char *groups)
{
    wr_router_free(router, 0);
    router = fixture_router(fixture, groups);
    wr_router_adopt_groups(router, &fixture->registry, false);
}

static const struct wr_route *route_of(const char *group)
{
    return wr_router_route(router, fixture_group(fixture, group));
}

/* The lanes of a group's route in their order, as "A B". */
static const char *lanes_of(const char *group)
{
    static char text[100];
    const struct wr_route *route = route_of(group);
    text[0] = '\0';
    for (size_t i = 0; i < route->lane_count; i++)
        strcat(strcat(text, i ? " " : ""), route->lanes[i]->lane->name);
    return text;
}

/* The feeds in their order, as "A+B C". */
static const char *feeds(void)
{
    static char text[100];
    text[0] = '\0';
    for (size_t i = 0; i < router->feed_count; i++)
        for (size_t j = 0; j < router->feeds[i].lane_count; j++)
            strcat(strcat(text, j ? "+" : i ? " " : ""), router->feeds[i].lanes[j]->lane->name);
    return text;
}

static enum wr_gate gate_of(const char *group)
{
    return wr_gate_read(fixture_group(fixture, group));
}

/* ---- Routes ---------------------------------------------------------------------------------- */

Test(router, a_group_is_routed_by_its_route)
{
    use("{\"a\": \"A\", \"b\": [\"B\", \"A\"]}");
    cr_assert_str_eq(lanes_of("a"), "A");
    cr_assert_str_eq(lanes_of("b"), "B A");
}

Test(router, a_group_without_a_route_has_its_nearest_ancestors)
{
    use("{\"*\": \"D\", \"a\": \"A\", \"a.b.c\": \"C\"}");
    cr_assert_str_eq(lanes_of("a.b"), "A");
    cr_assert_str_eq(lanes_of("a.b.c.d.e"), "C");
    cr_assert_str_eq(lanes_of("ab"), "D");
    cr_assert_str_eq(lanes_of("b.a"), "D");
}

Test(router, a_group_without_any_route_has_no_lanes)
{
    use("{\"a\": \"A\"}");
    cr_assert_str_eq(lanes_of("b"), "");
    cr_assert_eq(gate_of("b"), WR_GATE_OFF);
    cr_assert_eq(route_of("b")->plain.feed_count, 0);
}

Test(router, an_empty_route_has_no_lanes_and_inherits_none)
{
    use("{\"*\": \"A\", \"a\": []}");
    cr_assert_str_eq(lanes_of("a"), "");
    cr_assert_str_eq(lanes_of("a.b"), "");
    cr_assert_eq(gate_of("a"), WR_GATE_OFF);
}

Test(router, an_empty_configuration_closes_all_groups)
{
    use("{}");
    cr_assert_str_eq(lanes_of("a"), "");
    cr_assert_eq(gate_of("a"), WR_GATE_OFF);
    cr_assert_eq(router->lane_count, 0);
    cr_assert_eq(router->feed_count, 0);
}

Test(router, inherit_is_replaced_by_the_parents_route)
{
    use("{\"*\": \"D\", \"a\": [\"A\", \"inherit\", \"B\"], \"a.b\": [\"inherit\", \"C\"]}");
    cr_assert_str_eq(lanes_of("a"), "A D B");
    cr_assert_str_eq(lanes_of("a.b"), "A D B C");
}

Test(router, inherit_without_a_parents_route_is_empty)
{
    use("{\"a\": [\"inherit\", \"A\"], \"b\": \"inherit\"}");
    cr_assert_str_eq(lanes_of("a"), "A");
    cr_assert_str_eq(lanes_of("b"), "");
}

Test(router, a_lane_named_twice_is_used_once)
{
    use("{\"*\": [\"B\", \"A\"], \"a\": [\"A\", \"A\", \"inherit\", \"inherit\"]}");
    cr_assert_str_eq(lanes_of("a"), "A B");
}

Test(router, weirs_own_group_is_routed_by_name_only)
{
    use("{\"*\": \"A\"}");
    cr_assert_str_eq(lanes_of("weir"), "");
    cr_assert_str_eq(lanes_of("weir.x"), "");
    cr_assert_str_eq(lanes_of("weird"), "A");
    use("{\"*\": \"A\", \"weir\": \"B\"}");
    cr_assert_str_eq(lanes_of("weir"), "B");
    cr_assert_str_eq(lanes_of("weir.x"), "B");
}

Test(router, weirs_own_group_inherits_no_route)
{
    use("{\"*\": \"A\", \"weir\": [\"inherit\", \"B\"]}");
    cr_assert_str_eq(lanes_of("weir"), "B");
}

/* ---- Feeds ----------------------------------------------------------------------------------- */

Test(router, lanes_in_exactly_the_same_routes_are_one_feed)
{
    use("{\"a\": [\"A\", \"B\"], \"b\": [\"B\", \"A\"]}");
    cr_assert_str_eq(feeds(), "A+B");
    cr_assert_eq(route_of("a")->plain.feed_count, 1);
}

Test(router, lanes_with_different_routes_are_different_feeds)
{
    use("{\"a\": [\"A\", \"B\"], \"b\": \"A\"}");
    cr_assert_str_eq(feeds(), "A B");
    cr_assert_eq(route_of("a")->plain.feed_count, 2);
    cr_assert_eq(route_of("b")->plain.feed_count, 1);
    cr_assert_eq(route_of("b")->plain.feeds[0], &router->feeds[0]);
}

Test(router, feeds_are_found_among_many_routes)
{
    use("{\"a\": [\"A\", \"B\", \"C\"], \"b\": [\"C\", \"A\", \"D\"], \"c\": [\"E\", \"D\"], \"d\": \"E\"}");
    cr_assert_str_eq(feeds(), "A+C B D E");
    cr_assert_eq(route_of("a")->plain.feed_count, 2);
    cr_assert_eq(route_of("b")->plain.feed_count, 2);
    cr_assert_eq(route_of("c")->plain.feed_count, 2);
}

Test(router, inherited_lanes_count_as_part_of_the_route)
{
    use("{\"*\": \"A\", \"a\": [\"inherit\", \"B\"], \"b\": \"inherit\"}");
    cr_assert_str_eq(feeds(), "A B");
    use("{\"*\": [\"A\", \"B\"], \"a\": \"inherit\"}");
    cr_assert_str_eq(feeds(), "A+B");
}

Test(router, a_segment_has_room_for_the_largest_batch_of_its_lanes)
{
    fixture->settings.batch = 10;
    fixture->settings.queue_bytes = 1 << 30;
    use("{\"a\": \"A\"}");
    cr_assert_eq(router->feeds[0].segment_room, 1024, "at least the size of the largest event");
    fixture->settings.batch = 5000;
    use("{\"a\": [\"A\", \"B\"]}");
    cr_assert_eq(router->feeds[0].segment_room, 5000);
    fixture->settings.batch = 1000000;
    use("{\"a\": [\"A\", \"C\"]}");
    cr_assert_eq(router->feeds[0].segment_room, 65536);
    fixture->settings.queue_bytes = 2000 * sizeof(weir_sample);
    use("{\"a\": \"D\"}");
    cr_assert_eq(router->feeds[0].segment_room, 2000, "at most the size of the queue");
}

Test(router, freeing_a_router_offers_remaining_samples)
{
    use("{\"a\": \"A\"}");
    *wr_feed_reserve(&router->feeds[0], 1, 0, 0) = (weir_sample){.value.f64 = 7};
    wr_feed_added(&router->feeds[0], 1);
    use("{}");
    cr_assert_str_eq(fixture_queue(fixture_lane(fixture, "A")), "7");
}

/* ---- Series ---------------------------------------------------------------------------------- */

Test(router, a_series_has_the_route_of_its_group)
{
    use("{\"a\": \"A\", \"b\": \"B\"}");
    struct weir_metric *in_a = fixture_metric(fixture, "a", "n"), *in_b = fixture_metric(fixture, "b", "n"),
                       *in_c = fixture_metric(fixture, "c", "n");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(wr_router_series_route(router, &fixture->registry, in_a->series), route_of("a"));
        cr_assert_eq(wr_router_series_route(router, &fixture->registry, in_b->series), route_of("b"));
        cr_assert_eq(wr_router_series_route(router, &fixture->registry, in_c->series), &router->routes[0]);
    }
}

Test(router, many_series_are_found)
{
    use("{\"a\": \"A\"}");
    char name[20];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        uint32_t series = fixture_metric(fixture, i % 2 ? "a" : "b", name)->series;
        cr_assert_eq(wr_router_series_route(router, &fixture->registry, series)->lane_count, i % 2);
    }
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert_eq(wr_router_series_route(router, &fixture->registry, i)->lane_count, i % 2);
}

/* ---- Objects --------------------------------------------------------------------------------- */

/* The lanes of a group's route by branches, as "A B | C | D": the first is the one without a mapper. */
static const char *branches_of(const char *group)
{
    static char text[200];
    const struct wr_route *route = route_of(group);
    text[0] = '\0';
    for (size_t i = 0; i <= route->mapped_count; i++) {
        const struct wr_branch *branch = i ? &route->mapped[i - 1] : &route->plain;
        strcat(text, i ? " |" : "");
        for (size_t j = 0; j < branch->lane_count; j++)
            strcat(strcat(text, *text ? " " : ""), branch->lanes[j]->lane->name);
    }
    return text;
}

Test(router, an_object_is_a_branch_of_its_route)
{
    use("{\"a\": [\"A\", {\"to\": [\"B\", \"C\"], \"sample\": 0.5}, {\"to\": \"D\", \"only\": [\"x\"]}], "
        "\"b\": \"A\"}");
    cr_assert_str_eq(lanes_of("a"), "A B C D");
    cr_assert_str_eq(branches_of("a"), "A | B C | D");
    cr_assert_null(route_of("a")->only_feed);
    cr_assert_not_null(route_of("b")->only_feed);
    cr_assert_eq(router->mapper_count, 2);
    cr_assert_str_eq(feeds(), "A B+C D");
}

Test(router, an_object_that_changes_nothing_is_none)
{
    use("{\"a\": {\"to\": [\"A\", \"B\"]}}");
    cr_assert_str_eq(branches_of("a"), "A B");
    cr_assert_eq(router->mapper_count, 0);
    cr_assert_not_null(route_of("a")->only_feed);
}

Test(router, lanes_of_one_feed_have_the_same_objects_in_all_routes)
{
    use("{\"a\": [{\"to\": [\"A\", \"B\"], \"sample\": 0.5}, \"C\"], \"b\": [{\"to\": \"A\", \"only\": "
        "[\"x\"]}, \"B\", \"C\"]}");
    cr_assert_str_eq(feeds(), "A B C");
    use("{\"a\": {\"to\": [\"A\", \"B\"], \"sample\": 0.5}, \"b\": [\"inherit\", \"C\"], \"a.c\": [\"C\", "
        "\"inherit\"]}");
    cr_assert_str_eq(feeds(), "A+B C");
    cr_assert_str_eq(branches_of("a.c"), "C | A B");
}

Test(router, what_a_route_says_itself_of_a_handler_takes_precedence)
{
    use("{\"*\": [\"A\", \"B\"], \"a\": [\"inherit\", {\"to\": \"A\", \"sample\": 0.5}], \"a.b\": \"inherit\", "
        "\"a.c\": [\"inherit\", \"A\"]}");
    cr_assert_str_eq(branches_of("a"), "B | A");
    cr_assert_str_eq(lanes_of("a"), "A B");
    cr_assert_str_eq(branches_of("a.b"), "B | A");
    cr_assert_str_eq(branches_of("a.c"), "A B");
}

Test(router, the_branch_of_a_lane_is_found)
{
    use("{\"a\": [\"A\", {\"to\": \"B\", \"sample\": 0.5}], \"c\": \"C\"}");
    const struct wr_route *route = route_of("a");
    cr_assert_eq(wr_router_branch(route, &router->lanes[0]), &route->plain);
    cr_assert_eq(wr_router_branch(route, &router->lanes[1]), &route->mapped[0]);
    cr_assert_null(wr_router_branch(route, &router->lanes[2]));
}

/* ---- Gates ----------------------------------------------------------------------------------- */

Test(router, looking_a_group_up_opens_its_gate)
{
    use("{\"a\": \"A\"}");
    cr_assert_eq(gate_of("a"), WR_GATE_COLD);
    route_of("a");
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
}

Test(router, one_synchronous_lane_makes_the_group_synchronous)
{
    use("{\"a\": \"A\"}");
    fixture->settings.sync = true;
    use("{\"a\": [\"A\", \"B\"], \"b\": \"A\"}");
    cr_assert_eq(route_of("a")->sync_lanes, 1);
    cr_assert_eq(gate_of("a"), WR_GATE_SYNC);
    route_of("b");
    cr_assert_eq(gate_of("b"), WR_GATE_OPEN);
}

/* Offers samples to the feeds of a group's route. */
static void fill(const char *group, uint32_t samples)
{
    const struct wr_route *route = route_of(group);
    for (size_t i = 0; i < route->plain.feed_count; i++)
        for (uint32_t j = 0; j < samples; j++) {
            *wr_feed_reserve(route->plain.feeds[i], 1, 0, 0) = (weir_sample){0};
            wr_feed_added(route->plain.feeds[i], 1);
        }
    wr_router_offer(router, 0);
}

/* Removes all but `samples` samples from a lane, as if they had been delivered. */
static void keep(const char *name, uint64_t samples)
{
    struct wr_lane *lane = fixture_lane(fixture, name);
    while (lane->ledger.queue.samples > samples)
        deliver_oldest(lane, (uint32_t)(lane->ledger.queue.samples - samples), NULL);
    wr_lane_made_progress(lane, 0);
}

Test(router, a_full_lane_closes_the_gates_of_the_groups_routed_to_it)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": \"A\", \"b\": [\"A\", \"B\"], \"c\": \"B\"}");
    route_of("b");
    route_of("c");
    fill("a", 3);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
    fill("a", 1);
    cr_assert_eq(wr_router_check(router, 0), WR_NS_PER_S, "the time at which it stalls");
    cr_assert_eq(gate_of("a"), WR_GATE_WAIT);
    cr_assert_eq(gate_of("b"), WR_GATE_WAIT);
    cr_assert_eq(gate_of("c"), WR_GATE_OPEN);
}

Test(router, a_group_first_looked_up_while_its_lane_is_full_waits)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": \"A\"}");
    fill("a", 4);
    wr_router_check(router, 0);
    route_of("a.late");
    cr_assert_eq(gate_of("a.late"), WR_GATE_WAIT);
}

Test(router, gates_open_when_the_lane_is_half_empty)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": \"A\"}");
    fill("a", 4);
    wr_router_check(router, 0);
    keep("A", 3);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_WAIT);
    keep("A", 2);
    cr_assert_eq(wr_router_check(router, 0), WR_NEVER);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
}

Test(router, gates_open_when_the_lane_has_stalled)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": \"A\"}");
    fill("a", 4);
    wr_router_check(router, WR_NS_PER_S - 1);
    cr_assert_eq(gate_of("a"), WR_GATE_WAIT);
    wr_router_check(router, WR_NS_PER_S);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
}

Test(router, a_gate_stays_closed_while_any_of_its_lanes_is_full)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": [\"A\", \"B\"]}");
    fill("a", 4);
    wr_router_check(router, 0);
    keep("A", 0);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_WAIT);
    keep("B", 0);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
}

static bool is_held(const char *group)
{
    return wr_gate_is_held(fixture_group(fixture, group));
}

/* The same as fill, for values that sources add. */
static void fill_from_sources(const char *group, uint32_t samples)
{
    wr_route_expect_sources(route_of(group));
    fill(group, samples);
}

static uint64_t queued(const char *name)
{
    return fixture_lane(fixture, name)->ledger.queue.samples;
}

Test(router, sources_wait_for_a_lane_that_drops)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    use("{\"a\": \"A\", \"b\": \"B\"}");
    route_of("b");
    fill_from_sources("a", 7);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN, "calls do not wait");
    cr_assert(is_held("a"));
    cr_assert_not(is_held("b"));
    cr_assert_eq(queued("A"), 7);
    fill_from_sources("a", 2);
    cr_assert_eq(queued("A"), 9, "was in a ring already");
    fill("a", 1);
    cr_assert_eq(queued("A"), 9, "that of a call is dropped");
    keep("A", 3);
    wr_router_check(router, 0);
    cr_assert(is_held("a"));
    keep("A", 2);
    wr_router_check(router, 0);
    cr_assert_not(is_held("a"));
}

Test(router, what_sources_add_elsewhere_keeps_nothing_of_calls)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    use("{\"a\": \"A\", \"b\": \"B\"}");
    wr_route_expect_sources(route_of("b"));
    fill("a", 7);
    cr_assert_eq(queued("A"), 4);
}

Test(router, sources_wait_for_a_lane_that_has_stalled)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    use("{\"a\": \"A\"}");
    fill_from_sources("a", 4);
    wr_router_check(router, WR_NS_PER_S);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
    cr_assert(is_held("a"));
    fill_from_sources("a", 3);
    cr_assert_eq(queued("A"), 7);
}

Test(router, a_lane_that_drops_does_not_hold_up_one_that_has_room)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    use("{\"a\": [\"A\", \"B\"]}");
    fill_from_sources("a", 6);
    cr_assert_eq(queued("A"), 6, "either could be the one that keeps them");
    cr_assert_eq(queued("B"), 6);
    keep("B", 0);
    wr_router_check(router, 0);
    cr_assert_not(is_held("a"));
    fill_from_sources("a", 5);
    cr_assert_eq(queued("A"), 6, "it drops");
    cr_assert_eq(queued("B"), 5);
    wr_router_check(router, 0);
    cr_assert(is_held("a"), "now both are full");
    fill_from_sources("a", 1);
    cr_assert_eq(queued("A"), 7);
    cr_assert_eq(queued("B"), 6);
}

Test(router, a_lane_keeps_what_another_route_leads_to_it_alone)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    use("{\"a\": [\"A\", \"B\"], \"b\": \"A\"}");
    fill_from_sources("b", 4);
    wr_router_check(router, 0);
    cr_assert(is_held("b"));
    fill_from_sources("b", 2);
    cr_assert_eq(queued("A"), 6);
    route_of("a");
    cr_assert_not(is_held("a"), "B has room");
}

Test(router, a_full_lane_keeps_nothing_of_a_route_with_room_although_another_one_has_none)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    use("{\"a\": [\"A\", \"B\"], \"b\": \"A\"}");
    route_of("a");
    fill_from_sources("b", 4);
    wr_router_check(router, 0);
    fill_from_sources("a", 3);
    cr_assert_eq(queued("A"), 4, "its policy is to drop, and nobody would wait");
    cr_assert_eq(queued("B"), 3);
}

Test(router, a_group_first_looked_up_while_its_lanes_are_full_holds_sources)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.overflow = WR_OVERFLOW_DROP_OLDEST;
    use("{\"a\": \"A\"}");
    fill_from_sources("a", 4);
    wr_router_check(router, 0);
    route_of("a.late");
    cr_assert(is_held("a.late"));
    wr_router_adopt_groups(router, &fixture->registry, false);
    cr_assert_not(is_held("a.late"), "it is to be looked up again");
}

Test(router, a_synchronous_group_waits_at_its_gate_and_is_synchronous_again)
{
    fixture->settings.queue_bytes = 4 * sizeof(weir_sample);
    fixture->settings.sync = true;
    use("{\"a\": \"A\"}");
    fill("a", 4);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_WAIT);
    keep("A", 0);
    wr_router_check(router, 0);
    cr_assert_eq(gate_of("a"), WR_GATE_SYNC);
}

Test(router, groups_reset_to_cold_are_looked_up_again)
{
    use("{\"a\": \"A\"}");
    route_of("a");
    use("{\"a\": \"B\"}");
    cr_assert_eq(gate_of("a"), WR_GATE_COLD);
    cr_assert_str_eq(lanes_of("a"), "B");
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
}

Test(router, reconsidering_affects_only_groups_without_lanes)
{
    use("{\"a\": \"A\"}");
    route_of("a");
    route_of("b");
    cr_assert_eq(gate_of("b"), WR_GATE_OFF);
    wr_router_reconsider(&fixture->registry);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
    cr_assert_eq(gate_of("b"), WR_GATE_COLD);
    wr_router_adopt_groups(router, &fixture->registry, true);
    cr_assert_eq(gate_of("a"), WR_GATE_OPEN);
    cr_assert_eq(gate_of("b"), WR_GATE_OFF);
}
