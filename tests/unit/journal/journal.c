/* A journal from start to end, and its recovery by the next process. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../../support/deliver.h"
#include "../../support/dispatch_fixture.h"
#include "segment/batch.h"
#include "../../support/temp_folder.h"
#include "journal/journal.h"
#include "journal/journal_reader.h"
#include "os/clock.h"
#include "engine/recovery.h"
#include "registry/family.h"
#include "registry/series.h"

static struct dispatch_fixture *fixture;
static struct wr_journal *journal;
static struct wr_recovery recovery;

static void start(void)
{
    fixture = fixture_open();
    fixture_route(fixture, "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}");
    fixture->dispatcher.running = true; /* prevents starting a thread */
    journal = fixture_start_journal(fixture, path_in_folder("journal"), 0);
    cr_assert(journal, "%s", fixture->error.text);
}

TestSuite(journal, .init = start, .fini = remove_folder);

/* Simulates the death of the process: the journal is unused and its lock is free. */
static void simulate_death(void)
{
    wr_router_seal(fixture->dispatcher.drain.router, 1);
    fixture->dispatcher.drain.pool.journal = NULL;
    for (size_t i = 0; i < fixture->lane_count; i++)
        fixture_drop(fixture->lanes[i]);
    wr_owner_dir_leave(&journal->dir);
}

static void recover(void)
{
    wr_recovery_run(&recovery, path_in_folder("journal"), &fixture->dispatcher, 1);
}

static size_t count_dirs(void)
{
    const struct dirent *entry;
    size_t count = 0;
    DIR *place = opendir(path_in_folder("journal"));
    while ((entry = readdir(place)))
        count += entry->d_name[0] != '.';
    closedir(place);
    return count;
}

/* The batch that a lane's handler would receive. */
static weir_batch get_batch(const char *lane)
{
    static struct wr_batch_core core;
    const struct wr_queue *queue = &fixture_lane(fixture, lane)->ledger.queue;
    cr_assert_not(wr_queue_is_empty(queue));
    core.registry = &fixture->registry;
    return wr_batch_of(wr_queue_front(queue), &core, NULL);
}

static void deliver(const char *name)
{
    struct wr_lane *lane = fixture_lane(fixture, name);
    while (!wr_queue_is_empty(&lane->ledger.queue))
        deliver_oldest(lane, UINT32_MAX, NULL);
}

Test(journal, an_empty_journal_is_deleted)
{
    fixture_add(fixture, "b", "x", 1);
    fixture_round(fixture);
    deliver("A");
    deliver("B");
    wr_router_seal(fixture->dispatcher.drain.router, 1);
    wr_segment_pool_trim(&fixture->dispatcher.drain.pool);
    wr_journal_stop(journal);
    cr_assert_eq(count_dirs(), 0);
}

Test(journal, a_journal_with_values_in_a_ring_stays)
{
    fixture_add(fixture, "b", "x", 1);
    wr_journal_stop(journal);
    cr_assert_eq(count_dirs(), 1);
}

Test(journal, recovery_returns_queued_values_to_their_handlers_and_routes_the_rest)
{
    fixture_add(fixture, "b", "x", 1);
    fixture_add(fixture, "a", "x", 2);
    fixture_round(fixture);
    fixture_add(fixture, "b", "x", 3);
    simulate_death();
    recover();
    cr_assert_str_eq(fixture_queue(fixture_lane(fixture, "A")), "1 2 3");
    cr_assert_str_eq(fixture_queue(fixture_lane(fixture, "B")), "1 3");
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).recovered, 3);
    deliver("A");
    cr_assert_eq(count_dirs(), 1);
    deliver("B");
    wr_recovery_tidy(&recovery);
    cr_assert_eq(count_dirs(), 0);
}

