/* A lane and its spool: what is spooled and when, and that it is delivered in order. Uses the fixture's lane, a
 * real folder, and a worker that executes the steps for the disk. */
#include <criterion/criterion.h>

#include "../../support/ledger.h"
#include "../../support/lane_fixture.h"
#include "os/clock.h"
#include "text/error.h"
#include "lane/lane_flush.h"
#include "../../support/temp_folder.h"
#include "registry/series.h"
#include "spool/spool.h"
#include "lane/lane_config.h"
#include "lane/lane_worker.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "lane/lane_stop.h"
#include "registry/stream.h"

enum { LIMIT = 1024 * 1024 };

static struct lane_fixture fixture;
static struct wr_registry registry;
static struct wr_error error;

static void set_spool(const char *place)
{
    fixture.settings.spool_limit = LIMIT;
    fixture_apply(&fixture);
    fixture.now_ns = wr_clock_monotonic_ns(); /* spool code reads the real clock */
    fixture.lane->spool_state.registry = &registry;
    cr_assert(wr_spool_state_set_place(&fixture.lane->spool_state, place));
}

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    cr_assert_eq(wr_series_get(&registry, stream, "value", 0, &error)->series, 0,
                 "the text of the fixture's samples");
    fixture_init(&fixture);
    set_spool(path_in_folder("spool"));
}

static void end_process(void)
{
    wr_spool_free(fixture.lane->spool_state.spool);
    fixture.lane->spool_state.spool = NULL;
    fixture_fini(&fixture);
}

static void teardown(void)
{
    end_process();
    remove_folder();
}

TestSuite(lane_spool, .init = setup, .fini = teardown);

/* ---- The worker ------------------------------------------------------------------------------ */

static void run_disk_step(void (*operate)(struct wr_lane *lane))
{
    wr_lock_enter(&fixture.lane->lock);
    operate(fixture.lane);
    wr_lane_unlock(fixture.lane);
    fixture_stats(&fixture);
}

/* Executes steps for the disk. Returns the next other step. */
static enum wr_lane_next_kind next(void)
{
    for (;;) {
        run_disk_step(wr_spool_io_settle);
        struct wr_lane_next_step step = fixture_step(&fixture);
        switch (step.kind) {
        case WR_LANE_NEXT_SEARCH: run_disk_step(wr_spool_io_search); break;
        case WR_LANE_NEXT_SPOOL: run_disk_step(wr_spool_io_move); break;
        case WR_LANE_NEXT_FETCH: run_disk_step(wr_spool_io_fetch); break;
        case WR_LANE_NEXT_SLEEP:
            if (step.until_ns > fixture.now_ns)
                return WR_LANE_NEXT_SLEEP;
            break;
        default: return step.kind;
        }
    }
}

static void fail_to_open(void)
{
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "refused");
    next();
}

static void open_successfully(void)
{
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
}

/* Delivers batches until none is left; their values must be first, first + 1, ... */
static void expect_delivery(uint32_t first, uint32_t count)
{
    uint32_t number = first;
    for (enum wr_lane_next_kind kind; (kind = next()) == WR_LANE_NEXT_EMIT;) {
        const struct wr_range *flight = &fixture.lane->ledger.flight.range;
        for (uint32_t i = 0; i < flight->count; i++)
            cr_assert_eq(flight->segment->samples[flight->first + i].value.f64, number++);
        fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, flight->count, 0);
    }
    cr_assert_eq(number, first + count, "%u came", number - first);
}

static bool was_logged(const char *text)
{
    for (unsigned i = 0; i < fixture.book.count && i < LOGBOOK_LINES; i++)
        if (strstr(fixture.book.lines[i], text))
            return true;
    return false;
}

/* ---- What is spooled, and when --------------------------------------------------------------- */

Test(lane_spool, spools_of_dead_processes_are_adopted_before_the_handler_opens)
{
    fixture_offer(&fixture, 1);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SEARCH);
    run_disk_step(wr_spool_io_search);
    cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_OPEN);
}

