/* The identities of samples, (origin, sequence): unique for each sample that a lane delivers, and stable
 * through retries, drops, a spool, and adoption by other processes.
 *
 * The value of a fixture's sample is its number. In the first process this is also its sequence. */
#include <criterion/criterion.h>
#include <sys/wait.h>

#include "../../support/lane_fixture.h"
#include "../../support/ledger.h"
#include "../../support/temp_folder.h"
#include "lane/spool_io.h"
#include "os/clock.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "segment/batch.h"
#include "spool/spool.h"
#include "text/error.h"

enum { LIMIT = 1024 * 1024, VALUES = 400, PROCESSES = 4 };

static struct lane_fixture fixture;
static struct wr_registry registry;
static struct wr_error error;

static void start_process(void)
{
    fixture_init(&fixture);
    fixture.settings.spool_limit = LIMIT;
    fixture_apply(&fixture);
    fixture.now_ns = wr_clock_monotonic_ns(); /* spool code reads the real clock */
    fixture.lane->spool_state.registry = &registry;
    cr_assert(wr_spool_state_set_place(&fixture.lane->spool_state, path_in_folder("spool")));
}

/* As by a kill: samples in memory are lost, those on disk stay. */
static void end_process(void)
{
    struct wr_spool *spool = fixture.lane->spool_state.spool;
    fixture.lane->spool_state.spool = NULL;
    fixture_fini(&fixture);
    wr_spool_free(spool); /* last: samples that were read from it are in its segments */
}

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    cr_assert_eq(wr_series_get(&registry, stream, "value", 0, &error)->series, 0,
                 "the text of the fixture's samples");
    start_process();
}

static void teardown(void)
{
    end_process();
    remove_folder();
}

TestSuite(lane_ids, .init = setup, .fini = teardown);

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

static void open_handler(int code)
{
    fixture.now_ns = fixture.lane->delivery.retry_at_ns > fixture.now_ns ? fixture.lane->delivery.retry_at_ns
                                                                         : fixture.now_ns;
    cr_assert_eq(next(), WR_LANE_NEXT_OPEN);
    fixture_finish_open(&fixture, code, "refused");
}

/* The next batch must have these values and this process's origin, and sequences equal to the values plus
 * `moved`. */
static void expect_batch(uint32_t first, uint32_t count, uint64_t moved)
{
    cr_assert_eq(next(), WR_LANE_NEXT_EMIT);
    const struct wr_range *flight = &fixture.lane->ledger.flight.range;
    cr_assert_eq(flight->count, count);
    cr_assert_eq(flight->segment->samples[flight->first].value.f64, first);
    cr_assert_eq(flight->id.sequence, first + moved);
    cr_assert(wr_origin_equal(&flight->id.origin, &fixture.lane->ledger.next_id.origin));
}

static void deliver(uint32_t first, uint32_t count, uint64_t moved)
{
    expect_batch(first, count, moved);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, count, 0);
}

/* ---- One process ----------------------------------------------------------------------------- */

static bool is_hex(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

Test(lane_ids, a_batch_has_its_origin_as_text)
{
    struct wr_batch_core core = {.registry = &registry};
    fixture_offer(&fixture, 3);
    open_handler(WEIR_OUTCOME_OK);
    expect_batch(0, 3, 0);
    weir_batch batch = wr_batch_of(&fixture.lane->ledger.flight.range, &core, NULL);
    cr_assert(is_hex(batch.origin), "%s", batch.origin);
    cr_assert_eq(batch.sequence, 0);
}

Test(lane_ids, retried_samples_keep_their_numbers)
{
    fixture_offer(&fixture, 10);
    open_handler(WEIR_OUTCOME_OK);
    expect_batch(0, 10, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_RETRY, 4, 0);
    fixture.now_ns = fixture.lane->delivery.retry_at_ns;
    expect_batch(4, 6, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_REOPEN, 5, 2);
    cr_assert_eq(next(), WR_LANE_NEXT_CLOSE);
    fixture_close(&fixture);
    open_handler(WEIR_OUTCOME_OK);
    deliver(9, 1, 0);
    fixture_offer(&fixture, 1);
    deliver(10, 1, 0);
}

Test(lane_ids, the_number_of_a_rejected_sample_is_not_reused)
{
    fixture_offer(&fixture, 5);
    open_handler(WEIR_OUTCOME_OK);
    expect_batch(0, 5, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_DROP, 2, 1);
    fixture_offer(&fixture, 1);
    deliver(5, 1, 0);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_REJECTED], 4);
}

static void use_policy(enum wr_overflow overflow)
{
    fixture.settings.spool_limit = 0;
    fixture.settings.overflow = overflow;
    fixture_apply(&fixture);
}

Test(lane_ids, a_batch_ends_where_the_oldest_were_dropped)
{
    use_policy(WR_OVERFLOW_DROP_OLDEST);
    fixture_offer(&fixture, 50);
    open_handler(WEIR_OUTCOME_OK);
    expect_batch(0, 50, 0);
    fixture_offer(&fixture, 80);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 50, 0);
    deliver(80, 50, 0);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 30);
}