Test(journal, a_sample_has_the_same_identity_in_whichever_process_delivers_it)
{
    fixture_add(fixture, "a", "x", 1);
    fixture_add(fixture, "a", "x", 2);
    fixture_round(fixture);
    wr_range_settle(wr_queue_front(&fixture_lane(fixture, "A")->ledger.queue), 1);
    weir_batch before = get_batch("A");
    char origin[64];
    snprintf(origin, sizeof origin, "%s", before.origin);
    cr_assert_eq(before.sequence, 0);
    simulate_death();
    recover();
    weir_batch after = get_batch("A");
    cr_assert_eq(after.count, 1);
    cr_assert_str_eq(after.origin, origin);
    cr_assert_eq(after.sequence, 1);
    cr_assert_str_eq(weir_batch_series(&after, after.samples)->name, "x");
}

Test(journal, a_journal_of_another_version_is_left_unchanged)
{
    fixture_add(fixture, "a", "x", 1);
    fixture_round(fixture);
    simulate_death();
    journal->head->version = WR_JOURNAL_VERSION - 1;
    recover();
    cr_assert(strstr(fixture->dispatcher.deferred_log.texts.data,
                     "written by another version of weir (format 2, this one reads 3"));
    cr_assert_eq(fixture_stats(fixture_lane(fixture, "A")).recovered, 0);
    cr_assert_eq(count_dirs(), 1);
}

/* ---- Identities ------------------------------------------------------------------------------ */

/* The identity of the first sample that a lane has queued. */
static struct wr_sample_id id_of(const char *lane)
{
    const struct wr_queue *queue = &fixture_lane(fixture, lane)->ledger.queue;
    cr_assert_not(wr_queue_is_empty(queue));
    return wr_queue_front(queue)->id;
}

Test(journal, lanes_with_the_same_records_number_them_separately)
{
    fixture_add(fixture, "a", "x", 1);
    fixture_add(fixture, "b", "x", 2);
    fixture_round(fixture);
    struct wr_sample_id a = id_of("A"), b = id_of("B");
    cr_assert_not(wr_origin_equal(&a.origin, &b.origin));
    cr_assert_eq(a.sequence + b.sequence, 0);
    simulate_death();
    recover();
    struct wr_sample_id again_a = id_of("A"), again_b = id_of("B");
    cr_assert(wr_sample_id_follows(&again_a, &a, 0));
    cr_assert(wr_sample_id_follows(&again_b, &b, 0));
}

Test(journal, a_lanes_numbers_continue_when_its_routes_change)
{
    fixture_add(fixture, "a", "x", 1);
    fixture_round(fixture);
    fixture_add(fixture, "a", "x", 2);
    fixture_round(fixture);
    struct wr_sample_id first = id_of("A");
    deliver("A");
    fixture_route(fixture, "{\"a\": [\"B\", \"A\"]}");
    fixture_add(fixture, "a", "x", 3);
    fixture_round(fixture);
    struct wr_sample_id third = id_of("A"), first_of_b = id_of("B");
    cr_assert(wr_sample_id_follows(&third, &first, 2));
    cr_assert_eq(first_of_b.sequence, 0);
    simulate_death();
    recover();
    third = id_of("A");
    cr_assert(wr_sample_id_follows(&third, &first, 2));
}

Test(journal, samples_lost_while_a_segment_is_open_do_not_change_its_numbers)
{
    struct wr_feed *feed = &fixture->dispatcher.drain.router->feeds[0];
    weir_sample *sample = wr_feed_reserve(feed, 1, 0, 1);
    *sample = (weir_sample){.value.f64 = 1};
    wr_feed_added(feed, 1);
    feed->left_out.lost = 5;
    wr_feed_offer(feed, (struct wr_ticket){0}, 1);
    const struct wr_lane_ledger *ledger = &feed->lanes[0]->lane->ledger;
    cr_assert_eq(ledger->dropped[WEIR_DROPPED_FULL], 5);
    cr_assert(wr_sample_id_follows(&wr_queue_front(&ledger->queue)->id, &feed->segment->file->ids[0], 0));
}