Test(lane_spool, spools_of_processes_that_end_later_are_looked_for_every_minute)
{
    fixture_offer(&fixture, 1);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 1);
    for (int minute = 0; minute < 3; minute++) {
        int64_t search_at_ns = fixture.lane->spool_state.search_at_ns;
        cr_assert_leq(search_at_ns, wr_clock_monotonic_ns() + 60 * WR_NS_PER_S);
        fixture.now_ns = search_at_ns - 1;
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SLEEP);
        fixture.now_ns = search_at_ns;
        cr_assert_eq(fixture_next(&fixture), WR_LANE_NEXT_SEARCH);
        run_disk_step(wr_spool_io_search);
    }
}

Test(lane_spool, a_handler_that_delivers_everything_spools_nothing)
{
    fixture_offer(&fixture, 90);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 90);
    cr_assert_null(fixture.lane->spool_state.spool->index.own);
}

Test(lane_spool, samples_of_a_failing_handler_are_spooled_when_the_queue_is_half_full)
{
    fixture_offer(&fixture, 49);
    fail_to_open();
    cr_assert_eq(fixture_stats(&fixture).spooled, 0);
    fixture_offer(&fixture, 1);
    next();
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.spooled, 50);
    cr_assert_eq(stats.queued, 0);
    cr_assert_gt(stats.spool_bytes, 50 * FIXTURE_SAMPLE_BYTES);
    cr_assert_eq(stats.spool_limit, LIMIT);
}

/* Returns whether the spooler was woken: it sleeps on `work`. */
static bool offer_summaries(uint32_t count)
{
    struct wr_condition *work = &fixture.lane->spooler.work;
    struct wr_segment *segment = wr_segment_new(&fixture.pool, count);
    cr_assert(segment);
    for (uint32_t i = 0; i < count; i++)
        segment->samples[segment->count++] = (weir_sample){.value.f64 = i};
    wr_lane_sum(fixture.lane, &(struct wr_lane_arrivals){.summed = count, .now_ns = fixture.now_ns});
    uint32_t turn = work->turn;
    work->waiters++;
    wr_lane_offer_summaries(fixture.lane, segment, fixture.now_ns);
    work->waiters--;
    wr_segment_drop(segment);
    fixture_stats(&fixture);
    return work->turn != turn;
}

Test(lane_spool, summaries_of_a_queue_that_is_half_full_wake_the_thread_that_spools)
{
    cr_assert_not(offer_summaries(49));
    cr_assert(offer_summaries(1));
}

Test(lane_spool, callers_wait_for_a_handler_that_is_only_slightly_slow)
{
    fixture_offer(&fixture, 10);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture.lane->worker.busy_since_ns = fixture.now_ns;
    cr_assert(fixture_offer(&fixture, 95), "producers wait");
    cr_assert_eq(wr_spool_policy_time(fixture.lane, fixture.now_ns), fixture.now_ns + 50 * WR_NS_PER_MS);
    cr_assert_not(wr_spool_policy_prepare(fixture.lane, fixture.now_ns));
    fixture_pass_ms(&fixture, 50);
    cr_assert(wr_spool_policy_prepare(fixture.lane, fixture.now_ns), "it has been busy for too long");
    run_disk_step(wr_spool_io_move);
    cr_assert_eq(fixture_stats(&fixture).spooled, 95);
    cr_assert_eq(fixture_stats(&fixture).queued, 10);
    cr_assert_not(fixture_check(&fixture, NULL), "no producer waits any more");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 10, 0);
    expect_delivery(10, 95);
}

Test(lane_spool, a_drop_policy_drops_nothing_while_there_is_room_on_disk)
{
    fixture.settings.overflow = WR_OVERFLOW_DROP_NEWEST;
    fixture_apply(&fixture);
    for (int i = 0; i < 20; i++) {
        fixture_offer(&fixture, 50);
        if (next() == WR_LANE_NEXT_OPEN)
            fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "refused");
        next();
    }
    cr_assert_eq(fixture_stats(&fixture).spooled, 1000);
    open_successfully();
    expect_delivery(0, 1000);
}

