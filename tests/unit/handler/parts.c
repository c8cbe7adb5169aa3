/* Batches of summaries as batches of plain values: what their parts are numbered, and what an outcome in parts
 * is in summaries. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "handler/parts.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "segment/batch.h"
#include "segment/segment.h"
#include "text/buffer.h"
#include "text/error.h"

enum { SUMMARIES = 4, PARTS = 8 /* .count .sum .min .max .last .p50 .p90 .p99 */ };

static struct wr_registry registry;
static struct wr_segment_pool pool;
static struct wr_segment *segment;
static struct wr_batch_core core;
static struct wr_range range;
static struct wr_parts parts;
static struct wr_parts_rules rules;

static void add(uint32_t series)
{
    static char text[WR_SUMMARY_TEXT];
    struct wr_buffer scratch = {0};
    struct wr_summary summary = {.kind = WEIR_VALUE, .count = 2, .sum = 3, .last = 2};
    cr_assert(wr_buffer_reserve(&scratch, WR_SUMMARY_BYTES));
    cr_assert_eq(wr_sketch_add(&summary.sketch, 1), WR_SKETCH_OK);
    cr_assert_eq(wr_sketch_add(&summary.sketch, 2), WR_SKETCH_OK);
    size_t length = wr_summary_write(&summary, &scratch, text);
    uint32_t note = wr_segment_add_note(segment, text, length);
    segment->samples[segment->count++] =
        (weir_sample){.series = series, .kind = WEIR_KIND_SUMMARY, .value.i64 = 2, .note = note};
    wr_sketch_fini(&summary.sketch);
    wr_buffer_fini(&scratch);
}

static void setup(void)
{
    static const char *const texts[] = {"50", "90", "99"};
    struct wr_error error = {0};
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    segment = wr_segment_new(&pool, SUMMARIES);
    segment->summaries = true;
    for (int i = 0; i < SUMMARIES; i++)
        add(wr_series_get(&registry, stream, (const char *[]){"a", "b", "c", "d"}[i], 0, &error)->series);
    core = (struct wr_batch_core){.registry = &registry};
    range = (struct wr_range){.segment = segment, .count = SUMMARIES, .id = {wr_origin_new(), 100}};
    cr_assert(wr_percentiles_read(&rules.percentiles, &(weir_list){3, texts}, &error));
}

static void teardown(void)
{
    wr_parts_fini(&parts);
    wr_segment_drop(segment);
    wr_segment_pool_trim(&pool);
}

TestSuite(parts, .init = setup, .fini = teardown);

/* Makes the parts of all but the first summaries. */
static enum wr_parts_result make(uint32_t from)
{
    struct wr_range rest = range;
    rest.first = from;
    rest.count -= from;
    rest.id = wr_sample_id_behind(&range.id, from);
    weir_batch batch = wr_batch_of(&rest, &core, NULL);
    return wr_parts_make(&parts, &batch, &rest.id, &registry, &rules);
}

static weir_outcome convert(int code)
{
    weir_outcome outcome = {.size = sizeof outcome, .code = code};
    wr_parts_convert(&parts, &outcome);
    return outcome;
}

/* What a part is: its name and value. */
static void get_part(const weir_batch *batch, uint32_t i, char *text, size_t size)
{
    snprintf(text, size, "%s %g", weir_batch_series(batch, &batch->samples[i])->name,
             batch->samples[i].value.f64);
}

static void assert_part(const weir_batch *batch, uint32_t i, const char *expected)
{
    char text[80];
    get_part(batch, i, text, sizeof text);
    cr_assert_str_eq(text, expected);
}

Test(parts, parts_are_numbered_without_a_gap)
{
    char origin[WR_ORIGIN_TEXT];
    cr_assert_eq(make(0), WR_PARTS_MADE);
    weir_batch rest = wr_parts_rest(&parts);
    cr_assert_eq(rest.count, SUMMARIES * PARTS);
    cr_assert_eq(rest.sequence, 0);
    cr_assert_str_neq(rest.origin, core.origin);
    memcpy(origin, rest.origin, sizeof origin);
    assert_part(&rest, 0, "a.count 2");
    assert_part(&rest, PARTS, "b.count 2");
    wr_parts_advance(&parts, 2 * PARTS, 0);
    weir_outcome outcome = convert(WEIR_OUTCOME_RETRY);
    cr_assert_eq(outcome.done, 2);
    cr_assert_eq(make(2), WR_PARTS_MADE);
    rest = wr_parts_rest(&parts);
    cr_assert_eq(rest.sequence, 2 * PARTS);
    cr_assert_str_eq(rest.origin, origin);
    assert_part(&rest, 0, "c.count 2");
}

