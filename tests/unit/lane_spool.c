/* A lane and its spool: what goes to disk and when, and that it comes back in order. The rig's lane, a real
 * folder, and a worker that does what steps say of the disk. */
#include <criterion/criterion.h>

#include "../support/ledger.h"
#include "../support/rig.h"
#include "clock.h"
#include "error.h"
#include "flush.h"
#include "folder.h"
#include "series.h"
#include "spool.h"
#include "spooler.h"
#include "spooling.h"
#include "stop.h"
#include "stream.h"

enum { LIMIT = 1024 * 1024 };

static struct rig rig;
static struct wr_registry registry;
static struct wr_error error;

static void give_spool(const char *place)
{
    rig.settings.spool_limit = LIMIT;
    rig_apply(&rig);
    rig.now_ns = wr_clock_monotonic_ns(); /* what is at the disk looks at the real clock */
    rig.lane->stash.registry = &registry;
    cr_assert(wr_stash_set_place(&rig.lane->stash, place));
}

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    cr_assert_eq(wr_series_get(&registry, stream, "value", 0, &error)->series, 0, "that of the rig's samples");
    rig_init(&rig);
    give_spool(path_in_folder("spool"));
}

static void end_process(void)
{
    wr_spool_free(rig.lane->stash.spool);
    rig.lane->stash.spool = NULL;
    rig_fini(&rig);
}

static void teardown(void)
{
    end_process();
    remove_folder();
}

TestSuite(lane_spool, .init = setup, .fini = teardown);

/* ---- The worker ------------------------------------------------------------------------------ */

static void at_disk(void (*operate)(struct wr_lane *lane))
{
    wr_lock_enter(&rig.lane->lock);
    operate(rig.lane);
    wr_lane_leave(rig.lane);
    rig_stats(&rig);
}

/* The next step that is not for the disk; those are taken. */
static enum wr_step_kind next(void)
{
    for (;;) {
        at_disk(wr_spooler_settle);
        struct wr_step step = rig_step(&rig);
        switch (step.kind) {
        case WR_STEP_SEARCH: at_disk(wr_spooler_search); break;
        case WR_STEP_SPOOL: at_disk(wr_spooler_move); break;
        case WR_STEP_FETCH: at_disk(wr_spooler_fetch); break;
        case WR_STEP_SLEEP:
            if (step.until_ns > rig.now_ns)
                return WR_STEP_SLEEP;
            break;
        default: return step.kind;
        }
    }
}

static void fail_to_open(void)
{
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "refused");
    next();
}

static void open_at_last(void)
{
    rig.now_ns = rig.lane->retry_at_ns;
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
}

/* Takes batches until there is nothing more to do; they must be numbers first, first + 1, ... */
static void expect_delivery(uint32_t first, uint32_t count)
{
    uint32_t number = first;
    for (enum wr_step_kind kind; (kind = next()) == WR_STEP_EMIT;) {
        const struct wr_range *flight = &rig.lane->flight.range;
        for (uint32_t i = 0; i < flight->count; i++)
            cr_assert_eq(flight->segment->samples[flight->first + i].value.f64, number++);
        rig_answer(&rig, WEIR_OUTCOME_OK, flight->count, 0);
    }
    cr_assert_eq(number, first + count, "%u came", number - first);
}

static bool was_said(const char *text)
{
    for (unsigned i = 0; i < rig.book.count && i < LOGBOOK_LINES; i++)
        if (strstr(rig.book.lines[i], text))
            return true;
    return false;
}

/* ---- What goes, and when --------------------------------------------------------------------- */

Test(lane_spool, it_looks_for_what_others_left_before_it_opens)
{
    rig_offer(&rig, 1);
    cr_assert_eq(rig_next(&rig), WR_STEP_SEARCH);
    at_disk(wr_spooler_search);
    cr_assert_eq(rig_next(&rig), WR_STEP_OPEN);
}

Test(lane_spool, a_handler_that_takes_everything_has_nothing_on_disk)
{
    rig_offer(&rig, 90);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 90);
    cr_assert_null(rig.lane->stash.spool->shelf.own);
}

Test(lane_spool, what_a_failing_handler_does_not_take_goes_when_the_queue_is_half_full)
{
    rig_offer(&rig, 49);
    fail_to_open();
    cr_assert_eq(rig_stats(&rig).spooled, 0);
    rig_offer(&rig, 1);
    next();
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.spooled, 50);
    cr_assert_eq(stats.queued, 0);
    cr_assert_gt(stats.spool_bytes, 50 * RIG_SAMPLE_BYTES);
    cr_assert_eq(stats.spool_limit, LIMIT);
}

