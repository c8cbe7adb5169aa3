/* A journal, from its start to its end, and over to the next process. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/yard.h"
#include "batch.h"
#include "folder.h"
#include "journal.h"
#include "recovery.h"
#include "series.h"

static struct yard *yard;
static struct wr_journal *journal;
static struct wr_recovery recovery;

static void start(void)
{
    yard = yard_open();
    yard_route(yard, "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}");
    yard->dispatcher.running = true; /* no thread is to be started */
    journal = yard_start_journal(yard, path_in_folder("journal"), 0);
    cr_assert(journal, "%s", yard->error.text);
}

TestSuite(journal, .init = start, .fini = remove_folder);

/* As if the process were dead: nobody uses the journal any more, and its lock is free. */
static void die(void)
{
    wr_router_seal(yard->dispatcher.taking.router, 1);
    yard->dispatcher.taking.pool.journal = NULL;
    for (size_t i = 0; i < yard->lane_count; i++)
        yard_drop(yard->lanes[i]);
    wr_spool_box_leave(&journal->box);
}

static void recover(void)
{
    wr_recovery_run(&recovery, path_in_folder("journal"), &yard->dispatcher, 1);
}

static size_t count_boxes(void)
{
    const struct dirent *entry;
    size_t count = 0;
    DIR *place = opendir(path_in_folder("journal"));
    while ((entry = readdir(place)))
        count += entry->d_name[0] != '.';
    closedir(place);
    return count;
}

/* The batch that a lane's handler would be given. */
static weir_batch look(const char *lane)
{
    static struct wr_batch_core core;
    const struct wr_queue *queue = &yard_lane(yard, lane)->queue;
    cr_assert_not(wr_queue_is_empty(queue));
    core.registry = &yard->registry;
    return wr_batch_of(wr_queue_front(queue), &core, NULL);
}

static void deliver(const char *name)
{
    struct wr_lane *lane = yard_lane(yard, name);
    while (!wr_queue_is_empty(&lane->queue)) {
        struct wr_range range = wr_queue_take(&lane->queue, UINT32_MAX, UINT64_MAX);
        wr_range_settle(&range, range.count);
        lane->delivered += range.count;
        wr_segment_drop(range.segment);
    }
}

Test(journal, of_which_nothing_is_left_is_deleted)
{
    yard_add(yard, "b", "x", 1);
    yard_round(yard);
    deliver("A");
    deliver("B");
    wr_router_seal(yard->dispatcher.taking.router, 1);
    wr_segment_pool_trim(&yard->dispatcher.taking.pool);
    wr_journal_stop(journal);
    cr_assert_eq(count_boxes(), 0);
}

Test(journal, with_something_left_in_a_ring_stays)
{
    yard_add(yard, "b", "x", 1);
    wr_journal_stop(journal);
    cr_assert_eq(count_boxes(), 1);
}

Test(journal, the_next_one_gives_each_handler_what_it_had_and_routes_the_rest)
{
    yard_add(yard, "b", "x", 1);
    yard_add(yard, "a", "x", 2);
    yard_round(yard);
    yard_add(yard, "b", "x", 3);
    die();
    recover();
    cr_assert_str_eq(yard_queue(yard_lane(yard, "A")), "1 2 3");
    cr_assert_str_eq(yard_queue(yard_lane(yard, "B")), "1 3");
    cr_assert_eq(yard_stats(yard_lane(yard, "A")).recovered, 3);
    deliver("A");
    cr_assert_eq(count_boxes(), 1);
    deliver("B");
    wr_recovery_tidy(&recovery);
    cr_assert_eq(count_boxes(), 0);
}

Test(journal, a_sample_bears_the_same_name_whoever_delivers_it)
{
    yard_add(yard, "a", "x", 1);
    yard_add(yard, "a", "x", 2);
    yard_round(yard);
    wr_range_settle(wr_queue_front(&yard_lane(yard, "A")->queue), 1);
    weir_batch before = look("A");
    char origin[64];
    snprintf(origin, sizeof origin, "%s", before.origin);
    cr_assert_eq(before.origin_sequence, 0);
    die();
    recover();
    weir_batch after = look("A");
    cr_assert_eq(after.count, 1);
    cr_assert_str_eq(after.origin, origin);
    cr_assert_eq(after.origin_sequence, 1);
    cr_assert_str_eq(weir_batch_series(&after, after.samples)->name, "x");
}

Test(journal, unit_and_help_come_along)
{
    struct weir_stream *stream = yard_metric(yard, "a", "x")->stream;
    wr_series_describe(&yard->registry, stream, "x", "ms", "how long", NULL);
    size_t count = 0;
    struct wr_journal_views views = {0};
    struct wr_journal_map map;
    weir_label labels[WR_JOURNAL_LABELS_MOST];
    weir_series view;
    uint32_t *numbers = wr_journal_file_list(journal->box.path, WR_JOURNAL_SERIES_KIND, &count);
    cr_assert(numbers && count == 1);
    cr_assert_eq(wr_journal_file_open(&map, journal->box.path, WR_JOURNAL_SERIES_KIND, numbers[0], false), 0);
    cr_assert(wr_journal_views_add(&views, &map));
    cr_assert(wr_journal_views_get(&views, yard_metric(yard, "a", "x")->series, &view, labels));
    cr_assert_str_eq(view.unit, "ms");
    cr_assert_str_eq(view.help, "how long");
    wr_journal_views_fini(&views);
    free(numbers);
}

Test(journal, values_of_nobody_are_said_and_gone)
{
    yard_add(yard, "nobody", "x", 1);
    die();
    recover();
    cr_assert(
        strstr(yard->dispatcher.words.texts.data, "1 values belong to groups that nobody listens to now"));
    cr_assert_eq(count_boxes(), 0);
}
