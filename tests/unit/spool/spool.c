/* A handler's spool on disk: put, fetch, settle, adoption, limits, and losses. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "../../support/failing.h"
#include "text/crc.h"
#include "text/error.h"
#include "../../support/temp_folder.h"
#include "registry/series.h"
#include "spool/spool.h"
#include "spool/spool_block.h"
#include "spool/spool_disk.h"
#include "registry/stream.h"

enum { ROOM = 100000, BIG = 1 << 30, ID_OF_FIRST = 70000 };

static struct wr_registry registry;
static struct wr_segment_pool pool;
static struct wr_segment *segment; /* all samples ever put; the value of a sample is its number */
static struct wr_spool *spool;
static struct wr_error error;
static struct wr_spool_terms terms;
static struct wr_spool_count dropped, lost;
static uint32_t series;
static bool kept_bad;
static struct wr_origin origin = {{0xfe, 0xed}}; /* of samples put from now on, and of samples fetched */

static struct wr_spool *open_spool(const char *handler)
{
    struct wr_spool *opened = wr_spool_new(handler, &registry);
    cr_assert(opened);
    return opened;
}

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    series = wr_series_get(&registry, stream, "value", 0, &error)->series;
    segment = wr_segment_new(&pool, ROOM);
    for (uint32_t i = 0; i < ROOM; i++)
        segment->samples[i] = (weir_sample){.series = series, .time_ns = i, .value.f64 = i};
    segment->count = ROOM;
    terms = (struct wr_spool_terms){.place = strdup(path_in_folder("spool")), .limit = BIG};
    spool = open_spool("push");
}

static void teardown(void)
{
    failing_set(false);
    wr_spool_free(spool);
    wr_segment_drop(segment);
    remove_folder();
}

TestSuite(spool, .init = setup, .fini = teardown);

/* ---- Helpers --------------------------------------------------------------------------------- */

static enum wr_spool_result try_put(uint32_t first, uint32_t count)
{
    struct wr_range range = {.segment = segment,
                             .first = first,
                             .count = count,
                             .bytes = count * sizeof(weir_sample),
                             .position = first,
                             .id = {origin, ID_OF_FIRST + first}};
    return wr_spool_put(spool, &terms, &range, NULL, &dropped, &error);
}

static void put(uint32_t first, uint32_t count)
{
    cr_assert_eq(try_put(first, count), WR_SPOOL_OK, "%s", error.text);
}

/* Fetches at most `samples` samples; NULL: none. Checks that their numbers are consecutive. */
static struct wr_spool_batch fetch(uint32_t samples)
{
    struct wr_spool_want want = {.samples = samples, .bytes = BIG};
    struct wr_spool_batch batch;
    cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
    lost.samples += batch.lost.samples;
    lost.own += batch.lost.own;
    kept_bad |= batch.kept_bad;
    for (uint32_t i = 0; i < batch.range.count; i++) {
        const weir_sample *sample = &batch.range.segment->samples[batch.range.first + i];
        cr_assert_eq(sample->value.f64, (double)(batch.range.position + i));
        cr_assert_eq(sample->series, series);
    }
    if (batch.range.count) {
        cr_assert(wr_origin_equal(&batch.range.id.origin, &origin));
        cr_assert_eq(batch.range.id.sequence, ID_OF_FIRST + batch.range.position);
    }
    wr_segment_drop(batch.range.segment);
    wr_labels_drop(batch.labels);
    return batch;
}

/* Fetches and settles everything, which must be exactly these numbers. */
static void expect(uint32_t first, uint32_t count)
{
    for (uint32_t next = first; next < first + count;) {
        struct wr_spool_batch batch = fetch(first + count - next);
        cr_assert_neq(batch.range.count, 0, "number %u is missing", next);
        cr_assert_eq(batch.range.position, next);
        next += batch.range.count;
        cr_assert_leq(next, first + count);
        kept_bad |= wr_spool_settle(spool, batch.range.count, batch.range.count);
    }
}

static void expect_nothing(void)
{
    cr_assert_eq(fetch(1).range.count, 0);
    cr_assert_null(spool->index.first);
    cr_assert_eq(spool->index.bytes, 0);
}

