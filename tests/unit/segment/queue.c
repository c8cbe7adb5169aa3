#include <criterion/criterion.h>
#include <string.h>

#include "segment/batch.h"
#include "text/common.h"
#include "segment/queue.h"

enum { ROOM = 1000 };

static struct wr_segment_pool pool;
static struct wr_segment *segment;
static struct wr_queue queue;
static uint64_t sequence;

static void setup(void)
{
    segment = wr_segment_new(&pool, ROOM);
}

static void teardown(void)
{
    wr_queue_fini(&queue);
    cr_assert_eq(segment->references, 1, "the queue kept a reference");
    wr_segment_drop(segment);
}

TestSuite(queue, .init = setup, .fini = teardown);

/* Appends events of `samples` samples each. Returns their range. */
static struct wr_range append(uint32_t events, uint32_t samples)
{
    struct wr_range range = {.segment = segment,
                             .first = segment->count,
                             .count = events * samples,
                             .position = sequence,
                             .id = {{{1}}, 1000 + sequence}};
    for (uint32_t i = 0; i < events * samples; i++)
        segment->samples[segment->count++] = (weir_sample){
            .flags = (i + 1) % samples ? WEIR_SAMPLE_MORE : 0,
            .value.i64 = (int64_t)sequence++,
        };
    range.bytes = wr_segment_bytes(segment, range.first, range.count);
    return range;
}

static void push(uint32_t events, uint32_t samples)
{
    struct wr_range range = append(events, samples);
    cr_assert(wr_queue_push(&queue, &range));
}

/* Takes a range and checks the invariants of every part of a queue. */
static struct wr_range take(uint32_t most, uint64_t most_bytes)
{
    uint64_t samples = queue.samples, bytes = queue.bytes;
    struct wr_range range = wr_queue_take(&queue, most, most_bytes);
    cr_assert_eq(queue.samples, samples - range.count);
    cr_assert_eq(queue.bytes, bytes - range.bytes);
    cr_assert_eq(range.bytes, wr_segment_bytes(range.segment, range.first, range.count));
    cr_assert_eq(range.segment->samples[range.first].value.i64, (int64_t)range.position);
    cr_assert_eq(range.id.sequence, 1000 + range.position);
    wr_segment_drop(range.segment);
    return range;
}

Test(queue, all_zeros_is_an_empty_queue)
{
    cr_assert(wr_queue_is_empty(&queue));
    cr_assert_eq(queue.samples, 0);
    cr_assert_eq(queue.bytes, 0);
}

Test(queue, pushed_samples_are_counted)
{
    push(3, 2);
    cr_assert_not(wr_queue_is_empty(&queue));
    cr_assert_eq(queue.samples, 6);
    cr_assert_eq(queue.bytes, 6 * 32);
    cr_assert_eq(wr_queue_front(&queue)->position, 0);
}

Test(queue, adjacent_ranges_are_merged)
{
    push(3, 1);
    push(4, 1);
    cr_assert_eq(queue.count, 1);
    cr_assert_eq(segment->references, 2);
    struct wr_range all = take(UINT32_MAX, UINT64_MAX);
    cr_assert_eq(all.count, 7);
}

Test(queue, the_age_of_a_merged_range_is_that_of_its_oldest_part)
{
    struct wr_range first = append(1, 1), second = append(1, 1);
    first.since_ns = 10;
    second.since_ns = 20;
    wr_queue_push(&queue, &first);
    wr_queue_push(&queue, &second);
    cr_assert_eq(wr_queue_front(&queue)->since_ns, 10);
}

Test(queue, ranges_with_a_gap_between_them_are_not_merged)
{
    push(3, 1);
    append(1, 1);
    push(3, 1);
    cr_assert_eq(queue.count, 2);
    cr_assert_eq(take(UINT32_MAX, UINT64_MAX).count, 3);
    cr_assert_eq(take(UINT32_MAX, UINT64_MAX).position, 4);
}

