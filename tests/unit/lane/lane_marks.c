/* Which samples a lane has settled, as recorded in the file of a segment. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "../../support/temp_folder.h"

static struct lane_fixture fixture;

enum { SLOT = 1, ROOM = 256 };

static void setup(void)
{
    static const char *const names[] = {"other", "push"};
    const struct wr_segment_shape shape = {ROOM, 4096, 2, names};
    struct wr_segment_file *file;
    fixture_init(&fixture);
    path_in_folder("");
    cr_assert_eq(wr_segment_file_make(&file, folder, 1, &shape), 0);
    wr_segment_file_begin(file, 1, 1);
    fixture.segment = wr_segment_of_file(&fixture.pool, file, true);
    fixture.slot = SLOT;
}

static void teardown(void)
{
    fixture_fini(&fixture);
    remove_folder();
}

TestSuite(lane_marks, .init = setup, .fini = teardown);

/* The marks of the first samples: "1100". */
static const char *marks(uint32_t count)
{
    static char text[ROOM + 1];
    for (uint32_t i = 0; i < count; i++) {
        text[i] = wr_segment_file_is_settled(fixture.segment->file, SLOT, i, 1) ? '1' : '0';
        cr_assert_not(wr_segment_file_is_settled(fixture.segment->file, 0, i, 1), "the other lane's slot");
    }
    text[count] = '\0';
    return text;
}

static void use(enum wr_overflow overflow, uint32_t samples)
{
    fixture.settings.overflow = overflow;
    fixture.settings.queue_bytes = samples * FIXTURE_SAMPLE_BYTES;
    fixture_apply(&fixture);
}

static void open_and_load(void)
{
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_EMIT);
}

Test(lane_marks, queued_and_in_flight_samples_are_not_settled)
{
    fixture_offer(&fixture, 3);
    open_and_load();
    fixture_offer(&fixture, 2);
    cr_assert_str_eq(marks(6), "000000");
}

Test(lane_marks, samples_done_are_settled_whether_delivered_or_rejected)
{
    fixture_offer(&fixture, 4);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 3, 1);
    cr_assert_str_eq(marks(4), "1110");
}

Test(lane_marks, a_dropped_batch_is_settled)
{
    fixture_offer(&fixture, 3);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 1, 0);
    cr_assert_str_eq(marks(3), "111");
}

Test(lane_marks, samples_refused_by_a_full_lane_are_settled_and_accepted_ones_are_not)
{
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    fixture_offer(&fixture, 4);
    cr_assert_str_eq(marks(4), "0011");
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    fixture_offer(&fixture, 1);
    cr_assert_str_eq(marks(5), "11110");
}

Test(lane_marks, samples_dropped_behind_those_in_flight_are_settled_first)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_offer(&fixture, 4);
    cr_assert_str_eq(marks(6), "001100");
}

Test(lane_marks, withheld_samples_are_settled)
{
    fixture.lane->kinds = WEIR_KINDS_DOUBLE;
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_append_kind(&fixture, WEIR_KIND_DOUBLE);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    open_and_load();
    cr_assert_str_eq(marks(2), "10");
}

Test(lane_marks, a_failed_handler_leaves_what_it_had_in_the_journal_and_later_samples_are_settled)
{
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
    fixture_offer(&fixture, 2);
    cr_assert_str_eq(marks(4), "0011");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FAILED], 2);
    cr_assert_eq(fixture_stats(&fixture).spooled, 2);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void end_lane(enum weir_drop why)
{
    fixture.lane->stopping = true;
    fixture.lane->stop_reason = (int)why;
    fixture.lane->stop_deadline_ns = fixture.now_ns;
    wr_lock_enter(&fixture.lane->lock);
    wr_lane_declare_end(fixture.lane);
    wr_lane_unlock(fixture.lane);
}

Test(lane_marks, samples_left_at_shutdown_stay_and_count_as_spooled)
{
    struct wr_ticket_state ticket_state = {0};
    struct wr_ticket ticket = fixture_take_ticket(&ticket_state);
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_offer_sync(&fixture, ticket);
    end_lane(WEIR_DROPPED_SHUTDOWN);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.spooled, 3);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_SHUTDOWN], 0);
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_SPOOLED);
    cr_assert_str_eq(marks(3), "000");
    cr_assert(fixture.segment->file->kept);
}

Test(lane_marks, samples_left_by_a_removed_handler_are_settled)
{
    fixture_offer(&fixture, 2);
    end_lane(WEIR_DROPPED_REMOVED);
    cr_assert_str_eq(marks(2), "11");
    cr_assert_not(fixture.segment->file->kept);
}