/* Simulates the death of this process and the start of another one. */
static struct wr_spool_found start_again(void)
{
    struct wr_spool_found found;
    wr_spool_free(spool);
    spool = open_spool("push");
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error), "%s", error.text);
    return found;
}

static size_t count_entries(const char *part)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *entries = opendir(terms.place);
    while (entries && (entry = readdir(entries)))
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part);
    if (entries)
        closedir(entries);
    return count;
}

static void change_byte(const struct wr_spool_file *file, off_t offset)
{
    char byte;
    char *path = wr_owner_dir_file(file->dir, file->number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pread(fd, &byte, 1, offset), 1);
    byte = (char)~byte;
    cr_assert_eq(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
    free(path);
}

/* ---- Put and fetch --------------------------------------------------------------------------- */

Test(spool, no_files_are_created_before_the_first_put)
{
    struct wr_spool_found found;
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(access(terms.place, F_OK), -1);
    expect_nothing();
}

Test(spool, samples_are_fetched_in_the_order_put)
{
    put(0, 10);
    put(10, 1);
    put(11, 2000);
    expect(0, 2011);
    expect_nothing();
    cr_assert_eq(lost.samples, 0);
}

Test(spool, settled_samples_are_gone_and_their_files_deleted)
{
    put(0, 100);
    expect(0, 100);
    cr_assert_eq(spool->index.own->files, 0);
    wr_spool_tidy(spool);
    cr_assert_eq(count_entries(""), 0);
}

Test(spool, unsettled_samples_are_fetched_again)
{
    put(0, 10);
    put(10, 10);
    cr_assert_eq(fetch(5).range.count, 10);
    cr_assert_eq(fetch(5).range.position, 0);
    wr_spool_settle(spool, 3, 3);
    struct wr_spool_batch batch = fetch(5);
    cr_assert_eq(batch.range.position, 3);
    cr_assert_eq(batch.range.count, 7);
    wr_spool_settle(spool, 7, 7);
    cr_assert_eq(fetch(5).range.position, 10);
}

Test(spool, blocks_are_fetched_together_up_to_the_requested_size)
{
    for (uint32_t i = 0; i < 10; i++)
        put(i * 10, 10);
    cr_assert_eq(fetch(45).range.count, 40);
    wr_spool_settle(spool, 40, 40);
    cr_assert_eq(fetch(1).range.count, 10, "at least one block");
    struct wr_spool_want want = {.samples = 100, .bytes = 25 * sizeof(weir_sample)};
    struct wr_spool_batch batch;
    cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK);
    cr_assert_eq(batch.range.count, 20);
    cr_assert_eq(batch.range.bytes, 20 * sizeof(weir_sample));
    wr_segment_drop(batch.range.segment);
}

Test(spool, a_fetch_ends_at_a_gap)
{
    put(0, 10);
    put(20, 10);
    cr_assert_eq(fetch(100).range.count, 10);
    wr_spool_settle(spool, 10, 10);
    cr_assert_eq(fetch(100).range.position, 20);
}

Test(spool, samples_put_during_a_fetch_come_after_it)
{
    put(0, 10);
    fetch(10);
    put(10, 10);
    wr_spool_settle(spool, 10, 10);
    put(20, 10);
    expect(10, 20);
    expect_nothing();
}

Test(spool, older_samples_are_put_in_front)
{
    put(100, 10);
    put(110, 10);
    put(90, 10);
    put(120, 10);
    expect(90, 40);
    expect_nothing();
}

Test(spool, large_amounts_are_split_into_several_files)
{
    terms.limit = 64 * 1024;
    uint32_t count = 0;
    while (try_put(count, 64) == WR_SPOOL_OK)
        count += 64;
    cr_assert_gt(spool->index.own->files, 2);
    cr_assert_leq(spool->index.bytes, terms.limit);
    expect(0, count);
    expect_nothing();
}

/* ---- Labels ---------------------------------------------------------------------------------- */