Test(lane_ids, a_batch_ends_where_the_newest_were_dropped)
{
    use_policy(WR_OVERFLOW_DROP_NEWEST);
    fixture_offer(&fixture, 130);
    open_handler(WEIR_OUTCOME_OK);
    expect_batch(0, 100, 0);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 90, 0);
    expect_batch(90, 10, 0);
    fixture_offer(&fixture, 10);
    fixture_finish_emit(&fixture, WEIR_OUTCOME_OK, 10, 0);
    deliver(130, 10, 0);
    cr_assert_eq(fixture_stats(&fixture).dropped[WEIR_DROPPED_FULL], 30);
}

Test(lane_ids, a_batch_ends_where_a_kind_is_withheld)
{
    fixture_append(&fixture, 2, 0, NULL);
    fixture_append_kind(&fixture, WEIR_KIND_INT);
    fixture_append(&fixture, 3, 0, NULL);
    fixture_offer_appended(&fixture, (struct wr_ticket){0});
    fixture.lane->handler.kinds = WEIR_KINDS_DOUBLE;
    open_handler(WEIR_OUTCOME_OK);
    deliver(0, 2, 0);
    deliver(3, 3, 0);
}

Test(lane_ids, samples_lost_before_a_segment_are_no_gap)
{
    fixture_offer(&fixture, 2);
    wr_lane_leave_out(fixture.lane, &(struct wr_lane_left_out){.lost = 7});
    open_handler(WEIR_OUTCOME_OK);
    deliver(0, 2, 0);
    fixture_offer(&fixture, 2);
    deliver(2, 2, 0);
}

Test(lane_ids, a_child_has_another_origin_than_its_parent)
{
    struct wr_lane *before = wr_lane_new("push", &fixture.log, NULL, NULL);
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct wr_lane *own = wr_lane_new("push", &fixture.log, NULL, NULL);
        _exit(wr_origin_equal(&own->ledger.next_id.origin, &before->ledger.next_id.origin) ||
              wr_origin_equal(&own->ledger.next_id.origin, &fixture.lane->ledger.next_id.origin));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_not(wr_origin_equal(&before->ledger.next_id.origin, &fixture.lane->ledger.next_id.origin));
    wr_lane_free_unused(before);
}

/* ---- Several processes ----------------------------------------------------------------------- */

/* A destination that stores each identity once. */
static struct kept {
    struct wr_sample_id id;
    double value;
} kept[PROCESSES * VALUES + 1];
static uint32_t kept_count, repeats;

static void store(const struct wr_range *range, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct kept arrived = {wr_sample_id_behind(&range->id, i),
                               range->segment->samples[range->first + i].value.f64};
        bool known = false;
        for (uint32_t j = 0; j < kept_count && !known; j++)
            known = wr_sample_id_follows(&kept[j].id, &arrived.id, 0);
        repeats += known;
        if (!known)
            kept[kept_count++] = arrived;
    }
}

/* Delivers batches of which only `settled` samples each are settled; the destination keeps all of them. */
static void deliver_batches(uint32_t batches, uint32_t settled)
{
    while (batches-- && next() == WR_LANE_NEXT_EMIT) {
        const struct wr_range *flight = &fixture.lane->ledger.flight.range;
        uint32_t done = settled < flight->count ? settled : flight->count;
        store(flight, flight->count);
        fixture_finish_emit(&fixture, done < flight->count ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_OK, done, 0);
        fixture.now_ns = fixture.lane->delivery.retry_at_ns > fixture.now_ns
                             ? fixture.lane->delivery.retry_at_ns
                             : fixture.now_ns;
    }
}

/* Offers values of this process, all of which are spooled. */
static void spool_values(uint32_t first)
{
    fixture.number = first;
    for (uint32_t i = 0; i < VALUES; i += 50) {
        fixture_offer(&fixture, 50);
        next();
    }
    cr_assert_eq(fixture_stats(&fixture).queued, 0);
}

Test(lane_ids, a_destination_that_skips_repeats_has_every_value_of_all_processes_once)
{
    fixture.settings.batch = 30;
    for (uint32_t process = 0; process < PROCESSES; process++) {
        fixture_offer(&fixture, 0);
        open_handler(process ? WEIR_OUTCOME_OK : WEIR_OUTCOME_RETRY);
        /* adopted samples, of which only a part of each batch is settled when the process dies */
        deliver_batches(process * 5, 17);
        fixture.lane->delivery.health = WR_DELIVERY_FAILS;
        fixture.lane->delivery.retry_at_ns = fixture.now_ns + WR_NS_PER_S;
        spool_values(process * VALUES);
        end_process();
        start_process();
        fixture.settings.batch = 30;
        fixture_apply(&fixture);
    }
    fixture_offer(&fixture, 1);
    open_handler(WEIR_OUTCOME_OK);
    deliver_batches(UINT32_MAX, UINT32_MAX);
    weir_handler_stats stats = fixture_stats(&fixture);
    cr_assert_eq(stats.spooled, 0);
    cr_assert_eq(stats.delivered, stats.offered + stats.recovered);
    cr_assert_eq(kept_count, PROCESSES * VALUES + 1);
    cr_assert_gt(repeats, 0);
}