Test(queue, adjacent_samples_with_a_gap_in_their_sequence_are_not_merged)
{
    push(3, 1);
    sequence += 5; /* samples offered elsewhere and dropped */
    push(3, 1);
    cr_assert_eq(queue.count, 2);
}

Test(queue, ranges_of_different_segments_are_not_merged)
{
    struct wr_segment *first = segment;
    push(3, 1);
    segment = wr_segment_new(&pool, ROOM);
    push(2, 1);
    cr_assert_eq(queue.count, 2);
    cr_assert_eq(take(UINT32_MAX, UINT64_MAX).segment, first);
    cr_assert_eq(take(UINT32_MAX, UINT64_MAX).segment, segment);
    cr_assert_eq(first->references, 1);
    wr_segment_drop(first);
}

Test(queue, a_number_of_samples_limits_what_is_taken)
{
    push(10, 1);
    cr_assert_eq(take(4, UINT64_MAX).count, 4);
    struct wr_range rest = take(100, UINT64_MAX);
    cr_assert_eq(rest.count, 6);
    cr_assert_eq(rest.position, 4);
    cr_assert(wr_queue_is_empty(&queue));
}

Test(queue, a_number_of_bytes_limits_what_is_taken)
{
    push(10, 1);
    cr_assert_eq(take(UINT32_MAX, 3 * 32).count, 3);
    cr_assert_eq(take(UINT32_MAX, 3 * 32 - 1).count, 2);
    cr_assert_eq(take(2, 3 * 32).count, 2);
}

Test(queue, metadata_counts_as_bytes)
{
    struct wr_range range = append(4, 1);
    segment->samples[1].note = wr_segment_add_note(segment, "0123456789", 10);
    range.bytes = wr_segment_bytes(segment, 0, 4);
    wr_queue_push(&queue, &range);
    cr_assert_eq(queue.bytes, 4 * 32 + 11);
    cr_assert_eq(take(UINT32_MAX, 2 * 32 + 10).count, 1);
    cr_assert_eq(take(UINT32_MAX, 2 * 32 + 11).count, 2);
    cr_assert_eq(queue.bytes, 32);
}

Test(queue, events_are_never_split)
{
    push(3, 4);
    cr_assert_eq(take(7, UINT64_MAX).count, 4);
    cr_assert_eq(take(UINT32_MAX, 7 * 32).count, 4);
}

Test(queue, at_least_one_event_is_taken)
{
    push(2, 4);
    cr_assert_eq(take(1, UINT64_MAX).count, 4);
    cr_assert_eq(take(UINT32_MAX, 1).count, 4);
    push(1, 1);
    cr_assert_eq(take(0, 0).count, 1);
}

Test(queue, order_is_kept_while_the_circular_buffer_grows_and_wraps)
{
    uint64_t taken = 0;
    for (int i = 0; i < 100; i++) {
        push(1, 1);
        append(1, 1); /* a gap, so that ranges are not merged */
        if (i % 3 == 2) {
            cr_assert_eq(take(UINT32_MAX, UINT64_MAX).position, 2 * taken);
            taken++;
        }
    }
    while (!wr_queue_is_empty(&queue))
        cr_assert_eq(take(UINT32_MAX, UINT64_MAX).position, 2 * taken++);
    cr_assert_eq(taken, 100);
}

Test(queue, a_range_is_shortened_at_its_front)
{
    struct wr_range range = append(5, 1);
    segment->samples[1].note = wr_segment_add_note(segment, "0123456789", 10);
    range.bytes = wr_segment_bytes(segment, 0, 5);
    wr_range_skip(&range, 2);
    cr_assert_eq(range.first, 2);
    cr_assert_eq(range.count, 3);
    cr_assert_eq(range.position, 2);
    cr_assert_eq(range.bytes, 3 * 32);
    wr_range_skip(&range, 3);
    cr_assert_eq(range.count, 0);
    cr_assert_eq(range.bytes, 0);
}

