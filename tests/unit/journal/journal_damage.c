/* Reading and recovering journals whose files are damaged, for any contents. */

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/deliver.h"
#include "../../support/dispatch_fixture.h"
#include "../../support/temp_folder.h"
#include "journal/journal.h"
#include "engine/recovery.h"
#include "spool/spool_disk.h"
#include "next_process.h"
#include "text/utf8.h"

static const char routes[] = "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}"; /* two feeds */

enum { VALUES = 8 };

/* ---- A journal of a process that has died ---------------------------------------------------- */

static void add_text(struct dispatch_fixture *fixture, struct weir_metric *metric, double value)
{
    static const char text[] = "metadata that takes more than one slot";
    weir_sample *sample = fixture_write(fixture, metric, WR_RING_TEXT, value);
    sample->note = sizeof text - 1;
    fixture_write_text(fixture, text);
    fixture_publish(fixture);
}

static void make_cells(struct dispatch_fixture *fixture)
{
    if (!wr_cells_want(&fixture->producer->cells))
        _exit(1);
    wr_drain_make_cells(&fixture->dispatcher.drain, fixture->producer);
}

static void leave_buckets(struct dispatch_fixture *fixture, const char *name)
{
    struct wr_cells *cells = &fixture->producer->cells;
    const struct weir_metric *histogram = fixture_metric(fixture, "b", name);
    const weir_series *view = atomic_load(&histogram->view);
    while (!wr_cells_open_buckets(cells, histogram->series, view))
        make_cells(fixture);
    if (!wr_cells_add_to_buckets(cells, histogram->series, view, 3))
        _exit(1);
}

/* A counter's and two histograms'. */
static void leave_cells(struct dispatch_fixture *fixture)
{
    struct wr_cells *cells = &fixture->producer->cells;
    const struct weir_metric *counter = fixture_metric(fixture, "b", "counter");
    while (!wr_cells_open(cells, counter->series))
        make_cells(fixture);
    if (!wr_cells_add(cells, counter->series, 3))
        _exit(1);
    leave_buckets(fixture, "histogram");
    leave_buckets(fixture, "another");
}

/* Half of the values in segments of two feeds, half in the ring, and three in cells. */
static void leave_journal(const char *place)
{
    struct dispatch_fixture *fixture = fixture_open();
    fixture_route(fixture, routes);
    if (!fixture_start_journal(fixture, place, 16))
        _exit(1);
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    for (int i = 0; i < VALUES; i++) {
        if (i == VALUES / 2)
            fixture_round(fixture);
        if (i % 4 == 1)
            add_text(fixture, metric, i);
        else
            fixture_write(fixture, metric, 0, i);
        fixture_publish(fixture);
    }
    leave_cells(fixture);
    _exit(0);
}

/* Runs `body` in a child process. Returns whether it exited successfully. */
static bool exits_cleanly(void (*body)(const char *place), const char *place)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        body(place);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char dir[300];

static void find_dir(const char *place)
{
    char command[400];
    snprintf(command, sizeof command, "ls -d %s/*/", place);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe && fgets(dir, sizeof dir, pipe));
    pclose(pipe);
    dir[strcspn(dir, "\n") - 1] = '\0';
}

static const char *make_journal(void)
{
    const char *place = path_in_folder("journal");
    cr_assert(exits_cleanly(leave_journal, place));
    find_dir(place);
    return place;
}

/* ---- Recovering it --------------------------------------------------------------------------- */

static struct wr_registry *recovered; /* what samples belong to */

/* Whether a sample is valid for a handler. */
static bool is_sound(const struct wr_segment *segment, const weir_sample *sample)
{
    bool is_summary = sample->kind == WEIR_KIND_SUMMARY && sample->note;
    if (sample->series >= atomic_load(&recovered->series) || (sample->kind > WEIR_KIND_INT && !is_summary))
        return false;
    const struct weir_metric *metric = wr_registry_series(recovered, sample->series);
    const char *text = sample->note ? wr_segment_texts(segment)[sample->note] : "";
    return (sample->flags & WEIR_SAMPLE_CUMULATIVE) == metric->flags && text &&
           wr_utf8_is_valid(text, strlen(text), NULL);
}

static void exit_unless_sound(const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count; i++)
        if (!is_sound(range->segment, &range->segment->samples[range->first + i]))
            _exit(1);
}

