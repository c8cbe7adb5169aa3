/* Which samples a lane has settled, as recorded in the file of a segment. */
#include <criterion/criterion.h>

#include "../../support/lane_fixture.h"
#include "../../support/temp_folder.h"
#include "lane/lane_config.h"
#include "lane/lane_flush.h"
#include "lane/lane_stop.h"
#include "os/clock.h"
#include "text/error.h"

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
    fixture.segment = wr_segment_adopt_file(&fixture.pool, file, true);
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
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_append_kind(&fixture, WEIR_KIND_DOUBLE);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    open_and_load();
    cr_assert_str_eq(marks(2), "10");
}

static _Atomic bool journals;

/* Two of four samples are in flight when the handler fails. */
static void fail_with_a_journal(void)
{
    atomic_store(&journals, true);
    fixture.lane->journaled = &journals;
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_offer(&fixture, 2);
    fixture_finish_emit_with(&fixture, (weir_outcome){.code = WEIR_OUTCOME_FAILED, .reason = "no such bucket"},
                             0);
    cr_assert_eq(fixture_step(&fixture).kind, WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
}

Test(lane_marks, a_failed_handler_makes_no_attempt_and_its_journal_keeps_and_takes)
{
    use(WR_OVERFLOW_DROP_NEWEST, 6);
    fail_with_a_journal();
    fixture_offer(&fixture, 4);
    fixture.now_ns += 86400 * WR_NS_PER_S;
    cr_assert_eq(fixture_step(&fixture).kind, WR_LANE_NEXT_SLEEP);
    cr_assert_str_eq(marks(8), "00000011");
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FAILED], 0);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FULL], 2);
    cr_assert_eq(stats.queued, 6);
}

Test(lane_marks, a_journal_that_could_not_be_started_keeps_nothing)
{
    fixture.lane->journaled = &journals;
    fixture_offer(&fixture, 2);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 0, 0);
    cr_assert_str_eq(marks(2), "11");
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FAILED], 2);
}

Test(lane_marks, a_reload_lets_a_failed_handler_deliver_what_the_journal_kept)
{
    fail_with_a_journal();
    wr_lane_request_reload(fixture.lane);
    open_and_load();
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_eq(fixture_step(&fixture).kind, WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 2, 0);
    cr_assert_str_eq(marks(4), "1111");
    cr_assert_eq(fixture_stats(&fixture).delivered, 4);
}

Test(lane_marks, calls_and_flushes_do_not_wait_for_a_failed_handler)
{
    struct wr_error error;
    fail_with_a_journal();
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, 4, WR_NEVER, &error), WEIR_ERR_SPOOLED);
    cr_assert(strstr(error.text, "no such bucket"), "%s", error.text);
    cr_assert(wr_lane_describe_error(fixture.lane, WEIR_ERR_SPOOLED, &error));
    cr_assert(strstr(error.text, "no such bucket"), "%s", error.text);
}

Test(lane_marks, a_flush_waits_for_the_handler_that_replaces_a_failed_one)
{
    struct wr_error error;
    fail_with_a_journal();
    /* only its address is used */
    const struct wr_lane_handler next = {.instance = (struct wr_instance *)&fixture,
                                         .settings = fixture.settings};
    const struct wr_lane_change change = {
        .end_reason = WR_LANE_LIVES, .handler = &next, .journaled = fixture.lane->journaled};
    struct wr_instance *instances[2];
    struct wr_lane_discarded discarded = {.instances = instances};
    fixture.lane->worker.state = WR_THREAD_AWAKE;
    cr_assert_not(wr_lane_config_apply(fixture.lane, &change, &discarded));
    int64_t soon_ns = wr_clock_monotonic_ns() + 20 * WR_NS_PER_MS;
    wr_lane_flush_request(fixture.lane, soon_ns);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, 4, soon_ns, &error), WEIR_ERR_TIMEOUT);
    cr_assert_eq(fixture_step(&fixture).kind, WR_LANE_NEXT_REPLACE);
    fixture.lane->worker.state = WR_THREAD_NONE;
}

Test(lane_marks, a_failed_handler_does_not_delay_the_end_and_its_samples_stay)
{
    fail_with_a_journal();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    cr_assert_eq(fixture_step(&fixture).kind, WR_LANE_NEXT_END);
    cr_assert_str_eq(marks(4), "0000");
    cr_assert_eq(fixture_stats(&fixture).spooled, 4);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void end_lane(enum weir_drop why)
{
    fixture.lane->stop = WR_LANE_STOPS;
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