Test(spool, files_of_another_version_are_left_unchanged_and_reported_once)
{
    struct wr_spool_found found;
    put(0, 10);
    char *path = wr_owner_dir_file(spool->index.own, 0);
    struct wr_buffer data = {0};
    wr_spool_free(spool);
    cr_assert_eq(wr_spool_disk_read(path, &data), 0);
    /* the head is: magic, version at 8, ..., bytes of the name at 32, checksum at 36, mark, the name at 48 */
    uint32_t name_bytes;
    data.data[8] = 1;
    memcpy(&name_bytes, data.data + 32, sizeof name_bytes);
    uint32_t check = wr_crc_add(wr_crc_add(0, data.data, 36), data.data + 48, name_bytes);
    memcpy(data.data + 36, &check, sizeof check);
    cr_assert_eq(wr_spool_disk_overwrite(path, 0, data.data, 40), 0);
    cr_assert_eq(wr_spool_block_read_version(data.data, data.length), 1);
    spool = open_spool("push");
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(found.other_version, 1);
    cr_assert_eq(found.samples, 0);
    expect_nothing();
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(found.other_version, 0, "it was reported already");
    cr_assert_eq(access(path, F_OK), 0);
    wr_buffer_fini(&data);
    free(path);
}

static struct wr_label_set *make_labels(const char *host, uint64_t number)
{
    weir_label label = {"host", host};
    weir_map map = {1, &label};
    return wr_labels_new(&map, number, &error);
}

static void put_labeled(uint32_t first, struct wr_label_set *labels)
{
    struct wr_range range = {.segment = segment,
                             .first = first,
                             .count = 10,
                             .bytes = 10 * sizeof(weir_sample),
                             .position = first,
                             .id = {origin, ID_OF_FIRST + first}};
    cr_assert_eq(wr_spool_put(spool, &terms, &range, labels, &dropped, &error), WR_SPOOL_OK);
}

Test(spool, labels_stay_with_their_samples)
{
    struct wr_label_set *here = make_labels("here", 1), *there = make_labels("there", 2);
    struct wr_spool_want want = {.samples = 1000, .bytes = BIG, .labels = there};
    struct wr_spool_batch batch[4];
    put_labeled(0, NULL);
    put_labeled(10, here);
    put_labeled(20, there);
    put_labeled(30, here);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(wr_spool_fetch(spool, &want, &batch[i], &error), WR_SPOOL_OK);
        cr_assert_eq(batch[i].range.position, 10 * i);
        cr_assert_eq(batch[i].range.count, 10, "labels differ");
        wr_spool_settle(spool, 10, 10);
        wr_segment_drop(batch[i].range.segment);
    }
    cr_assert_null(batch[0].labels);
    cr_assert_str_eq(batch[1].labels->items[0].value, "here");
    cr_assert_neq(batch[1].labels->number, here->number, "encoders identify sets by number");
    cr_assert_eq(batch[2].labels, there, "an equal set that is already in use is used again");
    cr_assert_str_eq(batch[3].labels->items[0].value, "here");
    for (uint32_t i = 0; i < 4; i++)
        wr_labels_drop(batch[i].labels);
    wr_labels_drop(here);
    wr_labels_drop(there);
}

/* ---- The next process ------------------------------------------------------------------------ */

Test(spool, the_next_process_continues_where_the_last_one_ended)
{
    put(0, 10);
    put(10, 10);
    put(20, 10);
    fetch(10);
    wr_spool_settle(spool, 10, 10);
    fetch(10);
    wr_spool_settle(spool, 3, 3);
    fetch(10); /* fetched but not settled when the process dies */
    struct wr_spool_found found = start_again();
    cr_assert_eq(found.samples, 17);
    cr_assert_not(fetch(10).own);
    expect(13, 17);
    expect_nothing();
    cr_assert_eq(count_entries(""), 0);
}