Test(lane_spool, callers_wait_for_a_handler_that_is_only_a_bit_slower)
{
    rig_offer(&rig, 10);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_STEP_EMIT);
    rig.lane->busy_since_ns = rig.now_ns;
    cr_assert(rig_offer(&rig, 95), "they wait");
    cr_assert_eq(wr_spooling_time(rig.lane, rig.now_ns), rig.now_ns + 50 * WR_NS_PER_MS);
    cr_assert_not(wr_spooling_prepare(rig.lane, rig.now_ns));
    rig_pass_ms(&rig, 50);
    cr_assert(wr_spooling_prepare(rig.lane, rig.now_ns), "it is busy for long");
    at_disk(wr_spooler_move);
    cr_assert_eq(rig_stats(&rig).spooled, 95);
    cr_assert_eq(rig_stats(&rig).queued, 10);
    cr_assert_not(rig_check(&rig, NULL), "nobody waits any more");
    rig_answer(&rig, WEIR_OUTCOME_OK, 10, 0);
    expect_delivery(10, 95);
}

Test(lane_spool, under_a_drop_policy_nothing_is_dropped_as_long_as_there_is_room_on_disk)
{
    rig.settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    rig_apply(&rig);
    for (int i = 0; i < 20; i++) {
        rig_offer(&rig, 50);
        if (next() == WR_STEP_OPEN)
            rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "refused");
        next();
    }
    cr_assert_eq(rig_stats(&rig).spooled, 1000);
    open_at_last();
    expect_delivery(0, 1000);
}

Test(lane_spool, without_a_spool_nothing_goes)
{
    rig.settings.spool_limit = 0;
    rig_apply(&rig);
    rig_offer(&rig, 90);
    fail_to_open();
    cr_assert_eq(rig_stats(&rig).queued, 90);
}

Test(lane_spool, a_spool_that_was_configured_away_is_emptied_and_nothing_more_goes_there)
{
    rig_offer(&rig, 60);
    fail_to_open();
    rig.settings.spool_limit = 0;
    rig_apply(&rig);
    cr_assert(wr_stash_set_place(&rig.lane->stash, NULL));
    rig_offer(&rig, 90);
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 60);
    open_at_last();
    expect_delivery(0, 150);
}

/* ---- The order ------------------------------------------------------------------------------- */

Test(lane_spool, what_is_on_disk_comes_before_what_is_queued)
{
    rig_offer(&rig, 60);
    fail_to_open();
    rig_offer(&rig, 20);
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 60);
    cr_assert_eq(rig_stats(&rig).queued, 20);
    open_at_last();
    expect_delivery(0, 80);
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.delivered, 80);
    cr_assert_eq(stats.spooled, 0);
    cr_assert_eq(stats.spool_bytes, 0);
}

Test(lane_spool, a_batch_that_failed_goes_in_front_of_what_is_on_disk)
{
    rig.settings.batch = 10;
    rig_apply(&rig);
    rig_offer(&rig, 40);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_STEP_EMIT);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 3, 0);
    rig_offer(&rig, 60);
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 97);
    rig.now_ns = rig.lane->retry_at_ns;
    expect_delivery(3, 97);
}

Test(lane_spool, what_was_read_from_disk_and_failed_is_tried_again_from_where_it_was)
{
    rig_offer(&rig, 60);
    fail_to_open();
    open_at_last();
    cr_assert_eq(next(), WR_STEP_EMIT);
    rig_answer(&rig, WEIR_OUTCOME_RETRY, 20, 0);
    cr_assert_eq(rig_stats(&rig).spooled, 40);
    rig_offer(&rig, 60);
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 100);
    rig.now_ns = rig.lane->retry_at_ns;
    expect_delivery(20, 100);
}

Test(lane_spool, what_the_handler_does_not_take_is_withheld_from_disk_too)
{
    rig_offer(&rig, 50);
    rig_append_kind(&rig, WEIR_KIND_INT);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    fail_to_open();
    rig.lane->kinds = WEIR_TAKES_DOUBLE;
    open_at_last();
    expect_delivery(0, 50);
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
    cr_assert_eq(stats.spooled, 0);
}

/* ---- A disk in trouble ----------------------------------------------------------------------- */

