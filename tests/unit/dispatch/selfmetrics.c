/* weir's own metrics, as samples of the group "weir". */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../support/dispatch_fixture.h"
#include "dispatch/selfmetrics.h"

enum { INTERVAL_NS = 1000, START_NS = 50000 };

static struct dispatch_fixture *fixture;
static struct wr_selfmetrics selfmetrics;

static void setup(void)
{
    fixture = fixture_open();
}

static void teardown(void)
{
    fixture_close(fixture);
}

TestSuite(selfmetrics, .init = setup, .fini = teardown);

/* Applies routes at START_NS. */
static void use(const char *groups)
{
    fixture_route(fixture, groups);
    wr_selfmetrics_configure(&selfmetrics, &fixture->dispatcher, INTERVAL_NS, START_NS);
}

/* Returns the time of the next call. */
static int64_t tend(struct wr_lane *lanes, int64_t now_ns)
{
    int64_t next_ns = WR_NEVER;
    wr_selfmetrics_tend(&selfmetrics, &fixture->dispatcher, lanes, now_ns, &next_ns);
    return next_ns;
}

/* The samples offered to lane "W", as lines "name{handler=A,reason=full} 3 total". */
static const char *offered_lines(void)
{
    static char text[4000];
    const struct wr_queue *queue = &fixture_lane(fixture, "W")->ledger.queue;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wr_range *range = wr_queue_at(queue, i);
        for (uint32_t j = 0; j < range->count; j++) {
            const weir_sample *sample = &range->segment->samples[range->first + j];
            const weir_series *series = wr_registry_series(&fixture->registry, sample->series)->view;
            cr_assert_str_eq(series->group, "weir");
            cr_assert_eq(sample->kind, WEIR_KIND_INT);
            length += (size_t)snprintf(text + length, sizeof text - length, "%s{", series->name);
            for (size_t k = 0; k < series->label_count; k++)
                length += (size_t)snprintf(text + length, sizeof text - length, "%s%s=%s", k ? "," : "",
                                           series->labels[k].key, series->labels[k].value);
            length += (size_t)snprintf(text + length, sizeof text - length, "} %lld%s\n",
                                       (long long)sample->value.i64,
                                       sample->flags & WEIR_SAMPLE_CUMULATIVE ? " total" : "");
        }
    }
    return text;
}

Test(selfmetrics, without_a_route_nothing_is_measured)
{
    use("{\"*\": \"A\"}");
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS + 100 * INTERVAL_NS), WR_NEVER);
    cr_assert_eq(fixture->registry.series, 0);
    use("{\"*\": \"A\", \"weir\": []}");
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS + 100 * INTERVAL_NS), WR_NEVER);
}

Test(selfmetrics, the_first_time_is_one_interval_after_the_configuration)
{
    use("{\"*\": \"A\", \"weir\": \"W\"}");
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS), START_NS + INTERVAL_NS);
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS + INTERVAL_NS - 1), START_NS + INTERVAL_NS);
    cr_assert_str_eq(offered_lines(), "");
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS + INTERVAL_NS), START_NS + 2 * INTERVAL_NS);
    cr_assert_str_neq(offered_lines(), "");
}

Test(selfmetrics, the_next_time_is_lowered_but_never_raised)
{
    use("{\"*\": \"A\", \"weir\": \"W\"}");
    int64_t next_ns = 7;
    wr_selfmetrics_tend(&selfmetrics, &fixture->dispatcher, NULL, START_NS, &next_ns);
    cr_assert_eq(next_ns, 7);
}

Test(selfmetrics, each_handlers_counts_are_reported)
{
    use("{\"*\": \"A\", \"weir\": \"W\"}");
    struct wr_lane *lane = fixture_lane(fixture, "A");
    lane->ledger.offered = 12;
    lane->ledger.delivered = 5;
    lane->ledger.dropped[WEIR_DROPPED_FULL] = 3;
    lane->ledger.dropped[WEIR_DROPPED_REJECTED] = 4;
    lane->delivery.retries = 2;
    tend(lane, START_NS + INTERVAL_NS);
    cr_assert_str_eq(offered_lines(), "offered{handler=A} 12 total\n"
                                      "delivered{handler=A} 5 total\n"
                                      "dropped{handler=A,reason=full} 3 total\n"
                                      "dropped{handler=A,reason=rejected} 4 total\n"
                                      "queue.bytes{handler=A} 0\n"
                                      "queue.age.ms{handler=A} 0\n"
                                      "retries{handler=A} 2 total\n");
}

Test(selfmetrics, all_handlers_are_reported)
{
    use("{\"*\": [\"A\", \"B\"], \"weir\": \"W\"}");
    fixture_lane(fixture, "A")->next = fixture_lane(fixture, "B");
    tend(fixture_lane(fixture, "A"), START_NS + INTERVAL_NS);
    cr_assert(strstr(offered_lines(), "offered{handler=A} 0 total"));
    cr_assert(strstr(offered_lines(), "offered{handler=B} 0 total"));
}

Test(selfmetrics, selfmetrics_go_only_to_the_lanes_of_their_group)
{
    use("{\"*\": \"A\", \"weir\": \"W\"}");
    tend(fixture_lane(fixture, "A"), START_NS + INTERVAL_NS);
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).offered, 0);
}

Test(selfmetrics, a_configuration_without_their_route_ends_them)
{
    use("{\"*\": \"A\", \"weir\": \"W\"}");
    use("{\"*\": \"A\"}");
    cr_assert_eq(tend(fixture_lane(fixture, "A"), START_NS + 2 * INTERVAL_NS), WR_NEVER);
}