Test(lane_spool, without_a_spool_nothing_is_written)
{
    fixture.settings.spool_limit = 0;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 90);
    fail_to_open();
    cr_assert_eq(fixture_stats(&fixture).queued, 90);
}

Test(lane_spool, a_spool_removed_from_the_configuration_is_emptied_and_not_written)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    fixture.settings.spool_limit = 0;
    fixture_apply(&fixture);
    cr_assert(wr_spool_state_set_place(&fixture.lane->spool_state, NULL));
    fixture_offer(&fixture, 90);
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 60);
    open_successfully();
    expect_delivery(0, 150);
}

/* ---- The order ------------------------------------------------------------------------------- */

Test(lane_spool, spooled_samples_are_delivered_before_queued_ones)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    fixture_offer(&fixture, 20);
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 60);
    cr_assert_eq(fixture_stats(&fixture).queued, 20);
    open_successfully();
    expect_delivery(0, 80);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.delivered, 80);
    cr_assert_eq(stats.spooled, 0);
    cr_assert_eq(stats.spool_bytes, 0);
}

Test(lane_spool, a_failed_batch_is_spooled_in_front_of_later_samples)
{
    fixture.settings.batch = 10;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 40);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 3, 0);
    fixture_offer(&fixture, 60);
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 97);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    expect_delivery(3, 97);
}

Test(lane_spool, a_failed_batch_from_disk_is_read_again)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    open_successfully();
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 20, 0);
    cr_assert_eq(fixture_stats(&fixture).spooled, 40);
    fixture_offer(&fixture, 60);
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 100);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    expect_delivery(20, 100);
}

Test(lane_spool, what_was_delivered_of_a_file_is_not_dropped_with_it)
{
    uint64_t offered = 120;
    weir_handler_stats stats;
    fixture.settings.overflow = WR_OVERFLOW_DROP_OLDEST;
    fixture.settings.spool_limit = 64 * 1024;
    fixture.settings.batch = 60;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 60);
    fail_to_open();
    fixture_offer(&fixture, 60);
    next();
    open_successfully();
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 60, 0);
    cr_assert_eq(fixture_stats(&fixture).spooled, 60);
    do {
        fixture_offer(&fixture, 60);
        offered += 60;
        next();
        stats = fixture_stats(&fixture);
    } while (!stats.dropped[WEIR_DROPPED_FULL]);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    while (next() == WR_LANE_NEXT_EMIT)
        fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, fixture.lane->ledger.flight.range.count, 0);
    stats = fixture_stats(&fixture);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_CORRUPT], 0);
    cr_assert_eq(stats.delivered + stats.dropped[WEIR_DROPPED_FULL], offered);
    cr_assert_not(was_logged("; 0 replayed"));
}

Test(lane_spool, spooled_kinds_that_the_handler_does_not_accept_are_withheld)
{
    fixture_offer(&fixture, 50);
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    fail_to_open();
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    open_successfully();
    expect_delivery(0, 50);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
    cr_assert_eq(stats.spooled, 0);
}

Test(lane_spool, samples_withheld_at_the_end_of_a_read_are_not_read_again)
{
    uint32_t delivered = 0;
    fixture.settings.batch = 50;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 50);
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    fail_to_open();
    fixture_offer(&fixture, 60);
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 111);
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    open_successfully();
    for (; next() == WR_LANE_NEXT_EMIT;
         fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, fixture.lane->ledger.flight.range.count, 0))
        delivered += fixture.lane->ledger.flight.range.count;
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(delivered, 110);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
    cr_assert_eq(ledger_dropped(&stats), 1);
    cr_assert_eq(stats.spooled, 0);
}

