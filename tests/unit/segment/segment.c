#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "segment/segment.h"

enum { ROOM = 100 };

static struct wr_segment_pool pool;
static struct wr_segment *segment;

static void setup(void)
{
    segment = wr_segment_new(&pool, ROOM);
}

static void teardown(void)
{
    wr_segment_drop(segment);
    wr_segment_pool_set(&pool, 0);
}

TestSuite(segment, .init = setup, .fini = teardown);

static void append_event(uint32_t samples)
{
    for (uint32_t i = 0; i < samples; i++)
        segment->samples[segment->count++] = (weir_sample){.flags = i + 1 < samples ? WEIR_SAMPLE_MORE : 0};
}

/* ---- The pool -------------------------------------------------------------------------------- */

Test(segment, a_new_segment_is_empty_and_has_the_requested_capacity)
{
    cr_assert_eq(segment->count, 0);
    cr_assert_geq(segment->room, ROOM);
    cr_assert_eq(segment->references, 1);
    cr_assert_null(wr_segment_texts(segment));
}

Test(segment, an_all_zeros_pool_keeps_no_free_segments)
{
    wr_segment_drop(wr_segment_new(&pool, ROOM));
    cr_assert_null(pool.free);
    cr_assert_eq(pool.free_count, 0);
}

Test(segment, a_pool_keeps_the_configured_number_of_free_segments)
{
    struct wr_segment *others[3];
    wr_segment_pool_set(&pool, 2);
    for (int i = 0; i < 3; i++)
        others[i] = wr_segment_new(&pool, ROOM);
    for (int i = 0; i < 3; i++)
        wr_segment_drop(others[i]);
    cr_assert_eq(pool.free_count, 2);
    wr_segment_pool_trim(&pool);
    cr_assert_eq(pool.free_count, 0);
    cr_assert_null(pool.free);
}

Test(segment, a_free_segment_is_reused_as_new)
{
    wr_segment_pool_set(&pool, 1);
    struct wr_segment *old = wr_segment_new(&pool, ROOM);
    old->count = 5;
    wr_segment_add_note(old, "x", 1);
    wr_segment_drop(old);
    struct wr_segment *again = wr_segment_new(&pool, ROOM);
    cr_assert_eq(again, old);
    cr_assert_eq(again->count, 0);
    cr_assert_eq(again->references, 1);
    cr_assert_null(wr_segment_texts(again));
    wr_segment_drop(again);
}

Test(segment, a_free_segment_that_is_too_small_is_skipped)
{
    wr_segment_pool_set(&pool, 2);
    struct wr_segment *large = wr_segment_new(&pool, 10 * ROOM), *small = wr_segment_new(&pool, ROOM);
    wr_segment_drop(large);
    wr_segment_drop(small); /* in front of the large one */
    struct wr_segment *found = wr_segment_new(&pool, 2 * ROOM);
    cr_assert_eq(found, large);
    cr_assert_eq(pool.free, small);
    cr_assert_eq(pool.free_count, 1);
    wr_segment_drop(found);
}

Test(segment, configuring_the_pool_frees_its_segments)
{
    wr_segment_pool_set(&pool, 1);
    wr_segment_drop(wr_segment_new(&pool, ROOM));
    wr_segment_pool_set(&pool, 3);
    cr_assert_eq(pool.free_count, 0);
}

Test(segment, dropping_the_last_reference_frees_the_segment)
{
    wr_segment_pool_set(&pool, 1);
    struct wr_segment *held = wr_segment_new(&pool, ROOM);
    wr_segment_hold(held);
    wr_segment_drop(held);
    cr_assert_eq(pool.free_count, 0);
    wr_segment_drop(held);
    cr_assert_eq(pool.free_count, 1);
}

Test(segment, dropping_null_is_allowed)
{
    wr_segment_drop(NULL);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

Test(segment, metadata_is_copied_and_numbered_from_one)
{
    char text[] = "first";
    uint32_t first = wr_segment_add_note(segment, text, 5);
    memset(text, 'x', 5);
    uint32_t second = wr_segment_add_note(segment, "second, of which a part", 6);
    cr_assert_eq(first, 1);
    cr_assert_eq(second, 2);
    const char *const *texts = wr_segment_texts(segment);
    cr_assert_null(texts[0]);
    cr_assert_str_eq(texts[first], "first");
    cr_assert_str_eq(texts[second], "second");
}

Test(segment, a_reader_of_older_metadata_keeps_it_when_it_grows)
{
    char text[20];
    const char *const *before = NULL;
    for (uint32_t i = 1; i <= 500; i++) {
        int length = snprintf(text, sizeof text, "note %u", i);
        cr_assert_eq(wr_segment_add_note(segment, text, (size_t)length), i);
        if (i == 60)
            before = wr_segment_texts(segment);
    }
    const char *const *after = wr_segment_texts(segment);
    cr_assert_neq(before, after);
    for (uint32_t i = 1; i <= 500; i++) {
        snprintf(text, sizeof text, "note %u", i);
        cr_assert_str_eq(after[i], text);
        if (i <= 60)
            cr_assert_eq(before[i], after[i]);
    }
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

Test(segment, the_size_of_a_sample_is_32_bytes_and_its_metadata)
{
    append_event(10);
    cr_assert_eq(wr_segment_bytes(segment, 0, 10), 320);
    segment->samples[3].note = wr_segment_add_note(segment, "12345", 5);
    segment->samples[4].note = wr_segment_add_note(segment, "", 0);
    cr_assert_eq(wr_segment_bytes(segment, 0, 3), 96);
    cr_assert_eq(wr_segment_bytes(segment, 3, 1), 32 + 6);
    cr_assert_eq(wr_segment_bytes(segment, 4, 1), 32 + 1);
    cr_assert_eq(wr_segment_bytes(segment, 0, 10), 320 + 6 + 1);
    cr_assert_eq(wr_segment_bytes(segment, 5, 0), 0);
}

Test(segment, an_event_ends_after_its_last_sample)
{
    append_event(1);
    append_event(3);
    append_event(1);
    cr_assert_eq(wr_segment_event_end(segment, 0), 1);
    cr_assert_eq(wr_segment_event_end(segment, 1), 4);
    cr_assert_eq(wr_segment_event_end(segment, 2), 4);
    cr_assert_eq(wr_segment_event_end(segment, 4), 5);
}

Test(segment, ranges_are_cut_at_event_boundaries)
{
    append_event(2);
    append_event(3);
    append_event(1);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, 6), 6);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, 5), 5);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, 4), 2);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, 3), 2);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, 2), 2);
    cr_assert_eq(wr_segment_cut(segment, 2, 6, 3), 5);
    cr_assert_eq(wr_segment_cut(segment, 0, 6, UINT32_MAX), 6);
}

Test(segment, an_event_larger_than_the_limit_is_taken_whole)
{
    append_event(2);
    append_event(3);
    cr_assert_eq(wr_segment_cut(segment, 0, 5, 1), 2);
    cr_assert_eq(wr_segment_cut(segment, 0, 5, 0), 2);
    cr_assert_eq(wr_segment_cut(segment, 2, 5, 1), 5);
}