static struct dispatch_fixture *recover_into_fixture(const char *place)
{
    static struct wr_recovery recovery;
    struct dispatch_fixture *fixture = fixture_open();
    fixture_route(fixture, routes);
    recovered = &fixture->registry;
    fixture->dispatcher.running = true; /* prevents starting a thread */
    wr_recovery_run(&recovery, place, &fixture->dispatcher, 1);
    for (size_t i = 0; i < fixture->lane_count; i++) {
        struct wr_lane *lane = fixture->lanes[i];
        while (!wr_queue_is_empty(&lane->ledger.queue))
            deliver_oldest(lane, 3, exit_unless_sound);
        fixture_stats(lane);
    }
    wr_recovery_tidy(&recovery);
    return fixture;
}

static void recover(const char *place)
{
    recover_into_fixture(place);
}

/* ---- Damaging it ----------------------------------------------------------------------------- */

/* Replaces a byte of metadata in the first segment's file by one that is invalid in UTF-8. */
static void damage_text(void)
{
    struct wr_buffer data = {0};
    char path[400];
    snprintf(path, sizeof path, "%s/seg.2", dir);
    cr_assert_eq(wr_spool_disk_read(path, &data), 0);
    const char *text = memmem(data.data, data.length, "metadata", 8);
    cr_assert(text);
    cr_assert_eq(wr_spool_disk_overwrite(path, (uint64_t)(text - data.data), "\xff", 1), 0);
    wr_buffer_fini(&data);
}

/* The files of the journal before any damage. */
struct kept {
    const char *name;
    struct wr_buffer data;
    size_t used; /* bytes at the start that have a meaning */
};

static struct kept files[] = {{.name = "meta.0"}, {.name = "series.0"}, {.name = "ring.1"},  {.name = "seg.2"},
                              {.name = "seg.3"},  {.name = "cells.4"},  {.name = "cells.5"}, {.name = "lock"}};

static const char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void keep_files(void)
{
    for (size_t i = 0; i < WR_COUNT_OF(files); i++) {
        cr_assert_eq(wr_spool_disk_read(path_of(files[i].name), &files[i].data), 0, "%s", files[i].name);
        files[i].used = files[i].data.length;
        while (files[i].used && !files[i].data.data[files[i].used - 1])
            files[i].used--;
    }
}

/* Restores all files, including those that recovery deleted. */
static void put_files(void)
{
    mkdir(dir, 0700);
    for (size_t i = 0; i < WR_COUNT_OF(files); i++) {
        unlink(path_of(files[i].name));
        if (files[i].data.length)
            cr_assert_eq(
                wr_spool_disk_write(path_of(files[i].name), 0, files[i].data.data, files[i].data.length), 0);
        else
            close(creat(path_of(files[i].name), 0600));
    }
}

static void assert_handled(const char *place, const struct kept *file, uint64_t offset, const char *how)
{
    struct next_process_range range;
    next_process_read(dir, "A", &range);
    next_process_read(dir, "B", &range);
    cr_assert(exits_cleanly(recover, place), "%s: byte %" PRIu64 " %s", file->name, offset, how);
}

static void remove_bad(const char *place)
{
    char command[400];
    snprintf(command, sizeof command, "rm -f %s/*.bad", place);
    cr_assert_eq(system(command), 0);
}

/* The distance between damaged bytes: damaging all of them takes a minute. */
static size_t stride(void)
{
    const char *wanted = getenv("WEIR_TEST_DAMAGE");
    return wanted ? (size_t)atoi(wanted) : 11;
}

Test(journal_damage, any_damaged_byte_is_handled_by_reading_and_recovery, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    for (size_t i = 0; i + 1 < WR_COUNT_OF(files); i++) {
        for (size_t offset = i; offset < files[i].used; offset += stride()) {
            char wrong = (char)(files[i].data.data[offset] ^ (offset % 2 ? 0xff : 0x41));
            put_files();
            cr_assert_eq(wr_spool_disk_overwrite(path_of(files[i].name), offset, &wrong, 1), 0);
            assert_handled(place, &files[i], offset, "is wrong");
        }
    }
    remove_bad(place);
}