Test(parts, the_last_part_of_a_summary_is_of_all_its_values)
{
    cr_assert_eq(make(0), WR_PARTS_MADE);
    for (uint32_t i = 0; i < SUMMARIES * PARTS; i++)
        cr_expect_eq(wr_parts_values(&parts, i), i % PARTS == PARTS - 1 ? 2 : 0, "part %u", i);
}

Test(parts, what_is_done_of_a_summary_is_not_done_again)
{
    cr_assert_eq(make(0), WR_PARTS_MADE);
    wr_parts_advance(&parts, PARTS + 3, 0);
    weir_outcome outcome = convert(WEIR_OUTCOME_RETRY);
    cr_assert_eq(outcome.done, 1);
    for (int attempt = 0; attempt < 2; attempt++) {
        cr_assert_eq(make(1), WR_PARTS_MADE);
        weir_batch rest = wr_parts_rest(&parts);
        cr_assert_eq(rest.sequence, PARTS + 3);
        cr_assert_eq(rest.count, 3 * PARTS - 3);
        assert_part(&rest, 0, "b.max 2");
        cr_assert_eq(convert(WEIR_OUTCOME_RETRY).done, 0);
    }
    cr_assert_eq(make(1), WR_PARTS_MADE);
    wr_parts_advance(&parts, 3 * PARTS - 3, 0);
    cr_assert_eq(convert(WEIR_OUTCOME_OK).done, 3);
}

Test(parts, a_summary_is_rejected_as_a_whole)
{
    cr_assert_eq(make(0), WR_PARTS_MADE);
    wr_parts_advance(&parts, 1, 1);
    wr_parts_advance(&parts, 1, 1); /* of the same summary */
    wr_parts_advance(&parts, PARTS, 0);
    wr_parts_advance(&parts, 2 * PARTS, 1); /* the last one: of the fourth */
    weir_outcome outcome = convert(WEIR_OUTCOME_RETRY);
    cr_assert_eq(outcome.done, 3);
    cr_assert_eq(outcome.rejected, 1, "the fourth is not complete");
    cr_assert_eq(make(3), WR_PARTS_MADE);
    wr_parts_advance(&parts, PARTS - 2, 0);
    outcome = convert(WEIR_OUTCOME_OK);
    cr_assert_eq(outcome.done, 1);
    cr_assert_eq(outcome.rejected, 1);
}

/* The last samples of an outcome are taken for the rejected ones. */
Test(parts, what_follows_a_rejected_summary_is_for_another_outcome)
{
    cr_assert_eq(make(0), WR_PARTS_MADE);
    wr_parts_advance(&parts, PARTS + 1, 1);
    cr_assert_not(wr_parts_has_rejected(&parts), "the second is not complete");
    cr_assert_eq(wr_parts_rest(&parts).count, PARTS - 1, "it is alone");
    wr_parts_advance(&parts, PARTS - 1, 0);
    cr_assert(wr_parts_has_rejected(&parts));
    weir_outcome outcome = convert(WEIR_OUTCOME_OK);
    cr_assert_eq(outcome.done, 2);
    cr_assert_eq(outcome.rejected, 1);
    cr_assert_eq(make(2), WR_PARTS_MADE);
    cr_assert_not(wr_parts_has_rejected(&parts));
    cr_assert_eq(wr_parts_rest(&parts).count, 2 * PARTS);
}

Test(parts, numbers_are_not_used_again_for_other_parts)
{
    cr_assert_eq(make(0), WR_PARTS_MADE);
    wr_parts_advance(&parts, 3, 0);
    convert(WEIR_OUTCOME_RETRY);
    cr_assert_eq(make(2), WR_PARTS_MADE); /* the first two are on disk now */
    weir_batch rest = wr_parts_rest(&parts);
    cr_assert_eq(rest.sequence, SUMMARIES * PARTS);
    cr_assert_eq(rest.count, 2 * PARTS);
    assert_part(&rest, 0, "c.count 2");
}

Test(parts, a_damaged_summary_ends_the_batch)
{
    const char *const *texts = wr_segment_texts(segment);
    ((char *)texts[segment->samples[1].note])[4] = '!';
    cr_assert_eq(make(0), WR_PARTS_MADE);
    weir_batch rest = wr_parts_rest(&parts);
    cr_assert_eq(rest.count, PARTS);
    wr_parts_advance(&parts, PARTS, 0);
    cr_assert_eq(convert(WEIR_OUTCOME_OK).done, 1);
    cr_assert_eq(make(1), WR_PARTS_REFUSED);
    cr_assert_eq(make(2), WR_PARTS_MADE);
    cr_assert_eq(wr_parts_rest(&parts).count, 2 * PARTS);
}
