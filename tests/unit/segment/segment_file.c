#include <criterion/criterion.h>
#include <errno.h>

#include "../../support/temp_folder.h"
#include "segment/segment_file.h"

enum { ROOM = 100, TEXT = 64 };

static const char *const names[] = {"push", "disk"};
static struct wr_segment_file *file;

static void setup(void)
{
    const struct wr_segment_shape shape = {ROOM, TEXT, 2, names};
    path_in_folder("");
    cr_assert_eq(wr_segment_file_make(&file, folder, 7, &shape), 0);
}

static void teardown(void)
{
    wr_segment_file_close(file);
    remove_folder();
}

TestSuite(segment_file, .init = setup, .fini = teardown);

/* Opens the file as the next process does. */
static struct wr_segment_file *find(void)
{
    struct wr_segment_file *found;
    cr_assert_eq(wr_segment_file_open(&found, folder, 7, false), 0);
    return found;
}

Test(segment_file, the_next_process_finds_its_lanes_and_contents)
{
    file->ids[0] = (struct wr_sample_id){{{1}}, 1000};
    file->ids[1] = (struct wr_sample_id){{{2}}, 2000};
    wr_segment_file_begin(file, 3, 5);
    file->samples[99] = (weir_sample){.value.f64 = 2.5};
    wr_segment_file_put_text(file, "metadata", 8);
    wr_versioned_put(&file->head->committed, 0, 100);
    struct wr_segment_file *found = find();
    cr_assert_str_eq(wr_segment_file_lane(found, 0), "push");
    cr_assert_str_eq(wr_segment_file_lane(found, 1), "disk");
    cr_assert_eq(found->head->sequence, 3);
    cr_assert_eq(found->head->feed, 5);
    cr_assert(wr_sample_id_follows(&found->ids[0], &file->ids[0], 0));
    cr_assert(wr_sample_id_follows(&found->ids[1], &file->ids[1], 0));
    cr_assert_eq(wr_versioned_get(&found->head->committed, 1), 100);
    cr_assert_eq(found->samples[99].value.f64, 2.5);
    cr_assert_str_eq(found->texts, "metadata");
    wr_segment_file_close(found);
}

Test(segment_file, exactly_the_settled_range_is_marked_at_any_offset_and_length)
{
    for (uint32_t first = 0; first < 20; first++) {
        for (uint32_t count = 0; count < 20; count++) {
            wr_segment_file_begin(file, 1, 1);
            wr_segment_file_settle(file, 1, first, count);
            for (uint32_t i = 0; i < ROOM; i++) {
                cr_assert_eq(wr_segment_file_is_settled(file, 1, i, 1), i >= first && i < first + count);
                cr_assert_not(wr_segment_file_is_settled(file, 0, i, 1));
            }
        }
    }
}

Test(segment_file, a_range_is_settled_only_if_all_its_samples_are)
{
    wr_segment_file_begin(file, 1, 1);
    wr_segment_file_settle(file, 0, 3, 4);
    cr_assert(wr_segment_file_is_settled(file, 0, 3, 4));
    cr_assert_not(wr_segment_file_is_settled(file, 0, 2, 2));
    cr_assert_not(wr_segment_file_is_settled(file, 0, 6, 2));
}

Test(segment_file, a_restarted_file_is_empty_with_nothing_settled)
{
    wr_segment_file_begin(file, 1, 1);
    wr_segment_file_settle(file, 0, 0, ROOM);
    wr_segment_file_put_text(file, "text", 4);
    wr_versioned_put(&file->head->committed, 4, 50);
    wr_segment_file_end(file);
    cr_assert_eq(file->head->sequence, 0);
    wr_segment_file_begin(file, 2, 1);
    cr_assert_eq(wr_versioned_get(&file->head->committed, 5), 0);
    cr_assert_not(wr_segment_file_is_settled(file, 0, 0, 1));
    cr_assert(wr_segment_file_has_room(file, TEXT));
    cr_assert_not(wr_segment_file_has_room(file, TEXT + 1));
}

Test(segment_file, the_file_is_deleted_on_close_unless_kept)
{
    file->kept = true;
    wr_segment_file_free(file);
    cr_assert_eq(access(path_in_folder("seg.7"), F_OK), 0);
    cr_assert_eq(wr_segment_file_open(&file, folder, 7, true), 0);
    wr_segment_file_free(file);
    cr_assert_eq(access(path_in_folder("seg.7"), F_OK), -1);
    file = NULL;
}

Test(segment_file, a_number_is_not_used_twice)
{
    struct wr_segment_file *other;
    const struct wr_segment_shape shape = {ROOM, TEXT, 2, names};
    cr_assert_eq(wr_segment_file_make(&other, folder, 7, &shape), EEXIST);
}

Test(segment_file, an_unfinished_file_is_distinguished_from_a_damaged_one)
{
    struct wr_segment_file *found;
    file->head->magic = 0;
    cr_assert_eq(wr_segment_file_open(&found, folder, 7, false), ENODATA);
    file->head->magic = 5;
    cr_assert_eq(wr_segment_file_open(&found, folder, 7, false), EBADMSG);
    file->head->magic = WR_JOURNAL_SEGMENT;
    file->head->room++;
    cr_assert_eq(wr_segment_file_open(&found, folder, 7, false), EBADMSG);
    file->head->room--;
    file->head->lanes = 1;
    cr_assert_eq(wr_segment_file_open(&found, folder, 7, false), EBADMSG);
}
