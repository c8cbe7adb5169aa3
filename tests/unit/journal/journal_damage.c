/* Journals whose files are damaged: whatever is in them, reading them, and recovering what is there, does no
 * harm. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/dispatch_fixture.h"
#include "../../support/temp_folder.h"
#include "journal/journal.h"
#include "engine/recovery.h"
#include "spool/spool_disk.h"
#include "survivor.h"
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

/* Half of the values in segments of two feeds, half in the ring. */
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
    _exit(0);
}

/* Runs it in a process of its own. Answers whether that came to a good end. */
static bool runs_well(void (*body)(const char *place), const char *place)
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
    cr_assert(runs_well(leave_journal, place));
    find_dir(place);
    return place;
}

/* ---- Recovering it --------------------------------------------------------------------------- */

/* Whether a sample can be given to a handler. */
static bool is_sound(const struct dispatch_fixture *fixture, const struct wr_segment *segment,
                     const weir_sample *sample)
{
    if (sample->series >= atomic_load(&fixture->registry.series) || sample->kind > WEIR_KIND_INT)
        return false;
    const struct weir_metric *metric = wr_registry_series(&fixture->registry, sample->series);
    const char *text = sample->note ? wr_segment_texts(segment)[sample->note] : "";
    return (sample->flags & WEIR_SAMPLE_CUMULATIVE) == metric->flags && text &&
           wr_utf8_is_valid(text, strlen(text), NULL);
}

static struct dispatch_fixture *recover_into_yard(const char *place)
{
    static struct wr_recovery recovery;
    struct dispatch_fixture *fixture = fixture_open();
    fixture_route(fixture, routes);
    fixture->dispatcher.running = true; /* no thread is to be started */
    wr_recovery_run(&recovery, place, &fixture->dispatcher, 1);
    for (size_t i = 0; i < fixture->lane_count; i++) {
        struct wr_lane *lane = fixture->lanes[i];
        while (!wr_queue_is_empty(&lane->queue)) {
            struct wr_range range = wr_queue_take(&lane->queue, 3, UINT64_MAX);
            for (uint32_t j = 0; j < range.count; j++)
                if (!is_sound(fixture, range.segment, &range.segment->samples[range.first + j]))
                    _exit(1);
            lane->delivered += range.count;
            wr_range_settle(&range, range.count);
            wr_segment_drop(range.segment);
        }
        fixture_stats(lane);
    }
    wr_recovery_tidy(&recovery);
    return fixture;
}

static void recover(const char *place)
{
    recover_into_yard(place);
}

/* ---- Damaging it ----------------------------------------------------------------------------- */

/* Of metadata, a byte that is in no text; in the first segment's file. */
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

/* The files of the dir as they were left. */
struct kept {
    const char *name;
    struct wr_buffer data;
    size_t used; /* bytes from the front that can mean anything */
};

static struct kept files[] = {{.name = "meta.0"}, {.name = "series.0"}, {.name = "ring.1"},
                              {.name = "seg.2"},  {.name = "seg.3"},    {.name = "lock"}};

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

/* Puts all files in place, as far as they were recovered and deleted. */
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

static void assert_harmless(const char *place, const struct kept *file, uint64_t offset, const char *how)
{
    struct survivor_row row;
    survivor_read(dir, "A", &row);
    survivor_read(dir, "B", &row);
    cr_assert(runs_well(recover, place), "%s: byte %" PRIu64 " %s", file->name, offset, how);
}

static void remove_bad(const char *place)
{
    char command[400];
    snprintf(command, sizeof command, "rm -f %s/*.bad", place);
    cr_assert_eq(system(command), 0);
}

/* How far apart the bytes are that are damaged: all of them take a minute. */
static size_t stride(void)
{
    const char *wanted = getenv("WEIR_TEST_DAMAGE");
    return wanted ? (size_t)atoi(wanted) : 11;
}