Test(lane_spool, a_batch_of_only_unaccepted_kinds_is_withheld_once)
{
    uint32_t numbers = 0;
    fixture.settings.batch = 2;
    fixture_apply(&fixture);
    for (uint32_t i = 0; i < 20; i++) {
        fixture_append_kind(&fixture, i % 4 < 2 ? WEIR_KIND_INT : WEIR_KIND_DOUBLE);
        fixture_append(&fixture, 2, 0, NULL);
    }
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    fail_to_open();
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    open_successfully();
    while (next() == WR_LANE_NEXT_EMIT) {
        numbers += fixture.lane->ledger.flight.range.count;
        fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, fixture.lane->ledger.flight.range.count, 0);
    }
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(numbers, 50);
    cr_assert_eq(stats.delivered, 50);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_UNREPRESENTABLE], 10);
    cr_assert_eq(ledger_dropped(&stats), 10);
}

/* ---- Disks that fail ------------------------------------------------------------------------- */

Test(lane_spool, samples_that_cannot_be_spooled_stay_queued_and_are_delivered_in_order)
{
    cr_assert(wr_spool_state_set_place(&fixture.lane->spool_state, make_file("file", "", 0600)));
    fixture_offer(&fixture, 60);
    fail_to_open();
    cr_assert_not_null(fixture.lane->ledger.moving.segment);
    cr_assert_eq(fixture_stats(&fixture).queued, 60);
    cr_assert_eq(fixture_stats(&fixture).spooled, 0);
    fixture_offer(&fixture, 20);
    open_successfully();
    expect_delivery(0, 80);
}

Test(lane_spool, deleted_files_are_counted_as_lost)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    struct wr_spool_file *file = fixture.lane->spool_state.spool->index.first;
    char *path = wr_owner_dir_file(file->dir, file->number);
    cr_assert_eq(unlink(path), 0);
    free(path);
    fixture_offer(&fixture, 10);
    open_successfully();
    expect_delivery(60, 10);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_CORRUPT], 60);
    cr_assert(was_logged("60 spooled values are damaged and lost"));
}

Test(lane_spool, at_the_limit_the_queue_fills_and_overflow_decides)
{
    fixture.settings.spool_limit = 8 * 1024;
    fixture_apply(&fixture);
    cr_assert_eq(fixture.lane->settings.overflow, WR_OVERFLOW_BLOCK);
    bool waits = false;
    for (int i = 0; i < 20 && !waits; i++) {
        waits = fixture_offer(&fixture, 50);
        if (next() == WR_LANE_NEXT_OPEN)
            fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "refused");
        next();
        waits &= fixture_check(&fixture, NULL);
    }
    cr_assert(waits);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_leq(stats.spool_bytes, 8 * 1024);
    cr_assert_gt(stats.spooled, 100);
    cr_assert_eq(ledger_dropped(&stats), 0);
    uint32_t all = (uint32_t)stats.offered;
    open_successfully();
    expect_delivery(0, all);
}

/* ---- Waiting calls --------------------------------------------------------------------------- */

Test(lane_spool, a_flush_spools_samples_of_a_failing_handler_and_returns_that, .timeout = 60)
{
    fixture_offer(&fixture, 3);
    fail_to_open();
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN, "there is another attempt");
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "still refused");
    next();
    cr_assert_eq(fixture_stats(&fixture).spooled, 3);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, WR_NEVER, &error), WEIR_ERR_SPOOLED);
    cr_assert_str_eq(error.text, "handler \"push\": 3 values are on disk only: still refused");
    open_successfully();
    expect_delivery(0, 3);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, WR_NEVER, &error), 0);
}

Test(lane_spool, a_flush_does_not_wait_for_adopted_samples, .timeout = 60)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    end_process();
    fixture_init(&fixture);
    set_spool(path_in_folder("spool"));
    fail_to_open();
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(wr_lane_ledger_front(&fixture.lane->ledger), position);
}