Test(queue, a_split_part_holds_its_own_reference)
{
    struct wr_range range = append(3, 2);
    struct wr_range front = wr_range_split(&range, 3);
    cr_assert_eq(front.count, 2);
    cr_assert_eq(front.bytes, 2 * 32);
    cr_assert_eq(range.count, 4);
    cr_assert_eq(range.position, 2);
    cr_assert_eq(segment->references, 2);
    wr_segment_drop(front.segment);
}

/* ---- batch ----------------------------------------------------------------------------------- */

Test(queue, a_batch_presents_a_range_to_a_handler)
{
    struct wr_range range = append(5, 1);
    struct wr_batch_core core = {.labels_number = 7};
    wr_range_skip(&range, 2);
    weir_batch batch = wr_batch_of(&range, &core, NULL);
    cr_assert_eq(batch.size, sizeof batch);
    cr_assert_eq(batch.count, 3);
    cr_assert_eq(batch.samples, segment->samples + 2);
    cr_assert_eq(batch.sequence, 1002);
    cr_assert_str_eq(batch.origin, "01000000000000000000000000000000");
    cr_assert_null(batch.notes);
    cr_assert_eq(batch.label_count, 0);
    cr_assert_eq(wr_batch_core(&batch)->labels_number, 7);
}

Test(queue, a_batch_has_the_metadata_of_its_segment_and_the_labels_of_the_configuration)
{
    struct wr_range range = append(1, 1);
    weir_label items[] = {{"host", "a"}};
    struct wr_label_set labels = {.number = 9, .count = 1, .items = items};
    struct wr_batch_core core = {.labels_number = labels.number};
    segment->samples[0].note = wr_segment_add_note(segment, "with metadata!", 14);
    weir_batch batch = wr_batch_of(&range, &core, &labels);
    cr_assert_str_eq(batch.notes[batch.samples[0].note], "with metadata!");
    cr_assert_eq(batch.label_count, 1);
    cr_assert_str_eq(batch.labels[0].value, "a");
}

Test(queue, of_the_labels_of_summaries_the_instance_applies_to_foreign_series_too)
{
    struct wr_range range = append(1, 1);
    weir_label items[] = {{"host", "a"}, {"instance", "i"}};
    struct wr_label_set labels = {.number = 9, .count = 2, .items = items};
    struct wr_batch_core core = {.labels_number = labels.number};
    cr_assert_eq(wr_batch_of(&range, &core, &labels).foreign_label_count, 0);
    segment->summaries = true;
    weir_batch batch = wr_batch_of(&range, &core, &labels);
    cr_assert_eq(batch.foreign_label_count, 1);
    cr_assert_eq(batch.foreign_labels, &items[1]);
    cr_assert_eq(wr_batch_of(&range, &core, NULL).foreign_label_count, 0);
    labels.count = 1;
    cr_assert_eq(wr_batch_of(&range, &core, &labels).foreign_label_count, 0);
}

Test(queue, a_batch_finds_the_series_of_its_samples)
{
    static struct wr_registry registry;
    cr_assert(wr_registry_init(&registry));
    sigset_t signals;
    wr_registry_lock(&registry, &signals);
    struct wr_group *group = wr_registry_add_group(&registry, &(struct wr_group_key){"g", 1});
    struct weir_stream *stream = wr_registry_plain_stream(&registry, group, false);
    struct weir_metric *metric = wr_registry_add_metric(&registry, &(struct wr_metric_key){stream, "n", 1, 0});
    wr_registry_unlock(&registry, &signals);
    struct wr_range range = append(1, 1);
    struct wr_batch_core core = {.registry = &registry};
    segment->samples[0].series = metric->series;
    weir_batch batch = wr_batch_of(&range, &core, NULL);
    const weir_series *series = weir_batch_series(&batch, &batch.samples[0]);
    cr_assert_str_eq(series->group, "g");
    cr_assert_str_eq(series->name, "n");
    cr_assert_eq(series->id, metric->series);
}