Test(lane_spool, what_is_withheld_at_the_end_of_what_was_read_is_not_read_again)
{
    uint32_t delivered = 0;
    rig.settings.batch = 50;
    rig_apply(&rig);
    rig_offer(&rig, 50);
    rig_append_kind(&rig, WEIR_KIND_INT);
    rig_offer_appended(&rig, (struct wr_ticket){0});
    fail_to_open();
    rig_offer(&rig, 60);
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 111);
    rig.lane->kinds = WEIR_TAKES_DOUBLE;
    open_at_last();
    for (; next() == WR_STEP_EMIT; rig_answer(&rig, WEIR_OUTCOME_OK, rig.lane->flight.range.count, 0))
        delivered += rig.lane->flight.range.count;
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(delivered, 110);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
    cr_assert_eq(ledger_dropped(&stats), 1);
    cr_assert_eq(stats.spooled, 0);
}

/* ---- A disk in trouble ----------------------------------------------------------------------- */

Test(lane_spool, a_batch_of_nothing_but_what_the_handler_does_not_take_is_withheld_once)
{
    uint32_t numbers = 0;
    rig.settings.batch = 2;
    rig_apply(&rig);
    for (uint32_t i = 0; i < 20; i++) {
        rig_append_kind(&rig, i % 4 < 2 ? WEIR_KIND_INT : WEIR_KIND_DOUBLE);
        rig_append(&rig, 2, 0, NULL);
    }
    rig_offer_appended(&rig, (struct wr_ticket){0});
    fail_to_open();
    rig.lane->kinds = WEIR_TAKES_DOUBLE;
    open_at_last();
    while (next() == WR_STEP_EMIT) {
        numbers += rig.lane->flight.range.count;
        rig_answer(&rig, WEIR_OUTCOME_OK, rig.lane->flight.range.count, 0);
    }
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(numbers, 50);
    cr_assert_eq(stats.delivered, 50);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 10);
    cr_assert_eq(ledger_dropped(&stats), 10);
}

Test(lane_spool, what_a_bad_disk_does_not_take_stays_queued_and_goes_to_the_handler_in_order)
{
    cr_assert(wr_stash_set_place(&rig.lane->stash, make_file("file", "", 0600)));
    rig_offer(&rig, 60);
    fail_to_open();
    cr_assert_not_null(rig.lane->stash.moving.segment);
    cr_assert_eq(rig_stats(&rig).queued, 60);
    cr_assert_eq(rig_stats(&rig).spooled, 0);
    rig_offer(&rig, 20);
    open_at_last();
    expect_delivery(0, 80);
}

Test(lane_spool, files_that_are_gone_are_lost_and_counted)
{
    rig_offer(&rig, 60);
    fail_to_open();
    struct wr_spool_file *file = rig.lane->stash.spool->shelf.first;
    char *path = wr_spool_box_file(file->box, file->number);
    cr_assert_eq(unlink(path), 0);
    free(path);
    rig_offer(&rig, 10);
    open_at_last();
    expect_delivery(60, 10);
    cr_assert_eq(rig_stats(&rig).dropped[WEIR_DROPPED_CORRUPT], 60);
    cr_assert(was_said("60 spooled values are damaged and lost"));
}

Test(lane_spool, at_the_limit_the_queue_fills_and_overflow_decides)
{
    rig.settings.spool_limit = 8 * 1024;
    rig_apply(&rig);
    cr_assert_eq(rig.lane->settings.overflow, WR_OVERFLOW_BLOCK);
    bool waits = false;
    for (int i = 0; i < 20 && !waits; i++) {
        waits = rig_offer(&rig, 50);
        if (next() == WR_STEP_OPEN)
            rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "refused");
        next();
        waits &= rig_check(&rig, NULL);
    }
    cr_assert(waits);
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_leq(stats.spool_bytes, 8 * 1024);
    cr_assert_gt(stats.spooled, 100);
    cr_assert_eq(ledger_dropped(&stats), 0);
    uint32_t all = (uint32_t)stats.offered;
    open_at_last();
    expect_delivery(0, all);
}

/* ---- Those who wait -------------------------------------------------------------------------- */

Test(lane_spool, a_flush_puts_on_disk_what_a_failing_handler_does_not_take_and_says_so, .timeout = 60)
{
    rig_offer(&rig, 3);
    fail_to_open();
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(next(), WR_STEP_OPEN, "there is another try");
    rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "still refused");
    next();
    cr_assert_eq(rig_stats(&rig).spooled, 3);
    cr_assert_eq(wr_flush_wait(rig.lane, position, WR_NEVER, &error), WEIR_ERR_SPOOLED);
    cr_assert_str_eq(error.text, "handler \"push\": 3 values are on disk only: still refused");
    open_at_last();
    expect_delivery(0, 3);
    cr_assert_eq(wr_flush_wait(rig.lane, position, WR_NEVER, &error), 0);
}