Test(lane_spool, a_waiting_call_returns_when_its_value_is_spooled)
{
    static struct wr_ticket_state ticket_state;
    struct wr_ticket ticket = fixture_take_ticket(&ticket_state);
    fixture_offer(&fixture, 60);
    fixture_offer_sync(&fixture, ticket);
    fail_to_open();
    cr_assert_eq(fixture_read_ticket(ticket), WEIR_ERR_SPOOLED);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(lane_spool, samples_of_a_failing_handler_are_spooled_at_once_and_one_more_attempt_is_made)
{
    fixture_offer(&fixture, 10);
    fail_to_open();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns + 3600 * WR_NS_PER_S);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN, "there is another attempt");
    cr_assert_eq(fixture_stats(&fixture).spooled, 10);
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "refused");
    cr_assert_eq(next(), WR_LANE_NEXT_END);
    cr_assert(was_logged("shutting down while failing: refused; not delivered in time: 10 spooled"));
}

Test(lane_spool, what_was_spooled_at_the_end_is_delivered_if_that_attempt_succeeds)
{
    fixture_offer(&fixture, 10);
    fail_to_open();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns + 3600 * WR_NS_PER_S);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 10, 0);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert(stats.delivered == 10 && stats.spooled == 0);
}

Test(lane_spool, remaining_samples_of_a_slow_handler_are_spooled_shortly_before_the_deadline)
{
    fixture.settings.batch = 5;
    fixture_apply(&fixture);
    fixture_offer(&fixture, 10);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns + 100 * WR_NS_PER_S);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 5, 0);
    cr_assert_eq(fixture_stats(&fixture).spooled, 0);
    fixture_pass_ms(&fixture, 99760);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    cr_assert_eq(fixture_stats(&fixture).spooled, 5);
}

/* When the remaining samples are spooled, in ms from now. */
static int64_t plan_ms(int64_t timeout_ms)
{
    struct wr_spool_state state = {0};
    wr_spool_state_plan(&state, WR_NS_PER_S, WR_NS_PER_S + timeout_ms * WR_NS_PER_MS);
    return (state.save_at_ns - WR_NS_PER_S) / WR_NS_PER_MS;
}

Test(lane_spool, a_quarter_of_a_short_timeout_and_250_ms_of_a_long_one_are_left_for_spooling)
{
    cr_assert_eq(plan_ms(0), 0);
    cr_assert_eq(plan_ms(400), 300);
    cr_assert_eq(plan_ms(1000), 750);
    cr_assert_eq(plan_ms(5000), 4750);
}

Test(lane_spool, without_time_samples_are_spooled_and_no_attempt_is_made)
{
    fixture_offer(&fixture, 10);
    fail_to_open();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    cr_assert_eq(next(), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).spooled, 10);
    cr_assert(was_logged("shutting down while failing: refused; not delivered in time: 10 spooled"));
}

Test(lane_spool, without_a_deadline_one_attempt_is_made_before_spooling)
{
    fixture_offer(&fixture, 10);
    fail_to_open();
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, WR_NEVER);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_RETRY, "refused");
    cr_assert_eq(next(), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).spooled, 10);
}

Test(lane_spool, the_batch_of_a_blocked_handler_is_spooled_by_another_thread)
{
    fixture_offer(&fixture, 10);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_offer(&fixture, 5);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    wr_lane_stop_save(fixture.lane, fixture.now_ns, fixture.now_ns);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.spooled, 15);
    cr_assert_eq(stats.queued, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 10, 0);
    cr_assert_eq(fixture_stats(&fixture).delivered, 0, "its outcome is ignored");
}

/* Another thread used the disk; then the worker continues. */
static void *finish_using_disk(void *argument)
{
    wr_lock_enter(&fixture.lane->lock);
    fixture.lane->spool_state.busy = false;
    wr_lane_unlock(fixture.lane);
    next();
    return argument;
}

