/* What a handler may look at before it is offered. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "lane/lane_host.h"

static struct lane_fixture fixture;

static void setup(void)
{
    fixture_init(&fixture);
    fixture.settings.batch = 3;
    fixture_apply(&fixture);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

static void teardown(void)
{
    fixture_fini(&fixture);
}

TestSuite(lane_ahead, .init = setup, .fini = teardown);

/* What is shown from a position on: "3 4 5"; "" for nothing. The text is static. */
static const char *look(uint64_t position)
{
    static char text[200];
    struct wr_range range = {0};
    struct wr_label_set *labels = NULL;
    text[0] = '\0';
    if (!wr_lane_host_look_ahead(fixture.lane, position, &range, &labels))
        return text;
    for (uint32_t i = 0; i < range.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%g", i ? " " : "",
                 range.segment->samples[range.first + i].value.f64);
    cr_assert_eq(range.id.sequence, range.position);
    wr_segment_drop(range.segment);
    return text;
}

static void begin_batch(void)
{
    fixture_offer(&fixture, 8);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    cr_assert_str_eq(fixture_flight(&fixture), "0 1 2");
}

Test(lane_ahead, what_is_queued_behind_the_batch_is_shown_and_stays_queued)
{
    begin_batch();
    cr_assert_str_eq(look(3), "3 4 5");
    cr_assert_str_eq(look(6), "6 7");
    cr_assert_str_eq(look(8), "");
    cr_assert_str_eq(fixture_queue(&fixture), "3 4 5 6 7");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
    cr_assert_eq(fixture_deliver_all(&fixture), 2);
    cr_assert_eq(fixture_stats(&fixture).delivered, 8);
}

Test(lane_ahead, what_comes_later_is_shown_then)
{
    begin_batch();
    cr_assert_str_eq(look(8), "");
    fixture_offer(&fixture, 1);
    cr_assert_str_eq(look(8), "8");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
}

Test(lane_ahead, an_event_is_shown_whole)
{
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_offer_event(&fixture, 5);
    cr_assert_str_eq(look(1), "1 2 3 4 5");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
}

Test(lane_ahead, nothing_is_shown_that_may_be_dropped_to_make_room)
{
    fixture.settings.overflow = WR_OVERFLOW_DROP_OLDEST;
    fixture_apply(&fixture);
    begin_batch();
    cr_assert_str_eq(look(3), "");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
}

Test(lane_ahead, nothing_is_shown_of_kinds_that_the_handler_does_not_take_as_they_are)
{
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
    fixture_append_kind(&fixture, WEIR_KIND_SUMMARY);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    cr_assert_str_eq(look(1), "");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 1, 0);
}

Test(lane_ahead, nothing_is_shown_once_a_stop_is_requested)
{
    begin_batch();
    fixture.lane->stop = WR_LANE_STOPS;
    cr_assert_str_eq(look(3), "");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 3, 0);
}