struct wr_recovery left_recovery; /* still reachable, as in a process that ends */

Test(journal, values_in_rings_are_numbered_once_by_the_first_recovery)
{
    fixture_add(fixture, "a", "x", 1);
    simulate_death();
    recover();
    struct wr_sample_id id = id_of("A"), next = wr_lane_take_ids(fixture_lane(fixture, "A"), 0);
    cr_assert(wr_sample_id_follows(&next, &id, 1));
    fixture_drop(fixture_lane(fixture, "A")); /* as if this process died too */
    wr_recovery_leave(&recovery);
    left_recovery = recovery;
    recovery = (struct wr_recovery){0};
    recover();
    struct wr_sample_id again = id_of("A");
    cr_assert(wr_sample_id_follows(&again, &id, 0));
}

Test(journal, unit_and_help_are_recovered)
{
    struct weir_stream *stream = fixture_metric(fixture, "a", "x")->stream;
    wr_family_describe(&fixture->registry, stream, "x", "ms", "how long", NULL);
    size_t count = 0;
    struct wr_journal_views views = {0};
    struct wr_journal_map map;
    struct wr_series_codec_room room;
    weir_series view;
    uint64_t *numbers = wr_mapped_file_list(journal->dir.path, WR_JOURNAL_SERIES_KIND, &count);
    cr_assert(numbers && count == 1);
    cr_assert_eq(
        wr_mapped_file_open(&map, journal->dir.path, WR_JOURNAL_SERIES_KIND, (uint32_t)numbers[0], false), 0);
    cr_assert(wr_journal_views_add(&views, &map));
    cr_assert(wr_journal_views_get(&views, fixture_metric(fixture, "a", "x")->series, &view, &room));
    cr_assert_str_eq(view.unit, "ms");
    cr_assert_str_eq(view.help, "how long");
    wr_journal_views_fini(&views);
    free(numbers);
}

/* A file size limit simulates a full disk. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(journal, a_description_that_could_not_be_kept_is_kept_later)
{
    enum { NAMES = 40 }; /* each may be described some times only */
    char name[16], help[1000] = "";
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "x%d", i);
        fixture_metric(fixture, "a", name);
    }
    limit_files(1);
    for (int i = 0; !atomic_load(&journal->series_problem); i++) {
        struct weir_stream *stream = fixture_metric(fixture, "a", "x0")->stream;
        snprintf(name, sizeof name, "x%d", i % NAMES);
        memset(help, 'a' + i / NAMES, sizeof help - 1);
        cr_assert_eq(wr_family_describe(&fixture->registry, stream, name, "ms", help, &fixture->error), 0, "%s",
                     fixture->error.text);
    }
    int64_t now_ns = 1, next_ns = WR_NEVER;
    cr_assert_not(wr_journal_tend(journal, now_ns, &next_ns));
    limit_files(RLIM_INFINITY);
    now_ns += 2 * WR_NS_PER_S;
    cr_assert(wr_journal_tend(journal, now_ns, &next_ns));
    struct wr_journal_reader reader;
    struct wr_series_codec_room room;
    weir_series view;
    cr_assert_eq(wr_journal_reader_open(&reader, journal->dir.path, false), WR_JOURNAL_READ);
    cr_assert(wr_journal_views_get(&reader.views, fixture_metric(fixture, "a", name)->series, &view, &room));
    cr_assert_str_eq(view.help, help, "the description of before");
    wr_journal_reader_close(&reader);
}

Test(journal, values_without_a_handler_are_reported_and_dropped)
{
    fixture_add(fixture, "unrouted", "x", 1);
    simulate_death();
    recover();
    cr_assert(
        strstr(fixture->dispatcher.deferred_log.texts.data, "1 values of groups without a route are dropped"));
    cr_assert_eq(count_dirs(), 0);
}