Test(lane_spool, the_end_waits_for_a_disk_that_is_in_use_beyond_the_deadline, .timeout = 60)
{
    pthread_t thread;
    fixture_offer(&fixture, 10);
    fixture.lane->spool_state.busy = true;
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    cr_assert_eq(pthread_create(&thread, NULL, finish_using_disk, NULL), 0);
    wr_lane_stop_save(fixture.lane, fixture.now_ns, WR_NEVER);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(fixture_stats(&fixture).spooled, 10);
}

Test(lane_spool, the_end_does_not_wait_for_a_disk_that_stays_in_use)
{
    fixture_offer(&fixture, 10);
    fixture.lane->spool_state.busy = true;
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns);
    wr_lane_stop_save(fixture.lane, fixture.now_ns, fixture.now_ns);
    wr_lane_stop_wait(fixture.lane, fixture.now_ns, 3600 * WR_NS_PER_S);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_SHUTDOWN], 10);
    cr_assert_eq(stats.spooled, 0);
    fixture.lane->spool_state.busy = false;
}

Test(lane_spool, producers_do_not_wait_for_a_handler_that_took_most_of_a_full_queue)
{
    fixture_apply(&fixture); /* now it has a place on disk */
    cr_assert(fixture_offer(&fixture, 110), "the queue is full");
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    cr_assert_not(fixture_check(&fixture, NULL), "what is left will not be moved to disk");
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 110, 0);
}

Test(lane_spool, samples_of_a_lane_that_is_removed_without_a_worker_are_dropped_by_the_deadline)
{
    int64_t next_ns = WR_NEVER;
    fixture.lane->worker.state = WR_THREAD_NONE;
    fixture_offer(&fixture, 5);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_REMOVED, fixture.now_ns + WR_NS_PER_S);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    fixture_check(&fixture, &next_ns);
    cr_assert_eq(fixture_stats(&fixture).queued, 5, "there is time left");
    cr_assert_lt(next_ns, WR_NEVER, "nothing would end the wait of a flush");
    fixture.now_ns = next_ns;
    fixture_check(&fixture, &next_ns);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REMOVED], 5);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, WR_NEVER, &error), 0);
}

Test(lane_spool, the_next_process_delivers_spooled_samples_first)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    end_process();
    fixture_init(&fixture);
    set_spool(path_in_folder("spool"));
    fixture.number = 60;
    fixture_offer(&fixture, 10);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    cr_assert_eq(fixture_stats(&fixture).recovered, 60);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 70);
    cr_assert_eq(fixture_stats(&fixture).delivered, 70);
}

Test(lane_spool, a_process_that_ends_at_once_still_delivers_spooled_samples)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    end_process();
    fixture_init(&fixture);
    set_spool(path_in_folder("spool"));
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns + WR_NS_PER_S);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 60);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    cr_assert_eq(fixture_stats(&fixture).recovered, 60);
    cr_assert_eq(fixture_stats(&fixture).delivered, 60);
}

static void fail_for_good(void)
{
    fixture_offer(&fixture, 60);
    fail_to_open();
    fixture_offer(&fixture, 10);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_FAILED, "broken");
}

Test(lane_spool, a_failed_handler_makes_no_attempt_and_its_spool_keeps_and_takes)
{
    fail_for_good();
    fixture_offer(&fixture, 100); /* more than half of the queue */
    fixture.now_ns += 86400 * WR_NS_PER_S;
    cr_assert_eq(next(), WR_LANE_NEXT_SLEEP);
    fixture_offer(&fixture, 5);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(next(), WR_LANE_NEXT_SLEEP);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.spooled, 175);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FAILED], 0);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, 175, WR_NEVER, &error), WEIR_ERR_SPOOLED);
    wr_lane_stop_request(fixture.lane, WEIR_DROPPED_SHUTDOWN, fixture.now_ns + WR_NS_PER_S);
    fixture_offer(&fixture, 1);
    cr_assert_eq(next(), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).spooled, 176);
}