/* What was added once is not refused when it is read back, and not taken for damage. */
Test(spool, a_process_whose_series_are_at_their_limit_loses_nothing_that_it_adopts)
{
    static struct wr_registry small;
    static const char *const groups[] = {"other", "known"};
    const weir_label label = {"zone", "a"};
    struct wr_spool_found found;
    for (uint32_t i = 0; i < 4; i++) {
        struct weir_stream *stream = wr_stream_get(&registry, groups[i % 2], &label, i < 2 ? 1 : 0, &error);
        segment->samples[2 * i + 1].series = wr_series_get(&registry, stream, "load", 0, &error)->series;
    }
    put(0, 10);
    wr_spool_free(spool);
    cr_assert(wr_registry_init(&small));
    small.max = 2; /* of a group and a series */
    wr_series_get(&small, wr_stream_get(&small, "known", NULL, 0, &error), "load", 0, &error);
    spool = wr_spool_new("push", &small);
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error), "%s", error.text);
    cr_assert_eq(found.samples, 10);
    struct wr_spool_want want = {.samples = 100, .bytes = BIG};
    struct wr_spool_batch batch;
    cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
    cr_assert_eq(batch.range.count, 10);
    cr_assert_eq(batch.lost.samples, 0);
    cr_assert_not(batch.kept_bad);
    for (uint32_t i = 0; i < 10; i++) {
        static const char *const names[] = {"other", "known", "other", "known"};
        const weir_sample *sample = &batch.range.segment->samples[batch.range.first + i];
        const weir_series *view = atomic_load(&wr_registry_series(&small, sample->series)->view);
        bool is_first = i % 2 == 0 || i > 7;
        cr_assert_eq(sample->value.f64, i);
        cr_assert_str_eq(view->group, is_first ? "my_app" : names[i / 2]);
        cr_assert_str_eq(view->name, i == 3 || i == 7 ? "load" : "weir_overflow", "of sample %u", i);
    }
    wr_segment_drop(batch.range.segment);
    wr_spool_settle(spool, 10, 10);
    expect_nothing();
}

/* Sums of several series are no sum: what has no room is marked, and the rest is as it was. */
Test(spool, adopted_summaries_without_room_are_marked)
{
    static struct wr_registry small;
    static const char *const names[] = {"known", "new", "weir_overflow", "known"};
    const weir_label zone = {"zone", "a"}, shared = {"weir_overflow", "true"};
    struct wr_spool_found found;
    char text[] = "a summary";
    wr_segment_add_note(segment, text, strlen(text));
    segment->summaries = segment->other_kinds = true;
    for (uint32_t i = 0; i < 8; i++) {
        const weir_label *label = i % 4 == 3 ? &shared : &zone;
        struct weir_stream *stream = wr_stream_get(&registry, "my_app", label, i % 2 ? 1 : 0, &error);
        segment->samples[i].series = wr_series_get(&registry, stream, names[i % 4], 0, &error)->series;
        if (i < 4)
            segment->samples[i] = (weir_sample){.series = segment->samples[i].series,
                                                .kind = WEIR_KIND_SUMMARY,
                                                .note = 1,
                                                .value.i64 = 100 + i};
    }
    struct wr_range range = {.segment = segment, .count = 8, .id = {origin, ID_OF_FIRST}};
    cr_assert_eq(wr_spool_put(spool, &terms, &range, NULL, &dropped, &error), WR_SPOOL_OK, "%s", error.text);
    wr_spool_free(spool);
    cr_assert(wr_registry_init(&small));
    small.max = 2; /* of a group and a series */
    wr_series_get(&small, wr_stream_get(&small, "my_app", NULL, 0, &error), "known", 0, &error);
    spool = wr_spool_new("push", &small);
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error), "%s", error.text);
    struct wr_spool_want want = {.samples = 100, .bytes = BIG};
    struct wr_spool_batch batch;
    cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
    cr_assert_eq(batch.range.count, 8);
    cr_assert_eq(wr_range_values(&batch.range), 410);
    cr_assert_eq(batch.lost.samples, 0);
    for (uint32_t i = 0; i < 8; i++) {
        const weir_sample *sample = &batch.range.segment->samples[batch.range.first + i];
        cr_assert_eq(sample->flags & WR_SAMPLE_NO_ROOM, i == 1 ? WR_SAMPLE_NO_ROOM : 0, "of sample %u", i);
    }
    wr_segment_drop(batch.range.segment);
    wr_spool_settle(spool, 8, 410);
    expect_nothing();
}

