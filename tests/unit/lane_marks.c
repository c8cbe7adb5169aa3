/* What a lane is done with, and what not, as it stands in the file of a segment. */
#include <criterion/criterion.h>

#include "../support/rig.h"
#include "folder.h"

static struct rig rig;

enum { SLOT = 1, ROOM = 256 };

static void setup(void)
{
    static const char *const names[] = {"other", "push"};
    const struct wr_segment_shape shape = {ROOM, 4096, 2, names};
    struct wr_segment_file *file;
    rig_init(&rig);
    path_in_folder("");
    cr_assert_eq(wr_segment_file_make(&file, folder, 1, &shape), 0);
    wr_segment_file_begin(file, 1, 1, 0);
    rig.segment = wr_segment_of_file(&rig.pool, file, true);
    rig.slot = SLOT;
}

static void teardown(void)
{
    rig_fini(&rig);
    remove_folder();
}

TestSuite(lane_marks, .init = setup, .fini = teardown);

/* The marks of the first samples: "1100". */
static const char *marks(uint32_t count)
{
    static char text[ROOM + 1];
    for (uint32_t i = 0; i < count; i++) {
        text[i] = wr_segment_file_is_settled(rig.segment->file, SLOT, i, 1) ? '1' : '0';
        cr_assert_not(wr_segment_file_is_settled(rig.segment->file, 0, i, 1), "the other lane's");
    }
    text[count] = '\0';
    return text;
}

static void use(enum wr_overflow overflow, uint32_t samples)
{
    rig.settings.overflow = overflow;
    rig.settings.queue_bytes = samples * RIG_SAMPLE_BYTES;
    rig_apply(&rig);
}

static void open_and_load(void)
{
    cr_assert_eq(rig_next(&rig), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(rig_next(&rig), WR_STEP_EMIT);
}

Test(lane_marks, what_is_queued_or_with_the_handler_is_not_settled)
{
    rig_offer(&rig, 3);
    open_and_load();
    rig_offer(&rig, 2);
    cr_assert_str_eq(marks(6), "000000");
}

Test(lane_marks, what_the_handler_has_answered_for_is_settled_delivered_or_not)
{
    rig_offer(&rig, 4);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 3, 1);
    cr_assert_str_eq(marks(4), "1110");
}

Test(lane_marks, a_batch_that_can_never_be_delivered_is_settled)
{
    rig_offer(&rig, 3);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_DROP, 1, 0);
    cr_assert_str_eq(marks(3), "111");
}

Test(lane_marks, what_a_full_lane_refuses_is_settled_and_what_it_took_before_and_after_is_not)
{
    use(WR_OVERFLOW_DROP_NEWEST, 2);
    rig_offer(&rig, 4);
    cr_assert_str_eq(marks(4), "0011");
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_OK, 2, 0);
    rig_offer(&rig, 1);
    cr_assert_str_eq(marks(5), "11110");
}

Test(lane_marks, what_is_dropped_behind_what_the_handler_has_is_settled_before_that)
{
    use(WR_OVERFLOW_DROP_OLDEST, 4);
    rig_offer(&rig, 2);
    open_and_load();
    rig_offer(&rig, 4);
    cr_assert_str_eq(marks(6), "001100");
}

Test(lane_marks, what_the_handler_does_not_take_is_settled)
{
    rig.lane->kinds = WEIR_TAKES_DOUBLE;
    rig_append_kind(&rig, WEIR_KIND_INT);
    rig_append_kind(&rig, WEIR_KIND_DOUBLE);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    open_and_load();
    cr_assert_str_eq(marks(2), "10");
}

Test(lane_marks, a_handler_that_is_finished_settles_all_that_comes)
{
    rig_offer(&rig, 2);
    open_and_load();
    rig_answer(&rig, WEIR_OUTCOME_FAILED, 0, 0);
    rig_offer(&rig, 2);
    cr_assert_str_eq(marks(4), "1111");
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_FAILED], 4);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void end_lane(enum weir_drop why)
{
    rig.lane->stopping = true;
    rig.lane->stop_reason = (int)why;
    rig.lane->stop_deadline_ns = rig.now_ns;
    wr_lock_enter(&rig.lane->lock);
    wr_lane_declare_end(rig.lane);
    wr_lane_leave(rig.lane);
}

Test(lane_marks, what_is_left_at_the_end_of_the_process_stays_and_counts_as_spooled)
{
    struct wr_ticket_desk desk = {0};
    struct wr_ticket ticket = rig_take_ticket(&desk);
    rig_offer(&rig, 2);
    open_and_load();
    rig_offer_sync(&rig, ticket);
    end_lane(WEIR_DROPPED_SHUTDOWN);
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.spooled, 3);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_SHUTDOWN], 0);
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_SPOOLED);
    cr_assert_str_eq(marks(3), "000");
    cr_assert(rig.segment->file->kept);
}

Test(lane_marks, what_a_handler_leaves_that_was_configured_away_is_settled)
{
    rig_offer(&rig, 2);
    end_lane(WEIR_DROPPED_REMOVED);
    cr_assert_str_eq(marks(2), "11");
    cr_assert_not(rig.segment->file->kept);
}
