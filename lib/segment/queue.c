#include "segment/queue.h"

#include "os/pages.h"

enum { FIRST_ROOM = 32 };

void wr_queue_fini(struct wr_queue *queue)
{
    while (queue->count)
        wr_segment_drop(wr_queue_take(queue, UINT32_MAX, UINT64_MAX).segment);
    wr_pages_put(queue->ranges);
    *queue = (struct wr_queue){0};
}

static bool grow(struct wr_queue *queue)
{
    uint32_t room = queue->room ? queue->room * 2 : FIRST_ROOM;
    struct wr_range *ranges = wr_pages_get(room * sizeof *ranges);
    if (!ranges)
        return false;
    for (uint32_t i = 0; i < queue->count; i++)
        ranges[i] = *wr_queue_at(queue, i);
    wr_pages_put(queue->ranges);
    queue->ranges = ranges;
    queue->first = 0;
    queue->room = room;
    return true;
}

bool wr_queue_push(struct wr_queue *queue, const struct wr_range *range)
{
    struct wr_range *last = queue->count ? wr_queue_at(queue, queue->count - 1) : NULL;
    if (last && last->segment == range->segment && last->first + last->count == range->first &&
        last->position + last->count == range->position &&
        wr_sample_id_follows(&range->id, &last->id, last->count)) {
        last->count += range->count;
        last->bytes += range->bytes;
    } else {
        if (queue->count == queue->room && !grow(queue))
            return false;
        wr_segment_hold(range->segment);
        *wr_queue_at(queue, queue->count++) = *range;
    }
    queue->samples += range->count;
    queue->bytes += range->bytes;
    queue->values += wr_range_values(range);
    return true;
}

void wr_range_skip(struct wr_range *range, uint32_t samples)
{
    uint64_t plain = (uint64_t)range->count * sizeof(weir_sample);
    range->bytes -= range->bytes == plain ? (uint64_t)samples * sizeof(weir_sample)
                                          : wr_segment_bytes(range->segment, range->first, samples);
    range->first += samples;
    range->count -= samples;
    range->position += samples;
    range->id.sequence += samples;
}

struct wr_range wr_range_split(struct wr_range *range, uint32_t most)
{
    struct wr_range front = *range;
    uint32_t end = wr_segment_cut(range->segment, range->first, range->first + range->count, most);
    wr_range_skip(range, end - range->first);
    front.count -= range->count;
    front.bytes -= range->bytes;
    wr_segment_hold(front.segment);
    return front;
}

uint32_t wr_range_count_fitting(const struct wr_range *range, uint64_t bytes)
{
    uint32_t count = 0;
    if (range->bytes <= bytes)
        return range->count;
    while (count < range->count) {
        uint32_t end = wr_segment_event_end(range->segment, range->first + count) - range->first;
        uint64_t weight = wr_segment_bytes(range->segment, range->first + count, end - count);
        if (weight > bytes)
            break;
        bytes -= weight;
        count = end;
    }
    return count;
}

struct wr_range wr_range_take(struct wr_range *range, uint32_t most, uint64_t most_bytes)
{
    uint32_t fit = wr_range_count_fitting(range, most_bytes);
    struct wr_range taken = wr_range_split(range, fit < most ? fit : most);
    if (!range->count) {
        wr_segment_drop(range->segment);
        *range = (struct wr_range){0};
    }
    return taken;
}

struct wr_range wr_queue_take(struct wr_queue *queue, uint32_t most, uint64_t most_bytes)
{
    struct wr_range *front = wr_queue_front(queue);
    struct wr_range taken = wr_range_take(front, most, most_bytes);
    queue->samples -= taken.count;
    queue->bytes -= taken.bytes;
    queue->values -= wr_range_values(&taken);
    if (!front->segment) {
        queue->first = (queue->first + 1) % queue->room;
        queue->count--;
    }
    return taken;
}