Test(spool, adopted_summaries_count_as_the_values_that_they_are_of)
{
    static const int64_t values[] = {400, 0, 3};
    char text[] = "a summary";
    uint32_t summed =
        wr_series_get(&registry, wr_stream_get(&registry, "my_app", NULL, 0, &error), "n", 0, &error)->series;
    segment->summaries = segment->other_kinds = true;
    for (uint32_t i = 0; i < 3; i++) {
        wr_segment_add_note(segment, text, strlen(text));
        segment->samples[i] =
            (weir_sample){.series = summed, .kind = WEIR_KIND_SUMMARY, .note = i + 1, .value.i64 = values[i]};
    }
    struct wr_range range = {.segment = segment, .count = 3, .id = {origin, ID_OF_FIRST}};
    cr_assert_eq(wr_spool_put(spool, &terms, &range, NULL, &dropped, &error), WR_SPOOL_OK, "%s", error.text);
    cr_assert_eq(start_again().values, 403);
    struct wr_spool_want want = {.samples = 1, .bytes = BIG};
    struct wr_spool_batch batch;
    cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
    cr_assert_eq(wr_range_values(&batch.range), 403, "a block is fetched as a whole");
    wr_segment_drop(batch.range.segment);
    wr_spool_settle(spool, 1, 400);
    struct wr_spool_found found = start_again();
    cr_assert_eq(found.samples, 2);
    cr_assert_eq(found.values, 3);
}

Test(spool, adopted_samples_come_before_new_ones)
{
    put(0, 10);
    start_again();
    put(5000, 10);
    expect(0, 10);
    struct wr_spool_batch batch = fetch(10);
    cr_assert_eq(batch.range.position, 5000);
    cr_assert(batch.own);
}

Test(spool, spools_of_several_dead_processes_are_read_in_turn)
{
    struct wr_spool *all[3];
    wr_spool_free(spool);
    for (uint32_t i = 0; i < 3; i++) {
        all[i] = spool = open_spool("push");
        put(100 * i, 10);
    }
    for (int i = 2; i >= 0; i--)
        wr_spool_free(all[i]);
    spool = NULL;
    cr_assert_eq(start_again().samples, 30);
    for (uint32_t i = 0; i < 3; i++)
        expect(100 * i, 10);
    expect_nothing();
}

Test(spool, spools_of_live_processes_and_other_handlers_are_ignored)
{
    struct wr_spool *living = spool;
    put(0, 10);
    spool = open_spool("pull");
    put(10, 10);
    wr_spool_free(spool);
    spool = NULL;
    cr_assert_eq(start_again().samples, 0);
    wr_spool_free(living);
    struct wr_spool_found found;
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(found.samples, 10);
    expect(0, 10);
    cr_assert_eq(count_entries("pull"), 1);
}

Test(spool, spools_beyond_the_adoption_limit_are_adopted_later)
{
    struct wr_spool *all[WR_SPOOL_INDEX_DIRS + 3];
    wr_spool_free(spool);
    for (uint32_t i = 0; i < WR_SPOOL_INDEX_DIRS + 3; i++) {
        all[i] = spool = open_spool("push");
        put(i, 1);
    }
    for (uint32_t i = 0; i < WR_SPOOL_INDEX_DIRS + 3; i++)
        wr_spool_free(all[i]);
    spool = NULL;
    struct wr_spool_found found = start_again();
    cr_assert_eq(found.samples, WR_SPOOL_INDEX_DIRS);
    cr_assert(found.more);
    for (uint32_t i = 0; i < WR_SPOOL_INDEX_DIRS; i++)
        wr_spool_settle(spool, fetch(1).range.count, 1);
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(found.samples, 3);
    cr_assert_not(found.more);
}