Test(journal_damage, whatever_byte_is_wrong_reading_and_recovering_does_no_harm, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    for (size_t i = 0; i + 1 < WR_COUNT_OF(files); i++) {
        for (size_t offset = i; offset < files[i].used; offset += stride()) {
            char wrong = (char)(files[i].data.data[offset] ^ (offset % 2 ? 0xff : 0x41));
            put_files();
            cr_assert_eq(wr_spool_disk_overwrite(path_of(files[i].name), offset, &wrong, 1), 0);
            assert_harmless(place, &files[i], offset, "is wrong");
        }
    }
    remove_bad(place);
}

Test(journal_damage, wherever_a_file_is_cut_reading_and_recovering_does_no_harm, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    for (size_t i = 0; i + 1 < WR_COUNT_OF(files); i++) {
        for (size_t length = 0; length < files[i].used; length += files[i].used / 7 + 1) {
            put_files();
            cr_assert_eq(truncate(path_of(files[i].name), (off_t)length), 0);
            assert_harmless(place, &files[i], length, "is the end");
        }
        put_files();
        unlink(path_of(files[i].name));
        assert_harmless(place, &files[i], 0, "is gone, as all of it");
    }
    remove_bad(place);
}

Test(journal_damage, what_is_sound_beside_a_damaged_file_is_delivered, .fini = remove_folder)
{
    const char *place = make_journal();
    keep_files();
    cr_assert_eq(truncate(path_of("seg.2"), 100), 0);
    struct survivor_row first, second;
    cr_assert(survivor_read(dir, "A", &first) && survivor_read(dir, "B", &second));
    uint64_t left = (first.end - first.first) + (second.end - second.first);
    cr_assert_eq(left, VALUES + VALUES / 2, "of one handler all, of the other one what was in the ring");
    cr_assert(runs_well(recover, place));
    cr_assert_eq(access(dir, F_OK), -1, "the dir is gone");
    char bad[400];
    snprintf(bad, sizeof bad, "%s-seg.2.bad", dir);
    cr_assert_eq(access(bad, F_OK), 0, "the damaged file is kept");
}

static void recover_without_a_text(const char *place)
{
    const struct dispatch_fixture *fixture = recover_into_yard(place);
    uint64_t corrupt = 0;
    for (size_t i = 0; i < fixture->lane_count; i++)
        corrupt += fixture->lanes[i]->dropped[WEIR_DROPPED_CORRUPT];
    _exit(corrupt == 1 ? 0 : 1);
}

Test(journal_damage, a_value_whose_metadata_is_no_text_is_dropped_as_corrupt, .fini = remove_folder)
{
    const char *place = make_journal();
    damage_text();
    cr_assert(runs_well(recover_without_a_text, place));
    cr_assert_eq(access(dir, F_OK), -1);
}

static void assert_left(const char *place)
{
    cr_assert(runs_well(recover, place));
    cr_assert_eq(access(path_of("ring.1"), F_OK), 0);
    cr_assert_eq(access(path_of("seg.2"), F_OK), 0);
}

Test(journal_damage, one_that_has_lost_its_head_is_left_as_it_is, .fini = remove_folder)
{
    const char *place = make_journal();
    struct survivor_row row;
    unlink(path_of("meta.0"));
    cr_assert_not(survivor_read(dir, "A", &row));
    assert_left(place);
    close(creat(path_of("meta.0"), 0600));
    assert_left(place);
}

Test(journal_damage, a_round_that_no_process_ever_commits_is_damage, .fini = remove_folder)
{
    static const uint64_t never = UINT64_MAX;
    const char *place = make_journal();
    cr_assert_eq(wr_spool_disk_overwrite(path_of("meta.0"), offsetof(struct wr_journal_head, round), &never,
                                         sizeof never),
                 0);
    assert_left(place);
}

Test(journal_damage, an_undamaged_one_is_recovered_whole_and_deleted, .fini = remove_folder)
{
    const char *place = make_journal();
    struct survivor_row row;
    cr_assert(survivor_read(dir, "A", &row));
    cr_assert(row.first == 0 && row.end == VALUES && !row.torn);
    cr_assert(runs_well(recover, place));
    cr_assert_eq(access(dir, F_OK), -1);
}