Test(journal_damage, a_file_truncated_at_any_length_is_handled_by_reading_and_recovery, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    for (size_t i = 0; i + 1 < WR_COUNT_OF(files); i++) {
        for (size_t length = 0; length < files[i].used; length += files[i].used / 7 + 1) {
            put_files();
            cr_assert_eq(truncate(path_of(files[i].name), (off_t)length), 0);
            assert_handled(place, &files[i], length, "is the end");
        }
        put_files();
        unlink(path_of(files[i].name));
        assert_handled(place, &files[i], 0, "is gone, as all of it");
    }
    remove_bad(place);
}

Test(journal_damage, undamaged_files_beside_a_damaged_one_are_delivered, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    cr_assert_eq(truncate(path_of("seg.2"), 100), 0);
    struct next_process_range first, second;
    cr_assert(next_process_read(dir, "A", &first) && next_process_read(dir, "B", &second));
    uint64_t left = (first.end - first.first) + (second.end - second.first);
    cr_assert_eq(left, VALUES + VALUES / 2, "all values of one handler, and those in the ring of the other");
    cr_assert(exits_cleanly(recover, place));
    cr_assert_eq(access(dir, F_OK), -1, "the dir is deleted");
    char bad[400];
    snprintf(bad, sizeof bad, "%s-seg.2.bad", dir);
    cr_assert_eq(access(bad, F_OK), 0, "the damaged file is kept");
}

/* Of two histograms in one file the first one makes no sense. */
Test(journal_damage, buckets_that_make_no_sense_are_damage_beside_good_ones, .fini = remove_folder)
{
    static const double sum = NAN;
    make_journal();
    struct next_process_range range;
    struct next_process_sums sums;
    cr_assert(next_process_read(dir, "A", &range) && !range.torn);
    cr_assert(next_process_sum(dir, "A", &sums));
    cr_assert_eq(wr_spool_disk_overwrite(path_of("cells.5"),
                                         sizeof(struct wr_cells_block) + offsetof(struct wr_cell_buckets, sum),
                                         &sum, sizeof sum),
                 0);
    cr_assert_not(next_process_sum(dir, "A", &sums), "the journal is damaged");
    cr_assert_eq(sums.values, 2, "the counter's, and the other histogram's");
}

static void recover_without_a_text(const char *place)
{
    const struct dispatch_fixture *fixture = recover_into_fixture(place);
    uint64_t corrupt = 0;
    for (size_t i = 0; i < fixture->lane_count; i++)
        corrupt += fixture->lanes[i]->ledger.dropped[WEIR_DROPPED_CORRUPT];
    _exit(corrupt == 1 ? 0 : 1);
}

Test(journal_damage, a_value_with_invalid_metadata_is_dropped_as_corrupt, .fini = remove_folder)
{
    const char *place = make_journal();
    damage_text();
    cr_assert(exits_cleanly(recover_without_a_text, place));
    cr_assert_eq(access(dir, F_OK), -1);
}

static void assert_unchanged(const char *place)
{
    cr_assert(exits_cleanly(recover, place));
    cr_assert_eq(access(path_of("ring.1"), F_OK), 0);
    cr_assert_eq(access(path_of("seg.2"), F_OK), 0);
}

Test(journal_damage, a_journal_without_its_head_is_left_unchanged, .fini = remove_folder)
{
    const char *place = make_journal();
    struct next_process_range range;
    unlink(path_of("meta.0"));
    cr_assert_not(next_process_read(dir, "A", &range));
    assert_unchanged(place);
    close(creat(path_of("meta.0"), 0600));
    assert_unchanged(place);
}

Test(journal_damage, an_impossible_round_is_damage, .fini = remove_folder)
{
    static const uint64_t never = UINT64_MAX;
    const char *place = make_journal();
    cr_assert_eq(wr_spool_disk_overwrite(path_of("meta.0"), offsetof(struct wr_journal_head, round), &never,
                                         sizeof never),
                 0);
    assert_unchanged(place);
}

Test(journal_damage, an_undamaged_journal_is_recovered_completely_and_deleted, .fini = remove_folder)
{
    const char *place = make_journal();
    struct next_process_range range;
    cr_assert(next_process_read(dir, "A", &range));
    cr_assert(range.first == 0 && range.end == VALUES && !range.torn);
    struct next_process_sums sums;
    cr_assert(next_process_sum(dir, "A", &sums) && sums.values == 3 && sums.sum == 9);
    cr_assert(exits_cleanly(recover, place));
    cr_assert_eq(access(dir, F_OK), -1);
}