Test(lane_spool, what_others_left_is_nothing_that_a_flush_waits_for, .timeout = 60)
{
    rig_offer(&rig, 60);
    fail_to_open();
    end_process();
    rig_init(&rig);
    give_spool(path_in_folder("spool"));
    fail_to_open();
    uint64_t position = wr_flush_request(rig.lane, WR_NEVER);
    cr_assert_eq(wr_lane_front(rig.lane), position);
}

Test(lane_spool, a_call_that_waits_learns_that_its_value_went_to_disk)
{
    static struct wr_ticket_desk desk;
    struct wr_ticket ticket = rig_take_ticket(&desk);
    rig_offer(&rig, 60);
    rig_offer_sync(&rig, ticket);
    fail_to_open();
    cr_assert_eq(rig_read_ticket(ticket), WEIR_ERR_SPOOLED);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(lane_spool, what_is_left_goes_to_disk_when_the_time_is_nearly_over)
{
    rig_offer(&rig, 10);
    fail_to_open();
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, rig.now_ns + WR_NS_PER_S);
    cr_assert_eq(next(), WR_STEP_OPEN, "there is one more try");
    rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "refused");
    cr_assert_eq(next(), WR_STEP_SLEEP);
    cr_assert_eq(rig_stats(&rig).spooled, 0);
    rig_pass_ms(&rig, 760);
    cr_assert_eq(next(), WR_STEP_END);
    cr_assert_eq(rig_stats(&rig).spooled, 10);
    cr_assert(was_said("shutting down while failing: refused; not delivered in time: 10 spooled"));
}

Test(lane_spool, with_all_the_time_there_is_one_try_must_do)
{
    rig_offer(&rig, 10);
    fail_to_open();
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_RETRY, "refused");
    cr_assert_eq(next(), WR_STEP_END);
    cr_assert_eq(rig_stats(&rig).spooled, 10);
}

Test(lane_spool, what_a_hanging_handler_has_in_its_hands_is_saved_by_another_thread)
{
    rig_offer(&rig, 10);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_STEP_EMIT);
    rig_offer(&rig, 5);
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, rig.now_ns);
    wr_spooler_save(rig.lane, rig.now_ns);
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.spooled, 15);
    cr_assert_eq(stats.queued, 0);
    rig_answer(&rig, WEIR_OUTCOME_OK, 10, 0);
    cr_assert_eq(rig_stats(&rig).delivered, 0, "its answer does not count any more");
}

Test(lane_spool, the_next_process_delivers_first_what_the_last_one_left)
{
    rig_offer(&rig, 60);
    fail_to_open();
    end_process();
    rig_init(&rig);
    give_spool(path_in_folder("spool"));
    rig.number = 60;
    rig_offer(&rig, 10);
    cr_assert_eq(next(), WR_STEP_OPEN);
    cr_assert_eq(rig_stats(&rig).recovered, 60);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 70);
    cr_assert_eq(rig_stats(&rig).delivered, 70);
}

Test(lane_spool, a_process_that_ends_at_once_delivers_what_the_last_one_left_too)
{
    rig_offer(&rig, 60);
    fail_to_open();
    end_process();
    rig_init(&rig);
    give_spool(path_in_folder("spool"));
    wr_stop_request(rig.lane, WEIR_DROPPED_SHUTDOWN, rig.now_ns + WR_NS_PER_S);
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 60);
    cr_assert_eq(next(), WR_STEP_CLOSE);
    cr_assert_eq(rig_stats(&rig).recovered, 60);
    cr_assert_eq(rig_stats(&rig).delivered, 60);
}

Test(lane_spool, a_handler_that_gives_up_drops_what_is_in_memory_and_leaves_the_rest_on_disk)
{
    rig_offer(&rig, 60);
    fail_to_open();
    rig_offer(&rig, 10);
    rig.now_ns = rig.lane->retry_at_ns;
    cr_assert_eq(next(), WR_STEP_OPEN);
    rig_answer_open(&rig, WEIR_OUTCOME_FAILED, "broken");
    weir_handler_stats stats = rig_stats(&rig);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FAILED], 10);
    cr_assert_eq(stats.spooled, 60);
}