Test(spool, a_spool_left_deliberately_can_be_adopted_at_once)
{
    struct wr_spool *old = spool;
    put(0, 10);
    wr_spool_leave(spool);
    spool = open_spool("push");
    struct wr_spool_found found;
    cr_assert(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(found.samples, 10);
    wr_spool_free(old);
}

Test(spool, leaving_an_empty_one_leaves_nothing)
{
    put(0, 10);
    expect(0, 10);
    wr_spool_leave(spool);
    cr_assert_eq(count_entries(""), 0);
}

Test(spool, a_completely_settled_file_is_deleted_by_the_next_process)
{
    put(0, 10);
    char *path = wr_owner_dir_file(spool->index.first->dir, 0), copy[600];
    snprintf(copy, sizeof copy, "cp %s %s.copy", path, path);
    spool->index.first->count++; /* prevents its deletion */
    wr_spool_settle(spool, 10, 10);
    cr_assert_eq(start_again().samples, 0);
    cr_assert_eq(count_entries(""), 0);
    free(path);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

Test(spool, at_its_limit_a_put_fails)
{
    uint32_t count = 0;
    terms.limit = 64 * 1024;
    while (try_put(count, 100) == WR_SPOOL_OK)
        count += 100;
    cr_assert_eq(try_put(count, 100), WR_SPOOL_FULL);
    cr_assert(strstr(error.text, "spool_limit is reached"), "%s", error.text);
    cr_assert_eq(dropped.samples, 0);
    cr_assert_leq(spool->index.bytes, terms.limit);
    cr_assert_geq(spool->index.bytes, terms.limit * 9 / 10);
    expect(0, count);
}

Test(spool, at_its_limit_the_oldest_file_is_dropped)
{
    uint64_t gone = 0;
    terms.limit = 64 * 1024;
    terms.drop_oldest = true;
    for (uint32_t i = 0; i < 500; i++) {
        put(i * 100, 100);
        gone += dropped.samples;
        cr_assert_eq(dropped.samples, dropped.own);
        cr_assert_leq(spool->index.bytes, terms.limit);
    }
    cr_assert_gt(gone, 0);
    expect((uint32_t)gone, (uint32_t)(50000 - gone));
    expect_nothing();
}

Test(spool, samples_being_delivered_are_not_dropped)
{
    uint64_t gone = 0;
    terms.limit = 64 * 1024;
    terms.drop_oldest = true;
    put(0, 100);
    cr_assert_eq(fetch(100).range.count, 100);
    terms.first_in_use = true;
    for (uint32_t i = 1; i < 500; i++) {
        put(i * 100, 100);
        gone += dropped.samples;
    }
    cr_assert_gt(gone, 0);
    wr_spool_settle(spool, 100, 100);
    expect((uint32_t)(100 + gone), (uint32_t)(50000 - 100 - gone));
}

Test(spool, adopted_samples_count_towards_the_limit_and_are_dropped_as_such)
{
    put(0, 1000);
    start_again();
    terms.limit = spool->index.bytes + 100;
    cr_assert_eq(try_put(1000, 1000), WR_SPOOL_FULL);
    terms.drop_oldest = true;
    put(1000, 1000);
    cr_assert_eq(dropped.samples, 1000);
    cr_assert_eq(dropped.own, 0);
    expect(1000, 1000);
}

Test(spool, a_put_larger_than_the_limit_fails)
{
    terms.limit = 64 * 1024;
    terms.drop_oldest = true;
    put(0, 10);
    cr_assert_eq(try_put(10, 10000), WR_SPOOL_FULL);
    cr_assert_eq(dropped.samples, 10);
    expect_nothing();
}

/* ---- Disks that fail ------------------------------------------------------------------------- */

/* A file size limit simulates a full disk without mounting one. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(spool, a_short_write_is_undone)
{
    put(0, 100);
    uint64_t before = spool->index.bytes;
    limit_files(before + 1000);
    cr_assert_eq(try_put(100, 100), WR_SPOOL_FULL);
    cr_assert(strstr(error.text, "File too large"), "%s", error.text);
    cr_assert_eq(spool->index.bytes, before);
    limit_files(RLIM_INFINITY);
    put(100, 100);
    expect(0, 200);
    expect_nothing();
    cr_assert_eq(lost.samples, 0);
}

Test(spool, a_file_that_cannot_be_started_is_removed)
{
    limit_files(10);
    cr_assert_eq(try_put(0, 100), WR_SPOOL_FULL);
    limit_files(RLIM_INFINITY);
    cr_assert_null(spool->index.first);
    put(0, 100);
    expect(0, 100);
}

Test(spool, on_a_full_disk_the_oldest_file_is_dropped)
{
    terms.drop_oldest = true;
    put(0, 100);
    spool->open = NULL;
    put(100, 100);
    limit_files(200); /* for every file: dropping one does not help, but it is tried */
    cr_assert_eq(try_put(200, 100), WR_SPOOL_FULL);
    cr_assert_eq(dropped.samples, 200);
    limit_files(RLIM_INFINITY);
    put(200, 100);
    expect(200, 100);
}

Test(spool, a_folder_with_unsafe_permissions_is_not_used)
{
    cr_assert_eq(mkdir(terms.place, 0700), 0);
    cr_assert_eq(chmod(terms.place, 0777), 0);
    cr_assert_eq(try_put(0, 10), WR_SPOOL_FAILED);
    cr_assert(strstr(error.text, "refused: others may write this folder"), "%s", error.text);
    struct wr_spool_found found;
    cr_assert_not(wr_spool_adopt(spool, terms.place, &found, &error));
    cr_assert_eq(count_entries(""), 0);
    cr_assert_eq(chmod(terms.place, 0700), 0);
    put(0, 10);
    expect(0, 10);
}

Test(spool, deleted_files_are_counted_as_lost)
{
    put(0, 10);
    spool->open = NULL;
    put(10, 10);
    char *path = wr_owner_dir_file(spool->index.first->dir, spool->index.first->number);
    cr_assert_eq(unlink(path), 0);
    free(path);
    expect(10, 10);
    cr_assert_eq(lost.samples, 10);
    cr_assert_eq(lost.own, 10);
    expect_nothing();
}

Test(spool, a_spool_whose_folder_was_deleted_starts_again)
{
    char command[700];
    put(0, 10);
    snprintf(command, sizeof command, "rm -r %s", terms.place);
    cr_assert_eq(system(command), 0);
    put(10, 10);
    expect(10, 10);
    cr_assert_eq(lost.samples, 10);
    expect_nothing();
}

Test(spool, after_a_change_of_folder_the_new_one_is_used_and_the_old_one_emptied)
{
    put(0, 10);
    const char *old = terms.place;
    char *elsewhere = strdup(path_in_folder("elsewhere"));
    terms.place = elsewhere;
    put(10, 10);
    cr_assert_eq(count_entries("push"), 1);
    expect(0, 20);
    expect_nothing();
    terms.place = old;
    free(elsewhere);
    cr_assert_eq(count_entries(""), 0);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

Test(spool, a_damaged_block_is_lost_and_its_file_kept)
{
    put(0, 10);
    off_t second = (off_t)spool->index.bytes;
    put(10, 10);
    put(20, 10);
    change_byte(spool->index.first, second + 100);
    expect(0, 10);
    expect(20, 10);
    cr_assert_eq(lost.samples, 10);
    cr_assert_eq(lost.own, 10);
    cr_assert(kept_bad);
    cr_assert_eq(count_entries(".bad"), 1);
    expect_nothing();
}

Test(spool, a_damaged_end_is_lost_and_counted)
{
    put(0, 10);
    off_t second = (off_t)spool->index.bytes;
    put(10, 10);
    change_byte(spool->index.first, second);
    expect(0, 10);
    expect_nothing();
    cr_assert_eq(lost.samples, 10);
    cr_assert(kept_bad);
}

Test(spool, a_damaged_block_that_is_settled_is_not_lost)
{
    put(0, 10);
    off_t second = (off_t)spool->index.bytes;
    put(10, 10);
    expect(0, 10);
    change_byte(spool->index.first, second - 100);
    cr_assert_eq(start_again().samples, 10);
    expect(10, 10);
    cr_assert_eq(lost.samples, 0);
}

static void truncate_first(uint64_t length)
{
    char *path = wr_owner_dir_file(spool->index.first->dir, 0);
    cr_assert_eq(truncate(path, (off_t)length), 0);
    free(path);
}

Test(spool, a_block_that_a_dead_process_did_not_finish_is_not_there)
{
    put(0, 10);
    uint64_t whole = spool->index.bytes;
    put(10, 10);
    truncate_first(whole + 200);
    cr_assert_eq(start_again().samples, 10);
    expect(0, 10);
    expect_nothing();
    cr_assert_eq(lost.samples, 0);
    cr_assert_not(kept_bad);
    cr_assert_eq(count_entries(".bad"), 0);
}

Test(spool, a_file_that_a_dead_process_did_not_finish_is_deleted)
{
    for (uint64_t length = 0; length < 400; length += 40) {
        put(0, 10);
        cr_assert_lt(length, spool->index.bytes);
        truncate_first(length);
        struct wr_spool_found found = start_again();
        cr_assert_eq(found.samples, 0);
        cr_assert_not(found.kept_bad, "%d bytes", (int)length);
        expect_nothing();
        cr_assert_eq(count_entries(""), 0);
    }
}

Test(spool, an_end_that_this_process_has_written_and_that_is_missing_is_lost)
{
    put(0, 10);
    uint64_t whole = spool->index.bytes;
    put(10, 10);
    truncate_first(whole + 200);
    expect(0, 10);
    expect_nothing();
    cr_assert_eq(lost.samples, 10);
    cr_assert_eq(lost.own, 10);
    cr_assert(kept_bad);
}

Test(spool, an_unreadable_file_is_renamed_and_kept)
{
    put(0, 10);
    char *path = wr_owner_dir_file(spool->index.first->dir, 0);
    FILE *file = fopen(path, "w");
    cr_assert(file && fprintf(file, "garbage") > 0 && fclose(file) == 0);
    free(path);
    struct wr_spool_found found = start_again();
    cr_assert_eq(found.samples, 0);
    cr_assert(found.kept_bad);
    expect_nothing();
    cr_assert_eq(count_entries(".bad"), 1);
    cr_assert_eq(count_entries(""), 1);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

Test(spool, without_memory_a_put_fails_without_damage)
{
    put(0, 10);
    uint32_t next = 10;
    for (unsigned calls = 0;; calls++) {
        spool->open = NULL;
        failing_after(calls);
        enum wr_spool_result result = try_put(next, 10);
        failing_set(false);
        if (result == WR_SPOOL_OK)
            break;
        put(next, 10);
        next += 10;
    }
    cr_assert_gt(next, 20);
    expect(0, next + 10);
    expect_nothing();
}

Test(spool, without_memory_a_fetch_fails_without_damage)
{
    put(0, 10);
    put(10, 10);
    struct wr_spool_want want = {.samples = 100, .bytes = BIG};
    struct wr_spool_batch batch = {0};
    unsigned calls = 0;
    for (;; calls++) {
        failing_after(calls);
        enum wr_spool_result result = wr_spool_fetch(spool, &want, &batch, &error);
        failing_set(false);
        cr_assert_eq(batch.lost.samples, 0);
        if (result == WR_SPOOL_OK && batch.range.count == 20)
            break;
        wr_segment_drop(batch.range.segment);
        cr_assert_lt(calls, 100);
    }
    cr_assert_gt(calls, 3);
    wr_segment_drop(batch.range.segment);
    expect(0, 20);
}

Test(spool, without_memory_nothing_is_adopted_and_nothing_lost)
{
    struct wr_spool_found found = {0};
    put(0, 10);
    spool->open = NULL;
    put(10, 10);
    wr_spool_free(spool);
    spool = open_spool("push");
    uint64_t samples = 0;
    for (unsigned calls = 0; samples < 20; calls++) {
        failing_after(calls);
        wr_spool_adopt(spool, terms.place, &found, &error);
        failing_set(false);
        samples += found.samples;
        cr_assert_not(found.kept_bad);
        cr_assert_lt(calls, 100);
        if (samples % 20)
            expect(samples == 10 && spool->index.first->number ? 10 : 0, 10);
    }
}