Test(lane_spool, a_reload_lets_a_failed_handler_try_again)
{
    fail_for_good();
    cr_assert_eq(next(), WR_LANE_NEXT_SLEEP);
    wr_lane_request_reload(fixture.lane);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    expect_delivery(0, 70);
}

Test(lane_spool, an_open_handler_that_fails_is_closed_and_its_batch_spooled)
{
    fixture_offer(&fixture, 60);
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, WEIR_OUTCOME_OK, NULL);
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_FAILED, 1, 0);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    wr_lane_flush_request(fixture.lane, WR_NEVER);
    cr_assert_eq(next(), WR_LANE_NEXT_SLEEP);
    cr_assert_eq(fixture_stats(&fixture).delivered, 1);
    cr_assert_eq(fixture_stats(&fixture).spooled, 59);
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

/* ---- Configured again while it ends ---------------------------------------------------------- */

/* Only the addresses of these instances are used. */
static struct wr_instance *const first = (struct wr_instance *)&registry, *const second =
                                                                              (struct wr_instance *)&error;

static int64_t in_an_hour(void)
{
    return wr_clock_monotonic_ns() + 3600 * WR_NS_PER_S;
}

/* The lane's handler is configured again, gets three samples, and is removed again. */
static void bring_back_and_remove(void)
{
    struct wr_instance *instances[2];
    struct wr_lane_discarded discarded = {.instances = instances};
    const struct wr_lane_handler handler = {.instance = second,
                                            .identity = "second",
                                            .spool = path_in_folder("spool"),
                                            .settings = fixture.settings,
                                            .kinds = WEIR_KINDS_DOUBLE};
    const struct wr_lane_change change = {.end_reason = WR_LANE_LIVES, .handler = &handler};
    cr_assert_not(wr_lane_config_apply(fixture.lane, &change, &discarded), "the worker does it");
    fixture_offer(&fixture, 3);
    cr_assert(wr_lane_config_remove(fixture.lane, in_an_hour(), &discarded));
    cr_assert_eq(discarded.count, 1);
    cr_assert_eq(discarded.instances[0], second, "the present handler delivers what is left");
}

/* A log that takes so long that a configuration is changed twice meanwhile. The worker logs that it ends when
 * it releases the lock to delete empty folders. */
static void log_slowly(void *ctx, int level, const char *line)
{
    unsigned *lines = ctx;
    (void)level;
    if ((*lines)++ > 0)
        return;
    cr_assert(strstr(line, "60 spooled"), "%s", line);
    bring_back_and_remove();
}

Test(lane_spool, a_worker_that_ends_stays_if_a_handler_comes_and_goes_meanwhile, .timeout = 60)
{
    struct wr_lane_call call;
    struct wr_instance *instances[2];
    struct wr_lane_discarded discarded = {.instances = instances};
    weir_outcome outcome;
    unsigned lines = 0;
    fixture.lane->handler.instance = first;
    fixture_offer(&fixture, 60);
    fail_to_open();
    cr_assert(wr_lane_config_remove(fixture.lane, fixture.now_ns, &discarded));
    wr_log_set_sink(&fixture.log, log_slowly, &lines);
    wr_lane_worker_next(fixture.lane, &call);
    cr_assert_geq(lines, 1);
    cr_assert_eq(call.kind, WR_LANE_CALL_OPEN, "it has decided again");
    cr_assert_eq(call.instance, first);
    wr_lane_worker_init_outcome(&outcome, 0);
    wr_lane_worker_finish(fixture.lane, &call, &outcome, NULL, NULL);
    uint64_t position = wr_lane_flush_request(fixture.lane, WR_NEVER);
    expect_delivery(0, 63);
    cr_assert_eq(wr_lane_flush_wait(fixture.lane, position, 0, &error), 0);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    cr_assert_eq(next(), WR_LANE_NEXT_END);
    cr_assert_eq(fixture_stats(&fixture).delivered, 63);
}
